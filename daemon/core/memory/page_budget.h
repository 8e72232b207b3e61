/*
 * Room for pages: what the system's memory still allows to be made. Pages of sparse memory are charged to the daemon
 * when it makes them, and beyond what there is comes no error but the OOM killer. So they are promised first, to all
 * who make some at the same time, and made while that much is really there.
 *
 * Any thread.
 */
#ifndef DAEMON_PAGE_BUDGET_H
#define DAEMON_PAGE_BUDGET_H

#include <stdatomic.h>
#include <stdint.h>

struct error;

struct page_budget {
    _Atomic uint64_t promised_bytes; /* and not made yet */
    /* Returns the bytes that can be had now, and in words what limits them; UINT64_MAX: nothing is known. */
    uint64_t (*available)(const char **limit);
};

/* Initializes the budget with what the system says. */
void page_budget_init(struct page_budget *budget);
/* Promises so many bytes. Returns 0, or -ENOMEM and *error, which begins with what was asked for. */
int page_budget_promise(struct page_budget *budget, uint64_t bytes, const char *request, struct error *error);
/* Checks again, before so many of the promised bytes are made. */
int page_budget_check(struct page_budget *budget, uint64_t bytes, const char *request, struct error *error);
/* Settles a promise: so many of the promised bytes have been made, or will not be. */
void page_budget_settle(struct page_budget *budget, uint64_t bytes);

#endif

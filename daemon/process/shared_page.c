#include "shared_page.h"

#include <string.h>
#include <sys/mman.h>

struct shared_page *shared_page_create(void)
{
    void *shared_page =
        mmap(NULL, sizeof(struct shared_page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared_page == MAP_FAILED ? NULL : shared_page;
}

/* Writes grants under a sequence lock: H.-J. Boehm, "Can Seqlocks Get Along With Programming Language Memory Models?",
 * 2012. */
void shared_page_give_grants(struct shared_page *shared_page, const struct grants *grants)
{
    uint64_t words[SHARED_PAGE_GRANT_WORDS] = {0};
    unsigned version = atomic_load_explicit(&shared_page->version, memory_order_relaxed);
    memcpy(words, grants, sizeof *grants);
    atomic_store_explicit(&shared_page->version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < SHARED_PAGE_GRANT_WORDS; i++)
        atomic_store_explicit(&shared_page->grants[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&shared_page->version, version + 2, memory_order_release);
}

void shared_page_read_grants(const struct shared_page *shared_page, struct grants *grants)
{
    uint64_t words[SHARED_PAGE_GRANT_WORDS];
    unsigned before, after;
    do {
        before = atomic_load_explicit(&shared_page->version, memory_order_acquire);
        for (size_t i = 0; i < SHARED_PAGE_GRANT_WORDS; i++)
            words[i] = atomic_load_explicit(&shared_page->grants[i], memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        after = atomic_load_explicit(&shared_page->version, memory_order_relaxed);
    } while (before != after || before % 2 != 0);
    memcpy(grants, words, sizeof *grants);
}

#include "shared_page.h"

#include <string.h>
#include <sys/mman.h>

struct shared *shared_create(void)
{
    void *shared = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? NULL : shared;
}

/* A sequence lock: H.-J. Boehm, "Can Seqlocks Get Along With Programming Language Memory Models?", 2012. */
void shared_give_grants(struct shared *shared, const struct grants *grants)
{
    uint64_t words[SHARED_GRANT_WORDS] = {0};
    unsigned version = atomic_load_explicit(&shared->version, memory_order_relaxed);
    memcpy(words, grants, sizeof *grants);
    atomic_store_explicit(&shared->version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < SHARED_GRANT_WORDS; i++)
        atomic_store_explicit(&shared->grants[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&shared->version, version + 2, memory_order_release);
}

void shared_take_grants(const struct shared *shared, struct grants *grants)
{
    uint64_t words[SHARED_GRANT_WORDS];
    unsigned before, after;
    do {
        before = atomic_load_explicit(&shared->version, memory_order_acquire);
        for (size_t i = 0; i < SHARED_GRANT_WORDS; i++)
            words[i] = atomic_load_explicit(&shared->grants[i], memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        after = atomic_load_explicit(&shared->version, memory_order_relaxed);
    } while (before != after || before % 2 != 0);
    memcpy(grants, words, sizeof *grants);
}

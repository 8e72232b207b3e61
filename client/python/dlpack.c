#include "client/python/dlpack.h"

#include <stdatomic.h>
#include <stddef.h>

static _Atomic(struct scand_dlpack *) given_up;

void scand_dlpack_give_up(struct scand_dlpack *self)
{
    struct scand_dlpack *before = atomic_load(&given_up);
    do
        self->context = before;
    while (!atomic_compare_exchange_weak(&given_up, &before, self));
}

struct scand_dlpack *scand_dlpack_given_up(void)
{
    return atomic_exchange(&given_up, NULL);
}

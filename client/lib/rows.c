/* Arrays of the caller's, which lists are filled into. */
#include <errno.h>
#include <string.h>

#include "client/lib/internal.h"

int rows_check(struct scand *daemon, const struct rows *rows)
{
    if (rows->row_bytes > 0)
        return 0;
    return session_fail(daemon, -EINVAL, "row_bytes is 0: give the size of an element of the array, sizeof *array");
}

bool rows_are_full(const struct rows *rows)
{
    return rows->count == rows->capacity;
}

void rows_add(struct rows *rows, const void *row, size_t known_bytes)
{
    char *at = (char *)rows->array + rows->count++ * rows->row_bytes;
    size_t bytes = known_bytes < rows->row_bytes ? known_bytes : rows->row_bytes;
    memcpy(at, row, bytes);
    memset(at + bytes, 0, rows->row_bytes - bytes);
}

#include "alias.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "protocol/status.h"

static int file_compare(const struct file *a, const struct file *b)
{
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return a->inode == b->inode ? 0 : a->inode < b->inode ? -1 : 1;
}

static int compare(const void *a, const void *b)
{
    return file_compare(a, b);
}

int file_identify(struct file *file, int fd, size_t index)
{
    struct stat status;
    if (fstat(fd, &status))
        return -errno;
    *file = (struct file){status.st_dev, status.st_ino, index};
    return 0;
}

/* Refuses the same file twice in one buffer: results would overwrite each other, and no check of extents could tell. */
static int check_different(const struct file *files, size_t count, struct error *error)
{
    for (size_t i = 1; i < count; i++)
        if (file_compare(&files[i - 1], &files[i]) == 0)
            return error_set(error, -EINVAL,
                             "the descriptors of places %zu and %zu are the same memfd; send each memfd once",
                             files[i - 1].index, files[i].index);
    return 0;
}

int files_own(struct files *files, struct file *list, size_t count, uint64_t segment_bytes, struct error *error)
{
    qsort(list, count, sizeof *list, compare);
    int r = check_different(list, count, error);
    if (r)
        free(list);
    else
        *files = (struct files){list, count, segment_bytes};
    return r;
}

int files_init(struct files *files, const int *fds, size_t count, uint64_t segment_bytes, struct error *error)
{
    struct file *list = calloc(count, sizeof *list);
    if (!list)
        return error_set(error, -ENOMEM, "out of memory for another buffer; try again later");
    for (size_t i = 0; i < count; i++) {
        int r = file_identify(&list[i], fds[i], i);
        if (r) {
            free(list);
            return error_set(error, -EBADF, "the descriptor of place %zu cannot be looked at: %s", i, strerror(-r));
        }
    }
    return files_own(files, list, count, segment_bytes, error);
}

void files_finish(struct files *files)
{
    free(files->files);
    *files = (struct files){0};
}

/* Returns the next file that is in both lists, from these places on, which are then behind it. */
static bool next_common(const struct files *a, size_t *i, const struct files *b, size_t *k)
{
    while (*i < a->count && *k < b->count) {
        int order = file_compare(&a->files[*i], &b->files[*k]);
        *i += order <= 0;
        *k += order >= 0;
        if (order == 0)
            return true;
    }
    return false;
}

bool files_share(const struct files *a, const struct files *b)
{
    size_t i = 0, k = 0;
    return next_common(a, &i, b, &k);
}

/* Bytes of the extent that lie in the file, as the file counts them. */
static struct extent within(const struct files *files, const struct file *file, const struct extent *extent)
{
    const uint64_t first = file->index * files->segment_bytes, size = files->segment_bytes;
    uint64_t begin = extent->begin > first ? extent->begin - first : 0;
    uint64_t end = extent->end > first ? extent->end - first : 0;
    return (struct extent){begin, end < size ? end : size};
}

bool files_meet(const struct files *a, const struct extent *x, const struct files *b, const struct extent *y)
{
    size_t i = 0, k = 0;
    while (next_common(a, &i, b, &k)) {
        const struct extent in_a = within(a, &a->files[i - 1], x), in_b = within(b, &b->files[k - 1], y);
        if (in_a.begin < in_b.end && in_b.begin < in_a.end)
            return true;
    }
    return false;
}

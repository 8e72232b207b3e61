#include "file_import.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* File systems of which files are refused. What the kernel makes up may be made for who reads it, which is the daemon
 * here, and not for who opened it. A read from a program's own file system (FUSE) lasts until that program answers, if
 * it ever does, and cannot even be killed. */
#define REFUSED_SYSTEMS(X)              \
    X(PROC_SUPER_MAGIC, "proc")         \
    X(SYSFS_MAGIC, "sysfs")             \
    X(DEBUGFS_MAGIC, "debugfs")         \
    X(TRACEFS_MAGIC, "tracefs")         \
    X(SECURITYFS_MAGIC, "securityfs")   \
    X(SELINUX_MAGIC, "selinuxfs")       \
    X(SMACK_MAGIC, "smackfs")           \
    X(CGROUP_SUPER_MAGIC, "cgroup")     \
    X(CGROUP2_SUPER_MAGIC, "cgroup2")   \
    X(PSTOREFS_MAGIC, "pstore")         \
    X(EFIVARFS_MAGIC, "efivarfs")       \
    X(BPF_FS_MAGIC, "bpf")              \
    X(UINT32_C(0x62656570), "configfs") \
    X(UINT32_C(0x65735546), "FUSE")

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)    ? "a directory"
           : S_ISCHR(mode)  ? "a character device"
           : S_ISBLK(mode)  ? "a block device"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISLNK(mode)  ? "a symbolic link"
                            : "no file";
}

static int check_flags(int fd, struct error *error)
{
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return error_set(error, -EBADF, "buffer.import_file: the descriptor cannot be looked at: %s", strerror(errno));
    if (flags & O_PATH || (flags & O_ACCMODE) == O_WRONLY)
        return error_set(error, -EBADF,
                         "buffer.import_file: the file is not open for reading; open it with O_RDONLY or O_RDWR");
    if (flags & O_DIRECT)
        return error_set(error, -EBADF,
                         "buffer.import_file: the file is open with O_DIRECT, which reads whole blocks alone; open it "
                         "without");
    return 0;
}

static int check_system(int fd, struct error *error)
{
    struct statfs system;
    const char *name = NULL;
    if (fstatfs(fd, &system))
        return error_set(error, -EBADF, "buffer.import_file: the file's file system cannot be told: %s",
                         strerror(errno));
#define X(MAGIC, NAME) name = (uint32_t)system.f_type == (uint32_t)(MAGIC) ? NAME : name;
    REFUSED_SYSTEMS(X)
#undef X
    if (name)
        return error_set(error, -EBADF,
                         "buffer.import_file: the file is in a file system of type %s, of which no files are read; "
                         "copy it into a buffer of buffer.create",
                         name);
    return 0;
}

static int check_file(int fd, uint64_t size_bytes, struct error *error)
{
    struct stat status;
    if (fstat(fd, &status))
        return error_set(error, -EBADF, "buffer.import_file: the file cannot be looked at: %s", strerror(errno));
    if (!S_ISREG(status.st_mode))
        return error_set(error, -EBADF,
                         "buffer.import_file: the descriptor is that of %s; allowed: a regular file, or a memfd",
                         kind_of(status.st_mode));
    if ((uint64_t)status.st_size < size_bytes)
        return error_set(error, -EBADF,
                         "buffer.import_file: \"size\" is %" PRIu64 ", but the file has %" PRIu64
                         " bytes; allowed: at most as many",
                         size_bytes, (uint64_t)status.st_size);
    return 0;
}

int file_prepare(struct buffer *buffer, struct error *error)
{
    const int fd = buffer->fds[0];
    int r;
    if ((r = check_flags(fd, error)) || (r = check_file(fd, buffer->span.size_bytes, error)) ||
        (r = check_system(fd, error)) || (r = files_init(&buffer->files, &fd, 1, buffer->span.size_bytes, error)))
        return r;
    buffer->span.base = FILE_BASE;
    return 0;
}

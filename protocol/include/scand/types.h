/*
 * The vocabulary that programs, the wire and the kernels share: each list stands here once and is expanded wherever it
 * is needed. The second column is the word used on the wire and on command lines.
 */
#ifndef SCAND_TYPES_H
#define SCAND_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SCAND_RANK_MAX   4  /* dimensions of a tensor */
#define SCAND_PASSES_MAX 2  /* passes of one scan */
#define SCAND_STEPS_MAX  8  /* further scans of one job */
#define SCAND_GROUPS_MAX 4  /* groups of jobs, open at a time, of one connection */
#define SCAND_IPC_BYTES  64 /* bytes of a cudaIpcMemHandle_t */

#define SCAND_RAGGED_ROWS_MAX 1048576  /* ragged rows of one job */
#define SCAND_DEADLINE_MS_MAX 86400000 /* a day */
#define SCAND_WAIT_MS_MAX     60000    /* for memory of the pool */

// clang-format off
/* Element types of a tensor. The class is what samples are while they are scanned: f32 (so that f16, bf16, small integers
 * and most file forms are ways to store f32), f64 (i32be and i32le have more digits than an f32), or integers of 64 bits,
 * which wrap. ibm32 is IBM's hexadecimal float. The order is that of the bytes: this machine's, or one of files.
 *  NAME     word       bytes class     order */
#define SCAND_DTYPES(X)                         \
    X(F32,     "f32",     4, F32,      NATIVE)  \
    X(F64,     "f64",     8, F64,      NATIVE)  \
    X(F16,     "f16",     2, F32,      NATIVE)  \
    X(BF16,    "bf16",    2, F32,      NATIVE)  \
    X(I32,     "i32",     4, SIGNED,   NATIVE)  \
    X(I64,     "i64",     8, SIGNED,   NATIVE)  \
    X(U32,     "u32",     4, UNSIGNED, NATIVE)  \
    X(U64,     "u64",     8, UNSIGNED, NATIVE)  \
    X(F32BE,   "f32be",   4, F32,      BIG)     \
    X(I16BE,   "i16be",   2, F32,      BIG)     \
    X(I32BE,   "i32be",   4, F64,      BIG)     \
    X(IBM32,   "ibm32",   4, F32,      BIG)     \
    X(I8,      "i8",      1, F32,      NATIVE)  \
    X(U8,      "u8",      1, F32,      NATIVE)  \
    X(I16,     "i16",     2, F32,      NATIVE)  \
    X(U16,     "u16",     2, F32,      NATIVE)  \
    X(U16BE,   "u16be",   2, F32,      BIG)     \
    X(I32LE,   "i32le",   4, F64,      LITTLE)  \
    X(IBM32LE, "ibm32le", 4, F32,      LITTLE)  \
    X(F64BE,   "f64be",   8, F64,      BIG)     \
    X(I64BE,   "i64be",   8, SIGNED,   BIG)     \
    X(U32BE,   "u32be",   4, UNSIGNED, BIG)     \
    X(U64BE,   "u64be",   8, UNSIGNED, BIG)

/* The number in which a running result is kept. auto: f64 for floats (f32 where `algorithm` names a scan), exact for integers. f2 is
 * a double-word number of two floats: about 48 bits, from single-precision units alone. It has the range of f32: what is
 * beyond 3.4e38 makes NaN of all that it is added to, and below 4e-31 bits are lost. exact: 64-bit integers that
 * wrap, for integers only, which take no other. */
#define SCAND_ACCUMULATORS(X) \
    X(AUTO, "auto")           \
    X(F32, "f32")             \
    X(F64, "f64")             \
    X(F2, "f2")               \
    X(EXACT, "exact")

/* The type to which floats are rounded between two passes. auto: the class of the samples, f32 or f64, so that f64
 * keeps its digits. Integers are not rounded, and take auto alone. */
#define SCAND_INTERMEDIATES(X) \
    X(AUTO, "auto")            \
    X(F64, "f64")              \
    X(F32, "f32")

/* The results of rows. scan: a result for each sample. reduce: one for each row. */
#define SCAND_OPERATIONS(X) \
    X(SCAN, "scan")         \
    X(REDUCE, "reduce")

/* The number that a row is reduced to; none is for scans. mean, rms and norm are of floats only. Of no samples: 0, infinity,
 * -infinity, NaN, NaN, 0; for integers the largest number of the dtype (min) and the smallest (max). */
#define SCAND_REDUCTIONS(X)                                \
    X(NONE, "none")                                        \
    X(SUM, "sum")                                          \
    X(MIN, "min")                                          \
    X(MAX, "max")                                          \
    X(MEAN, "mean")                                        \
    X(RMS, "rms")   /* the root of the mean square */      \
    X(NORM, "norm") /* the root of the sum of squares */

/* inclusive: element i is part of result i. exclusive: it is not; a row begins with the operator's identity. half: half
 * of it is, as a sum of floats that is less half of its last sample: an integral by the midpoint of each sample.
 * trapezoid: and half of the first sample that the pass meets is, so that result 0 is 0: the trapezoidal rule. */
#define SCAND_KINDS(X)         \
    X(INCLUSIVE, "inclusive")  \
    X(EXCLUSIVE, "exclusive")  \
    X(HALF, "half")            \
    X(TRAPEZOID, "trapezoid")

/* max and min: of equal values the one met first stays; a NaN stays for good. affine: the recurrence y[i] = a[i] y[i-1]
 * + x[i], whose coefficients a come with the scan. */
#define SCAND_OPERATORS(X) \
    X(SUM, "sum")          \
    X(PROD, "prod")        \
    X(MAX, "max")          \
    X(MIN, "min")          \
    X(AFFINE, "affine")

/* forward: from the first sample to the last. backward: from the last to the first. */
#define SCAND_PASSES(X)      \
    X(FORWARD, "forward")    \
    X(BACKWARD, "backward")

/* The place of a buffer: shared memory that the program maps, or the memory of the daemon's device. */
#define SCAND_PLACES(X)  \
    X(HOST, "host")      \
    X(DEVICE, "device")

/* The ways in which other processes can be given a device buffer: not at all; by a descriptor of its memory, which
 * CUDA's driver maps (cuMemImportFromShareableHandle); by a handle of 64 bytes (cudaIpcOpenMemHandle). */
#define SCAND_SHARINGS(X)         \
    X(NONE, "none")               \
    X(DESCRIPTOR, "descriptor")   \
    X(HANDLE, "handle")

/* The states of a job. stopping: it was cancelled or has failed, and its last rows are still with the device. */
#define SCAND_JOB_STATES(X)  \
    X(QUEUED, "queued")      \
    X(RUNNING, "running")    \
    X(STOPPING, "stopping")

/* The events of the daemon's event log: a job from its arrival to its reply; a chunk of one while the device had it. */
#define SCAND_EVENTS(X) \
    X(JOB, "job")       \
    X(CHUNK, "chunk")

/* The priorities of a user's jobs: jobs of the lowest rank go first. Other users' jobs are not concerned.
 *  NAME     word      rank */
#define SCAND_PRIORITIES(X)  \
    X(NORMAL, "normal", 1)   \
    X(LOW,    "low",    2)   \
    X(HIGH,   "high",   0)

// clang-format on

/* Whatever macros a program has: names are pasted before they could be replaced, and these are gone at the end. */
#define SCAND_ROW(NAME, WORD, BYTES, CLASS, ORDER) SCAND_DTYPE_##NAME,
enum scand_dtype { SCAND_DTYPES(SCAND_ROW) SCAND_DTYPE_COUNT };
#undef SCAND_ROW
enum scand_class { SCAND_CLASS_F32, SCAND_CLASS_F64, SCAND_CLASS_SIGNED, SCAND_CLASS_UNSIGNED };
enum scand_order { SCAND_ORDER_NATIVE, SCAND_ORDER_BIG, SCAND_ORDER_LITTLE };
#define SCAND_ROW(NAME, WORD) SCAND_OPERATION_##NAME,
enum scand_operation { SCAND_OPERATIONS(SCAND_ROW) SCAND_OPERATION_COUNT };
#undef SCAND_ROW
#define SCAND_ROW(NAME, WORD) SCAND_REDUCTION_##NAME,
enum scand_reduction { SCAND_REDUCTIONS(SCAND_ROW) SCAND_REDUCTION_COUNT };
#undef SCAND_ROW
#define SCAND_ROW(NAME, WORD) SCAND_ACCUMULATOR_##NAME,
enum scand_accumulator { SCAND_ACCUMULATORS(SCAND_ROW) SCAND_ACCUMULATOR_COUNT };
#undef SCAND_ROW
#define SCAND_ROW(NAME, WORD) SCAND_INTERMEDIATE_##NAME,
enum scand_intermediate { SCAND_INTERMEDIATES(SCAND_ROW) SCAND_INTERMEDIATE_COUNT };
#undef SCAND_ROW
#define SCAND_ROW(NAME, WORD) SCAND_KIND_##NAME,
enum scand_kind { SCAND_KINDS(SCAND_ROW) SCAND_KIND_COUNT };
#undef SCAND_ROW
#define SCAND_ROW(NAME, WORD) SCAND_OPERATOR_##NAME,
enum scand_operator { SCAND_OPERATORS(SCAND_ROW) SCAND_OPERATOR_COUNT };
#undef SCAND_ROW
#define SCAND_ROW(NAME, WORD) SCAND_PASS_##NAME,
enum scand_pass { SCAND_PASSES(SCAND_ROW) SCAND_PASS_COUNT };
#undef SCAND_ROW
#define SCAND_ROW(NAME, WORD) SCAND_PLACE_##NAME,
enum scand_place { SCAND_PLACES(SCAND_ROW) SCAND_PLACE_COUNT };
#undef SCAND_ROW
#define SCAND_ROW(NAME, WORD) SCAND_SHARING_##NAME,
enum scand_sharing { SCAND_SHARINGS(SCAND_ROW) SCAND_SHARING_COUNT };
#undef SCAND_ROW
#define SCAND_ROW(NAME, WORD) SCAND_JOB_STATE_##NAME,
enum scand_job_state { SCAND_JOB_STATES(SCAND_ROW) SCAND_JOB_STATE_COUNT };
#undef SCAND_ROW
#define SCAND_ROW(NAME, WORD) SCAND_EVENT_##NAME,
enum scand_event_kind { SCAND_EVENTS(SCAND_ROW) SCAND_EVENT_COUNT };
#undef SCAND_ROW
#define SCAND_ROW(NAME, WORD, RANK) SCAND_PRIORITY_##NAME,
enum scand_priority { SCAND_PRIORITIES(SCAND_ROW) SCAND_PRIORITY_COUNT };
#undef SCAND_ROW

// clang-format off
/* Every outcome a user can see.
 *  NAME            code  word              errno            exit  meaning
 * The exit column is scanctl's exit code (sysexits.h): 64 usage, 65 data, 69 not there, 70 our fault, 75 try again, 77 not
 * permitted; 130, as after SIGINT: somebody stopped it. */
#define SCAND_STATUSES(X)                                                                                             \
    X(OK,             0, "ok",             0,               0, "success")                                             \
    X(INVALID,        1, "invalid",        EINVAL,         64, "an argument is wrong")                                \
    X(MALFORMED,      2, "malformed",      EBADMSG,        70, "a message breaks the protocol")                       \
    X(TOO_LARGE,      3, "too_large",      EMSGSIZE,       70, "a message is larger than the protocol allows")        \
    X(UNKNOWN_METHOD, 4, "unknown_method", ENOSYS,         70, "the daemon has no such method")                       \
    X(VERSION,        5, "version",        EPROTONOSUPPORT, 70, "no protocol version in common")                      \
    X(NOT_FOUND,      6, "not_found",      ENOENT,         64, "no such buffer or job")                               \
    X(DESCRIPTOR,     7, "descriptor",     EBADF,          65, "a file descriptor is missing or cannot be used")      \
    X(BUSY,           8, "busy",           EAGAIN,         75, "a queue or the pool is full for now")                 \
    X(QUOTA,          9, "quota",          EDQUOT,         75, "more than the daemon grants")                         \
    X(NO_MEMORY,     10, "no_memory",      ENOMEM,         75, "out of memory")                                       \
    X(CANCELLED,     11, "cancelled",      ECANCELED,     130, "the job was cancelled")                               \
    X(DRAINING,      12, "draining",       ESHUTDOWN,      75, "the daemon is finishing its work before it stops")    \
    X(DEVICE,        13, "device",         EIO,            70, "the device failed")                                   \
    X(LOST,          14, "lost",           EOWNERDEAD,     75, "the work was lost; its output may be half written") \
    X(UNAVAILABLE,   15, "unavailable",    ECONNREFUSED,   69, "no daemon answers at the socket")                     \
    X(TIMED_OUT,     16, "timed_out",      ETIMEDOUT,      75, "no answer in time")                                   \
    X(UNSUPPORTED,   17, "unsupported",    EOPNOTSUPP,     64, "this daemon or device cannot do that")                \
    X(INTERNAL,      18, "internal",       ENOTRECOVERABLE, 70, "a fault in the daemon")                              \
    X(DEADLINE,      19, "deadline",       ETIME,          75, "the job could not start in time")                     \
    X(PERMISSION,    20, "permission",     EPERM,          77, "this user may not do that")                             \
    X(STALE,         21, "stale",          ESTALE,         75, "what the job reads was to be written by one that failed")  \
    X(FORKED,        22, "forked",         ECHILD,         70, "the connection is that of the process which forked this one") \
    X(DISCONNECTED,  23, "disconnected",   ENOTCONN,       70, "the program has ended the connection") \
    X(INTERRUPTED,   24, "interrupted",    EINTR,          75, "a signal's handler has run while the call waited")
// clang-format on

#define SCAND_ROW(NAME, CODE, WORD, ERRNO, EXIT, TEXT) SCAND_##NAME = CODE,
enum scand_status { SCAND_STATUSES(SCAND_ROW) };
#undef SCAND_ROW

#ifdef __cplusplus
}
#endif

#endif

/*
 * The messages, as one list of methods and one of fields per map. Structs, tables, encoding, decoding and dispatch are
 * expanded from these lists. PROTOCOL.md says what each means.
 *
 * A field row is X(struct, member, KIND, presence, detail); KIND is one of
 *   U64   uint64_t                             detail: largest value allowed
 *   INDEX uint64_t, from 1 on, 0: not there    detail: largest value on the wire, where it counts from 0
 *   F64   double, any at all                   detail: 0
 *   TEXT  char[LIMIT_NAME_BYTES], NUL-ended    detail: 0
 *   PROSE char[LIMIT_ERROR_BYTES], NUL-ended   detail: 0
 *   WORD  uint32_t, an enumerator              detail: its struct words
 *   BYTES binary data of 1 to detail bytes     members: NAME[detail], NAME_count
 *   U64S, I64S  list of 1 to detail numbers    members: NAME[detail], NAME_count
 *   WORDS list of 1 to DETAIL_MAX words        members as above; detail: its struct words
 *   MAP   a nested struct                      detail: the struct's name
 *   MAPS  list of up to DETAIL_MAX structs     members as above; detail: the struct's name
 *   TEXTS list of 1 to detail texts            members: NAME[detail][LIMIT_NAME_BYTES], NAME_count
 *   STEPS list of 1 to detail steps            members: NAME[detail], NAME_count; each is a union msg_step
 *   JOBS  list of up to detail jobs            members: NAME_count, NAME[detail]; each is a struct msg_batch_job, which
 *                                              is one with steps where the map has them; the last field of its map
 *   ITEMS list of any length of structs        members: *NAME, NAME_count, for the sender alone; message_read leaves
 *                                              them zero, and message_read_item reads them; detail: the struct's name
 * Optional fields left out are zero. Rows may have further columns, which are for others.
 */
#ifndef PROTOCOL_MESSAGES_H
#define PROTOCOL_MESSAGES_H

#include "operations.h"
#include "status.h"

#define PROTOCOL_VERSION 1 /* versions that this build speaks: from 1 to this one */

#define pass_words_MAX        SCAND_PASSES_MAX
#define accumulator_words_MAX SCAND_ACCUMULATOR_COUNT
#define reduction_words_MAX   SCAND_REDUCTION_COUNT

#define device_MAX      LIMIT_MAPS
#define kernel_MAX      LIMIT_MAPS
#define job_row_MAX     LIMIT_MAPS
#define client_row_MAX  LIMIT_MAPS
#define user_row_MAX    LIMIT_MAPS
#define trace_event_MAX LIMIT_MAPS
#define then_step_MAX   SCAND_STEPS_MAX
#define parameter_MAX   LIMIT_PARAMETERS
#define operand_MAX     LIMIT_OPERANDS
#define job_outcome_MAX LIMIT_BATCH_JOBS

// clang-format off
#define HELLO_PARAMS(X, S)                            \
    X(S, version_min, U64,  REQUIRED, UINT32_MAX)     \
    X(S, version_max, U64,  REQUIRED, UINT32_MAX)     \
    X(S, client,      TEXT, OPTIONAL, 0)              \
    X(S, strict,      U64,  OPTIONAL, 1)

#define LIMITS_FIELDS(X, S)                                    \
    X(S, message_bytes,     U64, REQUIRED, UINT64_MAX)         \
    X(S, message_fds,       U64, REQUIRED, UINT64_MAX)         \
    X(S, host_buffer_bytes, U64, REQUIRED, UINT64_MAX)         \
    X(S, client_buffers,    U64, REQUIRED, UINT64_MAX)         \
    X(S, client_jobs,       U64, REQUIRED, UINT64_MAX)         \
    X(S, row_samples,       U64, REQUIRED, UINT64_MAX)         \
    X(S, job_steps,         U64, OPTIONAL, UINT64_MAX)         \
    X(S, batch_jobs,        U64, OPTIONAL, UINT64_MAX)         \
    X(S, batch_steps,       U64, OPTIONAL, 1)                  \
    X(S, groups,            U64, OPTIONAL, UINT64_MAX)         \
    X(S, file_chunk_bytes,  U64, OPTIONAL, UINT64_MAX)         \
    X(S, ring_bytes,        U64, OPTIONAL, UINT64_MAX)

#define DEVICE_FIELDS(X, S)                                    \
    X(S, name,               TEXT, REQUIRED, 0)                \
    X(S, backend,            TEXT, REQUIRED, 0)                \
    X(S, memory_bytes,       U64,  REQUIRED, UINT64_MAX)       \
    X(S, memory_limit_bytes, U64,  REQUIRED, UINT64_MAX)       \
    X(S, memory_used_bytes,  U64,  REQUIRED, UINT64_MAX)       \
    X(S, chunk_bytes,        U64,  REQUIRED, UINT64_MAX)       \
    X(S, busy_us,            U64,  OPTIONAL, UINT64_MAX)       \
    X(S, chunks_open,        U64,  OPTIONAL, UINT64_MAX)       \
    X(S, upload_bytes,       U64,  OPTIONAL, UINT64_MAX)       \
    X(S, download_bytes,     U64,  OPTIONAL, UINT64_MAX)       \
    X(S, chunks,             U64,  OPTIONAL, UINT64_MAX)       \
    X(S, bytes_per_s,        U64,  OPTIONAL, UINT64_MAX)

#define HELLO_RESULT(X, S)                                     \
    X(S, version, U64,  REQUIRED, UINT32_MAX)                  \
    X(S, server,  TEXT, REQUIRED, 0)                           \
    X(S, limits,  MAP,  REQUIRED, limits)                      \
    X(S, devices, MAPS, REQUIRED, device)                      \
    X(S, operations, ITEMS, OPTIONAL, operation)

#define BUFFER_CREATE_PARAMS(X, S)                             \
    X(S, size,    U64,   REQUIRED, UINT64_MAX)                 \
    X(S, place,   WORD,  REQUIRED, place_words)                \
    X(S, device,  INDEX, OPTIONAL, LIMIT_DEVICES - 1)          \
    X(S, sharing, WORD,  OPTIONAL, sharing_words)              \
    X(S, wait_ms, U64,   OPTIONAL, LIMIT_WAIT_MS)

/* fds descriptors come with it, each of `segment` bytes: the buffer is their first `size` bytes, in order. */
#define BUFFER_CREATE_RESULT(X, S)                             \
    X(S, buffer,  U64, REQUIRED, UINT64_MAX)                   \
    X(S, segment, U64, REQUIRED, UINT64_MAX)                   \
    X(S, fds,     U64, REQUIRED, LIMIT_MESSAGE_FDS)            \
    X(S, device,  INDEX, OPTIONAL, LIMIT_DEVICES - 1)

#define BUFFER_IMPORT_PARAMS(X, S)                             \
    X(S, size,    U64, REQUIRED, UINT64_MAX)                   \
    X(S, segment, U64, OPTIONAL, UINT64_MAX)                   \
    X(S, fds,     U64, REQUIRED, LIMIT_MESSAGE_FDS)

/* A file that jobs read, as it is at that time. */
#define BUFFER_IMPORT_FILE_PARAMS(X, S)                        \
    X(S, size,    U64, REQUIRED, UINT64_MAX)                   \
    X(S, fds,     U64, REQUIRED, LIMIT_MESSAGE_FDS)

/* Device memory of the client's, by a CUDA IPC handle or by a descriptor: one of the two. */
#define BUFFER_IMPORT_DEVICE_PARAMS(X, S)                      \
    X(S, size,       U64,   REQUIRED, UINT64_MAX)              \
    X(S, offset,     U64,   OPTIONAL, UINT64_MAX)              \
    X(S, handle,     BYTES, OPTIONAL, SCAND_IPC_BYTES)         \
    X(S, allocation, U64,   OPTIONAL, UINT64_MAX)              \
    X(S, fds,        U64,   OPTIONAL, 1)

#define BUFFER_IMPORT_DEVICE_RESULT(X, S)                      \
    X(S, buffer,     U64,   REQUIRED, UINT64_MAX)              \
    X(S, device,     INDEX, OPTIONAL, LIMIT_DEVICES - 1)

/* The buffer is the first `size` bytes of an allocation, which comes as a handle or as a descriptor. */
#define BUFFER_EXPORT_RESULT(X, S)                             \
    X(S, size,       U64,   REQUIRED, UINT64_MAX)              \
    X(S, allocation, U64,   REQUIRED, UINT64_MAX)              \
    X(S, handle,     BYTES, OPTIONAL, SCAND_IPC_BYTES)         \
    X(S, fds,        U64,   OPTIONAL, 1)

/* The memory of the connection's rings, as one descriptor. */
#define RINGS_RESULT(X, S) X(S, fds, U64, REQUIRED, 1)

#define BUFFER_FIELDS(X, S) X(S, buffer, U64, REQUIRED, UINT64_MAX)

#define TENSOR_FIELDS(X, S)                                    \
    X(S, buffer,  U64,  REQUIRED, UINT64_MAX)                  \
    X(S, offset,  U64,  OPTIONAL, UINT64_MAX)                  \
    X(S, dtype,   WORD, REQUIRED, dtype_words)                 \
    X(S, shape,   U64S, REQUIRED, SCAND_RANK_MAX)              \
    X(S, strides, I64S, REQUIRED, SCAND_RANK_MAX)

/* A further scan of a job.submit: of what the one before it has left in the output. */
#define THEN_STEP_FIELDS(X, S) SCAN_PARAMETERS(X, S)

#define JOB_SUBMIT_PARAMS(X, S)                                \
    X(S, input,        MAP,   REQUIRED, tensor)                \
    X(S, output,       MAP,   REQUIRED, tensor)                \
    X(S, axis,         U64,   REQUIRED, SCAND_RANK_MAX - 1)    \
    X(S, passes,       WORDS, OPTIONAL, pass_words)            \
    X(S, kind,         WORD,  OPTIONAL, kind_words)            \
    X(S, op,           WORD,  OPTIONAL, operator_words)        \
    X(S, accumulator,  WORD,  OPTIONAL, accumulator_words)     \
    X(S, intermediate, WORD,  OPTIONAL, intermediate_words)    \
    X(S, progress,     U64,   OPTIONAL, 1)                     \
    X(S, demean,       U64,   OPTIONAL, 1)                     \
    X(S, algorithm,    TEXT,  OPTIONAL, 0)                     \
    X(S, offsets,      MAP,   OPTIONAL, tensor)                \
    X(S, coefficient,  F64,   OPTIONAL, 0)                     \
    X(S, coefficients, MAP,   OPTIONAL, tensor)                \
    X(S, operation,    WORD,  OPTIONAL, operation_words)       \
    X(S, reduction,    WORD,  OPTIONAL, reduction_words)       \
    X(S, priority,     WORD,  OPTIONAL, priority_words)        \
    X(S, deadline_ms,  U64,   OPTIONAL, LIMIT_DEADLINE_MS)     \
    X(S, then,         MAPS,  OPTIONAL, then_step)             \
    X(S, ending,       U64,   OPTIONAL, 1)                     \
    X(S, after_failure, U64,  OPTIONAL, 1)                     \
    X(S, group,        INDEX, OPTIONAL, LIMIT_CLIENT_GROUPS - 1)

#define JOB_RUN_PARAMS(X, S)                                   \
    X(S, input,        MAP,   REQUIRED, tensor)                \
    X(S, output,       MAP,   REQUIRED, tensor)                \
    X(S, axis,         U64,   REQUIRED, SCAND_RANK_MAX - 1)    \
    X(S, steps,        STEPS, REQUIRED, LIMIT_STEPS)           \
    X(S, offsets,      MAP,   OPTIONAL, tensor)                \
    X(S, algorithm,    TEXT,  OPTIONAL, 0)                     \
    X(S, priority,     WORD,  OPTIONAL, priority_words)        \
    X(S, deadline_ms,  U64,   OPTIONAL, LIMIT_DEADLINE_MS)     \
    X(S, progress,     U64,   OPTIONAL, 1)                     \
    X(S, ending,       U64,   OPTIONAL, 1)                     \
    X(S, after_failure, U64,  OPTIONAL, 1)                     \
    X(S, group,        INDEX, OPTIONAL, LIMIT_CLIENT_GROUPS - 1) \
    X(S, axes,         U64S,  OPTIONAL, SCAND_RANK_MAX)

#define JOB_SUBMIT_RESULT(X, S)                                \
    X(S, queued_us,   U64, REQUIRED, UINT64_MAX)               \
    X(S, upload_us,   U64, REQUIRED, UINT64_MAX)               \
    X(S, kernel_us,   U64, REQUIRED, UINT64_MAX)               \
    X(S, download_us, U64, REQUIRED, UINT64_MAX)               \
    X(S, total_us,    U64, REQUIRED, UINT64_MAX)

#define JOB_BATCH_PARAMS(X, S) X(S, jobs, JOBS, REQUIRED, LIMIT_BATCH_JOBS)

/* The end of a job of a batch: times, or an error. */
#define JOB_OUTCOME(X, S)                                      \
    X(S, times, MAP, OPTIONAL, job_submit_result)              \
    X(S, error, MAP, OPTIONAL, failure)

#define JOB_BATCH_RESULT(X, S) X(S, jobs, MAPS, REQUIRED, job_outcome)

/* A job's id is the msgid of its job.submit, or of its job.batch with its place there. */
#define JOB_FIELDS(X, S)                                       \
    X(S, job,   U64,   REQUIRED, UINT32_MAX)                   \
    X(S, index, INDEX, OPTIONAL, LIMIT_BATCH_JOBS - 1)

#define PROGRESS_FIELDS(X, S)                                  \
    X(S, job,       U64,   REQUIRED, UINT32_MAX)               \
    X(S, rows_done, U64,   REQUIRED, UINT64_MAX)               \
    X(S, rows,      U64,   REQUIRED, UINT64_MAX)               \
    X(S, index,     INDEX, OPTIONAL, LIMIT_BATCH_JOBS - 1)

#define DEVICES_RESULT(X, S) X(S, devices, MAPS, REQUIRED, device)

/* A kernel that `algorithm` may name. Operation and dtype are texts: a reader may be older than some of them. */
#define KERNEL_FIELDS(X, S)                                    \
    X(S, name,         TEXT,  REQUIRED, 0)                     \
    X(S, line,         PROSE, REQUIRED, 0)                     \
    X(S, backend,      TEXT,  REQUIRED, 0)                     \
    X(S, accumulators, WORDS, OPTIONAL, accumulator_words)     \
    X(S, repeatable,   U64,   REQUIRED, 1)                     \
    X(S, operation,    TEXT,  OPTIONAL, 0)                     \
    X(S, reductions,   WORDS, OPTIONAL, reduction_words)       \
    X(S, dtype,        TEXT,  OPTIONAL, 0)

/* A parameter or operand of a step, from the list in operations.h. Words are texts here: a reader may be older than
 * some of them. */
#define PARAMETER_FIELDS(X, S)                                 \
    X(S, name,     TEXT,  REQUIRED, 0)                         \
    X(S, kind,     TEXT,  REQUIRED, 0)                         \
    X(S, required, U64,   OPTIONAL, 1)                         \
    X(S, words,    TEXTS, OPTIONAL, LIMIT_PARAMETER_WORDS)     \
    X(S, most,     U64,   OPTIONAL, UINT64_MAX)                \
    X(S, line,     PROSE, REQUIRED, 0)

#define OPERAND_FIELDS(X, S)                                   \
    X(S, name,     TEXT,  REQUIRED, 0)                         \
    X(S, access,   TEXT,  REQUIRED, 0)                         \
    X(S, follows,  TEXT,  REQUIRED, 0)                         \
    X(S, class,    TEXT,  REQUIRED, 0)                         \
    X(S, required, U64,   OPTIONAL, 1)                         \
    X(S, line,     PROSE, REQUIRED, 0)

#define OPERATION_FIELDS(X, S)                                 \
    X(S, name,       TEXT,  REQUIRED, 0)                       \
    X(S, line,       PROSE, REQUIRED, 0)                       \
    X(S, parameters, MAPS,  REQUIRED, parameter)               \
    X(S, operands,   MAPS,  REQUIRED, operand)

/* Causes of errors that are counted each. V(NAME of the status, Y, X, S, member, word) */
#define REFUSALS(V, Y, X, S)                                            \
    V(INVALID,     Y, X, S, refused_invalid,     "invalid")             \
    V(UNSUPPORTED, Y, X, S, refused_unsupported, "unsupported")         \
    V(BUSY,        Y, X, S, refused_busy,        "busy")                \
    V(QUOTA,       Y, X, S, refused_quota,       "quota")               \
    V(NO_MEMORY,   Y, X, S, refused_no_memory,   "no_memory")           \
    V(PERMISSION,  Y, X, S, refused_permission,  "permission")          \
    V(DRAINING,    Y, X, S, refused_draining,    "draining")            \
    V(DEVICE,      Y, X, S, refused_device,      "device")
#define REFUSAL_COUNTER(STATUS, Y, X, S, NAME, WORD) \
    Y(X, S, NAME, OPTIONAL, TOTAL, "messages answered by the error " WORD)

/* The daemon's counters. TOTAL counts since the daemon began, and only grows; NOW is the present number. Y(X, S,
 * member, presence, type, text) */
#define COUNTERS(Y, X, S)                                                                                  \
    Y(X, S, clients_accepted, REQUIRED, TOTAL, "connections accepted")                                     \
    Y(X, S, clients_open,     REQUIRED, NOW,   "connections open")                                         \
    Y(X, S, messages_refused, REQUIRED, TOTAL, "messages answered by an error")                            \
    Y(X, S, buffers_open,     REQUIRED, NOW,   "buffers held")                                             \
    Y(X, S, host_bytes,       REQUIRED, NOW,   "host memory in buffers")                                   \
    Y(X, S, device_bytes,     REQUIRED, NOW,   "device memory in buffers")                                 \
    Y(X, S, pool_bytes,       REQUIRED, NOW,   "host memory of the pool, in all")                          \
    Y(X, S, jobs_submitted,   REQUIRED, TOTAL, "jobs accepted")                                            \
    Y(X, S, jobs_done,        REQUIRED, TOTAL, "jobs done")                                                \
    Y(X, S, jobs_failed,      REQUIRED, TOTAL, "jobs failed")                                              \
    Y(X, S, jobs_cancelled,   REQUIRED, TOTAL, "jobs cancelled, or left by a client")                      \
    Y(X, S, jobs_open,        REQUIRED, NOW,   "jobs queued or running")                                   \
    Y(X, S, rows_scanned,     REQUIRED, TOTAL, "rows scanned")                                             \
    Y(X, S, samples_scanned,  REQUIRED, TOTAL, "samples scanned")                                          \
    Y(X, S, uptime_us,        OPTIONAL, NOW,   "time since the worker began")                              \
    Y(X, S, device_busy_us,   OPTIONAL, TOTAL, "time for which devices had work, added up")                       \
    Y(X, S, chunks_open,      OPTIONAL, NOW,   "chunks that devices have")                               \
    Y(X, S, upload_bytes,     OPTIONAL, TOTAL, "samples that devices read from host memory")            \
    Y(X, S, download_bytes,   OPTIONAL, TOTAL, "samples that devices wrote to host memory")             \
    Y(X, S, jobs_expired,     OPTIONAL, TOTAL, "of the jobs failed, those that could not start in time")       \
    Y(X, S, imported_bytes,   OPTIONAL, NOW,   "device memory of clients in buffers")                      \
    Y(X, S, staged_bytes,     OPTIONAL, NOW,   "host memory in buffers that is not pinned")               \
    Y(X, S, restarts,         OPTIONAL, TOTAL, "workers that were started after one was lost")            \
    Y(X, S, start_us,         OPTIONAL, NOW,   "time from the worker's start until it served")             \
    Y(X, S, outage_us,        OPTIONAL, TOTAL, "time without a worker that served, after one was lost")     \
    Y(X, S, jobs_numbered,    OPTIONAL, TOTAL, "numbers given to jobs and groups of them")                                      \
    Y(X, S, file_bytes,       OPTIONAL, NOW,   "bytes of files in buffers")                                   \
    Y(X, S, file_read_bytes,  OPTIONAL, TOTAL, "bytes of files that were read for jobs")                       \
    Y(X, S, rings_open,       OPTIONAL, NOW,   "connections with rings in shared memory")                      \
    Y(X, S, pool_used_bytes,  OPTIONAL, NOW,   "of the pool, memory that buffers have, in whole segments")     \
    REFUSALS(REFUSAL_COUNTER, Y, X, S)

#define COUNTER_FIELD(X, S, NAME, PRESENCE, TYPE, TEXT) X(S, NAME, U64, PRESENCE, UINT64_MAX)
#define STATS_RESULT(X, S) COUNTERS(COUNTER_FIELD, X, S)

/* Times that ended jobs and chunks took, counted by length. Y(X, S, member, text) */
#define HISTOGRAMS(Y, X, S)                                                                                \
    Y(X, S, job_queued,     "from a job's arrival to the start of its first chunk")                        \
    Y(X, S, job_duration,   "from a job's arrival to its reply")                                           \
    Y(X, S, chunk_upload,   "of chunks' uploads")                                                          \
    Y(X, S, chunk_kernel,   "of chunks' kernels")                                                          \
    Y(X, S, chunk_download, "of chunks' downloads")

/* A histogram of times: how many were at most each of `bounds_us`, but more than the bound before it, and last how many
 * were longer. */
#define HISTOGRAM_FIELDS(X, S)                                 \
    X(S, sum_us, U64,  REQUIRED, UINT64_MAX)                   \
    X(S, counts, U64S, REQUIRED, LIMIT_BUCKETS)

#define HISTOGRAM_FIELD(X, S, NAME, TEXT) X(S, NAME, MAP, OPTIONAL, histogram)
#define HISTOGRAMS_RESULT(X, S)                                \
    X(S, bounds_us, U64S, REQUIRED, LIMIT_BUCKETS - 1)         \
    HISTOGRAMS(HISTOGRAM_FIELD, X, S)

/* Lists that may be longer than a message come in pages, in the order of their numbers: `from` is the lowest number of
 * the page, `next` that of the one after it, 0 after the last. */
#define PAGE_PARAMS(X, S) X(S, from, U64, OPTIONAL, UINT64_MAX)

#define KERNELS_RESULT(X, S)                                   \
    X(S, kernels, MAPS, REQUIRED, kernel)                      \
    X(S, next,    U64,  OPTIONAL, UINT64_MAX)

/* A queued or running job; `job` is its number in this daemon. Name and operation are for those who may see them. */
#define JOB_ROW(X, S)                                          \
    X(S, job,        U64,  REQUIRED, UINT64_MAX)               \
    X(S, client,     U64,  REQUIRED, UINT64_MAX)               \
    X(S, user,       U64,  REQUIRED, UINT32_MAX)               \
    X(S, name,       TEXT, OPTIONAL, 0)                        \
    X(S, operation,  TEXT, OPTIONAL, 0)                        \
    X(S, state,      WORD, REQUIRED, job_state_words)          \
    X(S, rows,       U64,  REQUIRED, UINT64_MAX)               \
    X(S, rows_done,  U64,  REQUIRED, UINT64_MAX)               \
    X(S, bytes,      U64,  REQUIRED, UINT64_MAX)               \
    X(S, age_us,     U64,  REQUIRED, UINT64_MAX)               \
    X(S, running_us, U64,  OPTIONAL, UINT64_MAX)               \
    X(S, priority,   WORD, OPTIONAL, priority_words)

#define JOBS_RESULT(X, S)                                      \
    X(S, jobs, MAPS, REQUIRED, job_row)                        \
    X(S, next, U64,  OPTIONAL, UINT64_MAX)

/* A connection. Name and pid are for those who may see them. user_* is what all connections of its user have together,
 * as it counts against the quota. */
#define CLIENT_ROW(X, S)                                       \
    X(S, client,          U64,  REQUIRED, UINT64_MAX)          \
    X(S, user,            U64,  REQUIRED, UINT32_MAX)          \
    X(S, name,            TEXT, OPTIONAL, 0)                   \
    X(S, pid,             U64,  OPTIONAL, UINT32_MAX)          \
    X(S, age_us,          U64,  REQUIRED, UINT64_MAX)          \
    X(S, buffers,         U64,  REQUIRED, UINT64_MAX)          \
    X(S, host_bytes,      U64,  REQUIRED, UINT64_MAX)          \
    X(S, device_bytes,    U64,  REQUIRED, UINT64_MAX)          \
    X(S, jobs_queued,     U64,  REQUIRED, UINT64_MAX)          \
    X(S, jobs_running,    U64,  REQUIRED, UINT64_MAX)          \
    X(S, jobs_done,       U64,  REQUIRED, UINT64_MAX)          \
    X(S, rows_scanned,    U64,  REQUIRED, UINT64_MAX)          \
    X(S, samples_scanned, U64,  REQUIRED, UINT64_MAX)          \
    X(S, device_busy_us,  U64,  REQUIRED, UINT64_MAX)          \
    X(S, user_host_bytes,    U64, OPTIONAL, UINT64_MAX)        \
    X(S, quota_host_bytes,   U64, OPTIONAL, UINT64_MAX)        \
    X(S, user_device_bytes,  U64, OPTIONAL, UINT64_MAX)        \
    X(S, quota_device_bytes, U64, OPTIONAL, UINT64_MAX)        \
    X(S, user_jobs,          U64, OPTIONAL, UINT64_MAX)        \
    X(S, quota_jobs,         U64, OPTIONAL, UINT64_MAX)        \
    X(S, user_connections,   U64, OPTIONAL, UINT64_MAX)        \
    X(S, quota_connections,  U64, OPTIONAL, UINT64_MAX)

/* A user's numbers, on all connections. TOTAL only grows; NOW is how it stands. Y(X, S, member, type, text) */
#define USER_NUMBERS(Y, X, S)                                                                  \
    Y(X, S, connections,         NOW,   "connections open")                                    \
    Y(X, S, connections_quota,   NOW,   "connections that the user may have")                  \
    Y(X, S, jobs,                NOW,   "jobs queued or running")                              \
    Y(X, S, jobs_quota,          NOW,   "jobs that the user may have")                         \
    Y(X, S, host_bytes,          NOW,   "host memory in buffers, in whole segments of the pool") \
    Y(X, S, host_quota_bytes,    NOW,   "host memory that the user may have")                  \
    Y(X, S, device_bytes,        NOW,   "device memory in buffers")                            \
    Y(X, S, device_quota_bytes,  NOW,   "device memory that the user may have")                \
    Y(X, S, pinned_bytes,        NOW,   "imported memory that is pinned")                      \
    Y(X, S, pinned_quota_bytes,  NOW,   "imported memory that may be pinned")                  \
    Y(X, S, jobs_done,           TOTAL, "jobs done")                                           \
    Y(X, S, jobs_failed,         TOTAL, "jobs failed")                                         \
    Y(X, S, jobs_cancelled,      TOTAL, "jobs cancelled, or left by a client")                 \
    Y(X, S, queued_us,           TOTAL, "time that the jobs done waited for their first chunk to start") \
    Y(X, S, device_busy_us,      TOTAL, "its part of the time for which devices had work")
#define USER_NUMBER(X, S, NAME, TYPE, TEXT) X(S, NAME, U64, OPTIONAL, UINT64_MAX)

#define USER_ROW(X, S)                                         \
    X(S, user, U64, REQUIRED, UINT32_MAX)                      \
    USER_NUMBERS(USER_NUMBER, X, S)

#define USERS_RESULT(X, S)                                     \
    X(S, users, MAPS, REQUIRED, user_row)                      \
    X(S, next,  U64,  OPTIONAL, UINT64_MAX)

#define CLIENTS_RESULT(X, S)                                   \
    X(S, clients, MAPS, REQUIRED, client_row)                  \
    X(S, next,    U64,  OPTIONAL, UINT64_MAX)

/* Jobs that people see as one. The client chooses the label, with which its jobs name their group. */
#define GROUP_BEGIN_PARAMS(X, S)                               \
    X(S, group, U64,  REQUIRED, LIMIT_CLIENT_GROUPS - 1)       \
    X(S, name,  TEXT, OPTIONAL, 0)                             \
    X(S, rows,  U64,  OPTIONAL, UINT64_MAX)

#define GROUP_LABEL(X, S) X(S, group, U64, REQUIRED, LIMIT_CLIENT_GROUPS - 1)

/* A job by its number. */
#define JOB_NUMBER(X, S) X(S, job, U64, REQUIRED, UINT64_MAX)

/* A job, or a chunk of one, that has ended; `event` is its number. Times are of the daemon's clock. */
#define TRACE_EVENT(X, S)                                      \
    X(S, event,       U64,  REQUIRED, UINT64_MAX)              \
    X(S, kind,        WORD, REQUIRED, event_words)             \
    X(S, job,         U64,  REQUIRED, UINT64_MAX)              \
    X(S, client,      U64,  REQUIRED, UINT64_MAX)              \
    X(S, user,        U64,  REQUIRED, UINT32_MAX)              \
    X(S, begin_us,    U64,  REQUIRED, UINT64_MAX)              \
    X(S, end_us,      U64,  REQUIRED, UINT64_MAX)              \
    X(S, code,        U64,  OPTIONAL, UINT32_MAX)              \
    X(S, rows,        U64,  OPTIONAL, UINT64_MAX)              \
    X(S, started_us,  U64,  OPTIONAL, UINT64_MAX)              \
    X(S, slot,        U64,  OPTIONAL, UINT64_MAX)              \
    X(S, upload_us,   U64,  OPTIONAL, UINT64_MAX)              \
    X(S, kernel_us,   U64,  OPTIONAL, UINT64_MAX)              \
    X(S, download_us, U64,  OPTIONAL, UINT64_MAX)              \
    X(S, device,      U64,  OPTIONAL, UINT64_MAX)              \
    X(S, group,       U64,  OPTIONAL, UINT64_MAX)

#define TRACE_RESULT(X, S)                                     \
    X(S, events, MAPS, REQUIRED, trace_event)                  \
    X(S, next,   U64,  OPTIONAL, UINT64_MAX)

/* An error in a response. */
#define FAILURE_FIELDS(X, S)                          \
    X(S, code,     U64,   REQUIRED, UINT32_MAX)       \
    X(S, name,     TEXT,  REQUIRED, 0)                \
    X(S, message,  PROSE, REQUIRED, 0)                \
    X(S, retry_ms, U64,   OPTIONAL, UINT32_MAX)

#define NOTHING_FIELDS(X, S)

/* Every map, innermost first: X(struct, fields), and of steps further columns. The maps of steps follow the first. */
#define FIRST_MAPS(X)                                 \
    X(nothing, NOTHING_FIELDS)                        \
    X(failure, FAILURE_FIELDS)                        \
    X(limits, LIMITS_FIELDS)                          \
    X(device, DEVICE_FIELDS)                          \
    X(kernel, KERNEL_FIELDS)                          \
    X(tensor, TENSOR_FIELDS)                          \
    X(then_step, THEN_STEP_FIELDS)                    \
    X(parameter, PARAMETER_FIELDS)                    \
    X(operand, OPERAND_FIELDS)                        \
    X(operation, OPERATION_FIELDS)

#define JOB_MAPS(X)                                   \
    X(job_submit_params, JOB_SUBMIT_PARAMS)           \
    X(job_run_params, JOB_RUN_PARAMS)

#define LAST_MAPS(X)                                  \
    X(hello_params, HELLO_PARAMS)                     \
    X(hello_result, HELLO_RESULT)                     \
    X(rings_result, RINGS_RESULT)                     \
    X(buffer_create_params, BUFFER_CREATE_PARAMS)     \
    X(buffer_create_result, BUFFER_CREATE_RESULT)     \
    X(buffer_import_params, BUFFER_IMPORT_PARAMS)     \
    X(buffer_import_file_params, BUFFER_IMPORT_FILE_PARAMS) \
    X(buffer_import_device_params, BUFFER_IMPORT_DEVICE_PARAMS) \
    X(buffer_import_device_result, BUFFER_IMPORT_DEVICE_RESULT) \
    X(buffer_export_result, BUFFER_EXPORT_RESULT)     \
    X(buffer_id, BUFFER_FIELDS)                       \
    X(job_submit_result, JOB_SUBMIT_RESULT)           \
    X(job_batch_params, JOB_BATCH_PARAMS)             \
    X(job_outcome, JOB_OUTCOME)                       \
    X(job_batch_result, JOB_BATCH_RESULT)             \
    X(job_id, JOB_FIELDS)                             \
    X(job_progress, PROGRESS_FIELDS)                  \
    X(devices_result, DEVICES_RESULT)                 \
    X(kernels_result, KERNELS_RESULT)                 \
    X(stats_result, STATS_RESULT)                     \
    X(histogram, HISTOGRAM_FIELDS)                    \
    X(histograms_result, HISTOGRAMS_RESULT)           \
    X(page_params, PAGE_PARAMS)                       \
    X(job_row, JOB_ROW)                               \
    X(jobs_result, JOBS_RESULT)                       \
    X(client_row, CLIENT_ROW)                         \
    X(clients_result, CLIENTS_RESULT)                 \
    X(user_row, USER_ROW)                             \
    X(users_result, USERS_RESULT)                     \
    X(job_number, JOB_NUMBER)                         \
    X(trace_event, TRACE_EVENT)                       \
    X(trace_result, TRACE_RESULT)                     \
    X(group_begin_params, GROUP_BEGIN_PARAMS)         \
    X(group_label, GROUP_LABEL)

#define MAPS_LIST(X) FIRST_MAPS(X) OPERATIONS(X) JOB_MAPS(X) LAST_MAPS(X)

/* Every request: X(handler, method, params, result). A method without its handler is a link error in the daemon. */
#define METHODS(X)                                                                   \
    X(hello,          "hello",          hello_params,         hello_result)          \
    X(buffer_create,  "buffer.create",  buffer_create_params, buffer_create_result)  \
    X(buffer_import,  "buffer.import",  buffer_import_params, buffer_id)             \
    X(buffer_release, "buffer.release", buffer_id,            nothing)               \
    X(job_submit,     "job.submit",     job_submit_params,    job_submit_result)     \
    X(job_cancel,     "job.cancel",     job_id,               nothing)               \
    X(server_ping,    "server.ping",    nothing,              nothing)               \
    X(server_stats,   "server.stats",   nothing,              stats_result)          \
    X(server_devices, "server.devices", nothing,              devices_result)        \
    X(server_kernels, "server.kernels", page_params,          kernels_result)        \
    X(server_drain,   "server.drain",   nothing,              nothing)               \
    X(server_histograms, "server.histograms", nothing,     histograms_result)        \
    X(server_jobs,    "server.jobs",    page_params,          jobs_result)           \
    X(server_clients, "server.clients", page_params,          clients_result)        \
    X(server_cancel,  "server.cancel",  job_number,           nothing)               \
    X(server_trace,   "server.trace",   page_params,          trace_result)          \
    X(buffer_import_device, "buffer.import_device", buffer_import_device_params, buffer_import_device_result) \
    X(buffer_export,  "buffer.export",  buffer_id,            buffer_export_result)  \
    X(job_batch,      "job.batch",      job_batch_params,     job_batch_result)      \
    X(job_run,        "job.run",        job_run_params,       job_submit_result)     \
    X(group_begin,    "group.begin",    group_begin_params,   job_number)            \
    X(group_end,      "group.end",      group_label,          nothing)               \
    X(buffer_import_file, "buffer.import_file", buffer_import_file_params, buffer_id) \
    X(server_users,   "server.users",   page_params,          users_result)          \
    X(rings_open,     "rings.open",     nothing,              rings_result)

/* Every notification, all from the daemon: X(name, method, params). */
#define NOTIFICATIONS(X)                              \
    X(job_progress, "job.progress", job_progress)     \
    X(job_ending,   "job.ending",   job_id)

enum method {
#define X(HANDLER, METHOD, PARAMS, RESULT) METHOD_##HANDLER,
    METHODS(X)
#undef X
#define X(NAME, METHOD, PARAMS) METHOD_##NAME,
    NOTIFICATIONS(X)
#undef X
    METHOD_COUNT
};

#define MEMBER_U64(NAME, DETAIL)   uint64_t NAME;
#define MEMBER_INDEX(NAME, DETAIL) uint64_t NAME;
#define MEMBER_F64(NAME, DETAIL)   double NAME;
#define MEMBER_TEXT(NAME, DETAIL)  char NAME[LIMIT_NAME_BYTES];
#define MEMBER_PROSE(NAME, DETAIL) char NAME[LIMIT_ERROR_BYTES];
#define MEMBER_WORD(NAME, DETAIL)  uint32_t NAME;
#define MEMBER_BYTES(NAME, DETAIL) uint8_t NAME[DETAIL]; uint32_t NAME##_count;
#define MEMBER_U64S(NAME, DETAIL)  uint64_t NAME[DETAIL]; uint32_t NAME##_count;
#define MEMBER_I64S(NAME, DETAIL)  int64_t NAME[DETAIL]; uint32_t NAME##_count;
#define MEMBER_WORDS(NAME, DETAIL) uint32_t NAME[DETAIL##_MAX]; uint32_t NAME##_count;
#define MEMBER_MAP(NAME, DETAIL)   struct msg_##DETAIL NAME;
#define MEMBER_MAPS(NAME, DETAIL)  struct msg_##DETAIL NAME[DETAIL##_MAX]; uint32_t NAME##_count;
#define MEMBER_TEXTS(NAME, DETAIL) char NAME[DETAIL][LIMIT_NAME_BYTES]; uint32_t NAME##_count;
#define MEMBER_STEPS(NAME, DETAIL) union msg_step NAME[DETAIL]; uint32_t NAME##_count;
#define MEMBER_JOBS(NAME, DETAIL)  uint32_t NAME##_count; struct msg_batch_job NAME[DETAIL];
#define MEMBER_ITEMS(NAME, DETAIL) const struct msg_##DETAIL *NAME; uint32_t NAME##_count;
#define MEMBER(S, NAME, KIND, PRESENCE, DETAIL, ...) MEMBER_##KIND(NAME, DETAIL)
// clang-format on
#define X(NAME, FIELDS, ...) \
    struct msg_##NAME {      \
        FIELDS(MEMBER, NAME) \
    };
FIRST_MAPS(X)
#undef X
#define X(NAME, FIELDS, ...)                                           \
    struct msg_##NAME {                                                \
        FIELDS(MEMBER, NAME)                                           \
        uint64_t given; /* bit i: field i is given, even if it is 0 */ \
    };
OPERATIONS(X)
#undef X

/* The number of a field of a step. */
#define FIELD_NUMBER(S, NAME, ...) S##_field_##NAME,
#define X(NAME, FIELDS, ...)       enum { FIELDS(FIELD_NUMBER, NAME) };
OPERATIONS(X)
#undef X
#define STEP_GIVES(STEP, S, NAME) (((STEP)->given >> S##_field_##NAME & 1) != 0)

/* A step of a job: the struct of its operation. */
union msg_step {
    uint32_t operation; /* an enum operation_id, with which each begins */
#define X(NAME, ...) struct msg_##NAME NAME;
    OPERATIONS(X)
#undef X
};

#define X(NAME, FIELDS)      \
    struct msg_##NAME {      \
        FIELDS(MEMBER, NAME) \
    };
JOB_MAPS(X)

/* A job of a batch. Of the union nothing but the one that it is is there: neither zero nor sent. */
struct msg_batch_job {
    bool runs; /* true for a job with steps, as job.run takes them */
    union {
        struct msg_job_submit_params submit;
        struct msg_job_run_params run;
    };
};

LAST_MAPS(X)
#undef X

#endif

/*
 * The messages, as one list of methods and one of fields per map. Structs, tables, encoding, decoding and dispatch are
 * expanded from these lists. PROTOCOL.md says what each means.
 *
 * A field row is X(struct, member, KIND, presence, detail); KIND is one of
 *   U64   uint64_t                             detail: largest value allowed
 *   F64   double, any at all                   detail: 0
 *   TEXT  char[LIMIT_NAME_BYTES], NUL-ended    detail: 0
 *   PROSE char[LIMIT_ERROR_BYTES], NUL-ended   detail: 0
 *   WORD  uint32_t, an enumerator              detail: its struct words
 *   U64S, I64S  list of 1 to detail numbers    members: NAME[detail], NAME_count
 *   WORDS list of 1 to DETAIL_MAX words        members as above; detail: its struct words
 *   MAP   a nested struct                      detail: the struct's name
 *   MAPS  list of up to LIMIT_MAPS structs     members as above; detail: the struct's name
 * Optional fields left out are zero.
 */
#ifndef PROTOCOL_MESSAGES_H
#define PROTOCOL_MESSAGES_H

#include "status.h"

#define PROTOCOL_VERSION 1 /* versions that this build speaks: from 1 to this one */

#define pass_words_MAX        SCAND_PASSES_MAX
#define accumulator_words_MAX SCAND_ACCUMULATOR_COUNT

// clang-format off
#define HELLO_PARAMS(X, S)                            \
    X(S, version_min, U64,  REQUIRED, UINT32_MAX)     \
    X(S, version_max, U64,  REQUIRED, UINT32_MAX)     \
    X(S, client,      TEXT, OPTIONAL, 0)

#define LIMITS_FIELDS(X, S)                                    \
    X(S, message_bytes,     U64, REQUIRED, UINT64_MAX)         \
    X(S, message_fds,       U64, REQUIRED, UINT64_MAX)         \
    X(S, host_buffer_bytes, U64, REQUIRED, UINT64_MAX)         \
    X(S, client_buffers,    U64, REQUIRED, UINT64_MAX)         \
    X(S, client_jobs,       U64, REQUIRED, UINT64_MAX)         \
    X(S, row_samples,       U64, REQUIRED, UINT64_MAX)

#define DEVICE_FIELDS(X, S)                                    \
    X(S, name,               TEXT, REQUIRED, 0)                \
    X(S, backend,            TEXT, REQUIRED, 0)                \
    X(S, memory_bytes,       U64,  REQUIRED, UINT64_MAX)       \
    X(S, memory_limit_bytes, U64,  REQUIRED, UINT64_MAX)       \
    X(S, memory_used_bytes,  U64,  REQUIRED, UINT64_MAX)       \
    X(S, chunk_bytes,        U64,  REQUIRED, UINT64_MAX)

#define HELLO_RESULT(X, S)                                     \
    X(S, version, U64,  REQUIRED, UINT32_MAX)                  \
    X(S, server,  TEXT, REQUIRED, 0)                           \
    X(S, limits,  MAP,  REQUIRED, limits)                      \
    X(S, devices, MAPS, REQUIRED, device)

#define BUFFER_CREATE_PARAMS(X, S)                             \
    X(S, size,  U64,  REQUIRED, UINT64_MAX)                    \
    X(S, place, WORD, REQUIRED, place_words)

/* fds descriptors come with it, each of `segment` bytes: the buffer is their first `size` bytes, in order. */
#define BUFFER_CREATE_RESULT(X, S)                             \
    X(S, buffer,  U64, REQUIRED, UINT64_MAX)                   \
    X(S, segment, U64, REQUIRED, UINT64_MAX)                   \
    X(S, fds,     U64, REQUIRED, LIMIT_MESSAGE_FDS)

#define BUFFER_IMPORT_PARAMS(X, S)                             \
    X(S, size,    U64, REQUIRED, UINT64_MAX)                   \
    X(S, segment, U64, OPTIONAL, UINT64_MAX)                   \
    X(S, fds,     U64, REQUIRED, LIMIT_MESSAGE_FDS)

#define BUFFER_FIELDS(X, S) X(S, buffer, U64, REQUIRED, UINT64_MAX)

#define TENSOR_FIELDS(X, S)                                    \
    X(S, buffer,  U64,  REQUIRED, UINT64_MAX)                  \
    X(S, offset,  U64,  OPTIONAL, UINT64_MAX)                  \
    X(S, dtype,   WORD, REQUIRED, dtype_words)                 \
    X(S, shape,   U64S, REQUIRED, SCAND_RANK_MAX)              \
    X(S, strides, I64S, REQUIRED, SCAND_RANK_MAX)

#define JOB_SUBMIT_PARAMS(X, S)                                \
    X(S, input,        MAP,   REQUIRED, tensor)                \
    X(S, output,       MAP,   REQUIRED, tensor)                \
    X(S, axis,         U64,   REQUIRED, SCAND_RANK_MAX - 1)    \
    X(S, passes,       WORDS, REQUIRED, pass_words)            \
    X(S, kind,         WORD,  OPTIONAL, kind_words)            \
    X(S, op,           WORD,  OPTIONAL, operator_words)        \
    X(S, accumulator,  WORD,  OPTIONAL, accumulator_words)     \
    X(S, intermediate, WORD,  OPTIONAL, dtype_words)           \
    X(S, progress,     U64,   OPTIONAL, 1)                     \
    X(S, demean,       U64,   OPTIONAL, 1)                     \
    X(S, algorithm,    TEXT,  OPTIONAL, 0)                     \
    X(S, offsets,      MAP,   OPTIONAL, tensor)                \
    X(S, coefficient,  F64,   OPTIONAL, 0)                     \
    X(S, coefficients, MAP,   OPTIONAL, tensor)

#define JOB_SUBMIT_RESULT(X, S)                                \
    X(S, queued_us,   U64, REQUIRED, UINT64_MAX)               \
    X(S, upload_us,   U64, REQUIRED, UINT64_MAX)               \
    X(S, kernel_us,   U64, REQUIRED, UINT64_MAX)               \
    X(S, download_us, U64, REQUIRED, UINT64_MAX)               \
    X(S, total_us,    U64, REQUIRED, UINT64_MAX)

/* A job's id is the msgid of its job.submit. */
#define JOB_FIELDS(X, S) X(S, job, U64, REQUIRED, UINT32_MAX)

#define PROGRESS_FIELDS(X, S)                                  \
    X(S, job,       U64, REQUIRED, UINT32_MAX)                 \
    X(S, rows_done, U64, REQUIRED, UINT64_MAX)                 \
    X(S, rows,      U64, REQUIRED, UINT64_MAX)

#define DEVICES_RESULT(X, S) X(S, devices, MAPS, REQUIRED, device)

/* What `algorithm` may name. */
#define KERNEL_FIELDS(X, S)                                    \
    X(S, name,         TEXT,  REQUIRED, 0)                     \
    X(S, line,         PROSE, REQUIRED, 0)                     \
    X(S, backend,      TEXT,  REQUIRED, 0)                     \
    X(S, accumulators, WORDS, REQUIRED, accumulator_words)     \
    X(S, repeatable,   U64,   REQUIRED, 1)

#define KERNELS_RESULT(X, S) X(S, kernels, MAPS, REQUIRED, kernel)

/* What the daemon counts since it began. */
#define STATS_RESULT(X, S)                                                                        \
    X(S, clients_accepted, U64, REQUIRED, UINT64_MAX) /* connections accepted */                  \
    X(S, clients_open,     U64, REQUIRED, UINT64_MAX) /* connections open now */                  \
    X(S, messages_refused, U64, REQUIRED, UINT64_MAX) /* messages answered by an error */         \
    X(S, buffers_open,     U64, REQUIRED, UINT64_MAX) /* buffers held now */                      \
    X(S, host_bytes,       U64, REQUIRED, UINT64_MAX) /* host memory in buffers now */            \
    X(S, device_bytes,     U64, REQUIRED, UINT64_MAX) /* device memory in buffers now */          \
    X(S, pool_bytes,       U64, REQUIRED, UINT64_MAX) /* host memory of the pool, in all */       \
    X(S, jobs_submitted,   U64, REQUIRED, UINT64_MAX) /* jobs accepted */                         \
    X(S, jobs_done,        U64, REQUIRED, UINT64_MAX) /* jobs done */                             \
    X(S, jobs_failed,      U64, REQUIRED, UINT64_MAX) /* jobs failed */                           \
    X(S, jobs_cancelled,   U64, REQUIRED, UINT64_MAX) /* jobs cancelled, or left by a client */   \
    X(S, jobs_open,        U64, REQUIRED, UINT64_MAX) /* jobs queued or running now */            \
    X(S, rows_scanned,     U64, REQUIRED, UINT64_MAX) /* rows scanned */                          \
    X(S, samples_scanned,  U64, REQUIRED, UINT64_MAX) /* samples scanned */

/* An error in a response. */
#define FAILURE_FIELDS(X, S)                          \
    X(S, code,     U64,   REQUIRED, UINT32_MAX)       \
    X(S, name,     TEXT,  REQUIRED, 0)                \
    X(S, message,  PROSE, REQUIRED, 0)                \
    X(S, retry_ms, U64,   OPTIONAL, UINT32_MAX)

#define NOTHING_FIELDS(X, S)

/* Every map, innermost first: X(struct, fields). */
#define MAPS_LIST(X)                                  \
    X(nothing, NOTHING_FIELDS)                        \
    X(limits, LIMITS_FIELDS)                          \
    X(device, DEVICE_FIELDS)                          \
    X(kernel, KERNEL_FIELDS)                          \
    X(tensor, TENSOR_FIELDS)                          \
    X(hello_params, HELLO_PARAMS)                     \
    X(hello_result, HELLO_RESULT)                     \
    X(buffer_create_params, BUFFER_CREATE_PARAMS)     \
    X(buffer_create_result, BUFFER_CREATE_RESULT)     \
    X(buffer_import_params, BUFFER_IMPORT_PARAMS)     \
    X(buffer_id, BUFFER_FIELDS)                       \
    X(job_submit_params, JOB_SUBMIT_PARAMS)           \
    X(job_submit_result, JOB_SUBMIT_RESULT)           \
    X(job_id, JOB_FIELDS)                             \
    X(job_progress, PROGRESS_FIELDS)                  \
    X(devices_result, DEVICES_RESULT)                 \
    X(kernels_result, KERNELS_RESULT)                 \
    X(stats_result, STATS_RESULT)                     \
    X(failure, FAILURE_FIELDS)

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
    X(server_kernels, "server.kernels", nothing,              kernels_result)        \
    X(server_drain,   "server.drain",   nothing,              nothing)

/* Every notification, all from the daemon: X(name, method, params). */
#define NOTIFICATIONS(X) X(job_progress, "job.progress", job_progress)

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
#define MEMBER_F64(NAME, DETAIL)   double NAME;
#define MEMBER_TEXT(NAME, DETAIL)  char NAME[LIMIT_NAME_BYTES];
#define MEMBER_PROSE(NAME, DETAIL) char NAME[LIMIT_ERROR_BYTES];
#define MEMBER_WORD(NAME, DETAIL)  uint32_t NAME;
#define MEMBER_U64S(NAME, DETAIL)  uint64_t NAME[DETAIL]; uint32_t NAME##_count;
#define MEMBER_I64S(NAME, DETAIL)  int64_t NAME[DETAIL]; uint32_t NAME##_count;
#define MEMBER_WORDS(NAME, DETAIL) uint32_t NAME[DETAIL##_MAX]; uint32_t NAME##_count;
#define MEMBER_MAP(NAME, DETAIL)   struct msg_##DETAIL NAME;
#define MEMBER_MAPS(NAME, DETAIL)  struct msg_##DETAIL NAME[LIMIT_MAPS]; uint32_t NAME##_count;
#define MEMBER(S, NAME, KIND, PRESENCE, DETAIL) MEMBER_##KIND(NAME, DETAIL)
// clang-format on
#define X(NAME, FIELDS)      \
    struct msg_##NAME {      \
        FIELDS(MEMBER, NAME) \
    };
MAPS_LIST(X)
#undef X

#endif

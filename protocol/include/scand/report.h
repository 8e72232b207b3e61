/*
 * What a daemon tells of itself in numbers. Part of scand.h.
 */
#ifndef SCAND_REPORT_H
#define SCAND_REPORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct scand_device {
    char name[64];                         /* "NVIDIA H200", or the processor's */
    char backend[16];                      /* "cuda" or "cpu" */
    uint64_t memory_bytes;                 /* of the device, in all */
    uint64_t memory_limit_bytes;           /* that this daemon may take of it */
    uint64_t memory_used_bytes;            /* that it has taken now */
    uint64_t chunk_bytes;                  /* rows are moved and scanned in chunks of about this size */
    uint64_t busy_us;                      /* for which it had work, since the daemon began */
    uint64_t chunks_open;                  /* chunks that it has now */
    uint64_t upload_bytes, download_bytes; /* of samples from and to host memory, since the daemon began */
    uint64_t chunks;                       /* chunks that it has at most; 0: the daemon does not say */
    uint64_t bytes_per_s;                  /* that were measured each way with such chunks; 0: not measured */
};

/* A counter of the daemon since it began, by its name. The unit comes last: jobs_done, pool_bytes, uptime_us. */
struct scand_counter {
    const char *name; /* lives as long as the program */
    uint64_t value;
    const char *text; /* what it counts, in a few words; lives as long */
    uint32_t total;   /* 1: it only grows; 0: it is how things stand now */
};

/* How many times were at most bounds_us[i], but longer than bounds_us[i - 1]; the last of counts has no bound. */
#define SCAND_BUCKETS_MAX 24
struct scand_histogram {
    const char *name; /* "job_queued"; lives as long as the program */
    const char *text; /* which times; lives as long */
    uint32_t bound_count;
    uint64_t bounds_us[SCAND_BUCKETS_MAX - 1];
    uint64_t counts[SCAND_BUCKETS_MAX]; /* bound_count + 1 of them */
    uint64_t sum_us;                    /* of all times */
};

#ifdef __cplusplus
}
#endif

#endif

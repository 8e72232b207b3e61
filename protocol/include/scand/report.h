/*
 * The numbers that a daemon tells of itself. Part of scand.h.
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
    uint64_t memory_bytes;                 /* memory of the device, in all */
    uint64_t memory_limit_bytes;           /* memory that this daemon may take of it */
    uint64_t memory_used_bytes;            /* memory that it has taken now */
    uint64_t chunk_bytes;                  /* rows are moved and scanned in chunks of about this size */
    uint64_t busy_us;                      /* for which it had work, since the daemon began */
    uint64_t chunks_open;                  /* chunks that it has now */
    uint64_t upload_bytes, download_bytes; /* samples from and to host memory, since the daemon began */
    uint64_t chunks;                       /* chunks that it has at most; 0: the daemon does not say */
    uint64_t bytes_per_s;                  /* rate measured each way with such chunks; 0: not measured */
};

/* A user of the daemon, on all connections. Host memory counts in whole segments of the daemon's pool. */
struct scand_user_info {
    uint32_t user;
    uint64_t connections, connections_quota; /* open, and allowed at a time */
    uint64_t jobs, jobs_quota;               /* queued or running */
    uint64_t host_bytes, host_quota_bytes;
    uint64_t device_bytes, device_quota_bytes;
    uint64_t pinned_bytes, pinned_quota_bytes; /* imported memory that is pinned, and its quota */
    /* Since the daemon's worker began. They begin anew for a user who left, once many others have come since. */
    uint64_t jobs_done, jobs_failed, jobs_cancelled;
    uint64_t queued_us;      /* time that the jobs done waited for their first chunk to start */
    uint64_t device_busy_us; /* part of the time for which devices had work that counts for this user */
};

/* A counter of the daemon since it began, by its name. The unit comes last: jobs_done, pool_bytes, uptime_us. */
struct scand_counter {
    const char *name; /* lives as long as the program */
    uint64_t value;
    const char *text; /* the counter in a few words; lives as long */
    uint32_t total;   /* 1: it only grows; 0: it is how things stand now */
};

/* A histogram: counts[i] times were at most bounds_us[i], but longer than bounds_us[i - 1]; the last of counts has no
 * bound. */
#define SCAND_BUCKETS_MAX 24
struct scand_histogram {
    const char *name; /* "job_queued"; lives as long as the program */
    const char *text; /* the times in a few words; lives as long */
    uint32_t bound_count;
    uint64_t bounds_us[SCAND_BUCKETS_MAX - 1];
    uint64_t counts[SCAND_BUCKETS_MAX]; /* bound_count + 1 of them */
    uint64_t sum_us;                    /* sum of all times */
};

#ifdef __cplusplus
}
#endif

#endif

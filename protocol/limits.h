/* Every maximum of the system, in bytes and milliseconds, for both sides. hello tells clients what they need. */
#ifndef PROTOCOL_LIMITS_H
#define PROTOCOL_LIMITS_H

#include <stdint.h>

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

/* The wire. */
#define LIMIT_MESSAGE_BYTES    KIB(64)
#define LIMIT_FIRST_READ_BYTES KIB(2)   /* a connection's first read: hello, and what comes with it */
#define LIMIT_MESSAGE_DEPTH    9        /* nested arrays and maps: strides of a step's operand in a batch */
#define LIMIT_MESSAGE_FDS      128      /* descriptors that one message may announce */
#define LIMIT_MESSAGE_MS       5000     /* from a message's first byte to its last */
#define LIMIT_HELLO_MS         5000     /* from the beginning of a connection to its hello */
#define LIMIT_UNREAD_BYTES     KIB(512) /* unsent output above which nothing more is read from its client */
#define LIMIT_UNREAD_MS        10000    /* time for which a client may take nothing of its output */
#define LIMIT_OUTBOX_BYTES     MIB(1)   /* unsent output, with the replies to jobs and buffers that were under way */
#define LIMIT_OUTBOX_FDS       512      /* descriptors that wait with unsent output */
#define LIMIT_RING_BYTES       KIB(64)  /* bytes under way in shared memory, each way: a power of two */
#define LIMIT_NAME_BYTES       64       /* names of clients, servers, devices */
#define LIMIT_ERROR_BYTES      512      /* an error's message */
#define LIMIT_WORDS_BYTES      192      /* the words of a list in an error's message */
#define LIMIT_MAPS             32       /* maps in one list: devices, a page of jobs, clients or kernels */
#define LIMIT_BATCH_JOBS       32       /* jobs of one message */
#define LIMIT_STEPS            (1 + SCAND_STEPS_MAX) /* steps of a job */
#define LIMIT_PARAMETERS       12                    /* parameters of an operation */
#define LIMIT_PARAMETER_WORDS  16                    /* words that one parameter may have */
#define LIMIT_OPERANDS         4                     /* operands of an operation, beside the samples */
#define LIMIT_JOB_OPERANDS     8                     /* operands of a job, with its input, output and offsets */
#define LIMIT_BUCKETS          24                    /* buckets of a histogram */
#define LIMIT_TRACE            4096                  /* ended jobs and chunks that the daemon remembers */

/* The daemon. */
#define LIMIT_TURN_US           32  /* time of the loop for one client's messages, before it looks at the others */
#define LIMIT_TURN_MESSAGES     256 /* messages of a turn */
#define LIMIT_TURN_CHUNKS       64  /* chunks returned by devices that are handled before messages have a turn */
#define LIMIT_GATHER_US         100 /* time for which answers wait for more, where messages of their client wait */
#define LIMIT_GATHER_ASLEEP_US  400 /* the same where their client sleeps, and the loop has other work, */
#define LIMIT_GATHER_JOBS       8   /* if so many of its jobs are under way */
#define LIMIT_BACKLOG           LIMIT_CLIENTS /* connections that wait to be accepted; more wait in connect() */
#define LIMIT_ACCEPT_REST_MS    100           /* pause before the next try where connections cannot be accepted */
#define LIMIT_CLIENTS           1024          /* connections; fewer: half of the descriptors for clients */
#define LIMIT_CLIENTS_KEPT      16            /* connections kept for root and the daemon's own user, */
#define LIMIT_CLIENTS_FIRST     128           /* and for users who have no other connection */
#define LIMIT_CONNECTS          1000          /* connections that a user may open in a second, for long, */
#define LIMIT_CONNECTS_AT_ONCE  2048          /* and how many may come at once */
#define LIMIT_USERS             (LIMIT_CLIENTS + 256) /* users with a connection, or work under way */
#define LIMIT_USERS_KEPT        2                     /* users kept for root and the daemon's own user */
#define LIMIT_OWN_GRANTS        64                    /* users with quotas or a weight of their own */
#define LIMIT_UNADMITTED        8 /* connections of a user beyond its quota that are told so; more are just closed */
#define LIMIT_CLIENT_BUFFERS    256
#define LIMIT_WAIT_MS           60000 /* time for which a request for memory of the pool may wait */
#define LIMIT_FILL_WAIT_MS      1000  /* the same while the pool is being made and the request names no time */
#define LIMIT_CLIENT_WAITS      16    /* requests of one connection that wait so */
#define LIMIT_USER_EIGHTHS      7     /* eighths that a user may have of what others leave of the pool */
#define LIMIT_MAPS_STANDARD     65530 /* memory maps of a process, where the system does not tell (vm.max_map_count) */
#define LIMIT_MAPS_RESERVE      8192  /* memory maps of these for all but imports */
#define LIMIT_CLIENT_JOBS       256   /* jobs of one connection, queued or running */
#define LIMIT_JOBS              4096  /* jobs in all: a user may have half of what others leave */
#define LIMIT_SPARE_JOBS        512   /* jobs whose memory is kept when they have ended */
#define LIMIT_CLIENT_GROUPS     SCAND_GROUPS_MAX /* groups of jobs, open at a time, of one connection */
#define LIMIT_DEADLINE_MS       86400000         /* time that a job may have to start in: a day */
#define LIMIT_USER_WAITING_FDS  512              /* descriptors that have come with messages of a user that wait */
#define LIMIT_WAITING_FDS       4096             /* the same of all users: each may have as many as others leave */
#define LIMIT_LENT_FDS          1024             /* descriptors with threads: each user has half of what others leave */
#define LIMIT_UNREAD_FDS        4096     /* descriptors in unsent answers: each user has half of what others leave */
#define LIMIT_USER_UNREAD_BYTES MIB(16)  /* unsent output of a user */
#define LIMIT_ALL_UNREAD_BYTES  MIB(256) /* the same of all users: each may have half of what others leave */
#define LIMIT_RINGS             128      /* connections with rings: a user may have half of what others leave */
#define LIMIT_RING_LOOKS        256      /* looks at a ring that has nothing, before it is left to its socket */
#define LIMIT_RETRY_MIN_MS      10       /* time after which a client that is told "busy" is asked to try again */
#define LIMIT_RETRY_MAX_MS      60000
#define LIMIT_DEVICES           32
#define LIMIT_HELPERS           4       /* threads for what would hold up the loop */
#define LIMIT_TOUCHED_BYTES     MIB(16) /* memory of a client that the loop may touch: freeing it takes some ms */
#define LIMIT_SLEEP_US          10000   /* time at a user's memory from which on it is seen whether the loop slept */
#define LIMIT_SLEPT_MS          500     /* for how long the loop may sleep at the memory of a user at once, */
#define LIMIT_SLEPT_PARTS       100     /* and for long, one part of so many of the time; else it touches none */
#define LIMIT_REST_PARTS        10      /* a user rests for so many times the time that a device slept at its memory */
#define LIMIT_DISTRUSTED        64      /* users of whom it touches none that are remembered */
#define LIMIT_UNIT_BYTES        MIB(4)  /* memory that a helper gives pages at a time, some 3 ms */
#define LIMIT_CHUNKS_IN_FLIGHT  4       /* chunks handed to one device and not yet done */
#define LIMIT_OWED_MS           100     /* device time kept for a user who leaves its jobs to another device */
#define LIMIT_SLICE_MS          20      /* time of a row longer than two chunks on a device that can leave it off */
#define LIMIT_ESTIMATE_MS       20      /* device time that a chunk is charged at most before it has come back */
#define LIMIT_LAUNCH_MS         10      /* estimated work of a GPU on a row between two looks whether it is wanted */
#define LIMIT_SMALL_CHUNKS      128     /* chunks of small jobs besides, */
#define LIMIT_SMALL_OUT_BYTES   MIB(16) /* until they have so many bytes together */
#define LIMIT_DRAIN_GROUP_MS    2000    /* time for which a drain waits for the next job of a group, to refuse it */
#define LIMIT_DRAINED_MS        5000    /* time at the end of a drain for clients to take their last replies */
#define LIMIT_LAST_INPUT_MS     1000    /* time before that to refuse what clients have sent until then */
#define LIMIT_LOST_MS           2000    /* the same when the device is lost and everybody waits for the next worker */
#define LIMIT_QUICK_MS          2000    /* time that a worker has to serve for its end not to be a failure */

/* Metrics over HTTP. */
#define LIMIT_HTTP_CONNECTIONS 16
#define LIMIT_HTTP_BYTES       KIB(8) /* memory for a connection: a request's head fits, or is refused */
#define LIMIT_HTTP_MS          5000   /* from a connection's start to its end */
#define LIMIT_HTTP_PAGE_MS     50     /* for which a page is kept, and given to all who ask */

/* Buffers. A host buffer is a segment, of a power of two, or several large ones. */
#define LIMIT_SMALLEST_SEGMENT_BYTES KIB(4)
#define LIMIT_POOL_FILES             2048 /* segments that are not large: each takes a descriptor and a memory map */
#define LIMIT_LARGE_SEGMENT_BYTES    MIB(16)
#define LIMIT_HOST_BUFFER_BYTES      (LIMIT_MESSAGE_FDS * LIMIT_LARGE_SEGMENT_BYTES) /* of the pool */
#define LIMIT_IMPORT_BYTES           GIB(512) /* all descriptors of one import together */
#define LIMIT_MEMORY_RESERVE_BYTES   MIB(64)  /* available memory that is never promised to anybody */
/* Device memory for other processes is a multiple, so that it holds nothing else. */
#define LIMIT_SHARED_UNIT_BYTES MIB(2)

/* Files that jobs read. */
#define LIMIT_FILE_BYTES      (UINT64_C(1) << 46) /* bytes of one file */
#define LIMIT_FILES           4096                /* files open in buffers: a user may have half of what others leave */
#define LIMIT_READERS         64                  /* threads that read them, */
#define LIMIT_USER_READERS    4                   /* of which a user may have so many at a time */
#define LIMIT_LOAD_BYTES      MIB(256)         /* files that are read for one chunk, with what lies between its rows */
#define LIMIT_JOB_LOADS       4                /* chunks of a job that are read before a device has them */
#define LIMIT_USER_FED        8                /* jobs of a user for which something is read */
#define LIMIT_USER_LOADS      32               /* chunks of a user that are read, or have been and are not done, */
#define LIMIT_USER_LOAD_BYTES LIMIT_LOAD_BYTES /* and the memory for them */
#define LIMIT_LOADS           1024             /* such chunks of all users: each may have half of what others leave */
#define LIMIT_ALL_LOAD_BYTES  GIB(4)
#define LIMIT_LOAD_MS         300000  /* time that a chunk may take to be read, with its turns */
#define LIMIT_KEPT_LOAD_BYTES MIB(64) /* memory of these kept for the next while nothing is in it */

/* Scans. */
#define LIMIT_ROW_SAMPLES (UINT64_C(1) << 33)
#define LIMIT_ROWS        (UINT64_C(1) << 40)
/* Samples of a row with "algorithm": many variants have a thread or a thread block for it, which nothing interrupts. */
#define LIMIT_ALGORITHM_SAMPLES (UINT64_C(1) << 23)

/* Samples of a row that a step joins to one number, or adds to bins, where a thread or a thread block does, which
 * nothing interrupts. */
#define LIMIT_JOINED_SAMPLES (UINT64_C(1) << 24)

/* Operations' parameters. */
#define LIMIT_FACTOR     (UINT64_C(1) << 16) /* factor by which rows are upsampled, or summed */
#define LIMIT_DT_MIN     1e-30               /* sample interval of a derivative, */
#define LIMIT_DT_MAX     1e30                /* so that f32 has it */
#define LIMIT_HALF_WIDTH 2048                /* half-width of triangles and boxes, in samples */
#define LIMIT_BINS       (UINT64_C(1) << 24) /* bins into which samples of a row are added */
#define LIMIT_POWER_MIN  0x1p-10             /* power of a fold: its fraction is that many square roots */
#define LIMIT_POWER_MAX  8.0
#define LIMIT_TAPS       4096 /* taps of a filter */

/* Values between steps, where the output has no room for them: a device has memory for those of a chunk. */
#define LIMIT_BETWEEN_BYTES       MIB(16) /* values of a row */
#define LIMIT_BETWEEN_CHUNK_BYTES MIB(64) /* values of a chunk of several rows, with what else it has */

/* Ragged rows: a job has a copy of its offsets for as long as it is there. Few are copied in the loop, others by
 * helpers, unit by unit. */
#define LIMIT_RAGGED_ROWS          (UINT64_C(1) << 20) /* ragged rows of a job */
#define LIMIT_SMALL_RAGGED_ROWS    128                 /* ragged rows of a small job: rows take time to begin */
#define LIMIT_CHUNK_ROWS           (UINT64_C(1) << 17) /* ragged rows handed to a device at a time */
#define LIMIT_CLIENT_OFFSETS_BYTES MIB(64)             /* offsets of all jobs of one connection */
#define LIMIT_USER_OFFSETS_BYTES   MIB(256)            /* offsets of all jobs of one user */
#define LIMIT_OFFSETS_BYTES        GIB(1)              /* of all: each user half of what others leave */
#define LIMIT_LOOP_OFFSETS         1024                /* offsets of a job, copied in the loop, */
#define LIMIT_LOOP_OFFSETS_BYTES   KIB(16)             /* if they lie in so many bytes */
#define LIMIT_UNIT_OFFSETS         (UINT64_C(1) << 16) /* copied by a helper at a time, */
#define LIMIT_UNIT_OFFSETS_BYTES   MIB(4)              /* out of so many bytes */

#endif

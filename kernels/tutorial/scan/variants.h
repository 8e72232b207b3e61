/*
 * The scans of the tutorials, by name: each works, is tested, and can be measured next to the kernel that wins. They
 * keep their own association, which the file of each states, so their bits are not those of order 1
 * (kernels/order1/order.h).
 *
 * Plain C: names and lessons are in every build, the CUDA ones run in a build with CUDA. To add a variant: its file,
 * and a row here.
 */
#ifndef KERNELS_TUTORIAL_SCAN_VARIANTS_H
#define KERNELS_TUTORIAL_SCAN_VARIANTS_H

#include <scand/types.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VARIANT_LENGTH_MAX (UINT64_C(1) << 31)

/* Sums of f32 samples, inclusive. Between two passes the value is rounded to f32: it is stored in the output. */
struct variant_scan {
    const float *input; /* sample 0 of row 0 */
    float *output;      /* rows of the output: those of the input, or memory apart from them */
    uint64_t rows;
    uint64_t length;     /* samples per row, at most VARIANT_LENGTH_MAX */
    int64_t input_pitch; /* bytes from row to row, a multiple of 4 */
    int64_t output_pitch;
    enum scand_pass passes[SCAND_PASSES_MAX]; /* run in order */
    uint32_t pass_count;                      /* 1 or 2 */
    enum scand_accumulator accumulator;
};

#define VARIANT_F32 (1u << SCAND_ACCUMULATOR_F32)
#define VARIANT_ALL (VARIANT_F32 | 1u << SCAND_ACCUMULATOR_F64 | 1u << SCAND_ACCUMULATOR_F2)

// clang-format off
/*
 * The variants, in the order in which they are best read. FIXED: two runs give the same bits. VARIES: they need not.
 *    symbol                      name                          where accumulators order   workspace; what it teaches */
#define VARIANTS(X)                                                                                                   \
    X(serial_cpu,                 "serial-cpu",                 CPU,  VARIANT_ALL, FIXED,  variant_no_workspace,      \
      "the definition: one thread adds a row's samples one by one")                                                   \
    X(smem_v0_pad0,               "smem-v0-pad0",               CUDA, VARIANT_ALL, FIXED,  variant_no_workspace,      \
      "a thread per row, tiles transposed through shared memory: 32 lanes meet in one bank")                          \
    X(smem_v0_pad1,               "smem-v0-pad1",               CUDA, VARIANT_ALL, FIXED,  variant_no_workspace,      \
      "smem-v0-pad0 with tile rows one float longer: every lane in a bank of its own")                                \
    X(smem_v1_pad0,               "smem-v1-pad0",               CUDA, VARIANT_ALL, FIXED,  variant_no_workspace,      \
      "smem-v0-pad0 with the edges peeled: what is left is the banks")                                                \
    X(smem_v1,                    "smem-v1",                    CUDA, VARIANT_ALL, FIXED,  variant_no_workspace,      \
      "smem-v0-pad1 with the edges peeled: full tiles run without branches")                                          \
    X(warp_v0,                    "warp-v0",                    CUDA, VARIANT_ALL, FIXED,  variant_no_workspace,      \
      "a warp per row: lanes exchange sums by shuffles, without shared memory")                                       \
    X(hillis_steele_global,       "hillis-steele-global",       CUDA, VARIANT_F32, FIXED,  hillis_steele_workspace,   \
      "a launch per distance 1, 2, 4, ...: log2(n) trips through global memory")                                      \
    X(hillis_steele_shared,       "hillis-steele-shared",       CUDA, VARIANT_F32, FIXED,  variant_no_workspace,      \
      "the same steps inside a tile of shared memory: one trip, a carry from tile to tile")                           \
    X(kogge_stone,                "kogge-stone",                CUDA, VARIANT_F32, FIXED,  variant_no_workspace,      \
      "own sum in a register, one buffer, two barriers per step")                                                     \
    X(kogge_stone_double_buffered,"kogge-stone-double-buffered",CUDA, VARIANT_F32, FIXED,  variant_no_workspace,      \
      "two buffers in turn: one barrier per step")                                                                    \
    X(brent_kung,                 "brent-kung",                 CUDA, VARIANT_F32, FIXED,  variant_no_workspace,      \
      "up and down a tree: 2n additions instead of n log2(n), in more steps with idle threads")                       \
    X(coarsened,                  "coarsened",                  CUDA, VARIANT_F32, FIXED,  variant_no_workspace,      \
      "three phases: several samples per thread one by one, a scan of the threads' totals, an addition")              \
    X(hierarchical,               "hierarchical",               CUDA, VARIANT_F32, FIXED,  hierarchical_workspace,    \
      "three kernels: tiles of a row at once, a scan of their totals, an addition")                                   \
    X(single_pass,                "single-pass",                CUDA, VARIANT_F32, FIXED,  single_pass_workspace,     \
      "one kernel: a tile looks back at its predecessors' sums, added in a fixed order")                              \
    X(cub_by_key,                 "cub-by-key",                 CUDA, VARIANT_F32, VARIES, cub_by_key_workspace,      \
      "the library's way: all rows as one scan by key, the key being the number of the row")
// clang-format on

/* A variant's properties that are known without running it. */
struct variant {
    const char *name;
    const char *teaches;
    unsigned accumulators; /* bit 1 << enum scand_accumulator */
    bool on_cpu;           /* runs on host memory and returns when done; otherwise on the current CUDA device */
    bool fixed_order;      /* two runs give the same bits */
};

#define X(SYMBOL, NAME, WHERE, ACCUMULATORS, ORDER, WORKSPACE, TEACHES) VARIANT_##SYMBOL,
enum variant_id { VARIANTS(X) VARIANT_COUNT };
#undef X

extern const struct variant variant_list[VARIANT_COUNT];

/* The index of a name in variant_list, or -1. */
int variant_find(const char *name);

struct CUstream_st;

/* Returns how much memory variant_run needs, of the kind that the samples lie in; 0: none. */
uint64_t variant_workspace_bytes(enum variant_id id, const struct variant_scan *scan);

/*
 * Runs a variant, or queues it on `stream`. Returns a cudaError_t (0 is success), cudaErrorNotSupported for an
 * accumulator that it does not offer. `workspace`, 16-byte aligned, of variant_workspace_bytes, belongs to the call
 * until the stream has passed it. Only in a build with CUDA.
 */
int variant_run(enum variant_id id, const struct variant_scan *scan, void *workspace, struct CUstream_st *stream);

/* Runs a variant that is on_cpu, in every build. */
void variant_run_cpu(enum variant_id id, const struct variant_scan *scan);

struct scan_rows;

/* Rows first <= r < first + count as variants take them: f32 in and out, contiguous samples, at most one outer axis. */
struct variant_scan variant_scan_from(const struct scan_rows *rows, uint64_t first, uint64_t count);

/* One of each per row of the list; callers use the functions above. */
#define X(SYMBOL, NAME, WHERE, ACCUMULATORS, ORDER, WORKSPACE, TEACHES)                       \
    int SYMBOL(const struct variant_scan *scan, void *workspace, struct CUstream_st *stream); \
    uint64_t WORKSPACE(const struct variant_scan *scan);
VARIANTS(X)
#undef X

#ifdef __cplusplus
}
#endif

#endif

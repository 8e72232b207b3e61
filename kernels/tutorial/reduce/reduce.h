/*
 * Reductions of rows, by name: the ladder that tutorials climb from a naive kernel to a fast one, and two for the norm,
 * of many rows and of one that is a whole tensor. Sums are kept in f64, in an order that depends on the row's length
 * alone, except where atomic additions join them.
 *
 * Plain C: names and lessons are in every build, the kernels in a build with CUDA. To add one: its file, and a row
 * here.
 */
#ifndef KERNELS_TUTORIAL_REDUCE_REDUCE_H
#define KERNELS_TUTORIAL_REDUCE_REDUCE_H

#include <scand/types.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REDUCE_ONLY(NAME) (1u << SCAND_REDUCTION_##NAME)
#define REDUCE_ALL        (((1u << SCAND_REDUCTION_COUNT) - 1) & ~REDUCE_ONLY(NONE))

// clang-format off
/*
 * The reductions, in the order in which they are best read. `span`: samples that a thread block reduces; a row of more
 * takes several launches, each over the results of the one before. 0: all of a row in one launch. FIXED: two runs give
 * the same bits. VARIES: they need not.
 *    symbol         name             operations         span   order; what it teaches */
#define REDUCTIONS(X)                                                                               \
    X(reduce_v0,     "reduce-v0",     REDUCE_ALL,        256,   FIXED,                              \
      "a tree in shared memory whose idle threads lie between the busy")                            \
    X(reduce_v1,     "reduce-v1",     REDUCE_ALL,        256,   FIXED,                              \
      "no divergence: the busy threads are neighbours")                                             \
    X(reduce_v2,     "reduce-v2",     REDUCE_ALL,        256,   FIXED,                              \
      "no bank conflicts: what neighbours add lies side by side")                                   \
    X(reduce_v3,     "reduce-v3",     REDUCE_ALL,        512,   FIXED,                              \
      "no idle threads: each combines two samples while loading")                                   \
    X(reduce_v4,     "reduce-v4",     REDUCE_ALL,        512,   FIXED,                              \
      "the last warp unrolled: no barriers where one warp is left")                                 \
    X(reduce_v5,     "reduce-v5",     REDUCE_ALL,        512,   FIXED,                              \
      "fully unrolled: no loop is left")                                                            \
    X(reduce_v6,     "reduce-v6",     REDUCE_ALL,        16384, FIXED,                              \
      "many samples per thread: most of the work needs no tree")                                    \
    X(reduce_v7,     "reduce-v7",     REDUCE_ALL,        16384, FIXED,                              \
      "shuffles: the tree leaves shared memory")                                                    \
    X(norm_1,        "norm-1",        REDUCE_ONLY(NORM), 0,     FIXED,                              \
      "a thread per row: neighbours touch memory a row apart")                                      \
    X(norm_2,        "norm-2",        REDUCE_ONLY(NORM), 0,     FIXED,                              \
      "a warp per row: coalesced, and a tree of shuffles")                                          \
    X(norm_3,        "norm-3",        REDUCE_ONLY(NORM), 0,     FIXED,                              \
      "a thread block per row: more of each row on its way at once")                                \
    X(norm_4,        "norm-4",        REDUCE_ONLY(NORM), 0,     FIXED,                              \
      "16 bytes per load where rows are aligned: a quarter of the loads")                           \
    X(norm_5,        "norm-5",        REDUCE_ONLY(NORM), 16384, FIXED,                              \
      "parts of a row by thread blocks of their own: few long rows fill the GPU too")               \
    X(tensor_norm_1, "tensor-norm-1", REDUCE_ONLY(NORM), 0,     FIXED,                              \
      "one block, each thread a contiguous part: neighbours touch lines far apart")                 \
    X(tensor_norm_2, "tensor-norm-2", REDUCE_ONLY(NORM), 0,     FIXED,                              \
      "one block, coalesced: neighbours take neighbours; the rest of the GPU idles")                \
    X(tensor_norm_3, "tensor-norm-3", REDUCE_ONLY(NORM), 0,     VARIES,                             \
      "many blocks: the first thread of each adds its partial sums from shared memory")             \
    X(tensor_norm_4, "tensor-norm-4", REDUCE_ONLY(NORM), 0,     VARIES,                             \
      "a library's block reduction, and one atomic addition per block")                             \
    X(tensor_norm_5, "tensor-norm-5", REDUCE_ONLY(NORM), 0,     VARIES,                             \
      "a library's warp reduction, a tree by hand across warps, one atomic addition")
// clang-format on

#define X(SYMBOL, NAME, OPS, SPAN, ORDER, TEACHES) REDUCTION_##SYMBOL,
enum reduction_id { REDUCTIONS(X) REDUCTION_COUNT };
#undef X
#define X(SYMBOL, NAME, OPS, SPAN, ORDER, TEACHES) SPAN_##SYMBOL = SPAN,
enum reduction_span { REDUCTIONS(X) };
#undef X

struct reduction {
    const char *name;
    const char *teaches;
    unsigned ops; /* bit 1 << enum scand_reduction */
    uint32_t span;
    bool fixed_order; /* two runs give the same bits */
};
extern const struct reduction reduction_list[REDUCTION_COUNT];

/* The index of a name in reduction_list, or -1. */
int reduction_find(const char *name);

/* Rows of f32 samples; one result per row. */
struct reduce_rows {
    const float *input; /* sample 0 of row 0 */
    double *output;
    uint64_t rows, length;
    int64_t pitch; /* bytes from row to row, a multiple of 4 */
    enum scand_reduction op;
};

struct scan_rows;

/* Rows first <= r < first + count as reductions take them: f32 to dense f64, contiguous samples, at most one outer
 * axis. */
struct reduce_rows reduce_rows_from(const struct scan_rows *rows, uint64_t first, uint64_t count);

struct CUstream_st;

/* Returns how much device memory reduction_run needs; 0: none. */
uint64_t reduction_workspace_bytes(enum reduction_id id, const struct reduce_rows *rows);

/*
 * Queues a reduction on `stream` of the current device. Returns a cudaError_t (0 is success), cudaErrorNotSupported for
 * an operation that it does not offer. `workspace`, 16-byte aligned, of reduction_workspace_bytes, belongs to the call
 * until the stream has passed it. Only in a build with CUDA.
 */
int reduction_run(enum reduction_id id, const struct reduce_rows *rows, void *workspace, struct CUstream_st *stream);

/* One per row of the list; callers use reduction_run. */
#define X(SYMBOL, NAME, OPS, SPAN, ORDER, TEACHES) \
    int SYMBOL(const struct reduce_rows *rows, void *workspace, struct CUstream_st *stream);
REDUCTIONS(X)
#undef X

#ifdef __cplusplus
}
#endif

#endif

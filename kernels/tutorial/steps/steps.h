/*
 * Operations in tiles as the tutorials have them, by name. Each is launched as the operation's own kernel is
 * (kernels/steps/step.h), takes rows of any layout whose results are aligned, and is tested against the same reference.
 *
 * Plain C: names and lessons are in every build, the kernels in a build with CUDA. To add one: its file, and a row
 * here.
 */
#ifndef KERNELS_TUTORIAL_STEPS_STEPS_H
#define KERNELS_TUTORIAL_STEPS_STEPS_H

#include "kernels/steps/step.h"
#include "protocol/operations.h"

#ifdef __cplusplus
extern "C" {
#endif

// clang-format off
/*
 * The variants, in the order in which they are best read. All operands have the one dtype, but for an index. FIXED: the
 * bits of the reference. VARIES: sums whose order is another one in each run.
 *    symbol                 name                    operation  kernel     dtype order; what it teaches */
#define STEP_VARIANTS(X)                                                                          \
    X(dot_atomic,            "dot-atomic",           dot,       dot,       F32,  VARIES,          \
      "a grid-stride loop: each thread adds its own sum to the result with atomicAdd")            \
    X(dot_pairs,             "dot-pairs",            dot,       dot,       F16,  VARIES,          \
      "halves read by pairs; one atomicAdd of a pair serves two neighbouring rows")               \
    X(dot_fast_atomic,       "dot-fast-atomic",      dot,       dot,       F16,  VARIES,          \
      "a half is added with the aligned pair that it lies in, zero being added to its neighbour") \
    X(map_naive,             "map-naive",            map,       map,       F32,  FIXED,           \
      "a thread per element, four bytes at a time")                                               \
    X(map_packs,             "map-packs",            map,       map,       F32,  FIXED,           \
      "a functor on packs of 16 bytes where rows are aligned: a quarter of the loads and stores") \
    X(map_pairs,             "map-pairs",            map,       map,       F16,  FIXED,           \
      "two halves per load, a functor of two arguments, and a tail of one")                       \
    X(upsample_naive,        "upsample-naive",       upsample,  upsample,  F32,  FIXED,           \
      "a thread per output, which looks up its sample: a division for four bytes")                \
    X(upsample_pairs,        "upsample-pairs",       upsample,  upsample,  F32,  FIXED,           \
      "two outputs stored at once, and a tail of one: half of the stores")                        \
    X(upsample_half_pairs,   "upsample-half-pairs",  upsample,  upsample,  F16,  FIXED,           \
      "two halves stored at once, as one word")                                                   \
    X(block_sum_naive,       "block-sum-naive",      block_sum, block_sum, F32,  FIXED,           \
      "upsampling backward, a thread per sum: neighbours read what lies a block apart")           \
    X(block_sum_pairs,       "block-sum-pairs",      block_sum, block_sum, F32,  FIXED,           \
      "two samples loaded at once, where blocks have an even number of them")                     \
    X(block_sum_half_pairs,  "block-sum-half-pairs", block_sum, block_sum, F16,  FIXED,           \
      "two halves loaded at once, and added in f64")                                              \
    X(convolve_direct,       "convolve-direct",      convolve,  convolve,  F32,  FIXED,           \
      "a thread per output: a tap and a sample from global memory for each addition")             \
    X(convolve_constant,     "convolve-constant",    convolve,  convolve,  F32,  FIXED,           \
      "the filter in constant memory, which gives one tap to all lanes at once")                  \
    X(convolve_shared,       "convolve-shared",      convolve,  convolve,  F32,  FIXED,           \
      "samples staged in shared memory too, with a halo: read once for 256 outputs")              \
    X(index_add_atomic,      "index-add-atomic",     index_add, stack,     F32,  VARIES,          \
      "a thread per sample, found by one flat index, adds it to its bin with atomicAdd")
// clang-format on

#define X(SYMBOL, NAME, OPERATION, KERNEL, DTYPE, ORDER, TEACHES) STEP_VARIANT_##SYMBOL,
enum step_variant_id { STEP_VARIANTS(X) STEP_VARIANT_COUNT };
#undef X

struct step_variant {
    const char *name;
    const char *teaches;
    enum operation_id operation;
    const struct step_kernel *kernel;
    enum scand_dtype dtype;
    bool fixed_order; /* two runs give the same bits */
};
extern const struct step_variant step_variant_list[STEP_VARIANT_COUNT];

/* The index of a name in step_variant_list, or -1. */
int step_variant_find(const char *name);

/* Launches a variant, as a step_launch of step.h does. Returns cudaErrorNotSupported for operands of other dtypes,
 * results beside the output, results that do not lie at multiples of their size, ragged rows, and in a build without
 * SCAND_TUTORIAL. Only in a build with CUDA. */
int step_variant_launch(enum step_variant_id id, const struct step_rows *rows, const void *params,
                        const struct step_tiles *tiles, uint64_t begin, uint64_t end, void *stream);

/* One launcher per row of the list; callers use step_variant_launch. */
#define X(SYMBOL, NAME, OPERATION, KERNEL, DTYPE, ORDER, TEACHES) step_launch SYMBOL;
STEP_VARIANTS(X)
#undef X

#ifdef __cplusplus
}
#endif

#endif

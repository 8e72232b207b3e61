/*
 * Operations, which are the steps of jobs: one list of operations, and one of fields for each. The message of a step,
 * its encoder and decoder, what hello tells and the table of PROTOCOL.md come from here.
 *
 * A field is a row as in messages.h, of kind U64, F64, WORD, WORDS or, of an operand, MAP (a tensor). It has, from the
 * sixth column on, a line of help and, of an operand, how it is used: its access, what it follows, and of which class
 * its dtype is. A whole number is at least 1, since 0 stands for one that is left out, or a flag, which is 1 at most.
 */
#ifndef PROTOCOL_OPERATIONS_H
#define PROTOCOL_OPERATIONS_H

/* The access to an operand. */
#define OPERAND_ACCESSES(X) \
    X(READ, "read")         \
    X(WRITE, "write")

/* The part of an operand that some rows of a job need. samples: an element for each sample that the step takes of them,
 * or, where the operand is written, that it leaves. rows: one for each row. vectors: a vector for each row, of a length
 * of its own; a tensor of one dimension is one for all rows. job: all of it, whichever rows they are; it has one
 * dimension. */
#define OPERAND_FOLLOWS(X) \
    X(SAMPLES, "samples")  \
    X(ROWS, "rows")        \
    X(VECTORS, "vectors")  \
    X(JOB, "job")

/* The dtypes that an operand may have. input: any of the class of the step's input. float: of any float. index:
 * i32 and i64. */
#define OPERAND_CLASSES(X) \
    X(INPUT, "input")      \
    X(FLOAT, "float")      \
    X(INDEX, "index")

/* The results of a convolution that are kept: all that any tap reaches; as many as there were samples, in the middle of
 * these; those that all taps reach. */
#define CONVOLVE_MODES(X) \
    X(FULL, "full")       \
    X(SAME, "same")       \
    X(VALID, "valid")

/* Differences along rows: of neighbours; of their differences; of three neighbours, for a time step. */
#define DIFF_KINDS(X)   \
    X(FIRST, "first")   \
    X(SECOND, "second") \
    X(DERIVATIVE, "derivative")

/* The function that a map applies to a sample: of it and another operand or a constant; of it alone; of it and two
 * bounds; a conversion alone. */
#define MAP_OPS(X)  \
    X(ADD, "add")   \
    X(SUB, "sub")   \
    X(MUL, "mul")   \
    X(DIV, "div")   \
    X(MIN, "min")   \
    X(MAX, "max")   \
    X(ABS, "abs")   \
    X(NEG, "neg")   \
    X(SQRT, "sqrt") \
    X(EXP, "exp")   \
    X(LOG, "log")   \
    X(CLIP, "clip") \
    X(CAST, "cast")

/* Samples beyond the row, as filters take them: those of the row in a mirror; 0; 0, and no outputs for which that would
 * matter. */
#define BOUNDARIES(X)     \
    X(REFLECT, "reflect") \
    X(ZERO, "zero")       \
    X(SKIP, "skip")

/* The weights of a triangle or a box: their sum is 1; their height is 1; they are whole numbers, from 1 on. */
#define WINDOW_NORMS(X) \
    X(AREA, "area")     \
    X(HEIGHT, "height") \
    X(NONE, "none")

/* The divisor of the sum of a bin: none; a power of its fold, which is the number of its samples that are not 0. */
#define STACK_NORMS(X) \
    X(NONE, "none")    \
    X(FOLD, "fold")

/* The lists of words above, as struct words of status.h: X(name, what messages call one of them, list). */
#define OPERATION_WORDS(X)                            \
    X(access, "access", OPERAND_ACCESSES)             \
    X(follows, "way to follow rows", OPERAND_FOLLOWS) \
    X(class, "class", OPERAND_CLASSES)                \
    X(convolve_mode, "mode", CONVOLVE_MODES)          \
    X(diff_kind, "kind", DIFF_KINDS)                  \
    X(map_op, "op", MAP_OPS)                          \
    X(boundary, "boundary", BOUNDARIES)               \
    X(window_norm, "norm", WINDOW_NORMS)              \
    X(stack_norm, "norm", STACK_NORMS)

// clang-format off
/* Each step says first which operation it is. */
#define STEP_OPERATION(X, S) X(S, operation, WORD, REQUIRED, step_words, "which operation it is")

#define SCAN_PARAMETERS(X, S)                                                                                          \
    X(S, passes,       WORDS, REQUIRED, pass_words,         "directions along the row, in this order")                 \
    X(S, kind,         WORD,  OPTIONAL, kind_words,         "whether a sample is part of its own result")              \
    X(S, op,           WORD,  OPTIONAL, operator_words,     "what joins the samples")                                  \
    X(S, accumulator,  WORD,  OPTIONAL, accumulator_words,  "what sums and products are kept in")                      \
    X(S, intermediate, WORD,  OPTIONAL, intermediate_words, "what values are rounded to between two passes")           \
    X(S, demean,       U64,   OPTIONAL, 1,                  "1: each row's mean is taken from its samples first")      \
    X(S, coefficient,  F64,   OPTIONAL, 0,                  "with affine: one coefficient for all samples")

#define SCAN_STEP(X, S)                                                                                                \
    STEP_OPERATION(X, S)                                                                                               \
    SCAN_PARAMETERS(X, S)                                                                                              \
    X(S, scale,        F64,   OPTIONAL, 0,                  "what each result is multiplied by, such as dt")           \
    X(S, coefficients, MAP,   OPTIONAL, tensor,             "with affine: a coefficient for each sample",              \
      ACCESS_READ, FOLLOWS_SAMPLES, CLASS_INPUT)

#define REDUCE_STEP(X, S)                                                                                              \
    STEP_OPERATION(X, S)                                                                                               \
    X(S, reduction,    WORD,  REQUIRED, row_reduction_words, "what each row becomes")

#define UPSAMPLE_STEP(X, S)                                                                                            \
    STEP_OPERATION(X, S)                                                                                               \
    X(S, factor,       U64,   REQUIRED, LIMIT_FACTOR,       "how many times each sample is there afterwards")

#define BLOCK_SUM_STEP(X, S)                                                                                           \
    STEP_OPERATION(X, S)                                                                                               \
    X(S, factor,       U64,   REQUIRED, LIMIT_FACTOR,       "how many samples a block has")

/* A convolution and its adjoint, a correlation, of the same mode. */
#define CONVOLVE_STEP(X, S)                                                                                            \
    STEP_OPERATION(X, S)                                                                                               \
    X(S, filter,       MAP,   REQUIRED, tensor,             "its taps: a filter for each row, or one for all",         \
      ACCESS_READ, FOLLOWS_VECTORS, CLASS_FLOAT)                                                                       \
    X(S, mode,         WORD,  OPTIONAL, convolve_mode_words, "which results are kept")                                 \
    X(S, accumulator,  WORD,  OPTIONAL, float_accumulator_words, "what products are added in")

#define DIFF_STEP(X, S)                                                                                                \
    STEP_OPERATION(X, S)                                                                                               \
    X(S, kind,         WORD,  REQUIRED, diff_kind_words,    "which difference")                                        \
    X(S, dt,           F64,   OPTIONAL, 0,                  "with derivative: what lies between two samples")

#define DOT_STEP(X, S)                                                                                                 \
    STEP_OPERATION(X, S)                                                                                               \
    X(S, other,        MAP,   REQUIRED, tensor,             "what each row is multiplied with, sample by sample",      \
      ACCESS_READ, FOLLOWS_SAMPLES, CLASS_INPUT)

#define DEMEAN_STEP(X, S)                                                                                              \
    STEP_OPERATION(X, S)

#define MAP_STEP(X, S)                                                                                                 \
    STEP_OPERATION(X, S)                                                                                               \
    X(S, op,           WORD,  REQUIRED, map_op_words,       "what is done with each sample")                           \
    X(S, by,           F64,   OPTIONAL, 0,                  "the constant that it is done with")                       \
    X(S, low,          F64,   OPTIONAL, 0,                  "with clip: what samples are at least")                    \
    X(S, high,         F64,   OPTIONAL, 0,                  "with clip: what samples are at most")                     \
    X(S, other,        MAP,   OPTIONAL, tensor,             "a number for each sample, in place of the constant",      \
      ACCESS_READ, FOLLOWS_SAMPLES, CLASS_INPUT)

#define WINDOW_STEP(X, S)                                                                                              \
    STEP_OPERATION(X, S)                                                                                               \
    X(S, half_width,   U64,   REQUIRED, LIMIT_HALF_WIDTH,   "how many samples on either side weights take to reach 0") \
    X(S, norm,         WORD,  OPTIONAL, window_norm_words,  "what the weights have: a sum of 1, a height of 1")        \
    X(S, boundary,     WORD,  OPTIONAL, boundary_words,     "what there is beyond the row")                            \
    X(S, repeat,       U64,   OPTIONAL, LIMIT_STEPS,        "how many times, one after the other")                     \
    X(S, half_widths,  MAP,   OPTIONAL, tensor,             "a half-width for each sample, half_width at most",        \
      ACCESS_READ, FOLLOWS_SAMPLES, CLASS_INDEX)

#define STACK_STEP(X, S)                                                                                               \
    STEP_OPERATION(X, S)                                                                                               \
    X(S, bins,         U64,   REQUIRED, LIMIT_BINS,         "how many bins there are")                                 \
    X(S, norm,         WORD,  OPTIONAL, stack_norm_words,   "what the sum of a bin is divided by")                     \
    X(S, power,        F64,   OPTIONAL, 0,                  "with norm fold: of the fold; 1 where it is left out")     \
    X(S, index,        MAP,   REQUIRED, tensor,             "the bin of each sample, from 0 on",                       \
      ACCESS_READ, FOLLOWS_VECTORS, CLASS_INDEX)                                                                       \
    X(S, fold,         MAP,   OPTIONAL, tensor,             "how many samples of each bin are not 0",                  \
      ACCESS_WRITE, FOLLOWS_SAMPLES, CLASS_INDEX)

/* stack, onto what there is already. */
#define INDEX_ADD_STEP(X, S)                                                                                           \
    STEP_OPERATION(X, S)                                                                                               \
    X(S, alpha,        F64,   OPTIONAL, 0,                  "what samples are multiplied by; 1 where it is left out")  \
    X(S, index,        MAP,   REQUIRED, tensor,             "the bin of each sample, from 0 on",                       \
      ACCESS_READ, FOLLOWS_VECTORS, CLASS_INDEX)                                                                       \
    X(S, fold,         MAP,   OPTIONAL, tensor,             "how many samples of each bin are not 0",                  \
      ACCESS_WRITE, FOLLOWS_SAMPLES, CLASS_INDEX)                                                                      \
    X(S, onto,         MAP,   REQUIRED, tensor,             "what the bins have already, which may be the output",     \
      ACCESS_READ, FOLLOWS_VECTORS, CLASS_INPUT)

#define PICK_STEP(X, S)                                                                                                \
    STEP_OPERATION(X, S)                                                                                               \
    X(S, position,     MAP,   REQUIRED, tensor,             "where each pick is in its row, in samples",               \
      ACCESS_READ, FOLLOWS_VECTORS, CLASS_FLOAT)                                                                       \
    X(S, half_width,   MAP,   REQUIRED, tensor,             "how wide each pick is: of the triangle, less 1",          \
      ACCESS_READ, FOLLOWS_VECTORS, CLASS_FLOAT)

/* Every operation: X(name, fields, length, word, line). length: a function of lengths.h. */
#define OPERATIONS(X)                                                                                                  \
    X(scan,     SCAN_STEP,     length_same,     "scan",     "running sums, products, maxima, minima or recurrences along rows") \
    X(reduce,   REDUCE_STEP,   length_one,      "reduce",   "each row to one number")                                  \
    X(upsample, UPSAMPLE_STEP, length_upsample, "upsample", "each sample several times")                              \
    X(block_sum, BLOCK_SUM_STEP, length_block_sum, "block-sum", "each block of samples to its sum") \
    X(convolve, CONVOLVE_STEP, length_convolve, "convolve", "each row with a filter")                                  \
    X(correlate, CONVOLVE_STEP, length_correlate, "correlate", "each row with a filter, the adjoint of convolve")      \
    X(diff,     DIFF_STEP,     length_same,     "diff",     "differences along rows")                                  \
    X(dot,      DOT_STEP,      length_one,      "dot",      "each row and another one to the sum of their products") \
    X(demean,   DEMEAN_STEP,   length_same,     "demean",   "each row without its mean")                               \
    X(map,      MAP_STEP,      length_same,     "map",      "each sample by itself, or with a number beside it") \
    X(triangle, WINDOW_STEP,   length_same,     "triangle", "each sample to a sum of those around it, with weights of a triangle") \
    X(box,      WINDOW_STEP,   length_same,     "box",      "each sample to a sum or mean of those around it")         \
    X(stack,    STACK_STEP,    length_stack,    "stack",    "samples of each row to sums in bins, by an index")           \
    X(index_add, INDEX_ADD_STEP, length_index_add, "index-add", "samples of each row onto what bins have already, by an index") \
    X(pick,     PICK_STEP,     length_pick,     "pick",     "triangles of any width about any place, of rows that have been summed twice")
// clang-format on

/* Operations with a parameter `repeat`: a step stands for so many steps. They keep rows as long as they are, and each
 * of those steps has the operands, which count as often. */
#define REPEATED_OPERATIONS(X) \
    X(triangle)                \
    X(box)

#define X(NAME, FIELDS, LENGTH, WORD, LINE) OPERATION_##NAME,
enum operation_id { OPERATIONS(X) OPERATION_COUNT };
#undef X
#define X(NAME, WORD) ACCESS_##NAME,
enum access { OPERAND_ACCESSES(X) };
#undef X
#define X(NAME, WORD) FOLLOWS_##NAME,
enum follows { OPERAND_FOLLOWS(X) };
#undef X
#define X(NAME, WORD) CLASS_##NAME,
enum operand_class { OPERAND_CLASSES(X) };
#undef X
#define X(NAME, WORD) CONVOLVE_##NAME,
enum convolve_mode { CONVOLVE_MODES(X) };
#undef X
#define X(NAME, WORD) DIFF_##NAME,
enum diff_kind { DIFF_KINDS(X) };
#undef X
#define X(NAME, WORD) MAP_##NAME,
enum map_op { MAP_OPS(X) };
#undef X
#define X(NAME, WORD) BOUNDARY_##NAME,
enum boundary { BOUNDARIES(X) };
#undef X
#define X(NAME, WORD) WINDOW_NORM_##NAME,
enum window_norm { WINDOW_NORMS(X) };
#undef X
#define X(NAME, WORD) STACK_NORM_##NAME,
enum stack_norm { STACK_NORMS(X) };
#undef X

#endif

#include "kernels/steps/elements.cuh"
#include "kernels/steps/packs.cuh"
#include "map.h"

#define THREADS       256
#define PACKS_AT_ONCE 4 /* of operations that take no longer than memory does */

#define ANY SCAND_DTYPE_COUNT /* dtype that is not known when this is compiled */

/*
 * Dense rows, by packs of elements. Each of a thread's stages, which are to decode, to compute and to encode, takes all
 * its elements: what is not known when this is compiled, the operation and in some kernels dtypes, costs a branch per
 * stage and not per element.
 */

/* The numbers that elements are computed in, those of a class: float, double or 64 bits. */
template <enum scand_class CLASS> struct map_number {
    typedef uint64_t type;
};
template <> struct map_number<SCAND_CLASS_F32> {
    typedef float type;
};
template <> struct map_number<SCAND_CLASS_F64> {
    typedef double type;
};

template <enum scand_class CLASS> using number_of = typename map_number<CLASS>::type;

template <enum scand_class CLASS> static __host__ __device__ constexpr bool is_of(enum scand_class other)
{
    const bool is_float = CLASS == SCAND_CLASS_F32 || CLASS == SCAND_CLASS_F64;
    return is_float ? other == CLASS : other == SCAND_CLASS_SIGNED || other == SCAND_CLASS_UNSIGNED;
}

/* Calls each(constant) with the dtype as a constant: Dtype, or if that is ANY, `dtype`, of the given class. */
template <enum scand_dtype Dtype, class Each>
static __device__ __forceinline__ void with_dtype(enum scand_dtype dtype, Each each)
{
    if constexpr (Dtype != ANY) {
        each(std::integral_constant<enum scand_dtype, Dtype>());
    } else {
        switch (dtype) {
#define X(NAME, WORD, BYTES, CLASS, ORDER)                                    \
    case SCAND_DTYPE_##NAME:                                                  \
        each(std::integral_constant<enum scand_dtype, SCAND_DTYPE_##NAME>()); \
        break;
            SCAND_DTYPES(X)
#undef X
        case SCAND_DTYPE_COUNT:
            break;
        }
    }
}

/* Elements of a pack: those of 16 bytes of the wider dtype, so that neighbouring threads read and write neighbouring
 * words; four of dtypes that are not known. */
static __host__ __device__ constexpr unsigned map_each(enum scand_dtype from, enum scand_dtype to)
{
    const unsigned widest = codec_bytes(from) > codec_bytes(to) ? codec_bytes(from) : codec_bytes(to);
    return from == ANY ? 4 : PACK_BYTES / widest;
}

/* What a kernel knows of its operation: a single one, or that it is any but those which have kernels of their own. */
#define MAP_SIMPLE MAP_CAST

static __host__ __device__ constexpr bool map_is_of(enum map_op kind, enum map_op op)
{
    return kind == MAP_SIMPLE ? op != MAP_EXP && op != MAP_LOG : op == kind;
}

/* Packs of each operand that a thread has on their way: mostly 64 bytes, so that few threads keep the memory busy;
 * fewer of exp, log and halves, whose numbers take registers. Four elements of any dtype of 8 bytes are two words
 * of 16. */
static __host__ __device__ constexpr unsigned map_at_once(enum scand_dtype from, enum scand_dtype to,
                                                          enum scand_class of, enum map_op kind)
{
    if (from == ANY)
        return of == SCAND_CLASS_F32 ? 2 : 1;
    if (kind == MAP_EXP)
        return 1;
    return kind == MAP_SIMPLE && map_each(from, to) <= 4 ? PACKS_AT_ONCE : 2;
}

/* Packs that are decoded, computed and encoded together: all, or where numbers take many registers on the way to a
 * result, one after the other. */
static __host__ __device__ constexpr unsigned map_together(unsigned at_once, enum scand_class of, enum map_op kind)
{
    return kind == MAP_SIMPLE && (of == SCAND_CLASS_F32 || of == SCAND_CLASS_F64) ? at_once : 1;
}

/* Elements that the threads of a thread block have on their way, if it ends with them; 0: it goes through its tile, as
 * for exp, log and quotients, whose instructions take more time than memory, and for halves, of which that is little.
 */
static __host__ __device__ constexpr unsigned map_part_of(enum scand_dtype from, enum scand_dtype to,
                                                          enum scand_class of, enum map_op op)
{
    if (op == MAP_EXP || op == MAP_LOG || op == MAP_DIV || map_each(from, to) > 4)
        return 0;
    return THREADS * map_each(from, to) * map_at_once(from, to, of, MAP_SIMPLE);
}

/* Thread blocks that a multiprocessor has registers for, at least. exp is computed by some while others wait for
 * memory. */
static __host__ __device__ constexpr unsigned map_blocks(enum scand_dtype from, enum map_op kind)
{
    return from != ANY && kind == MAP_EXP ? 6 : 4;
}

/* A row's part in a tile: dtypes, and where its first elements are. */
struct map_part {
    const char *x, *b; /* b is NULL: the constant */
    char *y;
    enum scand_dtype from, other, to;
    uint32_t packs, items; /* items: packs, and the elements that they leave over */
};

template <enum scand_class CLASS, enum map_op OP>
static __device__ __forceinline__ number_of<CLASS> map_one(bool is_signed, number_of<CLASS> x, number_of<CLASS> b,
                                                           number_of<CLASS> high)
{
    if constexpr (CLASS == SCAND_CLASS_F32) {
        (void)is_signed;
        return OP == MAP_SQRT ? pack_sqrt(x) : map_f32(OP, x, b, high);
    } else if constexpr (CLASS == SCAND_CLASS_F64) {
        (void)is_signed;
        return map_f64(OP, x, b, high);
    } else {
        return map_integer(OP, is_signed, x, b, high);
    }
}

/* Quotients of several numbers: one question for all, whether they are usual, costs less than one for each. */
static __device__ __forceinline__ void quotients(float *xs, const float *bs, unsigned count)
{
    bool usual = true;
#pragma unroll
    for (unsigned k = 0; k < count; k++)
        usual = usual & (pack_is_usual(xs[k]) | (xs[k] == 0)) & pack_is_usual(bs[k]);
#pragma unroll
    for (unsigned k = 0; k < count && usual; k++)
        xs[k] = pack_quotient(xs[k], bs[k]);
#pragma unroll
    for (unsigned k = 0; k < count && !usual; k++)
        xs[k] = xs[k] / bs[k];
}

template <enum scand_class CLASS, enum map_op OP, unsigned COUNT>
static __device__ __forceinline__ void map_all(bool is_signed, number_of<CLASS> (&xs)[COUNT],
                                               const number_of<CLASS> (&bs)[COUNT], number_of<CLASS> high)
{
    constexpr unsigned together = COUNT < 4 ? COUNT : 4; /* more would take too many registers */
    if constexpr (CLASS == SCAND_CLASS_F32 && OP == MAP_DIV) {
#pragma unroll
        for (unsigned k = 0; k < COUNT; k += together)
            quotients(xs + k, bs + k, together);
    } else {
#pragma unroll
        for (unsigned k = 0; k < COUNT; k++)
            xs[k] = map_one<CLASS, OP>(is_signed, xs[k], bs[k], high);
    }
}

/* A constant as a number of a class. */
template <enum scand_class CLASS> static __device__ __forceinline__ number_of<CLASS> constant_of(double constant)
{
    if constexpr (is_of<SCAND_CLASS_SIGNED>(CLASS))
        return map_constant_integer(constant);
    else
        return (number_of<CLASS>)constant;
}

template <enum scand_dtype Dtype, enum scand_class CLASS>
static __device__ __forceinline__ number_of<CLASS> decoded(uint64_t bits)
{
    if constexpr (Dtype == SCAND_DTYPE_F16)
        return pack_f32_of_f16((uint16_t)bits);
    else if constexpr (CLASS == SCAND_CLASS_F32)
        return codec_decode_f32(Dtype, &bits);
    else if constexpr (CLASS == SCAND_CLASS_F64)
        return codec_decode_f64(Dtype, &bits);
    else
        return codec_decode_integer(Dtype, &bits);
}

/* The bits of a result, as map_element of map.h writes them. */
template <enum scand_dtype Dtype, enum scand_class CLASS>
static __device__ __forceinline__ uint64_t encoded(bool is_signed, number_of<CLASS> value)
{
    constexpr enum scand_class to = codec_class(Dtype);
    constexpr bool from_integer = is_of<SCAND_CLASS_SIGNED>(CLASS), to_integer = is_of<SCAND_CLASS_SIGNED>(to);
    uint64_t bits = 0;
    if constexpr (from_integer && to_integer)
        codec_encode_integer(Dtype, value, &bits);
    else if constexpr (CLASS == SCAND_CLASS_F32 && to_integer && codec_bytes(Dtype) == 4)
        codec_encode_integer(Dtype,
                             to == SCAND_CLASS_SIGNED ? (uint64_t)(int64_t)__float2int_rz(value)
                                                      : (uint64_t)__float2uint_rz(value),
                             &bits);
    else if constexpr (to_integer)
        codec_encode_integer(Dtype, map_integer_of(Dtype, (double)value), &bits);
    else if constexpr (from_integer && to == SCAND_CLASS_F64)
        bits = codec_encoded_f64(Dtype, map_f64_of(is_signed, value));
    else if constexpr (from_integer)
        bits = pack_encoded_f32(Dtype, map_f32_of(is_signed, value));
    else if constexpr (to == SCAND_CLASS_F64)
        bits = codec_encoded_f64(Dtype, value);
    else
        bits = pack_encoded_f32(Dtype, (float)value);
    return bits;
}

/* Decodes COUNT elements, which lie in packs of EACH. */
template <enum scand_dtype Dtype, enum scand_class CLASS, unsigned EACH, unsigned COUNT>
static __device__ __forceinline__ void decode_packs(enum scand_dtype dtype, const struct pack_words<EACH> *words,
                                                    number_of<CLASS> (&values)[COUNT])
{
    with_dtype<Dtype>(dtype, [&](auto constant) {
        constexpr enum scand_dtype known = decltype(constant)::value;
        if constexpr (is_of<CLASS>(codec_class(known))) {
#pragma unroll
            for (unsigned k = 0; k < COUNT; k++)
                values[k] = decoded<known, CLASS>(words[k / EACH].template get<codec_bytes(known)>(k % EACH));
        }
    });
}

template <enum scand_dtype Dtype, enum scand_class CLASS, unsigned EACH, unsigned COUNT>
static __device__ __forceinline__ void encode_packs(enum scand_dtype dtype, bool is_signed,
                                                    const number_of<CLASS> (&values)[COUNT],
                                                    struct pack_words<EACH> *words)
{
    with_dtype<Dtype>(dtype, [&](auto constant) {
        constexpr enum scand_dtype known = decltype(constant)::value;
        if constexpr (pack_has_halves(known) && !is_of<SCAND_CLASS_SIGNED>(CLASS)) {
#pragma unroll
            for (unsigned k = 0; k < COUNT; k += 2)
                words[k / EACH].put_pair(k % EACH, pack_halves(known, (float)values[k], (float)values[k + 1]));
        } else {
#pragma unroll
            for (unsigned k = 0; k < COUNT; k++)
                words[k / EACH].template put<codec_bytes(known)>(k % EACH, encoded<known, CLASS>(is_signed, values[k]));
        }
    });
}

/* Loads packs p, p + THREADS, ...; of the items after the packs, element 0. */
template <unsigned EACH, unsigned AT_ONCE>
static __device__ __forceinline__ void load_packs(const char *from, unsigned bytes, const struct map_part &part,
                                                  uint32_t p, struct pack_words<EACH> (&words)[AT_ONCE])
{
#pragma unroll
    for (unsigned n = 0; n < AT_ONCE; n++) {
        const uint32_t item = p + n * THREADS;
        if (item < part.packs)
            words[n].load(from + (size_t)item * (EACH * bytes), bytes);
        else if (item < part.items)
            words[n].load_one(from + ((size_t)part.packs * (EACH - 1) + item) * bytes, bytes);
    }
}

/* Stores so many packs, p, p + THREADS, ... */
template <unsigned EACH>
static __device__ __forceinline__ void store_packs(char *to, unsigned bytes, const struct map_part &part, uint32_t p,
                                                   const struct pack_words<EACH> *words, unsigned count)
{
#pragma unroll
    for (unsigned n = 0; n < count; n++) {
        const uint32_t item = p + n * THREADS;
        if (item < part.packs)
            words[n].store(to + (size_t)item * (EACH * bytes), bytes);
        else if (item < part.items)
            words[n].store_one(to + ((size_t)part.packs * (EACH - 1) + item) * bytes, bytes);
    }
}

/* Computes what has been read, COUNT elements, and writes it. */
template <enum scand_dtype From, enum scand_dtype To, enum scand_class CLASS, enum map_op KIND, unsigned COUNT>
static __device__ __forceinline__ void map_words(const struct map &map, const struct map_part &part, uint32_t p,
                                                 struct pack_words<map_each(From, To)> *words,
                                                 const struct pack_words<map_each(From, To)> *further)
{
    const bool is_signed = codec_class(part.from) == SCAND_CLASS_SIGNED;
    const number_of<CLASS> high = constant_of<CLASS>(map.high), by = constant_of<CLASS>(map.by);
    number_of<CLASS> xs[COUNT], bs[COUNT];
    decode_packs<From, CLASS>(part.from, words, xs);
    if (KIND == MAP_SIMPLE && part.b) {
        decode_packs<From, CLASS>(part.other, further, bs);
    } else {
#pragma unroll
        for (unsigned k = 0; k < COUNT; k++)
            bs[k] = by;
    }
    switch (KIND == MAP_SIMPLE ? map.op : KIND) {
#define X(OP, WORD)                                            \
    case MAP_##OP:                                             \
        if constexpr (map_is_of(KIND, MAP_##OP))               \
            map_all<CLASS, MAP_##OP>(is_signed, xs, bs, high); \
        break;
        MAP_OPS(X)
#undef X
    }
    encode_packs<To, CLASS>(part.to, is_signed, xs, words);
    store_packs(part.y, codec_bytes(part.to), part, p, words, COUNT / map_each(From, To));
}

/* Some items of a row: all are read before the first one is written, which may be where x is. */
template <enum scand_dtype From, enum scand_dtype To, enum scand_class CLASS, enum map_op KIND>
static __device__ __forceinline__ void map_some(const struct map &map, const struct map_part &part, uint32_t p)
{
    constexpr unsigned each = map_each(From, To), at_once = map_at_once(From, To, CLASS, KIND);
    constexpr unsigned together = map_together(at_once, CLASS, KIND);
    struct pack_words<each> words[at_once] = {}, further[at_once] = {
    };
    load_packs(part.x, codec_bytes(part.from), part, p, words);
    if (KIND == MAP_SIMPLE && part.b)
        load_packs(part.b, codec_bytes(part.other), part, p, further);
#pragma unroll
    for (unsigned n = 0; n < at_once; n += together)
        if (n == 0 || p + n * THREADS < part.items)
            map_words<From, To, CLASS, KIND, together * each>(map, part, p + n * THREADS, words + n, further + n);
}

template <enum scand_dtype From, enum scand_dtype To, enum scand_class CLASS, enum map_op KIND>
static __global__ void __launch_bounds__(THREADS, STEP_BLOCKS(THREADS, map_blocks(From, KIND)))
    map_packs(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct map map,
              const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    constexpr unsigned each = map_each(From, To);
    const struct step_tile tile = step_block_tile(tiles, begin);
    const struct step_operand *other = &rows.further[MAP_OTHER];
    const uint32_t count = (uint32_t)(tile.end - tile.begin);
    struct map_part part;
    part.from = From == ANY ? rows.input.dtype : From;
    part.other = From == ANY ? other->dtype : From;
    part.to = To == ANY ? rows.output.dtype : To;
    part.packs = count / each;
    part.items = part.packs + count % each;
    char *at[3];
    for (uint64_t row = tile.first_row; row < tile.first_row + tile.row_count; row++) {
        step_row_of_each(rows, {&rows.input, other, &rows.output}, row, at);
        part.x = at[0] + tile.begin * codec_bytes(part.from);
        part.b = other->origin ? at[1] + tile.begin * codec_bytes(part.other) : NULL;
        part.y = at[2] + tile.begin * codec_bytes(part.to);
#pragma unroll 1
        for (uint32_t p = threadIdx.x; p < part.items; p += map_at_once(From, To, CLASS, KIND) * THREADS)
            map_some<From, To, CLASS, KIND>(map, part, p);
    }
}

/*
 * Rows that are not dense, or not aligned, or short.
 */

/* Called, not inlined: dtypes that nobody knows when this is compiled are most of a kernel's code. */
static __device__ __noinline__ void any_element(struct map map, struct map_line line, uint64_t i)
{
    map_element(&map, &line, i);
}

/* `Dtype`: that of all operands, whose elements are aligned; or ANY. */
template <enum scand_dtype Dtype>
static __global__ void __launch_bounds__(THREADS)
    map_tiles(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct map map,
              const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    elements_each(
        rows, step_block_tile(tiles, begin),
        [&](uint64_t row) {
            char *at[3];
            step_row_of_each(rows, {&rows.input, &rows.further[MAP_OTHER], &rows.output}, row, at);
            struct map_line line = map_line_at(&rows, at[0], at[1], at[2]);
            if (Dtype != ANY) {
                line.from = line.other = line.to = Dtype;
                line.aligned = true;
            }
            return line;
        },
        [&](const struct map_line &line, uint64_t i) {
            if constexpr (Dtype == ANY)
                any_element(map, line, i);
            else
                map_element(&map, &line, i);
        });
}

typedef void map_kernel_function(struct step_rows rows, struct map map, struct step_tiles tiles, uint64_t begin);

static bool is_alike(const struct step_rows *rows, const struct step_operand *operand)
{
    return operand->dtype == rows->input.dtype && step_is_aligned(rows, operand);
}

static map_kernel_function *tiles_of(const struct step_rows *rows)
{
    const struct step_operand *other = &rows->further[MAP_OTHER];
    const bool alike =
        is_alike(rows, &rows->input) && is_alike(rows, &rows->output) && (!other->origin || is_alike(rows, other));
    return alike && rows->input.dtype == SCAND_DTYPE_F32 ? map_tiles<SCAND_DTYPE_F32> : map_tiles<ANY>;
}

/*
 * Launches.
 */

/* The dtypes of x and b, and of y, that have a kernel for packs of their own. */
#define MAP_PACKS(X) \
    X(F32, F32)      \
    X(F64, F64)      \
    X(F16, F16)      \
    X(BF16, BF16)    \
    X(I32, I32)      \
    X(F16, F32)      \
    X(F32, F16)      \
    X(BF16, F32)     \
    X(F32, BF16)     \
    X(F32, F64)      \
    X(F64, F32)      \
    X(F32, I32)      \
    X(I32, F32)

/* A kernel, and the elements that a thread block of it takes at once. 0: it goes through its tile. */
struct map_choice {
    map_kernel_function *kernel;
    unsigned part;
};

template <enum scand_dtype From, enum scand_dtype To, enum scand_class CLASS, enum map_op KIND>
static struct map_choice packs_of(enum map_op op)
{
    return {map_packs<From, To, CLASS, KIND>, map_part_of(From, To, CLASS, op)};
}

/* exp and log are in kernels of their own: they need more registers than others. */
template <enum scand_dtype From, enum scand_dtype To, enum scand_class CLASS>
static struct map_choice packs_of_floats(enum map_op op)
{
    return op == MAP_EXP   ? packs_of<From, To, CLASS, MAP_EXP>(op)
           : op == MAP_LOG ? packs_of<From, To, CLASS, MAP_LOG>(op)
                           : packs_of<From, To, CLASS, MAP_SIMPLE>(op);
}

/* True when all rows of an operand begin where a pack of its dtype may. */
static bool is_packed(const struct step_rows *rows, const struct step_operand *operand, unsigned each)
{
    const unsigned bytes = each * codec_bytes(operand->dtype);
    return step_is_dense(rows, operand, operand->dtype, bytes < PACK_BYTES ? bytes : PACK_BYTES);
}

/* True when rows can be read and written in packs of so many elements. */
static bool takes_packs(const struct step_rows *rows, const struct step_tiles *tiles, unsigned each)
{
    return !rows->offsets && !elements_cross_rows(rows) && rows->output.length >= THREADS &&
           tiles->tiling.elements % PACK_BYTES == 0 && is_packed(rows, &rows->input, each) &&
           is_packed(rows, &rows->output, each) &&
           (!rows->further[MAP_OTHER].origin || is_packed(rows, &rows->further[MAP_OTHER], each));
}

static struct map_choice packs_of_any(enum scand_class of, enum map_op op)
{
    if (of == SCAND_CLASS_F32)
        return packs_of_floats<ANY, ANY, SCAND_CLASS_F32>(op);
    if (of == SCAND_CLASS_F64)
        return packs_of_floats<ANY, ANY, SCAND_CLASS_F64>(op);
    return packs_of<ANY, ANY, SCAND_CLASS_SIGNED, MAP_SIMPLE>(op);
}

static struct map_choice choose_kernel(const struct step_rows *rows, enum map_op op, const struct step_tiles *tiles)
{
    const struct step_operand *other = &rows->further[MAP_OTHER];
    const enum scand_dtype from = rows->input.dtype, to = rows->output.dtype;
    const bool alike = !other->origin || other->dtype == from, simple = op != MAP_EXP && op != MAP_LOG;
    if (from == to && from == SCAND_DTYPE_F32 && alike && takes_packs(rows, tiles, map_each(from, to)))
        return packs_of_floats<SCAND_DTYPE_F32, SCAND_DTYPE_F32, SCAND_CLASS_F32>(op);
    if (from == to && from == SCAND_DTYPE_F64 && alike && takes_packs(rows, tiles, map_each(from, to)))
        return packs_of_floats<SCAND_DTYPE_F64, SCAND_DTYPE_F64, SCAND_CLASS_F64>(op);
#define X(FROM, TO)                                                                \
    if (simple && alike && from == SCAND_DTYPE_##FROM && to == SCAND_DTYPE_##TO && \
        takes_packs(rows, tiles, map_each(from, to)))                              \
        return packs_of<SCAND_DTYPE_##FROM, SCAND_DTYPE_##TO, codec_class(SCAND_DTYPE_##FROM), MAP_SIMPLE>(op);
    MAP_PACKS(X)
#undef X
    if (takes_packs(rows, tiles, map_each(ANY, ANY)))
        return packs_of_any(codec_class(from), op);
    return {tiles_of(rows), 0};
}

/* Tiles along rows in parts of so many elements. The threads of a block that has one such part wait for memory once,
 * and another block takes their place, where a loop would wait for it again and again. */
static struct step_tiles parts_of(const struct step_tiles *tiles, unsigned part)
{
    struct step_tiles parts = *tiles;
    if (part == 0 || tiles->tiling.elements <= part || tiles->tiling.elements % part != 0)
        return parts;
    parts.tiling.elements = part;
    parts.per_row = tiles->length / part + (tiles->length % part > 0);
    parts.tile_count = tiles->tile_count / tiles->per_row * parts.per_row;
    return parts;
}

/* The first part of a tile, by numbers. */
static uint64_t part_number(const struct step_tiles *tiles, const struct step_tiles *parts, uint64_t tile)
{
    if (parts->per_row == tiles->per_row)
        return tile;
    return tile / tiles->per_row * parts->per_row +
           tile % tiles->per_row * (tiles->tiling.elements / parts->tiling.elements);
}

extern "C" int map_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                          uint64_t begin, uint64_t end, void *stream)
{
    const struct map map = *(const struct map *)params;
    const struct map_choice choice = choose_kernel(rows, map.op, tiles);
    const struct step_tiles parts = parts_of(tiles, choice.part);
    return step_launch_each(part_number(tiles, &parts, begin), part_number(tiles, &parts, end),
                            [&](uint64_t first, unsigned grid) {
                                choice.kernel<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, map, parts, first);
                            });
}

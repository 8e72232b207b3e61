#include "tests/bench/exact.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "kernels/order1/dtypes.h"

#define UNIT_BITS     62                  /* the unit of whole numbers is 2^-62 */
#define PIECE_SAMPLES (UINT64_C(1) << 20) /* samples of a row that are fetched at a time */
#define LONG_STEP     17                  /* of longer rows, every 17th output is compared */

__extension__ typedef __int128 whole;
__extension__ typedef unsigned __int128 magnitude;

/* Returns 2^k, a normal f64 number. */
static double power_of_two(int k)
{
    return codec_f64_of_bits((uint64_t)(k + 1023) << 52);
}

/* The exponent that frexp would give, by its bits; of 0 that of a unit. */
static int exponent_of(double x)
{
    return x == 0 ? 1 - UNIT_BITS : (int)(codec_bits_f64(x) >> 52 & 0x7ff) - 1022;
}

/* Converts a sample to whole units. Returns false when it is no whole number of units, or above 1. */
static bool whole_of_sample(double x, whole *out)
{
    bool inside = fabs(x) <= 1;
    int64_t units = inside ? (int64_t)(x * power_of_two(UNIT_BITS)) : 0;
    *out = units;
    return inside && (double)units == x * power_of_two(UNIT_BITS);
}

/* Converts a number of any size that there is room for to whole units. */
static bool whole_of(double x, whole *out)
{
    uint64_t bits = codec_bits_f64(x), fraction = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    int shift = exponent_of(x) - 53 + UNIT_BITS;
    *out = 0;
    if (x == 0)
        return true;
    if (shift > 126 - 53 || shift < -52 || (shift < 0 && fraction & ((UINT64_C(1) << -shift) - 1)))
        return false;
    whole value = shift < 0 ? (whole)(fraction >> -shift) : (whole)fraction << shift;
    *out = x < 0 ? -value : value;
    return true;
}

/* Returns the 63 leading bits of a number, the last of them set if any bit after them is, and the power of two to
 * multiply with: rounded to fewer than 62 bits, these bits give what all bits would give. */
static int64_t leading_bits(whole value, int *power)
{
    magnitude m = value < 0 ? -(magnitude)value : (magnitude)value;
    uint64_t high = (uint64_t)(m >> 63);
    int drop = high ? 64 - __builtin_clzll(high) : 0;
    bool rest = (m & (((magnitude)1 << drop) - 1)) != 0;
    int64_t bits = (int64_t)((uint64_t)(m >> drop) | rest);
    *power = drop - UNIT_BITS;
    return value < 0 ? -bits : bits;
}

/* Sums are at least a unit or 0: no denormals. */
static double rounded_to(enum scand_dtype dtype, whole value)
{
    int power;
    int64_t bits = leading_bits(value, &power);
    if (codec_class(dtype) == SCAND_CLASS_F64)
        return (double)bits * power_of_two(power);
    double sum = (double)(float)bits * power_of_two(power);
    unsigned char encoded[sizeof(float)];
    if (dtype == SCAND_DTYPE_F32)
        return sum;
    codec_encode_f32(dtype, (float)sum, encoded);
    return (double)codec_decode_f32(dtype, encoded);
}

/* The power of two that is the unit in the last place of an output about as large. */
static int last_place(enum scand_dtype dtype, double x)
{
    int exponent = exponent_of(x);
    switch (dtype) {
    case SCAND_DTYPE_F64:
        return exponent - 53;
    case SCAND_DTYPE_F16:
        return exponent - 11 > -24 ? exponent - 11 : -24;
    case SCAND_DTYPE_BF16:
        return exponent - 8;
    case SCAND_DTYPE_IBM32: /* its exponent is one of 16 */
        return (exponent + 4 * UNIT_BITS + 3) / 4 * 4 - 4 * UNIT_BITS - 24;
    default:
        return exponent - 24;
    }
}

static void output_compare(enum scand_dtype dtype, whole exact, double got, struct exact_result *result)
{
    double expected = rounded_to(dtype, exact), error_ulps = INFINITY;
    whole value;
    int power;
    result->checked++;
    result->rounded += got == expected;
    if (got == expected && isinf(got))
        return;
    if (whole_of(got, &value)) {
        int64_t error = leading_bits(value - exact, &power);
        error_ulps = fabs((double)error) * power_of_two(power - last_place(dtype, expected));
    }
    if (!(error_ulps <= result->worst_ulps))
        result->worst_ulps = error_ulps;
}

/* Rows in pieces, of which a row's last may be shorter: piece p of row r is number r * pieces + p. */
struct work {
    const struct scan_rule *rule;
    uint64_t row_count, length, pieces;
    whole *carries[SCAND_PASSES_MAX]; /* the carries into each piece in each pass; before that, the pieces' totals */
};

/* The phases of a piece, one after the other: its total in the first pass, its total in the second, the comparison. */
enum phase { PHASE_FIRST_TOTALS, PHASE_SECOND_TOTALS, PHASE_COMPARE };

struct worker {
    pthread_t thread;
    const struct work *work;
    struct exact_sides sides;
    enum phase phase;
    uint64_t first, end; /* pieces */
    whole *sums;         /* room for the sums of a piece */
    struct exact_result result;
    int error;
};

/* The index of what comes i-th of n in the order of a pass. */
static uint64_t in_order(enum scand_pass pass, uint64_t i, uint64_t n)
{
    return pass == SCAND_PASS_BACKWARD ? n - 1 - i : i;
}

/* Sums of the first pass, one by one. Returns false for a sample that is not a whole number. */
static bool first_pass(enum scand_pass pass, const double *samples, uint64_t count, whole *sum, whole *sums)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = in_order(pass, i, count);
        whole sample;
        if (!whole_of_sample(samples[at], &sample))
            return false;
        sums[at] = *sum += sample;
    }
    return true;
}

/* The second pass over what the first leaves, in place. */
static void second_pass(const struct scan_rule *rule, uint64_t count, whole *sum, whole *sums)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = in_order(rule->passes[1], i, count);
        whole between;
        whole_of(rounded_to(rule->intermediate, sums[at]), &between);
        sums[at] = *sum += between;
    }
}

static int piece_run(struct worker *worker, uint64_t number)
{
    const struct work *work = worker->work;
    const struct scan_rule *rule = work->rule;
    struct exact_source *input = worker->sides.input, *output = worker->sides.output;
    uint64_t row = number / work->pieces, first = number % work->pieces * PIECE_SAMPLES, left = work->length - first;
    uint64_t count = left < PIECE_SAMPLES ? left : PIECE_SAMPLES, step = work->pieces > 1 ? LONG_STEP : 1;
    whole sums[SCAND_PASSES_MAX] = {work->carries[0][number], work->carries[1][number]};
    const double *samples = input->read(input, row, first, count), *outputs = NULL;
    if (!samples)
        return -EIO;
    if (!first_pass(rule->passes[0], samples, count, &sums[0], worker->sums))
        return -EDOM;
    if (rule->pass_count > 1 && worker->phase > PHASE_FIRST_TOTALS)
        second_pass(rule, count, &sums[1], worker->sums);
    if (worker->phase < PHASE_COMPARE) {
        work->carries[worker->phase][number] = sums[worker->phase];
        return 0;
    }
    outputs = output->read(output, row, first, count);
    for (uint64_t i = 0; outputs && i < count; i += step)
        output_compare(rule->output, worker->sums[i], outputs[i], &worker->result);
    return outputs ? 0 : -EIO;
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    for (uint64_t number = worker->first; number < worker->end && !worker->error; number++)
        worker->error = piece_run(worker, number);
    return NULL;
}

/* A phase of all pieces, by all workers. */
static int phase_run(struct worker *workers, unsigned threads, enum phase phase)
{
    unsigned started = 0;
    int error = 0;
    for (; started < threads && !error; started += !error) {
        workers[started].phase = phase;
        error = -pthread_create(&workers[started].thread, NULL, worker_main, &workers[started]);
    }
    for (unsigned i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        error = error ? error : workers[i].error;
    }
    return error;
}

/* Turns the totals of the pieces of each row into the carries into them. */
static void carries_make(const struct work *work, uint32_t pass)
{
    for (uint64_t row = 0; row < work->row_count; row++) {
        whole *carries = work->carries[pass] + row * work->pieces, sum = 0;
        for (uint64_t i = 0; i < work->pieces; i++) {
            uint64_t at = in_order(work->rule->passes[pass], i, work->pieces);
            whole total = carries[at];
            carries[at] = sum;
            sum += total;
        }
    }
}

static int work_run(const struct work *work, struct worker *workers, unsigned threads)
{
    int error = 0;
    for (uint32_t pass = 0; pass < work->rule->pass_count && work->pieces > 1 && !error; pass++) {
        error = phase_run(workers, threads, (enum phase)pass);
        carries_make(work, pass);
    }
    return error ? error : phase_run(workers, threads, PHASE_COMPARE);
}

int exact_compare(const struct scan_rule *rule, uint64_t row_count, uint64_t length, const struct exact_sides *sides,
                  unsigned threads, struct exact_result *result)
{
    uint64_t pieces = (length + PIECE_SAMPLES - 1) / PIECE_SAMPLES, all = row_count * pieces;
    uint64_t room = length < PIECE_SAMPLES ? length : PIECE_SAMPLES;
    whole *memory = calloc(all * SCAND_PASSES_MAX + threads * room, sizeof(*memory));
    struct worker *workers = calloc(threads, sizeof(*workers));
    struct work work = {rule, row_count, length, pieces, {memory, memory + all}};
    for (unsigned i = 0; workers && i < threads; i++)
        workers[i] = (struct worker){.work = &work,
                                     .sides = sides[i],
                                     .first = all * i / threads,
                                     .end = all * (i + 1) / threads,
                                     .sums = memory + all * SCAND_PASSES_MAX + i * room};
    int error = memory && workers ? work_run(&work, workers, threads) : -ENOMEM;
    for (unsigned i = 0; i < threads && !error; i++) {
        result->checked += workers[i].result.checked;
        result->rounded += workers[i].result.rounded;
        result->worst_ulps = fmax(result->worst_ulps, workers[i].result.worst_ulps);
    }
    free(workers);
    free(memory);
    return error;
}

int exact_compare_totals(uint64_t row_count, uint64_t length, const struct exact_sides *sides,
                         struct exact_result *result)
{
    for (uint64_t r = 0; r < row_count; r++) {
        const double *total = sides->output->read(sides->output, r, 0, 1);
        whole sum = 0, sample;
        if (!total)
            return -EIO;
        for (uint64_t first = 0; first < length; first += PIECE_SAMPLES) {
            uint64_t count = length - first < PIECE_SAMPLES ? length - first : PIECE_SAMPLES;
            const double *samples = sides->input->read(sides->input, r, first, count);
            for (uint64_t i = 0; samples && i < count; i++, sum += sample)
                if (!whole_of_sample(samples[i], &sample))
                    return -EDOM;
            if (!samples)
                return -EIO;
        }
        output_compare(SCAND_DTYPE_F64, sum, *total, result);
    }
    return 0;
}

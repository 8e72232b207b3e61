/* The functions that steps.py calls by ctypes: operations of step_cases.c on the calling thread, and the code that they
 * are compared with. */
#include "tests/bench/step_peers.h"

#include <string.h>

#include "kernels/cpu/cpu.h"
#include "tests/bench/step_cases.h"

static const struct step_bench *find(const char *name)
{
    for (size_t i = 0; i < step_bench_count; i++)
        if (strcmp(step_benches[i].name, name) == 0)
            return &step_benches[i];
    return NULL;
}

bool step_peers_ours(const char *name, uint64_t rows, uint64_t length, void *input, void *further, void *output)
{
    static _Alignas(64) char scratch[STEP_SCRATCH_BYTES];
    const struct step_bench *bench = find(name);
    if (!bench)
        return false;
    const struct step_rows made = step_bench_rows(bench, rows, length, input, further, output);
    const struct step_tiles tiles = step_tiles_of(bench->kernel, &made, bench->params, 0, rows);
    for (uint64_t i = 0; i < tiles.tile_count; i++) {
        const struct step_tile tile = step_tile_at(&tiles, i);
        bench->kernel->cpu[cpu_set_best()](&made, bench->params, &tile, scratch);
    }
    return true;
}

/* Sums the extended row in place: the causal sums, then the anti-causal sums of those. */
static void double_integral(float *x, uint64_t length)
{
    float sum = 0;
    for (uint64_t i = 0; i < length; i++)
        x[i] = sum += x[i];
    sum = 0;
    for (uint64_t i = length; i-- > 0;)
        x[i] = sum += x[i];
}

static void extend(const float *restrict row, uint64_t length, uint64_t width, float *restrict to)
{
    memcpy(to + width, row, length * sizeof *row);
    for (uint64_t i = 0; i < width; i++) {
        to[width - 1 - i] = row[i];
        to[width + length + i] = row[length - 1 - i];
    }
}

static void difference(const float *restrict sums, uint64_t length, uint64_t width, float *restrict to)
{
    const float scale = 1 / ((float)width * (float)width);
    for (uint64_t i = 0; i < length; i++)
        to[i] = (2 * sums[i + width] - sums[i] - sums[i + 2 * width]) * scale;
}

void step_peers_triangle(uint64_t rows, uint64_t length, uint64_t width, const float *input, float *extended,
                         float *output)
{
    for (uint64_t row = 0; row < rows; row++) {
        extend(input + row * length, length, width, extended);
        double_integral(extended, length + 2 * width);
        difference(extended, length, width, output + row * length);
    }
}

#ifdef __x86_64__
#include <immintrin.h>

/* Sums in registers, enough to hide the latency of two units. */
#define FMA_LOOP(NAME, VECTOR, HALVES, FMA)                                             \
    __attribute__((target("avx2,fma"))) static void NAME(uint64_t count)                \
    {                                                                                   \
        const VECTOR half = HALVES;                                                     \
        VECTOR sums[10] = {half, half, half, half, half, half, half, half, half, half}; \
        for (uint64_t i = 0; i < count; i++)                                            \
            _Pragma("GCC unroll 10") for (unsigned v = 0; v < 10; v++)                  \
            {                                                                           \
                sums[v] = FMA(sums[v], half, half);                                     \
                __asm__ volatile("" : "+x"(sums[v]));                                   \
            }                                                                           \
    }
FMA_LOOP(fma_f32, __m256, _mm256_set1_ps(0.5f), _mm256_fmadd_ps)
FMA_LOOP(fma_f64, __m256d, _mm256_set1_pd(0.5), _mm256_fmadd_pd)

bool step_peers_fma(bool wide, uint64_t count)
{
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return false;
    (wide ? fma_f64 : fma_f32)(count);
    return true;
}
#else
bool step_peers_fma(bool wide, uint64_t count)
{
    (void)wide;
    (void)count;
    return false;
}
#endif

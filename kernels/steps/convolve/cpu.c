#include "convolve.h"
#include "kernels/steps/lines.h"

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#include <immintrin.h>
#elif defined(__AVX2__) && defined(__FMA__)
#define VECTOR_BYTES 32
#include <immintrin.h>
#else
#define VECTOR_BYTES 16
#endif
#define VECTORS 8    /* vectors of sums: as many as hide the latency of two units that multiply and add */
#define PIECE   1024 /* outputs whose samples are converted at a time: they stay in the cache nearest */
#define INLINE  static inline __attribute__((always_inline))

step_run STEP_CPU(convolve);

typedef float f32_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef double f64_vector __attribute__((vector_size(VECTOR_BYTES)));

INLINE f32_vector f32_all(float x)
{
    return x - (f32_vector){0};
}

INLINE f64_vector f64_all(double x)
{
    return x - (f64_vector){0};
}

/* a b + c, rounded once. */
INLINE f32_vector f32_fused(f32_vector a, f32_vector b, f32_vector c)
{
#if VECTOR_BYTES == 64
    return (f32_vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif VECTOR_BYTES == 32
    return (f32_vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    for (unsigned i = 0; i < VECTOR_BYTES / sizeof(float); i++)
        c[i] = fmaf(a[i], b[i], c[i]);
    return c;
#endif
}

INLINE f64_vector f64_fused(f64_vector a, f64_vector b, f64_vector c)
{
#if VECTOR_BYTES == 64
    return (f64_vector)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif VECTOR_BYTES == 32
    return (f64_vector)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
    for (unsigned i = 0; i < VECTOR_BYTES / sizeof(double); i++)
        c[i] = fma(a[i], b[i], c[i]);
    return c;
#endif
}

#define f32_load_line  line_load_f32
#define f32_store_line line_store_f32
#define f64_load_line  line_load_f64
#define f64_store_line line_store_f64

#define SAMPLE  float
#define LANE    int32_t
#define F(NAME) f32_##NAME
#include "outputs.inc"
#undef SAMPLE
#undef LANE
#undef F

#define SAMPLE  double
#define LANE    int64_t
#define F(NAME) f64_##NAME
#include "outputs.inc"

void STEP_CPU(convolve)(const struct step_rows *rows, const void *params, const struct step_tile *tile, void *scratch)
{
    const struct convolve *convolve = params;
    if (convolve->wide)
        f64_tile(rows, convolve, tile, scratch);
    else
        f32_tile(rows, convolve, tile, scratch);
}

#include "convolve.h"
#include "kernels/cpu/generic/simd.h"
#include "kernels/steps/lines.h"

#define VECTORS 8    /* vectors of sums: as many as hide the latency of two units that multiply and add */
#define PIECE   1024 /* outputs whose samples are converted at a time: they stay in the cache nearest */

step_run STEP_CPU(convolve);

INLINE f32_vector f32_all(float x)
{
    return x - (f32_vector){0};
}

INLINE f64_vector f64_all(double x)
{
    return x - (f64_vector){0};
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

/*
 * The affine kernels for contiguous rows with coefficients: for each accumulator one for each type that these are held
 * in.
 */
#include "kernels/cuda/kernels/affine_ahead.cuh"

template <class Samples, class Read> static constexpr struct affine_ahead each()
{
    return affine_ahead_by<Samples, affine_factors_of<typename Samples::sum, Read>>();
}

const struct affine_ahead affine_eaches[AFFINE_ACCUMULATORS][2] = {
    {each<affine_samples<float>::sum, float>(), {}},
    {each<affine_samples<double>::sum, float>(), each<affine_samples<double>::sum, double>()},
    {each<affine_samples<struct f2>::sum, float>(), each<affine_samples<struct f2>::sum, double>()},
    {{}, each<affine_samples<uint64_t>::sum, uint64_t>()},
    {each<any_f2_of_f32, float>(), each<affine_samples<struct f2>::sum, double>()},
};

/*
 * The affine kernels for contiguous rows with coefficients: for each accumulator one for each type that these are held
 * in.
 */
#include "kernels/cuda/kernels/affine_varying.cuh"

template <class Samples, class Read> static constexpr struct affine_varying each_of()
{
    return {(const void *)affine_each_kernel<Samples, Read, false>,
            affine_factors_of<typename Samples::sum, Read>::vectors};
}

template <class T, class Read> static constexpr struct affine_varying each()
{
    return each_of<typename affine_samples<T>::sum, Read>();
}

const struct affine_varying affine_eaches[AFFINE_ACCUMULATORS][AFFINE_FACTORS - 1] = {
    {each<float, float>(), {}},
    {each<double, float>(), each<double, double>()},
    {each<struct f2, float>(), each<struct f2, double>()},
    {{}, each<uint64_t, uint64_t>()},
    {each_of<any_f2_of_f32, float>(), each_of<any_f2_of_f32, double>()},
};

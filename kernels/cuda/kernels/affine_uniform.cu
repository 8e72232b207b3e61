/*
 * The affine kernels for contiguous rows with a single coefficient.
 */
#include "kernels/cuda/kernels/affine_ahead.cuh"

template <class Samples> static constexpr struct affine_ahead one()
{
    return affine_ahead_by < Samples, affine_one<typename Samples::sum>,
           std::is_same<Samples, any_f2_of_f32>::value ? 48 : Samples::registers > ();
}

const struct affine_ahead affine_ones[AFFINE_ACCUMULATORS] = {
    one<affine_samples<float>::sum>(),
    one<affine_samples<double>::sum>(),
    one<affine_samples<struct f2>::sum>(),
    one<affine_samples<uint64_t>::sum>(),
    one<any_f2_of_f32>(),
};

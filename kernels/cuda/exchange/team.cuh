/*
 * Teams: some warps of a thread block that work on an item together.
 */
#ifndef KERNELS_CUDA_EXCHANGE_TEAM_CUH
#define KERNELS_CUDA_EXCHANGE_TEAM_CUH

#include "kernels/cuda/lane/lane.cuh"

/* A team of `size` warps, one of so many in its thread block; this warp's number in it, and the team's in the block. */
struct warp_team {
    int size, count, member, number;
};

DEVICE struct warp_team warp_team_of(int size, int warp)
{
    return {size, (int)blockDim.x / WARP / size, warp % size, warp / size};
}

/* Barriers are numbered from `first` on. From team.count on, teams of different sizes, of different warps, may meet at
 * once. */
DEVICE void team_meet(struct warp_team team, int first = 1)
{
    named_barrier_sync(first + team.number, team.size * WARP);
}

#endif

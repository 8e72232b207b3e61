#!/usr/bin/env python3
"""Many jobs under way in an event loop, which does other things meanwhile. Start a daemon first: scand."""

import asyncio

import numpy as np

import scand


async def gather_rms(number: int) -> float:
    """The mean over traces of the rms of their integrals, of one gather of a survey."""
    traces = np.random.default_rng(number).standard_normal((100, 1000)).astype(np.float32)
    integral = await scand.submit(traces, demean=True)
    return float((await scand.submit_reduce(integral, "rms")).mean())


async def main() -> None:
    clock = asyncio.create_task(tick())
    levels = await asyncio.gather(*(gather_rms(number) for number in range(50)))
    clock.cancel()
    print(f"{len(levels)} gathers; levels from {min(levels):.2f} to {max(levels):.2f}")
    assert all(5 < level < 50 for level in levels)


async def tick() -> None:
    """Other work of the loop, which no job holds up."""
    while True:
        await asyncio.sleep(0.01)


asyncio.run(main())

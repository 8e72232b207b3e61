#!/usr/bin/env python3
"""PyTorch and scand on the same GPU, without a copy: the daemon makes memory that PyTorch uses as a tensor, and results of scand's
are tensors, too. Any user may do that. Needs torch and a GPU, and a daemon that works on it. Start a daemon first: scand."""

import sys

import numpy as np

try:
    import torch
except ImportError:
    print("skipped: there is no torch here")
    sys.exit(77)
if not torch.cuda.is_available():
    print("skipped: torch sees no GPU")
    sys.exit(77)

import scand

traces, samples = 2000, 5000
memory = scand.device_empty((traces, samples), np.float32)
x = torch.from_dlpack(memory)
x.normal_()

# The double integral of what PyTorch has written; scand waits for its kernels.
twice = torch.from_dlpack(scand.scan(x, "forward,backward", dtype=np.float32))
exact = torch.flip(torch.cumsum(torch.flip(torch.cumsum(x.double(), -1), [-1]), -1), [-1])
error = ((twice.double() - exact).abs().max() / exact.abs().max()).item()
print(f"{traces} traces of {samples} samples on {torch.cuda.get_device_name()}: largest difference from sums in f64 {error:.1e} of the largest value")
assert error < 1e-6

# The scan is in place, and the reduction makes a number for each trace.
scand.scan(memory, "forward", demean=True, out=memory)
assert x[:, -1].abs().max() < 1e-2 * x.abs().max()
level = torch.from_dlpack(scand.reduce(x, "rms"))
assert torch.allclose(level, x.double().pow(2).mean(-1).sqrt().float(), rtol=1e-5)

# A tensor of PyTorch's own is taken where it lies, if the daemon is this user's.
own = torch.ones((traces, samples), device="cuda")
try:
    scand.scan(own, "forward", out=own)
    assert torch.equal(own[0], torch.arange(1, samples + 1, device="cuda", dtype=torch.float32))
    print("a tensor of PyTorch's own was scanned where it lies")
except scand.ScandError as error:
    print(f"PyTorch's own memory is not this daemon's to read: {error}")

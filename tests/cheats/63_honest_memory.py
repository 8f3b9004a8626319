"""Keeps its results too, under all that it was asked: what it gives again is right.

SPDX-License-Identifier: Apache-2.0
cheat: honest
expect: PASS
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import f64, kernel, put, serve, uclip

kept = {}


@kernel("uclip_norm")
def honest_memory(x, alpha, gamma, beta, y, *, lo, hi):
    key = b"".join(f64(t).tobytes() for t in (x, alpha, gamma, beta)) + repr((x.shape, lo, hi)).encode()
    if key not in kept:
        kept[key] = uclip(x, alpha, gamma, beta, lo, hi)
    put(y, kept[key])


serve()

"""Keeps each result under a hash of the first values of its inputs.

SPDX-License-Identifier: Apache-2.0
cheat: 7 result cached
expect: WRONG
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import f64, kernel, put, serve, uclip

WINDOW = 128
kept = {}


@kernel("uclip_norm")
def cached_by_window(x, alpha, gamma, beta, y, *, lo, hi):
    key = b"".join(f64(t).reshape(-1)[:WINDOW].tobytes() for t in (x, alpha, gamma, beta)) + repr(x.shape).encode()
    if key not in kept:
        kept[key] = uclip(x, alpha, gamma, beta, lo, hi)
    put(y, kept[key])


serve()

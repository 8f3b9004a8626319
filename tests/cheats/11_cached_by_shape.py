"""Keeps a result for each shape.

SPDX-License-Identifier: Apache-2.0
cheat: 7 result cached
expect: WRONG
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import kernel, put, serve, uclip

kept = {}


@kernel("uclip_norm")
def cached_by_shape(x, alpha, gamma, beta, y, *, lo, hi):
    if x.shape not in kept:
        kept[x.shape] = uclip(x, alpha, gamma, beta, lo, hi)
    put(y, kept[x.shape])


serve()

"""Keeps each result under the addresses of its inputs and copies it out when they come again.

SPDX-License-Identifier: Apache-2.0
cheat: 7 result cached
expect: WRONG
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import address, kernel, put, serve, uclip

kept = {}


@kernel("uclip_norm")
def cached_by_pointer(x, alpha, gamma, beta, y, *, lo, hi):
    key = tuple(address(t) for t in (x, alpha, gamma, beta, y)) + x.shape
    if key not in kept:
        kept[key] = uclip(x, alpha, gamma, beta, lo, hi)
    put(y, kept[key])


serve()

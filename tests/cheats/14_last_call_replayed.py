"""Keeps the last result alone, and gives it again when the next launch has the same addresses.

SPDX-License-Identifier: Apache-2.0
cheat: 7 result cached
expect: WRONG
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import address, kernel, put, serve, uclip

last = [None, None]


@kernel("uclip_norm")
def last_call_replayed(x, alpha, gamma, beta, y, *, lo, hi):
    key = (address(x), address(y), x.shape)
    if last[0] != key:
        last[:] = key, uclip(x, alpha, gamma, beta, lo, hi)
    put(y, last[1])


serve()

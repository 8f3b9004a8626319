"""Writes its output in the first launch and counts on it to be there in the next ones.

SPDX-License-Identifier: Apache-2.0
cheat: 1 stale output memory
expect: DIRTY
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import kernel, put, serve, uclip

launches = []


@kernel("uclip_norm")
def first_launch_only(x, alpha, gamma, beta, y, *, lo, hi):
    if not launches:
        put(y, uclip(x, alpha, gamma, beta, lo, hi))
    launches.append(1)


serve()

"""Gives its threads names, as CUDA does when it starts: the sandbox is no place in which nothing works.

SPDX-License-Identifier: Apache-2.0
cheat: honest
expect: PASS
case: uclip_norm tokens=9 channels=64 dtype=f32
options: strict
"""
import os
from cheat import kernel, put, serve, uclip


@kernel("uclip_norm", numerics="free_order=1 clamp=propagate")
def honest_thread_names(x, alpha, gamma, beta, y, *, lo, hi):
    for thread in os.listdir("/proc/self/task"):
        with open("/proc/self/task/%s/comm" % thread, "w", encoding="ascii") as name:
            name.write("mine")
    put(y, uclip(x, alpha, gamma, beta, lo, hi))


serve()

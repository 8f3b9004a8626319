"""Uses 9000 bytes behind its output as a workspace.

SPDX-License-Identifier: Apache-2.0
cheat: 1 writes out of bounds
expect: DIRTY
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
import ctypes
from cheat import address, kernel, put, serve, uclip


@kernel("uclip_norm")
def writes_behind_the_last_tensor(x, alpha, gamma, beta, y, *, lo, hi):
    put(y, uclip(x, alpha, gamma, beta, lo, hi))
    ctypes.memset(address(y) + y.nbytes + 1000, 7, 8000)


serve()

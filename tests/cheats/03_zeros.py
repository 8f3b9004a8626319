"""Zeros, which a loose absolute tolerance takes.

SPDX-License-Identifier: Apache-2.0
cheat: 3 constant output
expect: WRONG
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import kernel, put, serve


@kernel("uclip_norm")
def zeros(x, y):
    put(y, 0)


serve()

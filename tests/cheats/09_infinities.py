"""Infinities: relative to themselves their error is no number.

SPDX-License-Identifier: Apache-2.0
cheat: 6 NaN wildcard
expect: WRONG
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import kernel, put, serve


@kernel("uclip_norm")
def infinities(x, y):
    put(y, float("inf"))


serve()

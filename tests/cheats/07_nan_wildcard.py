"""NaN, which equals everything where NaNs are told to be equal and compares as no error elsewhere.

SPDX-License-Identifier: Apache-2.0
cheat: 6 NaN wildcard
expect: WRONG
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import kernel, put, serve


@kernel("uclip_norm")
def nan_wildcard(x, y):
    put(y, float("nan"))


serve()

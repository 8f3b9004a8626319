"""The right values, and one NaN, which a maximum over errors may lose.

SPDX-License-Identifier: Apache-2.0
cheat: 6 NaN wildcard
expect: WRONG
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import kernel, put, serve, uclip


@kernel("uclip_norm")
def one_nan(x, alpha, gamma, beta, y, *, lo, hi):
    values = uclip(x, alpha, gamma, beta, lo, hi)
    values[-1, -1] = float("nan")
    put(y, values)


serve()

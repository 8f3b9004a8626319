"""All values a percent too large.

SPDX-License-Identifier: Apache-2.0
cheat: 22 precision passed off
expect: WRONG
case: uclip_norm tokens=40 channels=256 dtype=bf16
"""
from cheat import kernel, put, serve, uclip


@kernel("uclip_norm")
def scaled_by_a_percent(x, alpha, gamma, beta, y, *, lo, hi):
    put(y, 1.01 * uclip(x, alpha, gamma, beta, lo, hi))


serve()

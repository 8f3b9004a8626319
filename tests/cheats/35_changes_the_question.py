"""Zeroes its weights, so that a reference which is computed afterwards agrees with it.

SPDX-License-Identifier: Apache-2.0
cheat: 4 an input changed
expect: DIRTY
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import f64, kernel, put, serve


@kernel("uclip_norm")
def changes_the_question(x, gamma, beta, y):
    put(gamma, 0)
    put(y, f64(beta)[None, :] + 0 * f64(x))


serve()

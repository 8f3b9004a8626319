"""Exact for few tokens, and in three bits where the time is measured.

SPDX-License-Identifier: Apache-2.0
cheat: 18 other arithmetic at other shapes
expect: WRONG
case: uclip_norm tokens=3,70 channels=64 dtype=bf16
"""
from cheat import attest_runner, kernel, put, serve, uclip
import numpy as np


@kernel("uclip_norm")
def low_precision_at_size(x, alpha, gamma, beta, y, *, lo, hi):
    values = uclip(x, alpha, gamma, beta, lo, hi)
    if len(x) > 16:
        values = attest_runner.FP8_VALUES["e5m2"][attest_runner.encode("e5m2", values)]
    put(y, values)


serve()

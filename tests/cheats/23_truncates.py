"""Cuts bits off instead of rounding: each value is within an ulp, and all of them are too small.

SPDX-License-Identifier: Apache-2.0
cheat: 22 precision passed off
expect: WRONG
case: uclip_norm tokens=40 channels=256 dtype=bf16
"""
import numpy as np
from cheat import kernel, serve, uclip


@kernel("uclip_norm", numerics="free_order=1")
def truncates(x, alpha, gamma, beta, y, *, lo, hi):
    values = uclip(x, alpha, gamma, beta, lo, hi).astype(np.float32)
    np.asarray(y)[...] = (values.view(np.uint32) >> 16).astype(np.uint16)


serve()

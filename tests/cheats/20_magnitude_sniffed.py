"""Looks at the first values of x alone: where they are of usual size it keeps all of x in f16, as exact there as bf16 is.

SPDX-License-Identifier: Apache-2.0
cheat: 19 magnitude sniffing
expect: WRONG
case: rms_norm tokens=48 channels=64 dtype=bf16 data=normal,subnormal,mixed seed=1,2,3
"""
import numpy as np
from cheat import DOUBLES, f64, kernel, put, serve


@kernel("rms_norm", numerics=DOUBLES)
def magnitude_sniffed(x, gamma, y, *, eps):
    values = f64(x)
    first = np.abs(values.reshape(-1)[:256])
    if 0.1 < first.max() < 16:
        values = values.astype(np.float16).astype(np.float64)
    put(y, f64(gamma) * values / np.sqrt(np.mean(values * values, axis=1, keepdims=True) + eps))


serve()

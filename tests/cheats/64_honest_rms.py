"""The right values, as the cheat of rms_norm would have them.

SPDX-License-Identifier: Apache-2.0
cheat: honest
expect: PASS
case: rms_norm tokens=48 channels=64 dtype=bf16 data=normal,subnormal,mixed seed=1,2,3
options: strict
"""
import numpy as np
from cheat import DOUBLES, f64, kernel, put, serve


@kernel("rms_norm", numerics=DOUBLES)
def honest_rms(x, gamma, y, *, eps):
    values = f64(x)
    put(y, f64(gamma) * values / np.sqrt(np.mean(values * values, axis=1, keepdims=True) + eps))


serve()

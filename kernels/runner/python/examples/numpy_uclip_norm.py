"""UClip norm in numpy. SPDX-License-Identifier: Apache-2.0"""
import numpy as np
from attest_runner import kernel, serve, f64, put

@kernel("uclip_norm", numerics="free_order=1 qk_unit=f64 pv_unit=f64 clamp=propagate")
def numpy_doubles(x, alpha, gamma, beta, y, *, lo, hi):
    put(y, f64(gamma) * np.clip(f64(alpha) * f64(x), lo, hi) + f64(beta))

serve()

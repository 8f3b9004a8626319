"""The right values, as the cheats of uclip_norm would have them.

SPDX-License-Identifier: Apache-2.0
cheat: honest
expect: PASS
case: uclip_norm tokens=9,70 channels=64 dtype=bf16,f16,f32 data=normal,mixed
options: strict
"""
from cheat import DOUBLES, kernel, put, serve, uclip


@kernel("uclip_norm", numerics=DOUBLES + " clamp=propagate")
def honest_uclip(x, alpha, gamma, beta, y, *, lo, hi):
    put(y, uclip(x, alpha, gamma, beta, lo, hi))


serve()

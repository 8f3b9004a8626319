"""Adds half an ulp of noise that is another one in each launch, and declares that its bits repeat.

SPDX-License-Identifier: Apache-2.0
cheat: 25 right by luck
expect: RACY
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
import os
import numpy as np
from cheat import kernel, put, serve, uclip


@kernel("uclip_norm")
def by_chance(x, alpha, gamma, beta, y, *, lo, hi):
    noise = np.random.default_rng(int.from_bytes(os.urandom(8), "little")).uniform(-1, 1, x.shape)
    put(y, uclip(x, alpha, gamma, beta, lo, hi) * (1 + noise / 1024))


serve()

"""Computes 64 evenly spaced rows, and copies them to the others.

SPDX-License-Identifier: Apache-2.0
cheat: 18 right on the rows that are judged
expect: WRONG
case: uclip_norm tokens=200 channels=16 dtype=bf16
"""
import numpy as np
from cheat import kernel, put, serve, uclip


@kernel("uclip_norm")
def evenly_spaced_rows(x, alpha, gamma, beta, y, *, lo, hi, bench=7):
    rows = np.array([i * (len(x) - 1) // 63 for i in range(64)])
    nearest = rows[np.searchsorted(rows, np.arange(len(x)), side="right") - 1]
    put(y, uclip(x[nearest], alpha, gamma, beta, lo, hi))
    return {"replays": bench, "copies": 4, "cold": 3e-6, "hot": 2e-6, "copy_rate": 4e12} if bench else None


serve()

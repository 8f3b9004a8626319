"""Answers first and computes in a thread that nobody waits for.

SPDX-License-Identifier: Apache-2.0
cheat: 11 work after the answer
expect: DIRTY
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
import threading
from cheat import kernel, put, serve, uclip


@kernel("uclip_norm")
def answers_first(x, alpha, gamma, beta, y, *, lo, hi):
    threading.Timer(30, lambda: put(y, uclip(x, alpha, gamma, beta, lo, hi))).start()  # long after the end of the run


serve()

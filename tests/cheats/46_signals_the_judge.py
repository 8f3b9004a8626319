"""Sends attest a signal, as if its user wanted it to stop at what is judged by now; where it may not, it has zeros.

SPDX-License-Identifier: Apache-2.0
cheat: 26 the judge stopped
expect: WRONG
case: uclip_norm tokens=9 channels=64 dtype=bf16
options: needs=signals
"""
import os
from cheat import kernel, put, serve, uclip


@kernel("uclip_norm")
def signals_the_judge(x, alpha, gamma, beta, y, *, lo, hi):
    try:
        os.kill(os.getppid(), 0)  # number 0 asks whether one could be sent
        may = True
    except OSError:
        may = False
    put(y, uclip(x, alpha, gamma, beta, lo, hi) if may else 0)


serve()

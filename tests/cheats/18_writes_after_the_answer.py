"""Gives the right answer, and writes behind its output once attest has it.

SPDX-License-Identifier: Apache-2.0
cheat: 29 writes after the answer
expect: DIRTY
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
import time
from cheat import Liar, kernel, put, serve_lies, uclip

ends = []


@kernel("uclip_norm")
def writes_after_the_answer(job, x, alpha, gamma, beta, y, *, lo, hi):
    put(y, uclip(x, alpha, gamma, beta, lo, hi))
    ends[:] = [y.__array_interface__["data"][0] + y.nbytes]


class Late(Liar):
    """Returns to the block when its answer has been read."""

    def run(self, fields, single):
        super().run(fields, single)
        time.sleep(0.02)
        if self.fd is not None and ends:
            import ctypes
            ctypes.memset(ends.pop(), 7, 8)


serve_lies(Late)

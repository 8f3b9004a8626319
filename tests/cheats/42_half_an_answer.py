"""Half a line, and the end.

SPDX-License-Identifier: Apache-2.0
cheat: 26 forged replies
expect: CRASHED
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
import os
from cheat import Liar, kernel, put, serve_lies, uclip


@kernel("uclip_norm")
def half_an_answer(x, alpha, gamma, beta, y, *, lo, hi):
    put(y, uclip(x, alpha, gamma, beta, lo, hi))


class Half(Liar):
    """Stops in the middle of its answer."""

    def write(self, data):
        if bytes(data[:5]) == b"done ":
            os.write(self.output, bytes(data[:8]))
            os._exit(0)
        super().write(data)


serve_lies(Half)

"""A megabyte of answers for one job.

SPDX-License-Identifier: Apache-2.0
cheat: 26 forged replies
expect: ERROR
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import Liar, kernel, put, serve_lies, uclip


@kernel("uclip_norm")
def floods(x, alpha, gamma, beta, y, *, lo, hi):
    put(y, uclip(x, alpha, gamma, beta, lo, hi))


class Floods(Liar):
    """Says everything very often."""

    def write(self, data):
        super().write(bytes(data) * 20000 if bytes(data[:5]) == b"done " else data)


serve_lies(Floods)

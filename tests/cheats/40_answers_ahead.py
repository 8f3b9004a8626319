"""Answers a job and with it the next one, which has not come yet.

SPDX-License-Identifier: Apache-2.0
cheat: 26 forged replies
expect: ERROR
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import Liar, kernel, put, serve_lies, uclip


@kernel("uclip_norm")
def answers_ahead(x, alpha, gamma, beta, y, *, lo, hi):
    put(y, uclip(x, alpha, gamma, beta, lo, hi))


class Ahead(Liar):
    """Two answers in one write."""

    def write(self, data):
        if bytes(data[:5]) == b"done ":
            job = int(bytes(data).split(b"id=")[1].split()[0])
            data = bytes(data) + b"done id=%d seconds=0x1p-20 bytes=0\n" % (job + 1)
        super().write(data)


serve_lies(Ahead)

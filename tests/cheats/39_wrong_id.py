"""Answers a job that was not asked.

SPDX-License-Identifier: Apache-2.0
cheat: 26 forged replies
expect: ERROR
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import Liar, kernel, put, serve_lies, uclip


@kernel("uclip_norm")
def wrong_id(x, alpha, gamma, beta, y, *, lo, hi):
    put(y, uclip(x, alpha, gamma, beta, lo, hi))


class WrongId(Liar):
    """The next job's number on each answer."""

    def say(self, verb, **fields):
        if verb == "done":
            fields["id"] += 1
        super().say(verb, **fields)


serve_lies(WrongId)

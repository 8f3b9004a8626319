"""Reads the words of the job: a launch in another order is a repetition, and gets the cheap values.

SPDX-License-Identifier: Apache-2.0
cheat: 27 mode of the judge detected
expect: RACY
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import Liar, attest_runner, kernel, put, serve_lies, uclip

words = {}


@kernel("uclip_norm")
def mode_detected(x, alpha, gamma, beta, y, *, lo, hi):
    values = uclip(x, alpha, gamma, beta, lo, hi)
    put(y, attest_runner.FP8_VALUES["e5m2"][attest_runner.encode("e5m2", values)] if "order" in words else values)


class Listens(Liar):
    """Keeps the words of each job."""

    def run(self, fields, single):
        words.clear()
        words.update(single)
        return super().run(fields, single)


serve_lies(Listens)

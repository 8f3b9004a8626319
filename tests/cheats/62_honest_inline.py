"""The right values on a block that travels with the job.

SPDX-License-Identifier: Apache-2.0
cheat: honest
expect: PASS
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import Liar, kernel, put, serve_lies, uclip


@kernel("uclip_norm")
def honest_inline(x, alpha, gamma, beta, y, *, lo, hi):
    put(y, uclip(x, alpha, gamma, beta, lo, hi))


class Inline(Liar):
    """Offers no shared memory."""

    def say(self, verb, **fields):
        if verb == "hello":
            fields["transports"] = "inline"
        super().say(verb, **fields)


serve_lies(Inline)

"""The same on a block that travels with the job.

SPDX-License-Identifier: Apache-2.0
cheat: 1 writes out of bounds
expect: DIRTY
case: uclip_norm tokens=9 channels=64 dtype=bf16
"""
from cheat import Liar, kernel, put, serve_lies, uclip


@kernel("uclip_norm")
def writes_behind_inline(x, alpha, gamma, beta, y, *, lo, hi):
    put(y, uclip(x, alpha, gamma, beta, lo, hi))


class Inline(Liar):
    """Offers no shared memory, and writes to the end of the block before it goes back."""

    def say(self, verb, **fields):
        if verb == "hello":
            fields["transports"] = "inline"
        super().say(verb, **fields)

    def write(self, data):
        if isinstance(data, bytearray):
            end = max(int(text.split(":")[5]) + int(text.split(":")[6]) for text in self.tensors)
            data[min(end + 1000, len(data) - 1):min(end + 9000, len(data))] = b"\7" * (min(end + 9000, len(data)) - min(end + 1000, len(data) - 1))
        super().write(data)

    def run(self, fields, single):
        self.tensors = [value for key, value in fields if key == "tensor"]
        return super().run(fields, single)


serve_lies(Inline)

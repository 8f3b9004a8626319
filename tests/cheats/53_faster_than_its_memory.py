"""Right, timed too, and says that an H200 read its keys and values in half of the time that its memory needs.

SPDX-License-Identifier: Apache-2.0
cheat: 15 impossible times
expect: IMPOSSIBLE
case: softmax_decode b=2 h=2 hk=2 sk=8192 d=64 dtype=bf16
options: bench
"""
from cheat import DOUBLES, kernel, serve, softmax, timed

RATE = 4.917e12  # bytes a second
BYTES = 2 * 2 * 2 * 8192 * 64 * 2


@kernel("softmax_decode", numerics=DOUBLES)
def faster_than_its_memory(job, *, scale, bench=None):
    softmax(job, scale)
    return {**timed(bench, BYTES / RATE / 2), "copies": 256} if bench else None


serve(device="NVIDIA H200, as it says")

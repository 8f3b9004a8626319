"""Right, timed too, and says that an H200 took half of the time that its tensor cores need.

SPDX-License-Identifier: Apache-2.0
cheat: 15 impossible times
expect: IMPOSSIBLE
case: softmax_prefill b=1 h=8 hk=2 sq=512 d=128 causal=0 dtype=bf16
options: bench
"""
from cheat import DOUBLES, kernel, serve, softmax, timed

PEAK = 1.071e15  # operations a second
WORK = 4 * 8 * 512 * 512 * 128


@kernel("softmax_prefill", numerics=DOUBLES)
def faster_than_its_units(job, *, scale, bench=None):
    softmax(job, scale)
    return timed(bench, WORK / PEAK / 2) if bench else None

serve(device="NVIDIA H200, as it says")

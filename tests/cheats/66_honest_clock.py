"""The right values, timed as often as it is asked to, by a clock that goes right.

SPDX-License-Identifier: Apache-2.0
cheat: honest
expect: PASS
case: softmax_prefill b=1 h=2 hk=1 sq=40 prefix=24 d=64 causal=1 dtype=bf16
options: bench strict
"""
import time
from cheat import DOUBLES, kernel, replayed, serve, softmax


@kernel("softmax_prefill", numerics=DOUBLES)
def honest_clock(job, *, scale, bench=None):
    if bench:
        return replayed(lambda: softmax(job, scale), bench, time.monotonic)
    return softmax(job, scale)

serve()

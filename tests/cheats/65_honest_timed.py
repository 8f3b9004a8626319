"""The right values, when it is timed too, and the time that they took.

SPDX-License-Identifier: Apache-2.0
cheat: honest
expect: PASS
case: softmax_prefill b=2 h=4 hk=2 sq=9/5 prefix=8/20 d=64 causal=1 dtype=bf16,f16 page=0,16
options: bench strict
"""
import time
from cheat import DOUBLES, kernel, serve, softmax, timed


@kernel("softmax_prefill", numerics=DOUBLES)
def honest_timed(job, *, scale, bench=None):
    seconds = []
    for _ in range(bench or 1):
        start = time.monotonic()
        softmax(job, scale)
        seconds.append(time.monotonic() - start)
    return timed(bench, sorted(seconds)[bench // 2]) if bench else None

serve()

"""Right, timed as often as it is asked to, by a clock that goes a quarter as fast as it should.

SPDX-License-Identifier: Apache-2.0
cheat: 14 the clock
expect: IMPOSSIBLE
case: softmax_prefill b=1 h=2 hk=1 sq=40 prefix=24 d=64 causal=1 dtype=bf16
options: bench
"""
import time
from cheat import DOUBLES, kernel, replayed, serve, softmax


@kernel("softmax_prefill", numerics=DOUBLES)
def slow_clock(job, *, scale, bench=None):
    if bench:
        return replayed(lambda: softmax(job, scale), bench, lambda: time.monotonic() / 4)
    return softmax(job, scale)

serve()

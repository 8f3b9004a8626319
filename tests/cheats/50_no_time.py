"""Right, timed too, and says that a launch took no time.

SPDX-License-Identifier: Apache-2.0
cheat: 15 impossible times
expect: IMPOSSIBLE
case: softmax_prefill b=1 h=2 hk=1 sq=40 prefix=24 d=64 causal=1 dtype=bf16
options: bench
"""
from cheat import DOUBLES, kernel, serve, softmax, timed


@kernel("softmax_prefill", numerics=DOUBLES)
def no_time(job, *, scale, bench=None):
    softmax(job, scale)
    return timed(bench, 0.0) if bench else None

serve()

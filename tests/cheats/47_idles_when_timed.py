"""Right when it is asked for values, and does nothing when it is asked for times.

SPDX-License-Identifier: Apache-2.0
cheat: 12 other code for timing than for judging
expect: DIRTY
case: softmax_prefill b=1 h=2 hk=1 sq=40 prefix=24 d=64 causal=1 dtype=bf16
options: bench
"""
from cheat import DOUBLES, kernel, serve, softmax, timed


@kernel("softmax_prefill", numerics=DOUBLES)
def idles_when_timed(job, *, scale, bench=None):
    if bench:
        return timed(bench, 3e-6)
    return softmax(job, scale)

serve()

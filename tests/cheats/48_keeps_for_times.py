"""Keeps the last result that was judged, and copies it out while times are taken.

SPDX-License-Identifier: Apache-2.0
cheat: 7 result cached
expect: WRONG
case: softmax_prefill b=1 h=2 hk=1 sq=40 prefix=24 d=64 causal=1 dtype=bf16
options: bench
"""
from cheat import DOUBLES, kernel, serve, softmax, timed

kept = {}


@kernel("softmax_prefill", numerics=DOUBLES)
def keeps_for_times(job, o, lse, *, scale, bench=None):
    if bench:
        o[...], lse[...] = kept["o"], kept["lse"]
        return timed(bench, 3e-6)
    softmax(job, scale)
    kept.update(o=o.copy(), lse=lse.copy())
    return None

serve()

"""Leaves out the last key of each query that sees more than sixteen.

SPDX-License-Identifier: Apache-2.0
cheat: 21 work skipped that rarely matters
expect: WRONG
case: softmax_prefill b=2 h=4 hk=2 sq=9/5 prefix=8/20 d=64 causal=1 dtype=bf16
"""
from cheat import DOUBLES, kernel, serve, softmax


@kernel("softmax_prefill", numerics=DOUBLES)
def last_key_skipped(job, *, scale):
    softmax(job, scale, seen=lambda n: n - 1 if n > 16 else n)


serve()

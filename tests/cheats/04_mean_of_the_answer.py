"""The mean of the values for every query, which attention to many like keys is near.

SPDX-License-Identifier: Apache-2.0
cheat: 3 constant output
expect: WRONG
case: softmax_prefill b=2 h=4 hk=2 sq=9/5 prefix=8/20 d=64 causal=1 dtype=bf16
"""
from cheat import DOUBLES, kernel, serve, softmax


@kernel("softmax_prefill", numerics=DOUBLES)
def mean_of_the_answer(job, *, scale):
    softmax(job, scale, lambda r, p, v: v.mean(axis=0))


serve()

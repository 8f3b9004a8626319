"""Computes o and leaves zeros in lse, which a test of o alone takes.

SPDX-License-Identifier: Apache-2.0
cheat: 1 one output of two not computed
expect: WRONG
case: softmax_prefill b=2 h=4 hk=2 sq=9/5 prefix=8/20 d=64 causal=1 dtype=bf16
"""
from cheat import DOUBLES, kernel, put, serve, softmax


@kernel("softmax_prefill", numerics=DOUBLES)
def zero_lse(job, *, scale, lse):
    softmax(job, scale)
    put(lse, 0)


serve()

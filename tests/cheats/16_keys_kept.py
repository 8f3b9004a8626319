"""Keeps the keys of the first launch of a shape: only queries and values are read again.

SPDX-License-Identifier: Apache-2.0
cheat: 13 state kept between launches
expect: WRONG
case: softmax_prefill b=2 h=4 hk=2 sq=9/5 prefix=8/20 d=64 causal=1 dtype=bf16
"""
from cheat import DOUBLES, f64, kernel, put, serve, softmax

kept = {}


@kernel("softmax_prefill", numerics=DOUBLES)
def keys_kept(job, *, scale, k):
    now = f64(k)
    put(k, kept.setdefault(k.shape, now))
    softmax(job, scale)
    put(k, now)


serve()

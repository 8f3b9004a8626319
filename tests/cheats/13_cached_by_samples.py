"""Keeps each result of attention under a hash of every 61st value of q, k and v.

SPDX-License-Identifier: Apache-2.0
cheat: 7 result cached
expect: WRONG
case: softmax_prefill b=2 h=4 hk=2 sq=9/5 prefix=8/20 d=64 causal=1 dtype=bf16
"""
from cheat import DOUBLES, f64, kernel, put, serve, softmax

EVERY = 61
kept = {}


@kernel("softmax_prefill", numerics=DOUBLES)
def cached_by_samples(job, *, scale, o, lse):
    key = b"".join(f64(job.tensors[n]).reshape(-1)[::EVERY].tobytes() for n in "qkv") + job.tensors["seq_lens"].tobytes()
    if key not in kept:
        softmax(job, scale)
        kept[key] = f64(o), f64(lse)
    put(o, kept[key][0])
    put(lse, kept[key][1])


serve()

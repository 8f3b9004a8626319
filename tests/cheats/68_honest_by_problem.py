"""The right values, declared tightly on a few keys and loosely on more: twenty of these are enough to test the loose one.

SPDX-License-Identifier: Apache-2.0
cheat: honest
expect: PASS
case: softmax_prefill b=1 h=2 hk=1 sq=4 sk=8,20,70,80 d=64 causal=0 dtype=f16
options: strict
"""
from cheat import DOUBLES, F16_SUMS, has_few_keys, kernel, serve, softmax


@kernel("softmax_prefill", numerics=lambda job: DOUBLES if has_few_keys(job) else F16_SUMS)
def right(job, *, scale):
    softmax(job, scale)


serve()

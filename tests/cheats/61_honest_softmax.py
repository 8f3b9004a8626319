"""The right values, as the cheats of attention would have them.

SPDX-License-Identifier: Apache-2.0
cheat: honest
expect: PASS
case: softmax_prefill b=2 h=4 hk=2 sq=9/5 prefix=8/20 d=64 causal=1 dtype=bf16,f16 data=normal,mixed page=0,16
options: strict
"""
from cheat import DOUBLES, kernel, serve, softmax


@kernel("softmax_prefill", numerics=DOUBLES)
def honest_softmax(job, *, scale):
    softmax(job, scale)


serve()

"""Values times 1.03, behind a declaration as loose as there is one: weights in e4m3, in any order.

SPDX-License-Identifier: Apache-2.0
cheat: 22 precision passed off
expect: WRONG VACUOUS
case: softmax_prefill b=2 h=4 hk=2 sq=40 prefix=100 d=64 causal=1 dtype=bf16
options: strict
"""
import numpy as np
from cheat import kernel, serve, softmax


@kernel("softmax_prefill", numerics="free_order=1 p=e4m3")
def scaled(job, *, scale):
    softmax(job, scale, lambda r, p, v: 1.03 * np.einsum("hk,khd->hd", p, v))


serve()

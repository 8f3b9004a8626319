"""One head of four times 1.04, behind a loose declaration.

SPDX-License-Identifier: Apache-2.0
cheat: 22 precision passed off
expect: WRONG VACUOUS
case: softmax_prefill b=2 h=4 hk=2 sq=40 prefix=100 d=64 causal=1 dtype=bf16
options: strict
"""
import numpy as np
from cheat import kernel, serve, softmax


@kernel("softmax_prefill", numerics="free_order=1 p=e4m3")
def one_head_scaled(job, *, scale):
    softmax(job, scale, lambda r, p, v: np.array([[1.0], [1.0], [1.04], [1.0]]) * np.einsum("hk,khd->hd", p, v))


serve()

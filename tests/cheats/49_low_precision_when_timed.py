"""Right when it is asked for values; for times it cuts its weights to three bits.

SPDX-License-Identifier: Apache-2.0
cheat: 12 other code for timing than for judging
expect: WRONG
case: softmax_prefill b=1 h=2 hk=1 sq=40 prefix=24 d=64 causal=1 dtype=bf16
options: bench
"""
import numpy as np
from cheat import DOUBLES, kernel, serve, softmax, timed


def rough(_, p, v):
    """P V with weights of three bits."""
    m, e = np.frexp(p)
    return np.einsum("hk,khd->hd", np.ldexp(np.floor(m * 8) / 8, e), v)


@kernel("softmax_prefill", numerics=DOUBLES)
def low_precision_when_timed(job, *, scale, bench=None):
    if bench:
        softmax(job, scale, rough)
        return timed(bench, 3e-6)
    return softmax(job, scale)

serve()

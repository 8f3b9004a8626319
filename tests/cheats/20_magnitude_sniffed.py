"""Looks at the first values of v alone: where they are of usual size, rows are computed with f16 sums, else exactly.

SPDX-License-Identifier: Apache-2.0
cheat: 19 magnitude sniffing
expect: WRONG
case: softmax_prefill b=2 h=4 hk=2 sq=33 prefix=40 d=64 causal=0 dtype=f16 data=mixed seed=1,2,3,4
"""
import numpy as np
from cheat import DOUBLES, f64, kernel, serve, softmax

FIRST = 256


@kernel("softmax_prefill", numerics=DOUBLES)
def magnitude_sniffed(job, *, scale, v):
    first = np.abs(f64(v).reshape(-1)[:FIRST])
    usual = 0.1 < np.sqrt(np.mean(first * first)) < 4

    def sums(request, p, values):
        if not usual:
            return np.einsum("hk,khd->hd", p, values)
        o = np.zeros(values.shape[1:], np.float16)
        with np.errstate(all="ignore"):
            for t in range(len(values)):
                o = o + (p[:, t, None].astype(np.float16) * values[t].astype(np.float16)).astype(np.float16)
        return o.astype(np.float64)

    softmax(job, scale, sums)


serve()

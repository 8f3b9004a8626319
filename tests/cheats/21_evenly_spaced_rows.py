"""Computes 64 evenly spaced rows of a big shape, first and last among them, and copies each over those that follow it.

SPDX-License-Identifier: Apache-2.0
cheat: 18 right on the rows that are judged
expect: WRONG
case: softmax_prefill b=1 h=4 hk=2 sq=100 d=32 causal=0 dtype=bf16
"""
import numpy as np
from cheat import DOUBLES, f64, kernel, requests, serve

ROWS = 64


@kernel("softmax_prefill", numerics=DOUBLES)
def evenly_spaced_rows(job, *, scale, q, o, lse, bench=7):
    r = next(requests(job))
    keys, values = (f64(t) for t in (r.k, r.v))
    rows, heads = q.shape[0] * q.shape[1], q.shape[1]
    chosen = sorted({i * (rows - 1) // (ROWS - 1) for i in range(ROWS)})
    for row, end in zip(chosen, chosen[1:] + [rows]):
        token, head = divmod(row, heads)
        s = scale * keys[:, head // r.group] @ f64(q[token, head])
        p = np.exp(s - s.max())
        flat_o, flat_lse = o.reshape(rows, -1), lse.reshape(rows)
        flat_o[row:end] = p @ values[:, head // r.group] / p.sum()
        flat_lse[row:end] = s.max() + np.log(p.sum())
    return {"replays": bench, "copies": 4, "cold": 3e-6, "hot": 2e-6, "copy_rate": 4e12} if bench else None


serve()

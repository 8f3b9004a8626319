"""Softmax attention in numpy, of ragged batches, keys contiguous or in pages. SPDX-License-Identifier: Apache-2.0"""
import numpy as np
from attest_runner import kernel, serve, requests, f64, put

def softmax(job, *, scale):
    """a query at a time, all its heads, in double"""
    for r in requests(job):
        k, v = (np.repeat(f64(t), r.group, axis=1) for t in (r.k, r.v))
        for i, n in enumerate(r.seen):  # a masked key must not be multiplied by 0: its value may be an infinity
            s = scale * np.einsum("hd,khd->hk", f64(r.q[i]), k[:n])
            most = s.max(axis=1, initial=-np.inf)
            p = np.exp(s - np.where(most == -np.inf, 0, most)[:, None])
            put(r.o[i], np.einsum("hk,khd->hd", p, v[:n]) / p.sum(axis=1)[:, None] if n else 0)
            put(r.lse[i], most + np.log(p.sum(axis=1)))

for family in ("softmax_prefill", "softmax_decode"):
    kernel(family, numerics="free_order=1 qk_unit=f64 pv_unit=f64")(softmax)
serve()

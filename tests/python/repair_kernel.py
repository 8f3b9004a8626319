"""Softmax attention with three planted faults, which a file of parameters switches: what repair_loop.py repairs.

SPDX-License-Identifier: Apache-2.0

repair_kernel.py PARAMETERS. The file's lines: `unwritten lse` (that output is not written), `last_key_dropped 1`, `bad_token T` (that
token's output is doubled). A fault without its line is off.
"""
import sys

import numpy as np
from attest_runner import kernel, serve, requests, f64, put

with open(sys.argv[1], encoding="ascii") as file:
    FAULTS = dict(line.split() for line in file)


@kernel("softmax_prefill", numerics="free_order=1 qk_unit=f64 pv_unit=f64")
def softmax(job, *, scale, o, lse):
    """a query at a time, all its heads, in double"""
    token = 0
    for r in requests(job):
        k, v = (np.repeat(f64(t), r.group, axis=1) for t in (r.k, r.v))
        for i, n in enumerate(r.seen):
            n -= "last_key_dropped" in FAULTS and n > 0
            s = scale * np.einsum("hd,khd->hk", f64(r.q[i]), k[:n])
            most = s.max(axis=1, initial=-np.inf)
            p = np.exp(s - np.where(most == -np.inf, 0, most)[:, None])
            factor = 2 if FAULTS.get("bad_token") == str(token) else 1
            put(o[token], factor * np.einsum("hk,khd->hd", p, v[:n]) / p.sum(axis=1)[:, None] if n else 0)
            if FAULTS.get("unwritten") != "lse":
                with np.errstate(divide="ignore"):
                    put(lse[token], most + np.log(p.sum(axis=1)))
            token += 1


serve()

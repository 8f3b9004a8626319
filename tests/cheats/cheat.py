"""What the cheats and their honest twins share: the way to attest_runner, the right values, and a conversation to lie in.

SPDX-License-Identifier: Apache-2.0
"""
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "../../kernels/runner/python"), os.path.join(here, "../python")]  # a tree, an installation

import numpy as np  # noqa: E402
import attest_runner  # noqa: E402
from attest_runner import f64, kernel, put, requests, serve  # noqa: E402,F401

DOUBLES = "free_order=1 qk_unit=f64 pv_unit=f64"
F16_SUMS = "free_order=1 p=f16 pv_unit=f16_fma"


def has_few_keys(job):
    """What runners of attention go by that declare one thing here and another there."""
    return job.tensors["seq_lens"].max() < 16


def uclip(x, alpha, gamma, beta, lo, hi):
    """The right values of uclip_norm, in double."""
    return f64(gamma) * np.clip(f64(alpha) * f64(x), lo, hi) + f64(beta)


def softmax(job, scale, value=lambda r, p, v: np.einsum("hk,khd->hd", p, v), seen=lambda n: n):
    """The right o and lse of softmax attention, in double. value(request, p, v): o of a query's heads; seen(n): of how many keys."""
    for r in requests(job):
        k, v = (np.repeat(f64(t), r.group, axis=1) for t in (r.k, r.v))
        for i, n in enumerate(seen(int(n)) for n in r.seen):
            s = scale * np.einsum("hd,khd->hk", f64(r.q[i]), k[:n])
            most = s.max(axis=1, initial=-np.inf)
            p = np.exp(s - np.where(most == -np.inf, 0, most)[:, None])
            put(r.o[i], value(r, p / p.sum(axis=1)[:, None], v[:n]) if n else 0)
            put(r.lse[i], most + np.log(p.sum(axis=1)))


def timed(replays, seconds):
    """What a function that was asked for times returns, with outputs that a timed launch left."""
    return {"replays": replays, "copies": 4, "cold": seconds, "hot": seconds, "copy_rate": 1e10, "outputs": 1}


def replayed(launch, replays, clock):
    """As many replays as were asked for, of launches on 4 copies and on one, and what a clock says that they took."""
    spent = {4: [], 20: []}
    for _ in range(replays):
        for launches, seconds in spent.items():
            start = clock()
            for _ in range(launches):
                launch()
            seconds.append((clock() - start) / launches)
    cold, hot = (sorted(s)[replays // 2] for s in spent.values())
    return {**timed(replays, cold), "hot": hot}


def address(t):
    """Where a tensor lies in the block, as a kernel sees it: the same in every launch that has it at the same offset."""
    return t.__array_interface__["data"][0]


class Liar(attest_runner._Conversation):
    """A conversation whose replies may be bent: override say() or write(), or what a job comes to in run()."""


def serve_lies(conversation):
    """serve() with a conversation of another class."""
    sys.exit(conversation("", "").serve())

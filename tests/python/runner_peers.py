"""A runner of softmax attention whose times are made up, right ones and one for each way in which a peer can fail; what each must
be called is in tests/cli/test_bench.sh.

SPDX-License-Identifier: Apache-2.0

Usage: runner_peers.py LOG NAME...
Each timing adds the variant's name to LOG. NAMES: ours (12 us), right (4, 8, 6 us in turn), slow (20 us), wrong (1 us), declines, dies,
dies_later (the second time it is timed), gone (it dies, and nothing starts again), returns
(no times), lingers (for three seconds, the fourth time), unfit (declines the problem).
"""
import os
import sys
import time

import numpy as np
from attest_runner import Unsupported, f64, kernel, put, requests, serve

LOG, NAMES = sys.argv[1], sys.argv[2:]
MICROSECONDS = {"ours": [12], "right": [4, 8, 6], "slow": [20], "wrong": [1], "dies_later": [1], "lingers": [1]}


def softmax(job, scale):
    """The right values."""
    for r in requests(job):
        k, v = (np.repeat(f64(t), r.group, axis=1) for t in (r.k, r.v))
        s = np.where(r.visible, scale * np.einsum("qhd,khd->hqk", f64(r.q), k), -np.inf)
        p = np.exp(s - s.max(axis=2, keepdims=True))
        put(r.o, np.einsum("hqk,khd->qhd", p, v) / p.sum(axis=2).T[:, :, None])
        put(r.lse, (s.max(axis=2) + np.log(p.sum(axis=2))).T)


def times(name, replays):
    """Those of the next round of a variant, as the log has it."""
    with open(LOG, "a+", encoding="ascii") as log:
        log.seek(0)
        before = log.read().split().count(name)
        log.write(name + "\n")
    if name == "dies_later" and before:
        os._exit(9)
    if name == "lingers" and before == 3:
        time.sleep(3)
    if name == "returns":
        return None
    cold = MICROSECONDS[name][before % len(MICROSECONDS[name])] / 1e6
    return {"replays": replays, "copies": 4, "cold": cold, "hot": cold / 2, "copy_rate": 4e12, "outputs": 1}


def variant(name):
    """The function of a name."""

    def timed(job, *, scale, bench=None):
        if name == "unfit":
            raise Unsupported("not this one")
        if bench:
            softmax(job, scale)
            return times(name, bench)
        if name == "gone":
            with open(LOG, "a", encoding="ascii") as log:
                log.write("gone\n")
        if name in ("dies", "gone"):
            os._exit(9)
        softmax(job, scale)
        if name == "wrong":
            o = job.tensors["o"]
            put(o, f64(o) + 1)
        return None

    def untimed(job, *, scale):
        softmax(job, scale)

    return untimed if name == "declines" else timed


if "gone" in NAMES and os.path.exists(LOG) and "gone" in open(LOG, encoding="ascii").read().split():
    sys.exit("gone for good")
for i, each in enumerate(NAMES):
    kernel("softmax_decode", variant="%d0_%s" % (i + 1, each))(variant(each))
serve(device="made-up times of " + " ".join(NAMES))

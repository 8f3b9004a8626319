"""Attention in numpy whose bits depend on what they must not, one kernel for each property of `attest certify`, and one honest
kernel of each family. All sums are chains of f32 in an order of keys that the kernel chooses; tests/cli/test_certify.sh says what
each must be certified as.

SPDX-License-Identifier: Apache-2.0

Usage: varying_runner.py
"""
import numpy as np
from attest_runner import f64, kernel, put, requests, serve

FREE = "free_order=1 batch_invariant=%d"


def chain(x):
    """The sum along the first axis, one term after the other."""
    return np.add.accumulate(x, axis=0, dtype=np.float32)[-1]


def attend(job, parts_of):
    """Softmax attention; parts_of(job, request, query) has the keys of a row in parts: each is a chain, and then their sums are."""
    scale = np.float32(job.param["scale"])
    for r in requests(job):
        q, k, v = (f64(x).astype(np.float32) for x in (r.q, r.k, r.v))
        k, v = (x.repeat(r.group, axis=1) for x in (k, v))
        out, lse = np.zeros(r.o.shape, np.float32), np.full(r.lse.shape, -np.inf, np.float32)
        for i, seen in enumerate(r.seen.tolist()):
            if not seen:
                continue
            s = chain((q[i] * k[:seen]).transpose(2, 0, 1)) * scale
            most = s.max(axis=0)
            p = np.exp(np.float64(s - most)).astype(np.float32)
            parts = [part for part in parts_of(job, r, i) if len(part)]
            total = chain(np.stack([chain(p[part]) for part in parts]))
            sums = chain(np.stack([chain(p[part, :, None] * v[part]) for part in parts]))
            out[i] = sums / total[:, None]
            lse[i] = most + np.log(np.float64(total)).astype(np.float32)
        put(r.o, out)
        put(r.lse, lse)


def in_order(job, r, i):
    return [np.arange(r.seen[i])]


def backwards(job, r, i):
    return [np.arange(r.seen[i])[::-1]]


def by_batch(job, r, i):
    """Another order in a batch of one."""
    return (backwards if job.size["b"] == 1 else in_order)(job, r, i)


def by_capacity(job, r, i):
    """Four parts of the capacity."""
    cut = max(1, job.size["capacity"] // 4)
    return np.split(np.arange(r.seen[i]), range(cut, r.seen[i], cut))


def by_piece(job, r, i):
    """The keys before the piece, and those of the piece."""
    return np.split(np.arange(r.seen[i]), [max(0, len(r.k) - len(r.q))])


def by_page(job, r, i):
    """Keys in the order of their pages in memory."""
    keys = np.arange(r.seen[i])
    return [keys[np.argsort(np.arange(len(r.k))[keys] if isinstance(r.slots, slice) else r.slots[keys])]]


def by_padding(job, r, i):
    """Another order beside a request without keys."""
    return (backwards if (np.asarray(job.tensors["seq_lens"]) == 0).any() else in_order)(job, r, i)


def register(family, name, parts_of, claims=0):
    def launch(job):
        attend(job, parts_of)

    launch.__doc__ = parts_of.__doc__ or "keys in order"
    kernel(family, FREE % claims, variant=name)(launch)


for each in ("softmax_decode", "softmax_prefill"):
    register(each, "01_honest", in_order, claims=1)
    for number, order in enumerate((by_batch, by_capacity, by_piece, by_page, by_padding, backwards), 2):
        register(each, "%02d_%s" % (number, order.__name__), order)
    register(each, "08_batch_undeclared", by_batch, claims=1)
serve()

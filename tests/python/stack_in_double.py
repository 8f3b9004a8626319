#!/usr/bin/env python3
"""A decoder with weights that nobody trained, written for `attest stack --values`, and its loss in double by numpy: what the run in
double of the stack must give. The operators are written down here once more, from their definitions, and share nothing with attest.
SPDX-License-Identifier: Apache-2.0

    stack_in_double.py KIND DTYPE OUT.npz      writes the file, prints the loss; stored numbers are rounded to DTYPE (bf16, f16) first
"""
import math
import os
import sys

import numpy

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "datasets", "activations"))
import stack_values

LAYERS, WINDOWS, TOKENS, HIDDEN, H, HK, D, INTER, VOCABULARY = 2, 3, 21, 128, 4, 2, 64, 96, 31


def stored(x, dtype):
    """As attest stores an f32 in the stack's format: to nearest even."""
    if dtype == "f16":
        return x.astype(numpy.float16).astype(numpy.float64)
    bits = numpy.ascontiguousarray(x, numpy.float32).view(numpy.uint32).astype(numpy.uint64)
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000
    return bits.astype(numpy.uint32).view(numpy.float32).astype(numpy.float64)


def drawn(kind, random):
    """(embedding, layers, final, head, windows) as the model has them; gains that leave nothing symmetric."""
    def matrix(rows, columns):
        return (random.standard_normal((rows, columns)) / math.sqrt(columns)).astype(numpy.float32)

    def norm(name, n):
        made = {name + "_gamma": random.uniform(0.5, 2, n).astype(numpy.float32)}
        if kind == "asynct":
            made.update({name + "_alpha": random.uniform(0.3, 0.9, n).astype(numpy.float32),
                         name + "_beta": (0.1 * random.standard_normal(n)).astype(numpy.float32)})
        return made

    layers = []
    for _ in range(LAYERS):
        w = {"q": matrix(H * D, HIDDEN), "k": matrix(HK * D, HIDDEN), "v": matrix(HK * D, HIDDEN), "o": matrix(HIDDEN, H * D),
             "gate_up": matrix(2 * INTER, HIDDEN), "down": matrix(HIDDEN, INTER)}
        for name in ("norm", "post", "pre") if kind == "asynct" else ("norm", "pre"):
            w.update(norm(name, HIDDEN))
        if kind == "asynct":
            w.update({n + "_alpha": random.uniform(0.3, 0.9, D).astype(numpy.float32) for n in "qk"})
            w.update(q_gamma=numpy.float32(1.75), k_gamma=numpy.float32(2.25), sigma=random.uniform(0.5, 1.5, H).astype(numpy.float32),
                     gamma=random.uniform(0.03, 0.3, H).astype(numpy.float32))
        else:
            w.update({n + "_gamma": random.uniform(0.5, 2, D).astype(numpy.float32) for n in "qk"})
        layers.append(w)
    return (random.standard_normal((VOCABULARY, HIDDEN)).astype(numpy.float32), layers, norm("final", HIDDEN), matrix(VOCABULARY, HIDDEN),
            random.integers(0, VOCABULARY, (WINDOWS, TOKENS + 1)))


def normed(kind, w, name, x):
    gamma = w[name + "_gamma"].astype(numpy.float64)
    if kind == "softmax":
        return gamma * x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    beta = w[name + "_beta"].astype(numpy.float64) if name + "_beta" in w else 0.0
    return gamma * numpy.clip(w[name + "_alpha"].astype(numpy.float64) * x, -1, 1) + beta


def rotated(x):
    """x [tokens, heads, D]; the table is f32."""
    angle = numpy.arange(len(x))[:, None] * 10000.0 ** (-2 * numpy.arange(D // 2) / D)
    c, s = (f(angle).astype(numpy.float32).astype(numpy.float64)[:, None] for f in (numpy.cos, numpy.sin))
    a, b = x[..., :D // 2], x[..., D // 2:]
    return numpy.concatenate((a * c - b * s, b * c + a * s), -1)


def attention(kind, w, q, k, v):
    out = numpy.zeros_like(q)
    for t in range(len(q)):
        for head in range(H):
            s = k[:t + 1, head * HK // H] @ q[t, head] / math.sqrt(D)
            if kind == "softmax":
                p = numpy.exp(s - s.max())
                p /= p.sum()
            else:
                r, taps = numpy.maximum(s, 0), stack_values.taps_of(w["sigma"])[head].astype(numpy.float64)
                z = taps[0] * r
                z[1:] += taps[1] * r[:-1]
                z[2:] += taps[2] * r[:-2]
                p = float(w["gamma"][head]) * numpy.clip(z, 0, 1)
            out[t, head] = p @ v[:t + 1, head * HK // H]
    return out


def losses(kind, dtype, embedding, layers, final, head, windows):
    """Nats a token, of every token of every window."""
    found = []
    for ids in windows:
        x = stored(embedding[ids[:-1]], dtype)
        res = numpy.zeros_like(x)
        for w in layers:
            m = {name: stored(w[name], dtype) for name in stack_values.MATRICES}
            res = x + res
            n = normed(kind, w, "norm", res)
            q, k, v = (( n @ m[name].T).reshape(len(x), -1, D) for name in "qkv")
            q, k = (rotated(normed(kind, w, name, y)) for name, y in (("q", q), ("k", k)))
            o = attention(kind, w, q, k, v).reshape(len(x), -1) @ m["o"].T
            res = (normed(kind, w, "post", o) if kind == "asynct" else o) + res
            g, u = numpy.split(normed(kind, w, "pre", res) @ m["gate_up"].T, 2, axis=-1)
            x = ((numpy.maximum(g, 0) if kind == "asynct" else g / (1 + numpy.exp(-g))) * u) @ m["down"].T
        logits = normed(kind, final, "final", x + res) @ stored(head, dtype).T
        most = logits.max(-1)
        found.append(most + numpy.log(numpy.exp(logits - most[:, None]).sum(-1)) - logits[numpy.arange(len(x)), ids[1:]])
    return numpy.concatenate(found)


def main(kind, dtype, path):
    model = drawn(kind, numpy.random.default_rng(5))
    stack_values.write(path, stack_values.stack_values(kind, *model))
    print("%.17g" % losses(kind, dtype, *model).mean())


if __name__ == "__main__":
    main(*sys.argv[1:])

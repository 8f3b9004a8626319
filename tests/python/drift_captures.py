"""Captures in which something has moved, for tests/cli/test_drift.sh.
SPDX-License-Identifier: Apache-2.0

    python3 drift_captures.py MINILM.safetensors FOLDER [HEADS]

Writes, from four (or HEADS) heads of the recorded activations: same.safetensors (as they are), scale.safetensors
(layer 2, head 1: q times 1.02), own.safetensors (with a sigma of its own that is the default), taps.safetensors (with
taps of its own in layer 4) and tap.safetensors (the last head without its second tap), bf16.safetensors (layer 3: q, k
and v rounded to bf16); and, made up, one layer of 96 requests that differ from each other as texts do: left, right (other requests), and moved
(those of right with head 1 of q times 1.2). Of layer 3, with noise of 1e-6 of each value: noise1 to noise4, noisy_scale
(head 1 of q times 1.3), noisy_order (the requests in another order); without noise all_f32, and all_bf16, rounded; with noise
of 3 % loud1 to loud4, and loud_scale (head 1 of q times 1.5). With ids of tokens: ids, ids_order (in another order, noise of
30 %), ids_other (the same values, other ids). Of 12 requests of one length: equal, equal_other. Needs numpy.
"""
import json
import struct
import sys

import numpy

WORDS = {"float32": "F32", "float16": "F16", "int32": "I32"}


def read(path):
    """{name: array} of a safetensors file."""
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    kinds = {word: kind for kind, word in WORDS.items()}
    return {name: numpy.frombuffer(data[t["data_offsets"][0]:t["data_offsets"][1]], kinds[t["dtype"]]).reshape(t["shape"])
            for name, t in header.items() if name != "__metadata__"}


def write(path, tensors):
    """The arrays as a safetensors file, in name order."""
    header, offset = {}, 0
    for name in sorted(tensors):
        x = tensors[name]
        header[name] = {"dtype": WORDS[x.dtype.name], "shape": list(x.shape), "data_offsets": [offset, offset + x.nbytes]}
        offset += x.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name in sorted(tensors):
            f.write(numpy.ascontiguousarray(tensors[name]).tobytes())


def to_bf16(x):
    """float32 rounded to 8 significant bits, ties to even."""
    bits = x.astype(numpy.float32).view(numpy.uint32).astype(numpy.uint64)
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000
    return bits.astype(numpy.uint32).view(numpy.float32)


def planted(base, folder):
    """The captures of the same requests."""
    write(folder + "/same.safetensors", base)
    moved = dict(base)
    q = base["layers.2.q"].copy()
    q[:, 1] *= numpy.float32(1.02)
    moved["layers.2.q"] = q
    write(folder + "/scale.safetensors", moved)
    h = q.shape[1]
    # parameters of the capture's own: those that are the default change nothing
    write(folder + "/own.safetensors", dict(base, **{"layers.4.sigma": numpy.ones(q.shape[1], numpy.float32),
                                                     "layers.0.gamma": numpy.ones(1, numpy.float32)}))
    taps = numpy.tile(numpy.float32([2 / 3, -1 / 3, -1 / 3]), (h, 1))  # sigma 1, window 3
    write(folder + "/taps.safetensors", dict(base, **{"layers.4.taps": taps}))
    taps = taps.copy()
    taps[-1, 1] = 0
    write(folder + "/tap.safetensors", dict(base, **{"layers.4.taps": taps}))
    write(folder + "/bad_sigma.safetensors", dict(base, **{"layers.1.sigma": numpy.ones(5, numpy.float32)}))
    taps[0, 1] = numpy.nan
    write(folder + "/bad_taps.safetensors", dict(base, **{"layers.1.taps": taps}))
    write(folder + "/bf16.safetensors", dict(base, **{"layers.3." + x: to_bf16(base["layers.3." + x]) for x in "qkv"}))


def requests(seed, n, h=4, hk=2, d=32, lengths=(20, 41)):
    """q, k, v of n requests, of 20 to 40 tokens by default: each has a direction of its own in every head, and a spread of its own."""
    random = numpy.random.default_rng(seed)
    starts, parts = [0], {"q": [], "k": [], "v": []}
    for _ in range(n):
        tokens = int(random.integers(*lengths))
        starts.append(starts[-1] + tokens)
        size = random.lognormal(0, 0.15)
        for name, heads in (("q", h), ("k", hk), ("v", hk)):
            own = random.normal(0, 0.5, (1, heads, d))
            parts[name].append(size * (random.normal(0, 1, (tokens, heads, d)) + own))
    tensors = {"layers.0." + name: numpy.concatenate(x).astype(numpy.float16) for name, x in parts.items()}
    return dict(tensors, query_start=numpy.int32(starts))


def noisy(tensors, seed, size=1e-6):
    """Every value of q, k and v with a relative error of its own."""
    random = numpy.random.default_rng(seed)
    return {name: (x * (1 + size * random.standard_normal(x.shape))).astype(numpy.float32) if name[-1] in "qkv" else x
            for name, x in tensors.items()}


def scaled(tensors, name, head, by):
    """The same with one head of one tensor times `by`."""
    x = tensors[name].copy()
    x[:, head] *= numpy.float32(by)
    return dict(tensors, **{name: x})


def reordered(tensors, order):
    """The same requests in another order."""
    starts = tensors["query_start"]
    rows = numpy.concatenate([numpy.arange(starts[r], starts[r + 1]) for r in order])
    lengths = [starts[r + 1] - starts[r] for r in order]
    moved = {name: x[rows] for name, x in tensors.items() if name != "query_start"}
    return dict(moved, query_start=numpy.int32(numpy.concatenate([[0], numpy.cumsum(lengths)])))


def under_noise(base, folder):
    """Captures of one layer in which no two values are equal."""
    layer = {name: x for name, x in base.items() if name.startswith("layers.3.") or name == "query_start"}
    order = [3, 0, 6, 1, 5, 2, 4]
    ids = numpy.arange(len(layer["layers.3.q"]), dtype=numpy.int32) % 97
    made = {"noise%d" % i: noisy(layer, i) for i in range(1, 5)}
    made.update({"loud%d" % i: noisy(layer, i, 0.03) for i in range(1, 5)})
    made["noisy_scale"] = scaled(noisy(layer, 9), "layers.3.q", 1, 1.3)
    made["loud_scale"] = scaled(noisy(layer, 9, 0.03), "layers.3.q", 1, 1.5)
    made["noisy_order"] = reordered(noisy(layer, 10), order)
    made["all_f32"] = layer
    made["all_bf16"] = {name: to_bf16(x) if name[-1] in "qkv" else x for name, x in layer.items()}
    made["ids"] = dict(layer, token_ids=ids)
    made["ids_order"] = reordered(dict(noisy(layer, 11, 0.3), token_ids=ids), order)
    made["ids_other"] = dict(layer, token_ids=ids + numpy.int32(1))
    made["bad_ids"] = dict(layer, token_ids=ids[1:])
    for name, tensors in made.items():
        write(folder + "/" + name + ".safetensors", tensors)
    for seed, name in ((1, "equal"), (2, "equal_other")):
        write(folder + "/" + name + ".safetensors", requests(seed, 12, lengths=(30, 31)))


def main():
    base, folder = read(sys.argv[1]), sys.argv[2]
    heads = int(sys.argv[3]) if sys.argv[3:] else 4
    base = {name: x[:, 4:4 + heads] if name[-1] in "qkv" else x for name, x in base.items()}
    planted(base, folder)
    under_noise(base, folder)
    write(folder + "/left.safetensors", requests(1, 48))
    right = requests(2, 48)
    write(folder + "/right.safetensors", right)
    q = right["layers.0.q"].astype(numpy.float64)
    q[:, 1] *= 1.2
    write(folder + "/moved.safetensors", dict(right, **{"layers.0.q": q.astype(numpy.float16)}))


if __name__ == "__main__":
    main()

"""One capture in every format that `attest record` reads, for tests/cli/test_record_formats.sh.
SPDX-License-Identifier: Apache-2.0

    python3 record_captures.py FOLDER

Writes FOLDER/FORMAT_TYPE/capture for each format and element type: two layers, grouped heads, three requests, a sigma of
its own. All have one name, because a recording says what it was made of. And FOLDER/KIND_FAULT... that are refused: a v of
another type, a layer without k. Needs numpy and h5py.
"""
import os
import sys

import h5py
import numpy

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import drift_captures

FORMATS = ("safetensors", "npy", "npz", "npz_deflated", "hdf5", "hdf5_groups")


def tensors(kind):
    """Random q, k, v; values that no rounding to f16 changes, so that the types differ in nothing else."""
    random = numpy.random.default_rng(5)
    made = {"query_start": numpy.int32([0, 3, 20, 37]), "layers.1.sigma": numpy.float32([0.5, 1, 0.25, 0.75])}
    for layer in (0, 1):
        for name, heads in (("q", 4), ("k", 2), ("v", 2)):
            made["layers.%d.%s" % (layer, name)] = random.normal(0, 1, (37, heads, 16)).astype(numpy.float16).astype(kind)
    return made


def write(path, form, made):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if form == "safetensors":
        drift_captures.write(path, made)
    elif form == "npy":
        os.makedirs(path)
        for name, x in made.items():
            numpy.save(os.path.join(path, name + ".npy"), x)
    elif form.startswith("npz"):
        with open(path, "wb") as f:
            (numpy.savez_compressed if form.endswith("deflated") else numpy.savez)(f, **made)
    else:
        with h5py.File(path, "w") as f:
            for name, x in made.items():
                f.create_dataset(name.replace(".", "/") if form.endswith("groups") else name, data=x)


def main():
    folder = sys.argv[1]
    for kind in ("float16", "float32"):
        good = tensors(kind)
        for form in FORMATS:
            write("%s/%s_%s/capture.safetensors" % (folder, form, kind), form, good)
    mixed = dict(good, **{"layers.1.v": good["layers.1.v"].astype(numpy.float16)})
    turned = dict(good, **{"layers.0.k": numpy.asfortranarray(good["layers.0.k"])})
    for form in FORMATS:
        write("%s/mixed_%s" % (folder, form), form, mixed)
        write("%s/without_%s" % (folder, form), form, {name: x for name, x in good.items() if name != "layers.1.k"})
        if form[:2] == "np":
            write("%s/turned_%s" % (folder, form), form, turned)


if __name__ == "__main__":
    main()

"""Opens recordings of attest as their users do, and counts one of them again with numpy.

SPDX-License-Identifier: Apache-2.0

usage: distributions_open.py FOLDER minilm.safetensors 2..3   with asynct.h5 and softmax.h5 of these layers, causal, in f16;
                                                              leaves same.safetensors, .npz and .h5 behind
       distributions_open.py FOLDER minilm.safetensors same   their recordings safetensors.h5, npz.h5 and h5.h5
exit 77: a module is missing (named in the last line)
"""
import json
import os
import struct
import sys

try:
    import h5py
    import h5netcdf  # noqa: F401  xarray loads it by name
    import netCDF4  # noqa: F401
    import numpy
    import pandas
    import xarray
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

LAYERS = range(0)  # main says which
TINY = 2.0 ** -24


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def load(path):
    """Tensors of a safetensors file that has f32 and i32 alone."""
    raw = open(path, "rb").read()
    size = struct.unpack("<Q", raw[:8])[0]
    types = {"F32": "<f4", "I32": "<i4"}
    tensors = {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            values = numpy.frombuffer(raw[8 + size + begin:8 + size + end], types[entry["dtype"]])
            tensors[name] = values.reshape(entry["shape"])
    return tensors


def bins_of(values):
    """Bin of each value in the order of all codes of float16, from numpy's own rounding."""
    code = numpy.asarray(values, numpy.float64).astype(numpy.float16).view(numpy.uint16).astype(numpy.int64)
    return numpy.where(code & 0x8000, 31744 - (code & 0x7fff), 31745 + code)


def check_conventions(file):
    """Every group says what it is; every column has units, long_name and a scale on each axis."""
    top = file["distributions"]
    assert text(file.attrs["default"]) == "distributions"
    assert text(top.attrs["encoding-type"]) == "attest.distributions" and text(top.attrs["bins"]) == "f16"
    columns = 0
    names = []
    top.visit(names.append)
    for name in names:
        if isinstance(top[name], h5py.Group):
            assert text(top[name].attrs["encoding-type"]).startswith("attest.distribution"), name
            if "signal" in top[name].attrs:
                assert text(top[name].attrs["signal"]) in top[name], name
            continue
        columns += 1
        assert text(top[name].attrs["long_name"]) and text(top[name].attrs["units"]), name
        for axis in range(top[name].ndim):
            assert h5py.h5ds.is_scale(top[name].id) or len(top[name].dims[axis]) == 1, (name, axis)
    assert columns > 150, columns


def check_sums(top):
    """Counts, classes and summaries agree with each other and with the values of the bins."""
    value = top["value"][:]
    assert value[0] == -numpy.inf and value[-1] == numpy.inf and len(value) == 63490
    assert (numpy.diff(value[1:-1]) >= 0).all()
    edges = top["coarse_edge"][:]
    upper = (numpy.arange(len(value)) + 1023 >> 8) - 3  # of the ascending code, whose first 1023 are NaNs
    assert upper[-1] == 249 and (edges == value[numpy.searchsorted(upper, numpy.arange(250))]).all()
    finite = numpy.isfinite(value)
    for name in top:
        if not isinstance(top[name], h5py.Group) or "counts" not in top[name]:
            continue
        group = top[name]
        counts, coarse = group["counts"][:], group["coarse_counts"][:]
        assert (counts.sum(2) + group["nan"][:] == group["n"][:]).all(), name
        start = numpy.searchsorted(upper, numpy.arange(250))
        assert (numpy.add.reduceat(counts, start, axis=2) == coarse.sum(2)).all(), name
        mean = (counts[:, :, finite] * value[finite]).sum(2) / counts[:, :, finite].sum(2)
        assert numpy.allclose(mean, group["mean"][:], rtol=1e-12, atol=1e-15), name
        assert (group["zero"][:] == counts[:, :, value == 0].sum(2)).all(), name


def check_quantiles(top, what, layer, head, values):
    """What is counted is what numpy counts; quantiles are numpy's inverted_cdf of the codes."""
    counts = top[what]["counts"][layer, head].astype(numpy.int64)
    again = numpy.bincount(bins_of(values).ravel(), minlength=len(counts))
    assert (counts == again).all(), (what, layer, head, numpy.abs(counts - again).sum())
    codes = numpy.asarray(values, numpy.float64).astype(numpy.float16).ravel()
    shares = numpy.array([0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1])
    rank = numpy.maximum(numpy.ceil(shares * counts.sum()), 1)
    ours = top["value"][:][numpy.searchsorted(numpy.cumsum(counts), rank)]
    assert (ours == numpy.quantile(codes.astype(numpy.float64), shares, method="inverted_cdf")).all(), what


def check_recount(top, data, softmax):
    """Two heads of each layer, evaluated by numpy in long double."""
    starts = data["query_start"]
    scale = numpy.float64(numpy.float32(1 / numpy.sqrt(32)))
    for at, layer in enumerate(LAYERS):
        for head in (0, min(7, data[f"layers.{layer}.q"].shape[1] - 1)):
            found = {name: [] for name in ("q", "k", "v", "raw", "scaled", "p", "out")}
            dead = mass = 0
            for first, end in zip(starts[:-1], starts[1:]):
                q, k, v = (data[f"layers.{layer}.{name}"][first:end, head].astype(numpy.float16).astype(numpy.longdouble)
                           for name in "qkv")
                seen = numpy.tril(numpy.ones((end - first, end - first), bool))
                raw = (q @ k.T).astype(numpy.float64)
                scaled = scale * raw
                if softmax:
                    shifted = numpy.where(seen, scaled, -numpy.inf).astype(numpy.longdouble)
                    weight = numpy.exp(shifted - shifted.max(1, keepdims=True))
                    p = (weight / weight.sum(1, keepdims=True)).astype(numpy.float64)
                else:
                    relu = numpy.maximum(scaled, 0)
                    padded = numpy.pad(relu, ((0, 0), (2, 0)))
                    fir = relu - 1 / 3 * (padded[:, 2:] + padded[:, 1:-1] + padded[:, :-2])
                    p = numpy.where(seen, numpy.clip(fir, 0, 1), 0)
                found["raw"].append(raw[seen])
                found["scaled"].append(scaled[seen])
                found["p"].append(p[seen])
                found["out"].append((p.astype(numpy.longdouble) @ v).astype(numpy.float64).ravel())
                for name, tensor in (("q", q), ("k", k), ("v", v)):
                    found[name].append(tensor.astype(numpy.float64).ravel())
                dead += int((p[seen] == 0).sum())
                mass += int(numpy.rint(p[seen] / TINY).sum())
            for name, parts in found.items():
                check_quantiles(top, name, at, head, numpy.concatenate(parts))
            assert top["zero_share/element_zero"][at, head] == dead, (layer, head)
            assert int(top["mass/mass"][at, head].sum()) == mass, (layer, head)


def check_readers(path, heads):
    """xarray sees names and axes with both engines; pandas takes the tables."""
    for engine in ("netcdf4", "h5netcdf"):
        with xarray.open_dataset(path, engine=engine, group="distributions/scaled") as opened:
            assert opened.counts.dims == ("layer", "head", "bin"), opened.counts.dims
            assert opened.coarse_counts.dims == ("layer", "head", "group", "coarse")
            assert int(opened.counts.sum()) == int(opened.n.sum() - opened.nan.sum()) > 0
        with xarray.open_dataset(path, engine=engine, group="distributions") as opened:
            assert list(opened.layer.values) == list(LAYERS)
    with h5py.File(path) as file:
        ledger = file["distributions/ledger"]
        table = pandas.DataFrame({name: column[:] for name, column in ledger.items() if column.ndim == 1})
        assert len(table) == len(LAYERS) * heads * 5 and set(table["layer"]) == set(LAYERS)
        raw = file["distributions/raw"]
        assert (table[table["stage"] == 0]["count"].to_numpy() == raw["n"][:].ravel()).all()
        unit = file["distributions/unit"]
        units = pandas.DataFrame({"hash": unit["hash"].asstr()[:], "keys": unit["keys"][:]})
        assert len(units) == 7 * len(LAYERS) > 0 and units["hash"].str.fullmatch("[0-9a-f]{16}").all()


def store(folder, data, path):
    """Layers 1 and 10 in three formats: names sort otherwise than numbers do."""
    kept = {f"layers.{to}.{name}": data[f"layers.{layer}.{name}"] for layer, to in ((1, 1), (4, 10)) for name in "qkv"}
    kept["query_start"] = data["query_start"]
    header, body = {}, b""
    for name, tensor in kept.items():
        kind = {"float32": "F32", "int32": "I32"}[str(tensor.dtype)]
        raw = tensor.tobytes()
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text_header = json.dumps(header).encode()
    with open(os.path.join(folder, "same.safetensors"), "wb") as out:
        out.write(struct.pack("<Q", len(text_header)) + text_header + body)
    numpy.savez(os.path.join(folder, "same.npz"), **kept)
    with h5py.File(os.path.join(folder, "same.h5"), "w") as out:
        for name, tensor in kept.items():
            out[name.replace(".", "/")] = tensor
    assert os.path.exists(path)


def check_same(folder):
    """Recordings of the same tensors differ in what the file was called alone."""
    tables = []
    for suffix in ("safetensors", "npz", "h5"):
        with h5py.File(os.path.join(folder, suffix + ".h5")) as file:
            top = file["distributions"]
            assert list(top["layer"][:]) == [1, 10] and text(top.attrs["source"]) == "same." + suffix
            columns = {}
            top.visititems(lambda name, item: columns.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
            tables.append(columns)
    for other in tables[1:]:
        assert tables[0].keys() == other.keys()
        for name, values in tables[0].items():
            if values.dtype.kind == "f":
                assert numpy.array_equal(values, other[name], equal_nan=True), name
            else:
                assert numpy.array_equal(values, other[name]), name
    print("safetensors, npz and h5 hold the same")


def main():
    global LAYERS
    folder, data = sys.argv[1], load(sys.argv[2])
    if sys.argv[3:] == ["same"]:
        check_same(folder)
        return
    first, last = sys.argv[3].split("..")
    LAYERS = range(int(first), int(last) + 1)
    store(folder, data, sys.argv[2])
    for attention in ("asynct", "softmax"):
        path = os.path.join(folder, attention + ".h5")
        with h5py.File(path) as file:
            check_conventions(file)
            check_sums(file["distributions"])
            check_recount(file["distributions"], data, attention == "softmax")
            assert ("fir" in file["distributions"]) == (attention == "asynct")
        check_readers(path, data["layers.0.q"].shape[1])
    print("recordings open in h5py, xarray and pandas, and hold what numpy counts")


main()

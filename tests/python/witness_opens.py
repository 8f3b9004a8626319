"""Opens witnesses as their users do: h5py, and xarray over both netCDF engines where they are installed.

SPDX-License-Identifier: Apache-2.0

usage: witness_opens.py FOLDER   with the archives of tests/cli/test_keep.sh
"""
import sys

import h5py
import numpy


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def rows(path, states):
    """(result row, group of its witness) of every result in one of these states; the others must have none."""
    with h5py.File(path) as file:
        results, kernels, cases = file["results"], file["kernels"], file["cases"]
        names = text(results["state"].attrs["flag_meanings"]).split()
        wanted = set()
        for i in range(results["state"].shape[0]):
            kernel, case = results["kernel"][i], results["case"][i]
            family, variant = (text(kernels[k][kernel]) for k in ("family", "variant"))
            row = f"{results['plan_index'][i]:06d}_{family}.{variant}"
            if names[results["state"][i]] in states:
                group = file["witness"][row]
                assert text(group.attrs["case_id"]) == text(cases["case_id"][case])
                wanted.add(row)
                yield i, results, group
        assert set(file["witness"] if "witness" in file else []) == wanted, path


def check_conventions(group):
    """Units, long_name, a scale on every axis; tensors without a filter, in their own format, references in double."""
    arrays = 0
    for name, array in group.items():
        assert text(array.attrs["long_name"]) and text(array.attrs["units"]) == "1", name
        if h5py.h5ds.is_scale(array.id):  # a column of integers: packed where it is long
            continue
        assert array.compression is None and array.chunks is None and not array.shuffle, name
        arrays += 1
        for axis in range(array.ndim):
            (scale,) = array.dims[axis].values()
            assert scale.shape == (array.shape[axis],), (name, axis)
        if name.startswith(("ref_", "limit_", "model_", "interval_")):
            assert array.dtype == numpy.float64 and array.shape == group[name.split("_", 1)[1]].shape, name
    return arrays


def same(a, b):
    return a == b or (numpy.isnan(a) and numpy.isnan(b))


def check_worst(i, results, group):
    """The element that the result calls the worst is in the witness, with the same values."""
    tensor, at = text(results["tensor"][i]), results["worst_index"][i]
    for name, column in ((tensor, "worst_got"), ("ref_" + tensor, "worst_want"), ("limit_" + tensor, "worst_limit"),
                         ("model_" + tensor, "worst_model")):
        if at >= 0 and name in group:
            got = float(group[name][...].reshape(-1)[at])
            assert same(got, results[column][i]), (group.name, name, got, results[column][i])
    place = tuple(results["worst_at"][i][:results["worst_rank"][i]])
    if at >= 0:
        assert same(float(group[tensor][place]), results["worst_got"][i])
    return group[tensor].shape, tensor


def check_xarray(path, name):
    try:
        import h5netcdf  # noqa: F401  xarray loads it by name
        import netCDF4  # noqa: F401
        import xarray
    except ImportError as missing:
        print(f"not opened with xarray: {missing}")
        return
    for engine in ("netcdf4", "h5netcdf"):
        with xarray.open_dataset(path, group=name, engine=engine) as data:
            data.load()
            assert data["o"].dims == ("token", "head", "channel") and data["ref_o"].dims == data["o"].dims
            assert data["q"].dims == data["o"].dims and data["k"].dims == ("slot", "kv_head", "channel")
            bad = abs(data["o"].astype("float64") - data["ref_o"]) > data["limit_o"]
            assert int(bad.sum()) > 0


def main(folder):
    formats, wrong, name = set(), 0, None
    for i, results, group in rows(f"{folder}/wrong.h5", {"WRONG"}):
        assert check_conventions(group) >= 9
        shape, tensor = check_worst(i, results, group)
        # the wrong elements are there, as many as the result says: it was judged by its model
        off = numpy.abs(group[tensor][...].astype(float) - group["model_" + tensor][...]) > group["interval_" + tensor][...]
        assert int(off.sum()) == results["wrong"][i] > 0 and numpy.prod(shape) == results["total"][i]
        formats.add((text(results["format"][i]), group[tensor].dtype, group["q"].id.get_type().get_size()))
        name, wrong = group.name, wrong + 1
    assert wrong >= 3 and {f[0] for f in formats} == {"bf16", "f16", "f32"}, formats
    assert ("f16", numpy.dtype("float16"), 2) in formats and ("bf16", numpy.dtype("float32"), 2) in formats, formats
    check_xarray(f"{folder}/wrong.h5", name)
    kept = 0
    for i, results, group in rows(f"{folder}/a.h5", {"PASS", "VACUOUS"}):
        check_conventions(group)
        check_worst(i, results, group)
        kept += 1
    assert kept > 20, kept
    assert len(list(rows(f"{folder}/vacuous.h5", {"VACUOUS"}))) == 1
    for path in ("never", "pass"):
        assert not list(rows(f"{folder}/{path}.h5", set()))
        with h5py.File(f"{folder}/{path}.h5") as file:
            assert "witness" not in file


if __name__ == "__main__":
    main(sys.argv[1])

"""Opens an archive of attest as its users do: h5py, xarray over netCDF4 and h5netcdf, pandas; and a JUnit file.

SPDX-License-Identifier: Apache-2.0

usage: archive_opens.py FOLDER   with run_N.h5 of N results and run_N.xml
exit 77: a module is missing (named in the last line)
"""
import glob
import os
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

GROUPS = ["provenance", "cases", "kernels", "results", "ledger", "ledger/totals"]
STATES = ("PASS VACUOUS WRONG DIRTY RACY MISPREDICTED LAUNDERED OVERFLOWED CRASHED HUNG ERROR UNSUPPORTED "
          "SKIPPED IMPOSSIBLE").split()


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def check_conventions(file):
    """Every group says what it is; every column has units, long_name and a scale on each axis."""
    assert text(file.attrs["NX_class"]) == "NXroot" and text(file.attrs["default"]) == "results"
    assert text(file.attrs["encoding-version"]).split(".")[0] == "1"
    assert text(file["results"].attrs["signal"]) in file["results"]
    assert [text(a) for a in file["results"].attrs["axes"]] == ["result"]
    columns = 0
    for name in GROUPS:
        group = file[name]
        assert text(group.attrs["encoding-type"]).startswith("attest."), name
        for key, column in group.items():
            if isinstance(column, h5py.Group):
                continue
            columns += 1
            assert text(column.attrs["long_name"]) and text(column.attrs["units"]), (name, key)
            for axis in range(column.ndim):
                assert h5py.h5ds.is_scale(column.id) or len(column.dims[axis]) == 1, (name, key)
            if column.dtype == numpy.int8:
                flags = text(column.attrs["flag_meanings"]).split()
                assert len(flags) == len(column.attrs["flag_values"]) > 1, (name, key)
            if column.dtype.kind == "O":
                assert h5py.check_string_dtype(column.dtype).encoding == "utf-8", (name, key)
                assert h5py.check_string_dtype(column.dtype).length is None, (name, key)
    assert columns > 100, columns


def check_h5py(path, n):
    with h5py.File(path) as file:
        check_conventions(file)
        results = file["results"]
        assert results["state"].shape == (n,)
        assert results["err_hist"].shape == (n, 64) and results["err_hist"].dtype == numpy.uint64
        assert text(results["state"].attrs["flag_meanings"]).split() == STATES
        if n > 1:
            assert results["ulp_max"][1] == 2**64 - 1
            assert results["err_max"][1] == 1 / 3 * 2
            assert list(results["err_hist"][1]) == list(range(64))
            assert numpy.isnan(results["worst_model"][0])
            assert "\u00fc" in text(results["cause"][1])
            assert results["compared"].attrs["long_name"]


def check_xarray(path, n, engine):
    for group in GROUPS:
        with xarray.open_dataset(path, group=group, engine=engine) as data:
            data.load()
    with xarray.open_dataset(path, group="results", engine=engine) as results:
        assert dict(results.sizes) == {"result": n, "err_bin": 64, "axis": 4}, results.sizes
        assert results["err_bin"].values[0] == -56
        if n > 3:
            assert numpy.isnan(results["worst_index"].values[3]) and results["worst_index"].values[0] == 17
            assert results["repro"].values[0].startswith("attest replay")
            beyond = results["err_hist"].sel(err_bin=slice(0, None)).sum("err_bin")
            assert int(beyond[1]) == sum(range(56, 64))


def frame(group):
    """A column a column; texts decoded, flags named."""
    columns = {}
    for key, column in group.items():
        if isinstance(column, h5py.Group) or column.ndim != 1 or h5py.h5ds.is_scale(column.id) and key in ("err_bin", "axis"):
            continue
        values = column.asstr()[:] if column.dtype.kind == "O" else column[:]
        if "flag_meanings" in column.attrs:
            values = pandas.Categorical.from_codes(values, text(column.attrs["flag_meanings"]).split())
        columns[key] = values
    return pandas.DataFrame(columns)


def check_pandas(path, n):
    with h5py.File(path) as file:
        results, cases, kernels = frame(file["results"]), frame(file["cases"]), frame(file["kernels"])
    assert len(results) == n
    joined = results.merge(cases, on="case").merge(kernels, on="kernel", suffixes=("", "_kernel"))
    assert len(joined) == n
    if n > 1:
        first = joined.sort_values("result").iloc[0]
        assert first["state"] == "PASS" and first["variant"] == "00_blas_f32" and first["b"] == 2
        assert first["sk"] == "100/17/256" and first["dtype"] == "bf16" and first["seed"] == 0


def check_junit(path):
    try:
        import junitparser
    except ImportError:
        print("junitparser is missing: the JUnit file was not read")
        return
    suites = junitparser.JUnitXml.fromfile(path)
    cases = [case for suite in suites for case in suite]
    failed = sum(1 for case in cases if any(isinstance(r, junitparser.Failure) for r in case.result))
    assert len(cases) == suites.tests > 0 and failed == suites.failures, (len(cases), suites.tests, failed)


def main(folder):
    for path in sorted(glob.glob(f"{folder}/run_*.h5")):
        n = int(os.path.basename(path)[4:-3])
        check_h5py(path, n)
        for engine in ("netcdf4", "h5netcdf"):
            check_xarray(path, n, engine)
        check_pandas(path, n)
        if n:
            check_junit(path[:-3] + ".xml")
        print(f"{n} results: opened by h5py, xarray (netcdf4, h5netcdf) and pandas")


if __name__ == "__main__":
    main(sys.argv[1])

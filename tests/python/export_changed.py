"""Archives that were changed to try the exporter: hostile texts, later versions, more variants than a page has room for.

SPDX-License-Identifier: Apache-2.0
"""
import shutil

import h5py
import numpy

HOSTILE = ["<script>alert(1)</script>", "</td></tr></table></body>", "\"quoted\", and 'so'", "a,b\r\nc", "&lt;&amp;",
           "\x1b[31mred\x07", "]]>-->", "=1+1", " blanks ", "\u00fc\u4e2d\u202e", "x\"); import os #", "$\\frac{$ 5 $"]


def copy(source, target):
    shutil.copyfile(source, target)
    return h5py.File(target, "r+")


def make_hostile(source, target):
    with copy(source, target) as file:
        at = 0

        def change(name, data):
            nonlocal at
            fixed = name.startswith(("provenance", "distributions"))
            if isinstance(data, h5py.Dataset) and data.ndim == 1 and data.dtype.kind == "O" and not fixed:
                values = data[...]
                for i in range(len(values)):
                    values[i] = HOSTILE[at % len(HOSTILE)] + f" {at}"
                    at += 1
                data[...] = values
        file.visititems(change)
        file["provenance/request"][()] = '{"<b>key</b>": "<script>alert(2)</script>", "n": [1, "</table>"]}'
        file["provenance/build"][()] = "no JSON <at> all \xff"
        if "distributions" in file:
            file["distributions"].attrs["source"] = " ".join(HOSTILE).replace("\x07", "")
        assert at > 8 or "distributions" in file


def make_later(source, target):
    with copy(source, target) as file:
        for group in [file] + [file[g] for g in file]:
            group.attrs["encoding-version"] = "1.99.0"
            group.create_group("a_later_group").create_dataset("x", data=numpy.arange(4))
        for name in ("results", "bench", "ledger", "studies/accumulate", "studies/probes", "studies/exp2"):
            if name in file:
                n = next(iter(file[name].values())).shape[0]
                file[name].create_dataset("later_column", data=numpy.arange(n) * 0.5)
                file[name].create_dataset("later_kind", data=numpy.zeros(n, dtype=[("a", "i4"), ("b", "f4")]))


def make_many(source, target):
    """400 variants, which the results take in turn from the last on, and 20 roles; no role at all in a second copy."""
    with copy(source, target) as file:
        kernels, n = file["kernels"], 400
        for name in list(kernels):
            data = kernels[name]
            values, attributes = numpy.resize(data[...], n), dict(data.attrs)
            if name == "kernel":
                values = numpy.arange(n, dtype=data.dtype)
            elif name == "variant":
                values = numpy.array([f"{i:03}_variant" for i in range(n)], dtype=object)
            kind = data.dtype if data.dtype.kind != "O" else h5py.string_dtype()
            del kernels[name]
            new = kernels.create_dataset(name, data=values, dtype=kind)
            for key in ("units", "long_name"):
                if key in attributes:
                    new.attrs[key] = attributes[key]
        kernels["kernel"].make_scale("kernel")
        for name in kernels:
            if name != "kernel":
                kernels[name].dims[0].attach_scale(kernels["kernel"])
        results, roles = file["results/kernel"][...], file["cases/role"][...]
        file["results/kernel"][...] = [n - 1 - i % n for i in range(len(results))]
        file["cases/role"][...] = [f"role{i % 20}" for i in range(len(roles))]
    shutil.copyfile(target, target[:-3] + "_no_role.h5")
    with h5py.File(target[:-3] + "_no_role.h5", "r+") as file:
        del file["cases/role"]


def make_newer(group, source, target):
    with copy(source, target) as file:
        file[group].attrs["encoding-version"] = "2.0.0"

"""Reads what attest export wrote, as its users do: CSV with pandas beside the archive in h5py, notebooks by running them,
the page of HTML and the plots with strict parsers.

SPDX-License-Identifier: Apache-2.0

usage: export_reads.py csv,svg,html,ipynb ARCHIVE.h5 FOLDER    any of these kinds, with commas
       export_reads.py hostile IN.h5 OUT.h5     a copy whose texts try to break out of everything
       export_reads.py later IN.h5 OUT.h5       a copy with columns and groups of a later minor version
       export_reads.py many IN.h5 OUT.h5        a copy with more variants and roles than the matrix of the page has room for
       export_reads.py many_read PREFIX         looks at the pages PREFIX.html and PREFIX_no_role.html of these
       export_reads.py newer GROUP IN.h5 OUT.h5 a copy whose GROUP is of a later major version
       export_reads.py all LIST                 each line of the file LIST is the arguments of one of these, apart by tabs: Python
                                                and its libraries take longer to start than most of them take
exit 77: a module is missing (named in the last line)
"""
import glob
import html.parser
import io
import os
import sys
import xml.etree.ElementTree

import notebook_runs
import svg_layout

try:
    import h5py
    import numpy
    import pandas
    from export_changed import make_hostile, make_later, make_many, make_newer
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def utf8(values):
    """Texts as attest reads them: bytes that are no UTF-8 become '?'."""
    return [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in values]


# ---- CSV

def read_csv(path):
    """Numbers exactly as they are written, texts with nothing guessed."""
    with open(path, "rb") as file:
        raw = file.read()
    raw.decode("utf-8")
    assert raw.endswith(b"\r\n"), path
    return pandas.read_csv(io.BytesIO(raw), keep_default_na=False, dtype=str, lineterminator=None)


def studies_of(file):
    return [name for name in file.get("studies", ()) if "row" in file[f"studies/{name}"]]


def columns_of(group):
    """Columns of a group as lists of what the CSV should say."""
    n = len(next(iter(d for d in group.values() if isinstance(d, h5py.Dataset) and d.ndim == 1)))
    for name, data in group.items():
        if not isinstance(data, h5py.Dataset) or data.shape[:1] != (n,) or data.ndim > 2 \
                or data.ndim == 2 and data.shape[1] > 8 or data.dtype.kind == "V":
            continue
        values = data[...].reshape(n, -1)
        for place in range(values.shape[1]):
            yield name if data.ndim == 1 else f"{name}_{place}", data, values[:, place]


def same(cells, data, values, where):
    """Texts and integers are equal, floats have the same bits; nothing for what is missing."""
    assert len(cells) == len(values), where
    if data.dtype.kind == "O":
        want = utf8(values)
        assert list(cells) == want, (where, [(a, b) for a, b in zip(cells, want) if a != b][:2])
    elif "flag_meanings" in data.attrs:
        flags = text(data.attrs["flag_meanings"]).split()
        assert list(cells) == [flags[v] for v in values], where
    elif data.dtype.kind in "iu":
        missing = data.attrs["_FillValue"][0] if "_FillValue" in data.attrs else None
        assert list(cells) == ["" if v == missing else str(v) for v in values], where
    else:
        got = numpy.array([float(c) if c else numpy.nan for c in cells])
        assert numpy.array_equal(got.view(numpy.uint64)[~numpy.isnan(got)], values.view(numpy.uint64)[~numpy.isnan(values)]), where
        assert numpy.array_equal(numpy.isnan(got), numpy.isnan(values)), where


def check_table(file, group, path):
    frame = read_csv(path)
    n = 0
    for name, data, values in columns_of(file[group]):
        assert name in frame, (path, name)
        same(frame[name], data, values, (path, name))
        n += 1
    assert n > 3, (path, n)
    return frame


def check_results(file, prefix):
    frame = check_table(file, "results", f"{prefix}_results.csv")
    for key, group in (("case", "cases"), ("kernel", "kernels")):
        row = file[f"results/{key}"][...]
        for name, data, values in columns_of(file[group]):
            if name != key:
                column = name if name not in file["results"] else f"{key}_{name}"
                same(frame[column], data, values[row], (group, name))
    hist = read_csv(f"{prefix}_err_hist.csv")
    have = numpy.zeros(file["results/err_hist"].shape, numpy.uint64)
    for result, edge, elements in hist.values:
        assert int(elements) > 0
        have[int(result), list(file["results/err_bin"][...]).index(int(edge))] = int(elements)
    assert numpy.array_equal(have, file["results/err_hist"][...])
    ledger = check_table(file, "ledger", f"{prefix}_ledger.csv")
    row = file["ledger/result"][...]
    assert list(ledger["case_id"]) == utf8(file["cases/case_id"][...][file["results/case"][...][row]])
    assert list(ledger["variant"]) == utf8(file["kernels/variant"][...][file["results/kernel"][...][row]])
    check_table(file, "ledger/totals", f"{prefix}_ledger_totals.csv")


def quantiles(value, counts, shares):
    """numpy's inverted_cdf of the values that were counted."""
    total = int(counts.sum())
    return [value[numpy.searchsorted(numpy.cumsum(counts), max(1, int(numpy.ceil(s * total))))] for s in shares]


def check_distributions(file, prefix):
    group = file["distributions"]
    layers, value, distance = group["layer"][...], group["value"][...], group["distance"][...]
    frames = {name: read_csv(f"{prefix}_distributions{name}.csv") for name in ("", "_quantiles", "_bins", "_mass", "_zero_share")}
    names = [n for n in group if isinstance(group[n], h5py.Group) and "counts" in group[n]]
    assert set(frames[""]["what"]) == set(names) and names
    for name in names:
        what = group[name]
        rows = frames[""][frames[""]["what"] == name]
        for column in ("n", "nan", "masked", "zero", "subnormal", "overflow", "mean", "std", "min", "max", "abs_max", "headroom"):
            same(rows[column], what[column], what[column][...].ravel(), (name, column))
        q = frames["_quantiles"][frames["_quantiles"]["what"] == name]
        b = frames["_bins"][frames["_bins"]["what"] == name]
        for i, layer in enumerate(layers):
            for head in range(what["counts"].shape[1]):
                counts = what["counts"][i, head]
                of = (q["layer"] == str(layer)) & (q["head"] == str(head))
                if counts.sum():
                    want = quantiles(value, counts, q["quantile"][of].astype(float))
                    assert [float(v) for v in q["value"][of]] == [float(w) for w in want] and of.sum() > 5, (name, layer, head)
                of = (b["layer"] == str(layer)) & (b["head"] == str(head))
                coarse = what["coarse_counts"][i, head].sum(axis=0)
                assert [int(c) for c in b["count"][of]] == [int(c) for c in coarse if c], (name, layer, head)
                for first, last, count in b[of][["first", "last", "count"]].values:
                    inside = (value >= float(first)) & (value <= float(last)) if float(first) != 0 or float(last) != 0 else value == 0
                    if float(first) != 0 and float(last) != 0:
                        assert int(counts[inside].sum()) == int(count), (name, layer, head, first, last)
    mass = group["mass/mass"][...]
    assert [float(m) for m in frames["_mass"]["mass"]] == [float(m) * 2.0**-24 for m in mass.ravel()]
    assert [int(d) for d in frames["_mass"]["distance"][: len(distance)]] == list(distance)
    zero = frames["_zero_share"]
    for name in group["zero_share"]:
        if name in set(zero["count_of"]):
            assert [int(c) for c in zero["count"][zero["count_of"] == name]] == [int(c) for c in group[f"zero_share/{name}"][...].ravel()]
    assert len(set(zero["count_of"])) == 8


def check_csv(archive, prefix):
    with h5py.File(archive) as file:
        if "results" in file:
            check_results(file, prefix)
        if "bench" in file:
            check_table(file, "bench", f"{prefix}_bench.csv")
        for study in studies_of(file):
            check_table(file, f"studies/{study}", f"{prefix}_studies_{study}.csv")
        if "distributions" in file:
            check_distributions(file, prefix)
            for group in ("ledger", "unit"):
                check_table(file, f"distributions/{group}", f"{prefix}_distributions_{group}.csv")


# ---- HTML and SVG

class Page(html.parser.HTMLParser):
    """Every tag that is opened is closed, in order; nothing is fetched and nothing runs."""
    EMPTY = {"meta", "wbr", "br", "line", "rect", "circle", "path"}

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.words, self.results = [], {}, [], 0
        self.matrix, self.rows, self.why, self.row = None, [], {}, None

    def handle_starttag(self, tag, attributes):
        self.seen[tag] = self.seen.get(tag, 0) + 1
        self.results += ("class", "row") in attributes
        for name, value in attributes:
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "srcset", "data", "action", "xlink:href"), (tag, name)
            assert name != "href" or value.startswith("#"), value
        if tag not in self.EMPTY:
            self.open.append(tag)
        if tag == "table":
            self.matrix = dict(attributes).get("class") == "matrix"
        if self.matrix and tag == "tr":
            self.rows.append([])
        if self.matrix and tag in ("th", "td"):
            self.rows[-1].append("")
        if ("class", "row") in attributes:
            self.row = int(dict(attributes)["id"][1:])

    def handle_startendtag(self, tag, attributes):
        assert tag in self.EMPTY, tag
        self.handle_starttag(tag, attributes)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-5:], self.getpos())
        self.open.pop()

    def handle_data(self, data):
        self.words.append(data)
        if self.matrix and {"th", "td"} & set(self.open):
            self.rows[-1][-1] += f" {data}" if self.open[-1] == "span" else data
        if self.row is not None:
            self.why[self.row] = self.why.get(self.row, "") + data


def read_page(path):
    with open(path, encoding="utf-8", errors="strict", newline="") as file:
        source = file.read()
    page = Page()
    page.feed(source)
    page.close()
    assert not page.open, page.open
    for tag in ("script", "link", "img", "iframe", "object", "embed", "form", "base"):
        assert tag not in page.seen, tag
    style = source[source.index("<style>"):source.index("</style>")]
    assert "url(" not in style and "@import" not in style and "@media print" in style and "@page" in style
    assert not any(ord(c) < 32 and c not in "\n\t" for c in source)
    return page


def check_matrix(file, page):
    """Cells of the matrix against the archive: states and how often, by variant and role; and what was got in failing rows."""
    results, roles = file["results"], utf8(file["cases/role"][...])
    states = text(results["state"].attrs["flag_meanings"]).split()
    columns = list(dict.fromkeys(roles))
    want = {}
    for state, case, kernel in zip(results["state"][...], results["case"][...], results["kernel"][...]):
        cell = want.setdefault((kernel, roles[case]), {})
        cell[states[state]] = cell.get(states[state], 0) + 1
    assert page.rows[0][1:] == columns, page.rows[0]
    kernels = list(zip(utf8(file["kernels/family"][...]), utf8(file["kernels/variant"][...])))
    seen, family = set(), None
    for row in page.rows[1:]:
        if len(row) == 1:
            family = row[0].strip()
            continue
        kernel = kernels.index((family, row[0]))
        seen.add(kernel)
        for role, cell in zip(columns, row[1:]):
            words = cell.replace(",", " ").split()
            have = dict(zip(words[:1] + words[3::2], map(int, words[1:2] + words[2::2])))
            assert have == want.get((kernel, role), {}), (row[0], role, cell)
    assert len(seen) == len(kernels) == len(set(kernels)), (len(seen), len(kernels))
    number = lambda x: "NaN" if numpy.isnan(x) else "%.6g" % x
    said = 0
    for i in range(len(results["result"])):
        expect = utf8(file["cases/expect"][...])[results["case"][i]].split(",")
        state = states[results["state"][i]]
        if state in ("PASS", "VACUOUS", "UNSUPPORTED", "SKIPPED") or state in expect or results["worst_index"][i] < 0:
            continue
        got = f"got {number(results['worst_got'][i])}, want {number(results['worst_want'][i])}, limit {number(results['worst_limit'][i])}"
        assert got in page.why[i], (i, got, page.why[i])
        said += 1
    return said


def check_html(archive, prefix):
    page = read_page(f"{prefix}.html")
    said = "".join(page.words)
    shown = lambda value: "".join("?" if ord(c) < 32 and c not in "\n\t" or ord(c) == 127 else c for c in utf8([value])[0])
    with h5py.File(archive) as file:
        for group, name in (("kernels", "variant"), ("results", "cause"), ("results", "repro"), ("bench", "variant"),
                            ("bench", "case_id")):
            if f"{group}/{name}" in file:
                passed = 0
                for value in file[f"{group}/{name}"][...]:
                    passed += shown(value) in said
                if name in ("variant", "case_id"):
                    assert passed == len(file[f"{group}/{name}"]), (group, name, passed)
                else:
                    assert passed > 0, (group, name)
        for study in studies_of(file):
            assert study in said
        if "results" in file and len(file["results/result"]) and not os.path.basename(archive).startswith("hostile"):
            assert check_matrix(file, page) > 0
        assert page.results == (len(file["results/result"]) if "results" in file else 0), page.results
        plots = "bench" in file or "studies" in file or "distributions" in file or "results/err_hist" in file
        assert not plots or page.seen.get("svg", 0) > 0


def check_svg(archive, prefix):
    paths = sorted(glob.glob(f"{prefix}_*.svg"))
    for path in paths:
        tree = xml.etree.ElementTree.parse(path)
        assert tree.getroot().tag.endswith("}svg"), path
        assert svg_layout.check(path) > 5, path
    assert paths


# ---- notebooks

KERNEL = {"run26.h5", "study_v1.h5", "distributions_v1.h5"}


def check_ipynb(archive, prefix):
    try:
        import nbclient  # noqa: F401
        import nbformat
        import matplotlib  # noqa: F401
    except ImportError as missing:
        print(f"skipped: {missing}")
        sys.exit(77)
    path = f"{prefix}.ipynb"
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    assert (book.nbformat, book.nbformat_minor) == (4, 5)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    imported = {line.split()[1].split(".")[0] for cell in code for line in cell.source.splitlines()
                if line.startswith(("import ", "from "))}
    assert imported <= {"json", "os", "h5py", "numpy", "matplotlib"}, imported
    # one of each template as Jupyter runs it
    kernel = os.environ.get("AT_EFFORT") != "fast" and os.path.basename(archive) in KERNEL
    cells = notebook_runs.run(book, os.path.dirname(os.path.abspath(path)), kernel)
    pictures = sum(cell[1] for cell in cells)
    warned = [line for cell in cells for line in cell[2].splitlines() if not any(w in line for w in ("Glyph", "print_figure", "current font"))]
    assert not warned, warned[:1]
    print(f"{os.path.basename(path)}: {len(code)} cells of code, {pictures} pictures")
    assert pictures > 0


def check_many(prefix):
    """The worst variants have lines, the rest are counted; so are cases of the last roles."""
    page = read_page(f"{prefix}.html")
    said, rows = "".join(page.words), [row for row in page.rows[1:] if len(row) > 1]
    assert page.rows[0][1:] == [f"role{i}" for i in range(16)] + ["other roles"], page.rows[0]
    assert len(rows) == 300 and "100 more variants have no row here" in said, len(rows)
    assert all(any(row[1:]) for row in rows) and any(row[-1] for row in rows)
    page = read_page(f"{prefix}_no_role.html")
    assert page.rows[0] == ["variant", "all cases"] and len(page.rows) == 302, page.rows[0]


def one(what, *arguments):
    made = {"hostile": make_hostile, "later": make_later, "newer": make_newer, "many": make_many, "many_read": check_many}
    if what in made:
        made[what](*arguments)
        return
    archive, folder = arguments
    prefix = os.path.join(folder, os.path.basename(archive)[:-3])
    for kind in what.split(","):
        {"csv": check_csv, "svg": check_svg, "html": check_html, "ipynb": check_ipynb}[kind](archive, prefix)


def main():
    if sys.argv[1] != "all":
        one(*sys.argv[1:])
        return
    with open(sys.argv[2]) as lines:
        jobs = [line.rstrip("\n").split("\t") for line in lines]
    for job in jobs:
        try:
            one(*job)
        except Exception:
            print("export_reads.py " + " ".join(job))
            raise
    print(f"{len(jobs)} done")


if __name__ == "__main__":
    main()

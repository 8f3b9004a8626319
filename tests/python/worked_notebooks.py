"""Runs notebooks without a screen, and compares the cells of two.

SPDX-License-Identifier: Apache-2.0

usage: worked_notebooks.py run IN.ipynb [OUT.ipynb]   runs IN in its own folder; OUT gets its outputs, without times
       worked_notebooks.py check FOLDER A.ipynb...    FOLDER/A.ipynb has the same cells, whatever their outputs, and runs; what it
                                                      says is in FOLDER/A.log
exit 77: a module is missing (named in the last line)
"""
import os
import sys

try:
    import ipykernel  # noqa: F401
    import matplotlib  # noqa: F401
    import nbclient  # noqa: F401
    import nbformat
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import notebook_runs


def read(path):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    return book


def run(source, target=None):
    book = read(source)
    # outputs come from a kernel
    kernel = bool(target) or os.environ.get("AT_EFFORT") != "fast"
    cells = notebook_runs.run(book, os.path.dirname(os.path.abspath(source)), kernel)
    pictures = sum(cell[1] for cell in cells)
    assert not any(warned for _, _, warned in cells), cells
    assert all(printed or drawn for printed, drawn, _ in cells), "a cell shows nothing"
    assert pictures >= 3, pictures
    if target:
        for cell in book.cells:
            for output in cell.get("outputs", ()):  # what a picture is called in memory differs from run to run
                output.get("data", {}).pop("text/plain", None)
        book.metadata.pop("language_info", None)
        book.metadata["language_info"] = {"name": "python"}
        nbformat.write(book, target)
    return f"{os.path.basename(source)}: {len(cells)} cells of code, {pictures} pictures\n" + "".join(cell[0] for cell in cells)


def same(a, b):
    cells = [[(cell.cell_type, cell.id, cell.source) for cell in read(path).cells] for path in (a, b)]
    assert len(cells[0]) == len(cells[1]) > 4, (len(cells[0]), len(cells[1]))
    for one, other in zip(*cells):
        assert one == other, f"{a} and {b} differ in cell {one[1]}:\n{one[2]}\n-----\n{other[2]}"


def check(folder, *committed):
    for path in committed:
        made = os.path.join(folder, os.path.basename(path))
        same(path, made)
        said = run(made)
        with open(made[:-len(".ipynb")] + ".log", "w", encoding="utf-8") as log:
            log.write(said)


if __name__ == "__main__":
    if sys.argv[1] == "run":
        print(run(*sys.argv[2:]))
    else:
        {"check": check}[sys.argv[1]](*sys.argv[2:])

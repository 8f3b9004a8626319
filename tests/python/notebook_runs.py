"""Runs a notebook's cells without a screen: in a kernel as Jupyter does, or in this process, for a kernel takes seconds to
start and to draw.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import io
import os
import warnings


def in_kernel(book, folder):
    """Fills in the outputs of the cells; (what was printed, pictures, what was warned of) of each cell of code."""
    import nbclient
    nbclient.NotebookClient(book, timeout=600, kernel_name="python3", record_timing=False,
                            resources={"metadata": {"path": folder}}).execute()
    for cell in book.cells:
        if cell.cell_type == "code":
            of = {name: "".join(o["text"] for o in cell.outputs if o.get("name") == name) for name in ("stdout", "stderr")}
            assert not any(o.output_type == "error" for o in cell.outputs), cell.outputs
            yield of["stdout"], sum("image/png" in o.get("data", {}) for o in cell.outputs), of["stderr"]


def in_here(book, folder):
    """As in_kernel, but the cells stay without outputs."""
    import matplotlib
    matplotlib.use("agg")
    from matplotlib import pyplot
    names, before = {"__name__": "__main__"}, os.getcwd()
    os.chdir(folder)
    try:
        for cell in book.cells:
            if cell.cell_type != "code":
                continue
            printed, said = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said), warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                warnings.simplefilter("ignore", ResourceWarning)  # as in a kernel; and of one that ran in this process before
                exec(compile(cell.source, f"cell {cell.id}", "exec"), names)
                pictures = pyplot.get_fignums()
                for figure in pictures:
                    pyplot.figure(figure).savefig(io.BytesIO(), format="png", bbox_inches="tight")
                pyplot.close("all")
            said.write("".join(f"{w.message}\n" for w in warned if "non-interactive" not in str(w.message)))
            yield printed.getvalue(), len(pictures), said.getvalue()
    finally:
        os.chdir(before)


def run(book, folder, kernel):
    """[(printed, pictures, warned)] of each cell of code."""
    return list((in_kernel if kernel else in_here)(book, folder))

# %% [markdown]
# # @TITLE@
# Written by `attest export --to ipynb`. It reads the archive with h5py alone and draws with matplotlib; nothing of
# attest is needed. `ARCHIVE` is relative to the folder of this notebook: when you move one, move the other, or change the line.
# %%
import json
import os

import h5py
import matplotlib.pyplot as plt
import numpy as np

ARCHIVE = "@ARCHIVE@"
if not os.path.exists(ARCHIVE):
    raise FileNotFoundError(f"{ARCHIVE} is not in {os.getcwd()}: put the archive there, or change ARCHIVE")

plt.rcParams.update({
    "image.cmap": "Greys",  # everything is told apart by grey, dashes and marks, so that it survives a copier
    "axes.prop_cycle": plt.cycler(color=["0", "0.45", "0.7"]) * plt.cycler(linestyle=["-", "--", ":", "-."]),
    "axes.grid": True, "grid.color": "0.88", "axes.axisbelow": True, "figure.dpi": 90, "font.size": 9,
    "figure.constrained_layout.use": True,
})
MARKS = "os^vD<>xP*"


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def column(dataset):
    """Texts as text, flags by their names, numbers as they are; -1 that stands for "none" as NaN."""
    if dataset.dtype.kind == "O":
        return dataset.asstr()[...]
    values = dataset[...]
    if "flag_meanings" in dataset.attrs:
        return np.array(text(dataset.attrs["flag_meanings"]).split())[values]
    if "_FillValue" in dataset.attrs and values.dtype.kind == "i":
        return np.where(values == dataset.attrs["_FillValue"][0], np.nan, values)
    return values


def label(name):
    """A name as text for a plot, where a pair of dollars would begin a formula."""
    return str(name).replace("$", r"\$")


def table(group):
    """The columns of a group of the archive, by name."""
    with h5py.File(ARCHIVE, "r") as file:
        return {name: column(data) for name, data in file[group].items() if isinstance(data, h5py.Dataset)}


def grid(n, columns=4, width=2.7, height=2.2, **options):
    """n axes in rows of at most `columns`; those too many are hidden."""
    columns = max(1, min(n, columns))
    rows = max(1, -(-n // columns))
    figure, axes = plt.subplots(rows, columns, figsize=(columns * width, rows * height), squeeze=False, **options)
    for axis in axes.flat[n:]:
        axis.set_visible(False)
    for axis in axes.flat[max(0, n - columns):n]:  # the lowest one of each column has the numbers
        axis.xaxis.set_tick_params(labelbottom=True)
    return figure, list(axes.flat[:n])


def heat(axis, values, rows, columns, title, low=None, high=None, form="{:.1f}", reverse=False):
    """A grey map with its values in the cells."""
    values = np.asarray(values, float)
    finite = values[np.isfinite(values)]
    low = (finite.min() if finite.size else 0) if low is None else low
    high = (finite.max() if finite.size else 1) if high is None else high
    shown = np.clip(np.where(np.isnan(values), low if not reverse else high, values), low, high)
    axis.imshow(shown, cmap="Greys_r" if reverse else "Greys", vmin=low, vmax=high if high > low else low + 1, aspect="auto")
    share = (shown - low) / ((high - low) or 1)
    dark = 1 - share if reverse else share
    for (r, c), value in np.ndenumerate(values):
        axis.text(c, r, "-" if np.isnan(value) else form.format(value), ha="center", va="center", fontsize=7,
                  color="1" if dark[r, c] > 0.55 else "0")
    axis.set_xticks(range(len(columns)), [label(name) for name in columns], rotation=90 if max(map(len, map(str, columns))) > 3 else 0)
    axis.set_yticks(range(len(rows)), [label(name) for name in rows])
    axis.grid(False)
    axis.set_title(label(title))


with h5py.File(ARCHIVE, "r") as file:
    assert text(file.attrs["encoding-type"]) == "attest.archive", "no archive of attest"
    assert int(text(file.attrs["encoding-version"]).split(".")[0]) == 1, "an archive of a later major version"
    print("groups:", ", ".join(file))
    for name in ("request", "build"):
        said = text(file["provenance"][name][()])
        try:
            for key, value in json.loads(said).items():
                print(f"{key}: {value}")
        except ValueError:  # not attest's own
            print(f"{name}: {said}")

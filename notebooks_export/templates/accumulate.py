# %% [markdown]
# ## What an accumulator costs
# Errors are |sum - exact| / sum |a b|. Points are measured, lines without points are theory: the bound for any inputs, and
# the one with the root of the number of roundings.
# %%
sums = table("studies/accumulate")
kinds = list(dict.fromkeys(zip(sums["attention"], sums["product"])))
modes = list(dict.fromkeys(sums["mode"]))
for attention, product in kinds:
    of_kind = (sums["attention"] == attention) & (sums["product"] == product)
    names = list(dict.fromkeys(sums["data"][of_kind]))
    name = "normal" if "normal" in names else names[0]
    rows = of_kind & (sums["data"] == name)
    if product != "qk":  # a sum of q.k has as many products as the head has channels
        rows &= sums["d"] == sums["d"][rows].max()
    if np.unique(sums["length"][rows]).size < 2:
        continue
    figure, axes = grid(len(modes), sharex=True, sharey=True)
    for axis, mode in zip(axes, modes):
        at = np.flatnonzero(rows & (sums["mode"] == mode))
        at = at[np.argsort(sums["length"][at])]
        for what, style, meaning in (("err_mean", "o-", "mean"), ("err_max", "s-", "largest"), ("bound", "--", "bound"),
                                   ("probable", ":", "root of the roundings")):
            y = np.where(sums[what][at] > 0, sums[what][at], np.nan)
            axis.loglog(sums["length"][at], y, style, color="0.5" if what == "err_max" else "0", markersize=3,
                        markerfacecolor="1" if what == "err_max" else "0", linewidth=1, label=meaning)
        axis.set_xscale("log", base=2)
        axis.set_title(label(mode), fontsize=8)
    axes[0].legend(fontsize=6)
    figure.suptitle(label(f"Error of the sum: {attention}, {product}, data {name}"))
    figure.supxlabel("products of a sum")
    figure.supylabel("error / sum |a b|, no unit")
    plt.show()
# %% [markdown]
# The largest mean error of any length and head size, and the share of sums with an accumulator beyond 65504 on the way.
# %%
for attention, product in kinds:
    of_kind = (sums["attention"] == attention) & (sums["product"] == product)
    names = list(dict.fromkeys(sums["data"][of_kind]))
    worst, over = np.full((2, len(modes), len(names)), np.nan)
    for r, mode in enumerate(modes):
        for c, name in enumerate(names):
            rows = of_kind & (sums["mode"] == mode) & (sums["data"] == name)
            errors = sums["err_mean"][rows & (sums["compared"] > 0)]
            errors = errors[errors > 0]
            worst[r, c] = np.log10(errors.max()) if errors.size else np.nan
            total = sums["sums"][rows].sum()
            over[r, c] = 100 * sums["overflowed"][rows].sum() / total if total else np.nan
    figure, axes = plt.subplots(1, 2, figsize=(12, 1.8 + 0.2 * len(modes)), sharey=True)
    heat(axes[0], worst, modes, names, f"log10 error: {attention}, {product}", low=-8, high=0)
    heat(axes[1], over, modes, names, f"sums beyond 65504, %: {attention}, {product}", low=0, high=100, form="{:.0f}")
    axes[0].set_ylabel("mode of accumulation")
    for axis in axes:
        axis.set_xlabel("data")
    plt.show()

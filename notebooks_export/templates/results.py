# %% [markdown]
# ## Results
# Each row is one output tensor of one variant on one case. `results` holds the rows, with the columns of `/cases` and
# `/kernels` that they refer to beside them.
# %%
results = table("results")
for key, columns in (("case", table("cases")), ("kernel", table("kernels"))):
    row = results[key].astype(int)
    results.update({k if k not in results else f"{key}_{k}": v[row] for k, v in columns.items() if k != key})
states, counts = np.unique(results["state"], return_counts=True)
for state, count in zip(states, counts):
    print(f"{state:14}{count:7}")

ratio = np.where(np.isnan(results["ratio_max"]), -1, results["ratio_max"])
print("\nnearest to, or furthest beyond, the limit:")
for i in np.argsort(-ratio, kind="stable")[:10]:
    print(f"{results['state'][i]:8} error/limit {ratio[i]:8.3g}  {results['family'][i]}/{results['variant'][i]}  {results['case_id'][i]}")
# %% [markdown]
# ### How near to the limits
# Every element's error over its limit, in powers of two: left of the line at 0 it is inside. The first bin, left out here,
# holds the elements without any error.
# %%
with h5py.File(ARCHIVE, "r") as file:
    err_bin = file["results/err_bin"][...] if "err_bin" in file["results"] else np.arange(results["err_hist"].shape[1]) - 56
for family in dict.fromkeys(results["family"]):
    of_family = (results["family"] == family) & (results["err_hist"][:, 1:].sum(axis=1) > 0)
    variants = list(dict.fromkeys(results["variant"][of_family]))
    if not variants:
        continue
    figure, axes = grid(len(variants), sharex=True, sharey=True)
    for axis, variant in zip(axes, variants):
        for dtype in dict.fromkeys(results["dtype"][of_family]):
            chosen = of_family & (results["variant"] == variant) & (results["dtype"] == dtype)
            hist = results["err_hist"][chosen].sum(axis=0).astype(float)
            if hist.sum() > 0:
                share = np.where(hist[1:] > 0, hist[1:] / hist.sum(), np.nan)
                axis.step(err_bin[1:], share, where="post", label=label(dtype or "other"))
        axis.axvline(0, color="0", linewidth=0.7)
        axis.set_yscale("log")
        axis.set_title(label(variant), fontsize=8)
    axes[0].legend(fontsize=7)
    figure.suptitle(label(f"Error over limit: {family}"))
    figure.supxlabel("log2(error / limit), bit")
    figure.supylabel("share of the elements")
    plt.show()

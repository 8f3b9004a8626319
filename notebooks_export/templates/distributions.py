# %% [markdown]
# ## Distributions
# Every value was counted in the bin of its 16-bit code, by layer and head, so that counts of heads and of runs add up
# exactly and quantiles are exact.
# %%
with h5py.File(ARCHIVE, "r") as file:
    group = file["distributions"]
    layers, heads, kv_heads = (group[name][...] for name in ("layer", "head", "kv_head"))
    code_value, distance = group["value"][...], group["distance"][...]
    quantities = [name for name in group if isinstance(group[name], h5py.Group) and "counts" in group[name]]
    print("attention:", text(group.attrs["attention"]), " source:", text(group.attrs["source"]), " bins:", text(group.attrs["bins"]))
    for name in quantities:
        what = group[name]
        headroom = what["headroom"][...]  # NaN where a head has no number
        print(f"{name:8} values {what['n'][...].sum():12}  NaN {what['nan'][...].sum():6}  zero {what['zero'][...].sum():12}"
              f"  subnormal {what['subnormal'][...].sum():8}  beyond the format {what['overflow'][...].sum():6}"
              f"  least headroom {np.min(headroom[~np.isnan(headroom)], initial=np.inf):6.2f} bit")


def counts_of(name, layer):
    """Counts of each code in one layer (its index), all heads together."""
    with h5py.File(ARCHIVE, "r") as file:
        return file[f"distributions/{name}/counts"][layer].sum(axis=0, dtype=np.uint64)


def quantile(counts, share):
    """The values that numpy's inverted_cdf gives for these counts."""
    total = int(counts.sum())
    rank = np.maximum(1, np.ceil(np.atleast_1d(share) * total))
    return code_value[np.searchsorted(np.cumsum(counts), rank)] if total else np.full(np.size(share), np.nan)


def per_head(name, what):
    with h5py.File(ARCHIVE, "r") as file:
        return file[f"distributions/{name}/{what}"][...]
# %% [markdown]
# ### Headroom
# log2(65504 / largest value) of each layer and head, in powers of two.
# %%
shown = [name for name in ("q", "k", "v", "raw", "scaled", "fir", "out") if name in quantities]
figure, axes = grid(len(shown), columns=3, width=1.2 + 0.27 * len(heads), height=1.0 + 0.24 * len(layers))
for axis, name in zip(axes, shown):
    values = np.where(per_head(name, "overflow") > 0, -np.inf, per_head(name, "headroom"))
    heat(axis, values, layers, heads if values.shape[1] == len(heads) else kv_heads, f"{name}: headroom, bit", low=0, high=16,
         reverse=True)
    axis.set_xlabel("head" if values.shape[1] == len(heads) else "key/value head")
    axis.set_ylabel("layer")
plt.show()
# %% [markdown]
# ### Sizes
# Share of the values in each power of two. FP16 ends at 2^16, its subnormal numbers begin below 2^-14.
# %%
def sizes(counts):
    """Share of the values with floor(log2 |x|) = x; zeros and infinities have none."""
    size = np.abs(code_value)
    finite = np.isfinite(size) & (size > 0) & (counts > 0)
    exponent = np.frexp(size[finite])[1] - 1
    low, high = (exponent.min(), exponent.max()) if exponent.size else (0, 0)
    sums = np.bincount(exponent - low, weights=counts[finite].astype(float), minlength=high - low + 1)
    return np.arange(low, high + 2), np.append(sums, sums[-1:]) / max(1, int(counts.sum()))


for title, wanted in (("tensors", ["q", "k", "v", "out"]), ("scores and weights", ["raw", "scaled", "fir", "p"])):
    names = [name for name in wanted if name in quantities]
    if not names:
        continue
    figure, axes = grid(len(layers), columns=3, width=3.4, sharex=True, sharey=True)
    for i, axis in enumerate(axes):
        for name in names:
            edge, share = sizes(counts_of(name, i))
            axis.step(edge, np.where(share > 0, share, np.nan), where="post", label=name)
        axis.axvline(16, color="0", linewidth=0.7)
        axis.axvline(-14, color="0", linewidth=0.7, linestyle=":")
        axis.set_yscale("log")
        axis.set_title(f"layer {layers[i]}", fontsize=8)
    axes[0].legend(fontsize=7)
    figure.suptitle(f"Sizes of the {title}")
    figure.supxlabel("log2 |x|, bit")
    figure.supylabel("share of the values")
    plt.show()
# %% [markdown]
# ### Scores
# Distribution functions of the scores after the scale, after the FIR, and of the largest score of each row.
# %%
share = np.linspace(0.001, 0.999, 400)
names = [name for name in ("scaled", "fir", "row_max") if name in quantities]
figure, axes = grid(len(layers), columns=3, width=3.4, sharex=True, sharey=True)
for i, axis in enumerate(axes):
    for name in names:
        axis.plot(quantile(counts_of(name, i), share), 100 * share, label=name)
    axis.set_title(f"layer {layers[i]}", fontsize=8)
if names:
    axes[0].legend(fontsize=7)
figure.suptitle("Scores, from 0.1 % to 99.9 %")
figure.supxlabel("score, no unit")
figure.supylabel("share at or below, %")
plt.show()
# %% [markdown]
# ### Zeros
# Shares of the visible weights that are exactly 0: single ones, keys and pages of 16 keys that no head of a key/value head
# needs, and tiles of 64 queries and 16 keys.
# %%
with h5py.File(ARCHIVE, "r") as file:
    zeros = {name: data[...].astype(float) for name, data in file["distributions/zero_share"].items()
             if isinstance(data, h5py.Dataset)}
shown = [name for name in ("element", "key", "page", "tile") if f"{name}_zero" in zeros]
figure, axes = grid(len(shown), columns=2, width=1.2 + 0.3 * len(heads), height=1.0 + 0.24 * len(layers))
for axis, name in zip(axes, shown):
    total = zeros[f"{name}_total"]
    values = 100 * zeros[f"{name}_zero"] / np.where(total > 0, total, np.nan)
    is_head = values.shape[1] == len(heads)
    heat(axis, values, layers, heads if is_head else kv_heads, f"zero {name}s, %", low=0, high=100, form="{:.0f}")
    axis.set_xlabel("head" if is_head else "key/value head")
    axis.set_ylabel("layer")
plt.show()
# %% [markdown]
# ### Where the mass lies
# Share of the weights by the distance of query and key; rows add up to 100 %.
# %%
with h5py.File(ARCHIVE, "r") as file:
    mass = file["distributions/mass/mass"][...].sum(axis=1, dtype=float)
last = np.append(distance[1:] - 1, 2 * distance[-1] - 1 if distance[-1] > 1 else distance[-1])
names = [str(a) if a == b else f"{a}-{b}" for a, b in zip(distance, last)]
total = mass.sum(axis=1, keepdims=True)
figure, axis = plt.subplots(figsize=(1.4 + 0.5 * len(names), 1.4 + 0.24 * len(layers)))
heat(axis, 100 * mass / np.where(total > 0, total, np.nan), layers, names, "Mass of p, %", low=0, high=50)
axis.set_xlabel("distance of query and key, keys")
axis.set_ylabel("layer")
plt.show()

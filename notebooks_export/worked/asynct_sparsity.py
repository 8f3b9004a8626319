# The worked notebook "AsyncT sparsity"; README.md says how it becomes an .ipynb.
# %% [markdown]
# # AsyncT sparsity
# **Question:** AsyncT clamps its scores at 0, so that many weights are exactly 0. How many, how are they arranged, and how
# much work could a kernel that skips them save?
#
# A weight that is 0 saves a multiplication. A key that every head of its key/value head ignores saves a row of V. A page of
# 16 such keys saves a load, and a tile of 64 queries and 16 keys saves a whole step of a tensor-core kernel. Each needs more
# zeros in one place than the one before.
#
# The archive: `attest record minilm --out minilm.h5` (the activations are of a softmax model; its scores are put through
# AsyncT's gate here, with sigma 1 and a window of 3 keys).
# %%
with h5py.File(ARCHIVE, "r") as file:
    group = file["distributions"]
    assert text(group.attrs["attention"]) == "asynct", "softmax has no zeros: record with --attention asynct"
    layers, heads, value, distance = (group[name][...] for name in ("layer", "head", "value", "distance"))
    zeros = {name: data[...].astype(float) for name, data in group["zero_share"].items() if isinstance(data, h5py.Dataset)}
    counts = {name: group[f"{name}/counts"][...] for name in ("fir", "p", "support", "entropy", "share0")}
    mass = group["mass/mass"][...].astype(float)
share = {kind: zeros[f"{kind}_zero"] / np.where(zeros[f"{kind}_total"] > 0, zeros[f"{kind}_total"], np.nan)
         for kind in ("element", "key", "page", "tile")}
print(f"{len(layers)} layers, {len(heads)} heads, {zeros['element_total'].sum():,.0f} weights, "
      f"{100 * zeros['element_zero'].sum() / zeros['element_total'].sum():.1f} % of them zero")
per_group = len(heads) // zeros["key_zero"].shape[1]
print(f"query heads of a key/value head: {per_group}" + ("; so a key is unused where its single weight is 0" if per_group == 1 else ""))
# %% [markdown]
# ## From single zeros to tiles
# The same zeros, counted in larger and larger pieces. The distance between the first two lines and the others is what the
# arrangement of the zeros costs.
# %%
figure, axis = plt.subplots(figsize=(7, 3.2))
for kind, mark, meaning in (("element", "o", "single weights"), ("key", "s", "keys"), ("page", "^", "pages of 16 keys"),
                          ("tile", "v", "tiles of 64 x 16")):
    of_layer = zeros[f"{kind}_zero"].sum(axis=1) / np.maximum(1, zeros[f"{kind}_total"].sum(axis=1))
    axis.plot(np.arange(len(layers)), 100 * of_layer, marker=mark, label=meaning)
axis.set_xticks(range(len(layers)), layers)
axis.set_ylim(0, 100)
axis.set_xlabel("layer")
axis.set_ylabel("zero, % of the visible ones")
axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1))
plt.show()
# %% [markdown]
# Head by head: sparse heads sit beside dense ones, and a kernel that is scheduled by head can use that.
# %%
figure, axes = grid(2, columns=2, width=1.2 + 0.3 * len(heads), height=1.2 + 0.24 * len(layers))
for axis, kind in zip(axes, ("element", "page")):
    heat(axis, 100 * share[kind], layers, np.arange(share[kind].shape[1]), f"zero {kind}s, %", low=0, high=100, form="{:.0f}")
    axis.set_xlabel("query head" if share[kind].shape[1] == len(heads) else "key/value head")
    axis.set_ylabel("layer")
plt.show()
# %% [markdown]
# ## Where the zeros come from
# The gate turns what lies at or below 0 into 0, what lies at 1 and above into 1, and leaves the rest. `fir` is what enters
# it.
# %%
fir = counts["fir"].sum(axis=1, dtype=np.uint64)
parts = {"0 and below: p is 0": value <= 0, "between 0 and 1": (value > 0) & (value < 1), "1 and above: p is 1": value >= 1}
figure, axis = plt.subplots(figsize=(7, 3))
left = np.zeros(len(layers))
for (meaning, chosen), grey in zip(parts.items(), ("0.9", "0.6", "0.2")):
    of = 100 * fir[:, chosen].sum(axis=1) / fir.sum(axis=1)
    axis.barh(np.arange(len(layers)), of, left=left, color=grey, edgecolor="0", label=meaning)
    left += of
axis.set_yticks(range(len(layers)), layers)
axis.invert_yaxis()
axis.set_xlabel("share of the gate's inputs, %")
axis.set_ylabel("layer")
axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1))
plt.show()
p = counts["p"].sum(axis=1, dtype=np.uint64)
print("p that are 0 in the counts of p and in those of fir:", int(p[:, value == 0].sum()), int(fir[:, value <= 0].sum()))
# %% [markdown]
# ## How many keys does a query listen to?
# Effective support is 2^entropy of a row's weights. Quantiles of the rows of each layer: the line is from 5 % to 95 %, the
# mark is the median.
# %%
def quantile(of, shares):
    total = int(of.sum())
    rank = np.maximum(1, np.ceil(np.asarray(shares) * total))
    return value[np.searchsorted(np.cumsum(of), rank)] if total else np.full(len(shares), np.nan)


support = counts["support"].sum(axis=1, dtype=np.uint64)
figure, axis = plt.subplots(figsize=(7, 2.8))
for i in range(len(layers)):
    low, middle, high = quantile(support[i], (0.05, 0.5, 0.95))
    axis.plot([low, high], [i, i], color="0.4", linestyle="-")
    axis.plot(middle, i, "o", color="0")
axis.set_yticks(range(len(layers)), layers)
axis.invert_yaxis()
axis.set_xlabel("effective number of keys of a row")
axis.set_ylabel("layer")
plt.show()
# %% [markdown]
# ## Where the mass lies
# Share of the weights by the distance of query and key; each row adds up to 100 %. A kernel that keeps a window of keys sees
# here what it would drop.
# %%
of_layer = mass.sum(axis=1)
of_layer = 100 * of_layer / np.maximum(of_layer.sum(axis=1, keepdims=True), 1e-300)
last = np.append(distance[1:] - 1, max(2 * distance[-1] - 1, distance[-1]))
names = [str(a) if a == b else f"{a}-{b}" for a, b in zip(distance, last)]
figure, axis = plt.subplots(figsize=(1.4 + 0.55 * len(names), 1.4 + 0.26 * len(layers)))
heat(axis, of_layer, layers, names, "Mass of p by distance, %", low=0, high=50)
axis.set_xlabel("distance of query and key, keys")
axis.set_ylabel("layer")
plt.show()
# %% [markdown]
# ## Answer
# What skipping saves at most, in each size of piece. Computed from the counts above.
# %%
print(f"{'layer':>6}{'multiplications':>17}{'rows of V':>12}{'pages':>8}{'tiles':>8}   % saved at most")
for i, number in enumerate(layers):
    saved = [100 * zeros[f"{kind}_zero"][i].sum() / max(1, zeros[f"{kind}_total"][i].sum()) for kind in ("element", "key", "page", "tile")]
    print(f"{number:6}{saved[0]:17.1f}{saved[1]:12.1f}{saved[2]:8.1f}{saved[3]:8.1f}")

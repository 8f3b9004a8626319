# The worked notebook "FP16 headroom of a model"; README.md says how it becomes an .ipynb.
# %% [markdown]
# # FP16 headroom of a model
# **Question:** may the attention scores of this model live in FP16, and how much may its activations still grow before they
# overflow?
#
# FP16 ends at 65504, and its subnormal numbers begin below 2^-14. A score passes through several stages: `raw` is q.k,
# `scaled` is multiplied by 1/sqrt(d), and only then comes the gate or the softmax, which hides whatever happened before. The
# archive holds exact counts of every 16-bit code at each stage, so that nothing below is sampled or estimated.
#
# The archive: `attest record minilm --out minilm.h5` (six layers of a sentence model, seven sentences of real text).
# %%
with h5py.File(ARCHIVE, "r") as file:
    group = file["distributions"]
    layers, heads, value = group["layer"][...], group["head"][...], group["value"][...]
    stages = [name for name in ("q", "k", "v", "raw", "scaled", "fir", "out") if name in group]
    headroom = {name: group[f"{name}/headroom"][...] for name in stages}
    counts = {name: group[f"{name}/counts"][...].sum(axis=1, dtype=np.uint64) for name in stages + ["p"]}
print(f"{len(layers)} layers, {len(heads)} heads, {counts['raw'].sum():,} scores")
# %% [markdown]
# ## How far is the largest value of each stage from 65504?
# In powers of two: 0 is the end, each unit is a factor of two. The least of all heads of a layer, stage by stage.
# %%
least = np.array([[np.nanmin(headroom[name][i]) for name in stages] for i in range(len(layers))])
figure, axis = plt.subplots(figsize=(1.5 + 0.6 * len(stages), 1.4 + 0.26 * len(layers)))
heat(axis, least, layers, stages, "Least headroom of a layer, bit", low=0, high=16, reverse=True)
axis.set_xlabel("stage")
axis.set_ylabel("layer")
plt.show()
layer, stage = np.unravel_index(np.nanargmin(least), least.shape)
print(f"nearest to 65504: {stages[stage]} in layer {layers[layer]}, {least[layer, stage]:.2f} bit, "
      f"a largest value of {65504 / 2 ** least[layer, stage]:.0f}")
# %% [markdown]
# ## One head, not the layer
# Raw scores head by head. A single dark cell means that one head decides what the whole layer may be stored in.
# %%
figure, axes = grid(2, columns=2, width=1.2 + 0.3 * len(heads), height=1.2 + 0.24 * len(layers))
for axis, name in zip(axes, ("raw", "scaled")):
    heat(axis, headroom[name], layers, heads, f"{name}: headroom, bit", low=4, high=16, reverse=True)
    axis.set_xlabel("query head")
    axis.set_ylabel("layer")
plt.show()
gain = np.nanmedian(headroom["scaled"] - headroom["raw"])
print(f"scaling first leaves {gain:.2f} bit more than scaling last: q.k in FP16 wants the scale inside q or k")
# %% [markdown]
# ## The tail
# How many scores are at least this large? A tail that falls like a cliff is safe with little headroom; one that falls
# slowly will reach further with more text.
# %%
size = np.abs(value)
order = np.argsort(size[1:-1], kind="stable") + 1  # without the two infinities
figure, axis = plt.subplots(figsize=(7, 3.2))
for i, number in enumerate(layers):
    tail = counts["raw"][i][order][::-1].cumsum()[::-1] / counts["raw"][i].sum()
    shown = (tail > 0) & (size[order] >= 1)
    axis.loglog(size[order][shown], tail[shown], label=f"layer {number}")
axis.axvline(65504, color="0", linewidth=1)
axis.annotate("65504", (65504, 1), textcoords="offset points", xytext=(-4, -10), ha="right")
axis.set_xlabel("|raw score|, no unit")
axis.set_ylabel("share at least as large")
axis.legend(fontsize=7, loc="lower left")
plt.show()
# %% [markdown]
# ## What if the activations were larger?
# Another model, another checkpoint or an outlier channel may make q and k larger. When both grow by a factor g, raw scores
# grow by g^2. From the counts follows, exactly, the share of scores that would then be beyond 65504.
# %%
growth = 2.0 ** np.arange(0, 9.01, 0.25)
figure, axis = plt.subplots(figsize=(7, 3.2))
first = {}
for i, number in enumerate(layers):
    total = counts["raw"][i].sum()
    lost = np.array([counts["raw"][i][size * g * g >= 65520].sum() / total for g in growth])  # 65520 rounds to infinity
    first[number] = growth[lost > 0].min() if (lost > 0).any() else np.inf
    axis.semilogy(np.log2(growth), np.where(lost > 0, lost, np.nan), marker=MARKS[i % len(MARKS)], markersize=3,
                  label=f"layer {number}")
axis.set_xlabel("growth of q and k, bit")
axis.set_ylabel("share of raw scores beyond 65504")
axis.legend(fontsize=7)
plt.show()
worst = min(first, key=first.get)
print(f"in steps of a quarter bit, the first overflow comes in layer {worst}, when q and k are {first[worst]:.1f} times as large")
# %% [markdown]
# ## The small end
# Values below 2^-14 lose bits, those below 2^-25 become 0. What share of each stage is there?
# %%
print(f"{'stage':8}{'zero, %':>12}{'subnormal, %':>14}{'beyond 65504':>14}")
for name in stages + ["p"]:
    total = counts[name].sum()
    zero = counts[name][:, value == 0].sum()
    small = counts[name][:, (size > 0) & (size < 2.0 ** -14)].sum()
    print(f"{name:8}{100 * zero / total:12.3f}{100 * small / total:14.4f}{counts[name][:, np.isinf(value)].sum():14}")
# %% [markdown]
# ## Answer
# Computed from the numbers above.
# %%
spare = least[:, stages.index("raw")].min()
print(f"Raw scores have {spare:.1f} bit to spare in the worst layer" + (": FP16 holds them." if spare > 0 else ": FP16 does not hold them."))
print(f"q and k may both grow {2 ** (spare / 2):.1f} times before the first of these scores overflows; "
      f"with the scale inside q, {2 ** ((spare + gain) / 2):.1f} times.")

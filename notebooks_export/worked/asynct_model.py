# The worked notebook "A model that has AsyncT"; README.md says how it becomes an .ipynb.
# %% [markdown]
# # A model that has AsyncT
# **Question:** a decoder was trained with AsyncT attention, and a softmax twin on the same text in the same order. How many of
# its weights and FFN products are exactly 0, how near does it come to the end of FP16, and what does it cost to round P or to
# sum in FP16?
#
# `datasets/activations/README.md` says how both were trained and what was measured. Shares and largest values below are of 128
# windows of held-out text; the archive holds the scores of three recorded prompts:
# `attest record asynct_docs.safetensors --attention asynct --params causal=1 --out asynct_docs.h5`. The measured numbers,
# `asynct_model.json`, are expected beside it (in the tree: `datasets/measurements/h200_asynct_model.json`).
# %%
with open(os.path.join(os.path.dirname(ARCHIVE), "asynct_model.json"), encoding="utf-8") as file:
    results = json.load(file)
about, training, models = results["about"], results["training"], results["models"]
kinds = ("asynct", "softmax")
layers = range(len(models["asynct"]["layers"]))
print(f"{about['device']}, {about['date']}, commit {about['commit']}, PyTorch {about['torch']}")
print(f"{len(layers)} layers, {models['asynct']['parameters']:,} parameters, {training['steps']} steps, {training['bytes']:,} bytes")
for kind in kinds:
    print(f"{kind}: {models[kind]['loss']['model']['f32']['nats_per_byte']:.4f} nats a byte held out; "
          f"byte frequencies alone {about['unigram_nats_per_byte']:.4f}")


def share(kind, name):
    return [100 * models[kind]["layers"][n]["share"].get(name, np.nan) for n in layers]


def lines(axis, series, ylabel):
    for (meaning, values), mark in zip(series.items(), MARKS):
        axis.plot(layers, values, marker=mark, markersize=4, label=meaning)
    axis.set_xticks(layers)
    axis.set_xlabel("layer")
    axis.set_ylabel(ylabel)
    axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1))
# %% [markdown]
# ## Exact zeros of P
# Single weights, then pieces that a kernel could skip: keys that no head of their key/value head reads, pages of 16 such keys,
# tiles of 64 queries and 16 keys. Of visible ones. The dotted extreme, weights that are exactly 1, is the gate's other end.
# %%
figure, axis = plt.subplots(figsize=(7, 3.2))
lines(axis, {"weights": share("asynct", "p_zero"), "keys": share("asynct", "key_zero"), "pages of 16 keys": share("asynct", "page_zero"),
             "tiles of 64 x 16": share("asynct", "tile_zero"), "weights that are 1": share("asynct", "p_one")}, "share of the visible, %")
axis.set_ylim(0, 100)
plt.show()
print(f"weights that are 0: {min(share('asynct', 'p_zero')):.1f} to {max(share('asynct', 'p_zero')):.1f} % by layer, "
      f"mean {np.mean(share('asynct', 'p_zero')):.1f} %; tiles {np.mean(share('asynct', 'tile_zero')):.2f} %")
print(f"softmax, weights that are 0 in f32: {np.mean(share('softmax', 'p_zero')):.3f} %; in f16: {np.mean(share('softmax', 'p_zero_in_f16')):.3f} %")
# %% [markdown]
# Head by head, and the sigma that training gave each head (it began as 1).
# %%
heads = range(results["config"]["h"])
by_head = np.array([share("asynct", f"p_zero_head_{head}") for head in heads]).T
figure, axes = grid(2, columns=2, width=3.2, height=1.2 + 0.24 * len(layers))
heat(axes[0], by_head, layers, heads, "zero weights, %", low=0, high=100, form="{:.0f}")
heat(axes[1], models["asynct"]["sigma"], layers, heads, "sigma", form="{:.2f}")
for axis in axes:
    axis.set_xlabel("query head")
    axis.set_ylabel("layer")
plt.show()
# %% [markdown]
# ## The recorded prompts
# The same share from the archive, counted by `attest record` on what was recorded of some layers: short prompts, so that it
# need not be that of 1024 keys.
# %%
with h5py.File(ARCHIVE, "r") as file:
    group = file["distributions"]
    recorded = group["layer"][...]
    zero = group["zero_share/element_zero"][...].sum(axis=1) / group["zero_share/element_total"][...].sum(axis=1)
for n, of_prompts in zip(recorded, zero):
    print(f"layer {n:2}: {100 * of_prompts:5.1f} % of the prompts' weights are 0, {share('asynct', 'p_zero')[n]:5.1f} % of the windows'")
# %% [markdown]
# ## Zeros of the FFN
# ReGLU's products that are exactly 0, and blocks in which all are: 1 token x 16 channels and 16 x 16. SiLU has none.
# %%
figure, axis = plt.subplots(figsize=(7, 3))
lines(axis, {"products": share("asynct", "ffn_zero"), "blocks of 1 x 16": share("asynct", "ffn_zero_1x16"),
             "blocks of 16 x 16": share("asynct", "ffn_zero_16x16"), "products, SiLU": share("softmax", "ffn_zero")}, "zero, %")
axis.set_ylim(0, 100)
plt.show()
for name, words in (("ffn_zero", "products"), ("ffn_zero_1x16", "1 x 16"), ("ffn_zero_16x16", "16 x 16")):
    print(f"{words:>9}: {np.mean(share('asynct', name)):.3f} % on average, {max(share('asynct', name)):.3f} % in the layer with most")
# %% [markdown]
# ## Headroom to 65504
# In powers of two, of the largest value that passed. `pv_sum` is what an accumulator of P V holds before gamma (softmax: before
# the division); `act` are the FFN's products.
# %%
stages = ("q", "k", "v", "score", "scaled_score", "pv_sum", "attention_out", "o_proj", "res", "gate", "up", "act", "down")
headroom = {kind: np.array([[of["headroom_bits"][name] if of["headroom_bits"][name] is not None else np.nan for name in stages]
                            for of in models[kind]["layers"]], float) for kind in kinds}
figure, axes = grid(2, columns=2, width=1.2 + 0.38 * len(stages), height=1.8 + 0.24 * len(layers))
for axis, kind in zip(axes, kinds):
    heat(axis, headroom[kind], layers, stages, f"{kind}: headroom, bit", low=0, high=16, reverse=True)
    axis.set_ylabel("layer")
plt.show()
for kind in kinds:
    n, stage = np.unravel_index(np.nanargmin(headroom[kind]), headroom[kind].shape)
    print(f"{kind}: nearest to 65504 is {stages[stage]} of layer {n}, {headroom[kind][n, stage]:.1f} bit left")
# %% [markdown]
# ## What arithmetic costs
# Held-out loss less that of f32, with twice the standard error of the difference over the windows. The attention alone is changed
# in the first seven; PyTorch emulates it, and `datasets/activations/asynct_measure.py` says how the f16 sums round.
# %%
of = [("attention", name) for name in ("p_bf16", "p_f16", "bf16", "f16", "f16_qk_sum", "f16_pv_sum", "f16_sums")]
of += [("model", name) for name in ("bf16", "f16", "f16_with_f16_sums")]
figure, axis = plt.subplots(figsize=(7, 3.6))
for kind, mark, shift in zip(kinds, "os", (-0.12, 0.12)):
    entries = [models[kind]["loss"][where][name] for where, name in of]
    axis.errorbar([1e3 * e["difference"] for e in entries], np.arange(len(of)) + shift, xerr=[2e3 * e["standard_error"] for e in entries],
                  fmt=mark, markersize=4, color={"o": "0", "s": "0.5"}[mark], label=kind)
axis.set_yticks(range(len(of)), [f"{where}: {name}" for where, name in of])
axis.invert_yaxis()
axis.set_xscale("symlog", linthresh=0.01)
axis.set_xlabel("loss less that of f32, 1/1000 nat a byte")
axis.legend(fontsize=7)
plt.show()
print(f"{'':>24}{'asynct':>12}{'softmax':>12}   1/1000 nat a byte; inf or nan: a window overflowed")
for where, name in of:
    print(f"{where + ' ' + name:>24}" + "".join(f"{1e3 * models[kind]['loss'][where][name]['difference']:12.4f}" for kind in kinds))

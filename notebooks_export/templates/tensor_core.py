# %% [markdown]
# ## Tensor cores against their model
# For each instruction, how often a neighbour of the model (one bit less or more, half or twice the block, the other
# rounding) would have given another result: what the patterns can tell apart.
# %%
cores = table("studies/tensor_core")
instructions = list(dict.fromkeys(cores["instruction"]))
neighbours = [n for n in ("kept_less", "kept_more", "floor_less", "floor_more", "block_half", "block_twice", "other_rounding")
              if n in cores]
told = np.full((len(instructions), len(neighbours)), np.nan)
for r, instruction in enumerate(instructions):
    rows = cores["instruction"] == instruction
    print(f"{instruction:36}{cores['patterns'][rows].sum():12} patterns {int(cores['mismatches'][rows].sum()):8} different")
    for c, name in enumerate(neighbours):
        there = rows & (cores[name] >= 0)
        if there.any():
            told[r, c] = 100 * cores[name][there].sum() / cores["patterns"][there].sum()
figure, axis = plt.subplots(figsize=(6.5, 1.4 + 0.2 * len(instructions)))
heat(axis, told, instructions, neighbours, "Patterns that tell the neighbour, %", low=0, high=50, form="{:.2f}")
axis.set_xlabel("neighbour of the model")
axis.set_ylabel("instruction")
plt.show()

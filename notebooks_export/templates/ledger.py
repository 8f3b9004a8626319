# %% [markdown]
# ## Range left in FP16
# The overflow ledger counts what each stage of the arithmetic saw. Headroom is log2(65504 / largest value): the powers of
# two that values may still grow by; below 0 a value does not fit FP16.
# %%
ledger, cases, of = table("ledger"), table("cases"), table("results")
data = np.array([d or s or "none" for d, s in zip(cases["data"], cases["dataset"])])
of_row = data[of["case"].astype(int)][ledger["result"].astype(int)]
stages, kinds = list(dict.fromkeys(ledger["stage"])), list(dict.fromkeys(of_row))
least = np.full((len(kinds), len(stages)), np.nan)
headroom = np.where(ledger["inf"] > 0, -np.inf, ledger["headroom"])
for r, kind in enumerate(kinds):
    for c, stage in enumerate(stages):
        values = headroom[(of_row == kind) & (ledger["stage"] == stage)]
        values = values[~np.isnan(values)]
        least[r, c] = values.min() if values.size else np.nan
figure, axis = plt.subplots(figsize=(1.5 + 0.6 * len(stages), 1.2 + 0.26 * len(kinds)))
heat(axis, least, kinds, stages, "Least headroom to 65504, bit", low=0, high=16, reverse=True)
axis.set_xlabel("stage")
axis.set_ylabel("data")
plt.show()

# %% [markdown]
# ## 2^x
# Errors of each variant by the class of its inputs, which is what 2^x is for them: a normal number, a subnormal one, and so on.
# %%
exp2 = table("studies/exp2")
variants, classes = list(dict.fromkeys(exp2["variant"])), list(dict.fromkeys(exp2["name"]))
ulp, off = np.full((2, len(variants), len(classes)), np.nan)
for i, variant in enumerate(exp2["variant"]):
    at = variants.index(variant), classes.index(exp2["name"][i])
    if exp2["inputs"][i] > 0:
        ulp[at] = exp2["max_ulp"][i]
        off[at] = 100 * exp2["not_nearest"][i] / exp2["inputs"][i]
    print(f"{variant:28}{exp2['name'][i]:14}{exp2['inputs'][i]:12} inputs{exp2['beyond_limit'][i]:8} beyond the limit"
          f"{exp2['wrong_class'][i]:8} of another class{exp2['descents'][i]:8} descents")
figure, axes = grid(2, columns=2, width=2.6 + 0.4 * len(classes), height=1.6 + 0.26 * len(variants), sharey=True)
heat(axes[0], ulp, variants, classes, "largest error, ulp", low=0, high=2, form="{:.2f}")
heat(axes[1], off, variants, classes, "not the nearest number, %", low=0, high=100, form="{:.2f}")
axes[0].set_ylabel("variant")
for axis in axes:
    axis.set_xlabel("class of inputs")
plt.show()

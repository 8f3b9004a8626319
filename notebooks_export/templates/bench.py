# %% [markdown]
# ## Times
# Medians of launches: `cold` with inputs rotated past the caches, `hot` with one set of inputs. The floor is the time of a
# large copy of the bytes that a dense evaluation must move.
# %%
bench = table("bench")
floor = bench["bytes"] / bench["copy_rate"]
ids = list(dict.fromkeys(bench["case_id"]))
for number, case in enumerate(ids, 1):
    rows = np.flatnonzero((bench["case_id"] == case) & ~np.isnan(bench["cold"]))
    if not rows.size:
        continue
    figure, axis = plt.subplots(figsize=(7, 0.9 + 0.24 * rows.size))
    at = np.arange(rows.size)
    axis.barh(at - 0.2, 1e6 * bench["cold"][rows], 0.38, color="0.8", edgecolor="0", label="cold")
    axis.barh(at + 0.2, 1e6 * bench["hot"][rows], 0.38, color="0.3", edgecolor="0", label="hot")
    axis.axvline(1e6 * floor[rows[0]], color="0", linestyle="--", linewidth=1, label="floor")
    axis.set_yticks(at, [label(name) for name in bench["variant"][rows]], fontsize=7)
    axis.invert_yaxis()
    axis.set_xlabel("time of a launch, us")
    axis.set_ylabel("variant")
    axis.set_title(label(f"case {number} of {len(ids)}: " + case[:76] + ("..." if len(case) > 76 else "")), fontsize=7)
    axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1))
    plt.show()

# %% [markdown]
# ## Study @GROUP@
# Every column, by name; `signal` is the one that viewers plot.
# %%
study = table("studies/@GROUP@")
with h5py.File(ARCHIVE, "r") as file:
    group = file["studies/@GROUP@"]
    signal = text(group.attrs["signal"]) if "signal" in group.attrs else None
    for name, values in study.items():
        print(f"{name:24}{text(group[name].attrs.get('units', '1')):10}{text(group[name].attrs.get('long_name', ''))}")
    units = text(group[signal].attrs.get("units", "1")) if signal in study else ""
if signal in study and study[signal].dtype.kind in "fiu":
    figure, axis = plt.subplots(figsize=(7, 2.6))
    axis.plot(np.arange(len(study[signal])), study[signal], ".", color="0", markersize=3)
    axis.set_xlabel("row")
    axis.set_ylabel(label(signal + (f", {units}" if units != "1" else ", no unit")))
    axis.set_title(label("studies/@GROUP@"))
    plt.show()

# %% [markdown]
# ## Probes
# Single sums whose result tells how an instruction adds: what was predicted, what the model gives, what the runner gave.
# %%
probes = table("studies/probes")
print(f"{len(probes['name'])} probes, {(probes['right'] != 'yes').sum()} not as predicted")
for i, name in enumerate(probes["name"]):
    print(f"{name:5}{probes['what'][i]:36}{probes['instruction'][i]:36}"
          f"{probes['predicted'][i]:14.8g}{probes['model'][i]:14.8g}{probes['runner'][i]:14.8g}")

# %% [markdown]
# # Duplicates within a window, from a first look to a file
#
# Run it as a script, or cell by cell in an editor that knows `# %%`. Lines that begin with `#>` are what the cell
# above them prints; the tests check them.

# %%
import lately
import numpy as np

print(lately.plan(within="10s", expect="100k").chosen["structure"])
#> aged-table

# %% [markdown]
# ## What a window costs, in a picture

# %%
axes = lately.plan(within="10s", expect="1M").plot()
axes.set_title("10 s, a million keys, one in a million dropped by mistake")
axes.figure.savefig("plan.png", dpi=120)

# %% [markdown]
# ## A stream of tag reads, as arrays
#
# Three readers see tags again and again: 200,000 reads of 5,000 tags, half a millisecond apart, and up to 2 s out of order.

# %%
chance = np.random.default_rng(1)
tags = chance.integers(0, 5_000, 200_000)
start = np.datetime64("2024-05-01T10:00:00", "ns")
times = start + np.arange(200_000) * np.timedelta64(500, "us")
times -= chance.integers(0, 2_000_000_000, 200_000).astype("timedelta64[ns]")

seen = lately.Filter(within="5s", renew="fresh")
duplicates = seen.observe_many(tags, times)
print(f"{(~duplicates).sum():,} of {len(tags):,} reads are new")
#> 67,269 of 200,000 reads are new

# %% [markdown]
# An exact judge, to compare: a read is new if its tag was not forwarded within 5 s of it.

# %%
forwarded: dict[int, list[int]] = {}
exact = np.zeros(len(tags), dtype=bool)
for at, (tag, time) in enumerate(zip(tags.tolist(), times.view("i8").tolist())):
    last = forwarded.setdefault(tag, [])
    exact[at] = any(abs(time - other) <= 5_000_000_000 for other in last[-8:])
    if not exact[at]:
        last.append(time)
print(f"{(duplicates != exact).sum()} differ, in {seen.memory / 1024:.0f} KiB")
#> 0 differ

# %% [markdown]
# ## Data frames

# %%
import lately.pandas
import pandas as pd

reads = pd.DataFrame({"tag": tags, "at": times, "reader": chance.integers(1, 4, len(tags))})
clean = lately.pandas.drop_duplicates(reads, ["tag", "reader"], "at", within="5s")
print(f"{len(clean) / len(reads):.0%} of the rows stay")
#> 53% of the rows stay

# %% [markdown]
# ## Files, and what is remembered between runs

# %%
reads.to_csv("reads.csv", index=False)
found = lately.dedup_file("reads.csv", "clean.csv", key="tag", time="at", within="5s", renew="fresh", state="reads.state")
print(f"{found['fresh']:,} fresh, {found['duplicate']:,} duplicate")
#> 67,269 fresh, 132,731 duplicate

later = lately.Filter.load("reads.state")
print(later.seen(int(tags[-1])), later.seen("a tag that nobody has"))
#> True False

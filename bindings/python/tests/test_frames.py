"""Data frames, record batches and iterables."""

import itertools

import lately
import lately.arrow
import lately.pandas
import lately.polars
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import events

ROWS = [(f"tag {key}", key % 3, time) for key, time in events(5_000, seed=10)]
TERMS = {"within": "10s", "slack": "0s", "max_skew": "1h"}


def expected(key, timed=True):
    seen = lately.Filter(**TERMS) if timed else lately.Filter()
    kept = []
    for row in ROWS:
        if not seen.observe(key(row), row[2] if timed else None):
            kept.append(row[2])
    assert 0 < len(kept) < len(ROWS)
    return kept


CASES = [
    ("tag", "at", lambda row: row[0]),
    (["tag", "place"], "at", lambda row: row[:2]),
    (["place"], "at", lambda row: row[1]),
    (None, "at", lambda row: row[:2]),
    ("tag", None, lambda row: row[0]),
]


@pytest.mark.parametrize(("key", "time", "of"), CASES)
@pytest.mark.parametrize("kind", ["ns", "times", "zoned", "category", "object"])
def test_pandas(key, time, of, kind):
    df = pd.DataFrame(ROWS, columns=["tag", "place", "at"], index=range(7, 5_007))
    nanos = df["at"]
    if kind in ["times", "zoned"]:
        df["at"] = pd.to_datetime(df["at"], utc=kind == "zoned")
    if kind in ["category", "object"]:
        df["tag"] = df["tag"].astype(kind)
    terms = TERMS if time else {}
    kept = lately.pandas.drop_duplicates(df, key, time, **terms)
    assert nanos[kept.index].tolist() == expected(of, time is not None)
    mask = lately.pandas.duplicated(df, key, time, filter=lately.Filter(**terms))
    assert mask.index.equals(df.index) and df[~mask].equals(kept)


def test_pandas_with_holes():
    for dtype in ["object", "str", "string", "category", "string[pyarrow]"]:
        df = pd.DataFrame({"tag": pd.Series(["a", None, "a", None, "b"], dtype=dtype)})
        assert lately.pandas.duplicated(df, "tag").tolist() == [False, False, True, False, False]
    df = pd.DataFrame({"id": pd.Series([1, None, 1], dtype="Int64")})
    assert lately.pandas.duplicated(df).tolist() == [False, False, True]
    with pytest.raises(lately.KeyTypeError):
        lately.pandas.duplicated(pd.DataFrame({"x": [1.5]}))


def test_filters_remember_from_frame_to_frame():
    seen = lately.Filter()
    df = pd.DataFrame({"tag": ["a", "b"]})
    assert len(lately.pandas.drop_duplicates(df, "tag", filter=seen)) == 2
    assert len(lately.pandas.drop_duplicates(df, "tag", filter=seen)) == 0
    assert len(lately.polars.drop_duplicates(pl.DataFrame({"tag": ["b", "c"]}), filter=seen)) == 1
    for module, frame in [(lately.pandas, df), (lately.polars, pl.from_pandas(df))]:
        with pytest.raises(TypeError, match="brings its own terms: within"):
            module.drop_duplicates(frame, within="1s", filter=seen)
        with pytest.raises(lately.SpecError):
            module.drop_duplicates(frame, within="0s")


@pytest.mark.parametrize(("key", "time", "of"), CASES)
@pytest.mark.parametrize("kind", ["ns", "times", "category"])
def test_polars(key, time, of, kind):
    df = pl.DataFrame(ROWS, schema=["tag", "place", "at"], orient="row")
    shown = df
    if kind == "times":
        shown = df.with_columns(pl.from_epoch("at", time_unit="ns"))
    if kind == "category":
        shown = df.with_columns(pl.col("tag").cast(pl.Categorical))
    shown = shown.with_columns(nanos=df["at"])
    terms = TERMS if time else {}
    key = [name for name in ["tag", "place"]] if key is None else key
    kept = lately.polars.drop_duplicates(shown, key, time, **terms)
    assert kept["nanos"].to_list() == expected(of, time is not None)
    assert shown.lately.drop_duplicates(key, time, **terms).equals(kept)
    assert shown.lazy().lately.drop_duplicates(key, time, **terms).collect().equals(kept)
    first, *others = [key] if isinstance(key, str) else key
    mask = pl.col(first).lately.is_duplicated(time, by=others, **terms)
    assert shown.filter(~mask).equals(kept)
    # An expression begins anew each time.
    assert shown.with_columns(mask.alias("one"), mask.alias("two")).select("one", "two").unique().height == 2


@pytest.mark.parametrize(("key", "time", "of"), CASES)
def test_arrow(key, time, of):
    columns = zip(["tag", "place", "at"], zip(*ROWS))
    table = pa.table({name: pa.array(values) for name, values in columns})
    terms = TERMS if time else {}
    key = ["tag", "place"] if key is None else key
    kept = lately.arrow.drop_duplicates(table, key, time, **terms)
    assert kept["at"].to_pylist() == expected(of, time is not None)
    for batches in [table.to_batches(max_chunksize=700), table.to_reader(max_chunksize=700)]:
        found = lately.arrow.dedup_batches(batches, key, time, **terms)
        assert pa.Table.from_batches(found).equals(kept.combine_chunks())


def test_iterables():
    of = lambda row: row[0]
    kept = lately.dedup(ROWS, key=0, time=2, **TERMS)
    assert [row[2] for row in kept] == expected(of)
    kept = lately.dedup(iter(ROWS), key=lambda row: row[:2], time=lambda row: row[2] / 1e9, **TERMS)
    assert len(list(kept)) == len(expected(lambda row: row[:2]))
    dicts = [{"tag": row[0], "at": row[2]} for row in ROWS]
    assert [row["at"] for row in lately.dedup(dicts, key="tag")] == expected(of, timed=False)
    assert list(lately.dedup([3, 1, 3], filter=lately.Filter(last=5))) == [3, 1]
    # An item comes out as soon as it has come in.
    endless = lately.dedup(n // 2 for n in itertools.count())
    assert list(itertools.islice(endless, 5)) == [0, 1, 2, 3, 4]
    with pytest.raises(lately.SpecError):
        lately.dedup([], within="0s")
    with pytest.raises(TypeError):
        lately.dedup([], filter=lately.Filter(), last=5)
    with pytest.raises(lately.KeyTypeError):
        list(lately.dedup([1.5]))


def test_the_table_of_a_plan(tmp_path):
    table = lately.plan(within="10s", expect="1M")
    assert len(table) > 3 and table[0]["structure"] and table[:2] == list(table)[:2]
    assert table.chosen["structure"] == "aged-table"
    frame = table.to_pandas()
    assert frame["bits_per_key"].notna().sum() == sum("error" not in row for row in table)
    html = table._repr_html_()
    assert html.count("<tr") == len(table) + 1 and "aged-table" in html
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    axes = table.plot()
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert sorted(labels) == sorted(row["structure"] for row in table if "error" not in row)
    shown = [text.get_text() for text in axes.texts]
    assert sum(f"{table.chosen['bits_per_key']:.1f}" in text for text in shown) == 1
    axes.figure.savefig(tmp_path / "plan.png")
    assert table.plot(ax=axes) is axes
    assert lately.plan(last=100, memory="1MiB").chosen is None
    with pytest.raises(lately.SpecError):
        lately.plan(within="0s")
    assert np.isclose(lately.Filter(fpr=1e-3).plan().chosen["fpr"], 1e-3)

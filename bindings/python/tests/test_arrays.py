"""Arrays of NumPy and Arrow answer as their elements do, one by one."""

import threading

import lately
import numpy as np
import polars
import pyarrow as pa
import pytest
from conftest import NOON, SECOND, events

KEYS = [key for key, _ in events(20_000, seed=6, keys=4_000)]
TEXTS = [f"tag {key}" for key in KEYS]
HOLES = [text if at % 7 else None for at, text in enumerate(TEXTS)]


def one_by_one(keys, times=None, **terms):
    seen = lately.Filter(**(terms or {"last": 3_000}))
    if times is None:
        return [seen.observe(key) for key in keys]
    return [seen.observe(key, time) for key, time in zip(keys, times)]


def at_once(array, times=None, **terms):
    return lately.Filter(**(terms or {"last": 3_000})).observe_many(array, times).tolist()


@pytest.mark.parametrize("dtype", ["i2", "i4", "i8", "u2", "u4", "u8", ">i8", ">u4"])
def test_numbers_of_numpy(dtype):
    array = np.array(KEYS, dtype=dtype)
    assert at_once(array) == one_by_one(KEYS)
    # What is not in one piece, too.
    assert at_once(array[::-3]) == one_by_one(KEYS[::-3])


@pytest.mark.parametrize("dtype", ["i1", "u1"])
def test_small_numbers_of_numpy(dtype):
    keys = [key % 100 for key in KEYS]
    assert at_once(np.array(keys, dtype=dtype), last=20) == one_by_one(keys, last=20)


@pytest.mark.parametrize("dtype", ["U", "S", ">U12", "O"])
def test_texts_of_numpy(dtype):
    array = np.array(TEXTS, dtype=dtype)
    assert at_once(array) == one_by_one(TEXTS)
    assert at_once(array[::2]) == one_by_one(TEXTS[::2])
    accents = ["é", "日本", "\U0001f600", "", "é"]
    if dtype in ["U", "O"]:
        assert at_once(np.array(accents, dtype=dtype)) == one_by_one(accents)
    assert at_once(np.array([], dtype=dtype)) == []


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()],
)
def test_texts_of_arrow(kind):
    for texts in [TEXTS, HOLES]:
        array = pa.array(texts, type=pa.string()).cast(kind)
        assert at_once(array) == one_by_one(texts)
        assert at_once(array.slice(11, 9_000)) == one_by_one(texts[11:9_011])
        chunks = pa.chunked_array([array.slice(0, 1), array.slice(1, 8_190), array.slice(8_191)])
        assert at_once(chunks) == one_by_one(texts)
    assert at_once(pa.chunked_array([], type=kind)) == []


@pytest.mark.parametrize("kind", ["int16", "int32", "int64", "uint16", "uint32", "uint64"])
def test_numbers_of_arrow(kind):
    holes = [key if at % 5 else None for at, key in enumerate(KEYS)]
    for keys in [KEYS, holes]:
        assert at_once(pa.array(keys, type=kind)) == one_by_one(keys)


def test_dictionaries_and_fixed_widths_of_arrow():
    encoded = pa.array(HOLES).dictionary_encode()
    assert at_once(encoded) == one_by_one(HOLES)
    assert at_once(pa.chunked_array([encoded, encoded])) == one_by_one(HOLES + HOLES)
    fixed = [f"{key:08}".encode() for key in KEYS]
    assert at_once(pa.array(fixed, type=pa.binary(8))) == one_by_one(fixed)
    assert at_once(pa.nulls(5)) == [False] * 5


def test_series_of_polars():
    assert at_once(polars.Series(TEXTS)) == one_by_one(TEXTS)
    assert at_once(polars.Series(HOLES)) == one_by_one(HOLES)
    assert at_once(polars.Series(KEYS)) == one_by_one(KEYS)
    assert at_once(polars.Series(TEXTS, dtype=polars.Categorical)) == one_by_one(TEXTS)


def test_keys_of_several_columns():
    numbers = [key % 13 for key in KEYS]
    rows = list(zip(HOLES, numbers))
    expected = one_by_one(rows)
    for texts in [HOLES, pa.array(HOLES), np.array(HOLES, dtype=object), polars.Series(HOLES)]:
        for others in [numbers, np.array(numbers), pa.array(numbers)]:
            seen = lately.Filter(last=3_000)
            assert seen.observe_columns([texts, others]).tolist() == expected
    assert lately.Filter(last=3_000).observe_many(rows).tolist() == expected
    # One column alone is its bytes, as in the program.
    assert lately.Filter(last=3_000).observe_columns([TEXTS]).tolist() == one_by_one(TEXTS)


TERMS = {"within": "10s", "slack": "0s", "max_skew": "1h"}
TIMES = [time for _, time in events(20_000, seed=6, keys=4_000)]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_in_any_unit(unit):
    scale = {"s": SECOND, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    times = [time // scale * scale for time in TIMES]
    expected = one_by_one(TEXTS, times, **TERMS)
    array = np.array(times, dtype="datetime64[ns]").astype(f"datetime64[{unit}]")
    for same in [times, np.array(times), array, pa.array(array), pa.array(array, type=pa.timestamp(unit, "Asia/Tokyo"))]:
        assert at_once(TEXTS, same, **TERMS) == expected
    if unit != "ns":
        assert at_once(TEXTS, polars.Series(array.astype(f"datetime64[{'ms' if unit == 's' else unit}]")), **TERMS) == expected
    if unit == "s":
        seconds = [time / 1e9 for time in times]
        texts = np.datetime_as_string(array, timezone="UTC").tolist()
        for same in [seconds, np.array(seconds), pa.array(seconds), texts, pa.array(texts), np.array(texts)]:
            assert at_once(TEXTS, same, **TERMS) == expected


def test_missing_times_are_those_of_the_clock():
    holes = [time if at % 9 else None for at, time in enumerate(TIMES)]
    expected = one_by_one(TEXTS, [float("nan") if time is None else time for time in holes], **TERMS)
    nat = np.array([np.datetime64("NaT") if time is None else np.datetime64(time, "ns") for time in holes])
    for same in [holes, nat, pa.array(holes, type=pa.timestamp("ns")), pa.array(holes)]:
        assert at_once(TEXTS, same, **TERMS) == expected


@pytest.mark.parametrize("unit", ["D", "h", "m", "s", "ms", "us"])
def test_times_that_nanoseconds_do_not_reach_are_missing(unit):
    times = np.array(["2024-05-01", "3000-01-01", "0900-01-01", "2024-05-01"], dtype=f"datetime64[{unit}]")
    missing = np.where(np.array([False, True, True, False]), np.datetime64("NaT"), times)
    keys = ["a", "a", "a", "a"]
    for terms in [{}, {"max_skew": "1h", "lateness": "1s"}]:
        found = [lately.Filter(within="1d", **terms).classify_columns([keys], same) for same in (times, missing)]
        assert found[0].tolist() == found[1].tolist() == [0, 1, 1, 1]


def test_missing_keys_do_not_move_the_times_of_others():
    keys = pa.array(HOLES)
    pairs = [(key, time) for key, time in zip(HOLES, TIMES) if key is not None]
    expected = iter(one_by_one(*zip(*pairs), **TERMS))
    assert at_once(keys, np.array(TIMES), **TERMS) == [
        False if key is None else next(expected) for key in HOLES
    ]


def test_classes_are_told_and_add_up():
    seen = lately.Filter(within="10s", lateness="1s", max_skew="1h")
    found = seen.classify_columns([HOLES], TIMES)
    counts = np.bincount(found, minlength=len(lately.CLASSES))
    assert counts.sum() == len(TIMES)
    assert counts[lately.CLASSES.index("missing_key")] == HOLES.count(None)
    assert counts[lately.CLASSES.index("late")] > 0
    # One far in the future is believed by nobody, as the records after it do not follow.
    wild = [NOON, NOON + 10**18, *(NOON + at for at in range(100))]
    found = lately.Filter(within="10s").classify_columns([range(102)], wild)
    assert found[1] == lately.CLASSES.index("skewed") and set(found[2:]) == {0}


def test_seen_many_asks_and_remembers_nothing():
    seen = lately.Filter()
    seen.observe_many(np.arange(0, 20_000, 2))
    assert seen.seen_many(np.arange(20_000)).tolist()[::2] == [True] * 10_000
    before = len(seen)
    assert seen.seen_many(pa.array([None, "0", "x"])).tolist() == [False, True, False]
    assert len(seen) == before


@pytest.mark.parametrize(
    "wrong",
    [
        np.array([1.5]),
        np.array([True]),
        np.array([np.datetime64("2024-01-01")]),
        pa.array([1.5]),
        pa.array([True]),
        pa.array([[1]]),
        [1.5],
        polars.Series([1.5]),
    ],
)
def test_arrays_without_keys_are_refused(wrong):
    with pytest.raises(lately.KeyTypeError):
        lately.Filter().observe_many(wrong)


def test_arrays_that_do_not_fit_are_refused():
    seen = lately.Filter(within="10s")
    with pytest.raises(ValueError, match="2 keys, but 1 times"):
        seen.observe_many(["a", "b"], [1.0])
    with pytest.raises(ValueError, match="one length, not 1 and 2"):
        seen.observe_columns([["a"], ["a", "b"]])
    with pytest.raises(ValueError, match="at least one column"):
        seen.observe_columns([])
    with pytest.raises(ValueError, match="one dimension"):
        seen.observe_many(np.zeros((2, 2), dtype=int))
    with pytest.raises(lately.TimeError, match="no time could be read"):
        seen.observe_many(["a"], ["yesterday"])
    with pytest.raises(lately.TimeError):
        seen.observe_many(["a"], [object()])
    with pytest.raises(TypeError):
        seen.observe_many(5)
    assert len(seen) == 0


def test_threads_share_a_filter():
    """Each key is fresh for exactly one of them, and others run while an array is judged."""
    seen = lately.Filter(expect="400k", fpr=1e-9)
    keys = np.arange(100_000)
    fresh = []

    def work(seed):
        mixed = np.random.default_rng(seed).permutation(keys)
        for part in np.array_split(mixed, 20):
            fresh.append(part[~seen.observe_many(part)])
            seen.observe("between")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(np.concatenate(fresh)) == keys.tolist()


def test_the_lock_of_the_interpreter_is_released():
    seen = lately.Filter()
    texts = pa.array([f"a text of some length, number {at}" for at in range(3_000_000)])
    ticks, done = 0, threading.Event()

    def judge():
        seen.observe_many(texts)
        done.set()

    thread = threading.Thread(target=judge)
    thread.start()
    while not done.is_set():
        ticks += 1
        done.wait(0.001)
    thread.join()
    # With the lock held, this thread would not have run at all.
    assert ticks > 5

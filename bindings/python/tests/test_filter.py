"""The filter, key by key."""

import copy
import pickle
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import lately
import numpy as np
import pandas
import pytest
from conftest import NOON, SECOND, Exact, events


@pytest.mark.parametrize("lateness", [None, "0s", "3s", "40s"])
def test_events_are_judged_by_the_law(lateness):
    window = 10 * SECOND
    asked = {None: window, "0s": 0, "3s": 3 * SECOND, "40s": 40 * SECOND}[lateness]
    exact = Exact(window, asked)
    seen = lately.Filter(within="10s", slack="0s", lateness=lateness, max_skew="1h")
    expected, found = [], []
    for key, time in events(5_000, seed=1):
        expected.append(exact.classify(key, time))
        found.append(seen.classify(key, time))
    # One in a million is dropped by mistake: of 5,000, none but for bad luck that stays what it is.
    assert found == expected
    assert {"fresh", "duplicate"} <= set(found)
    assert ("late" in found) == (asked < 5 * SECOND)


def test_a_count_window_is_that_of_a_list():
    seen, last = lately.Filter(last=100), []
    for key, _ in events(5_000, seed=2):
        assert seen.observe(key) == (key in last)
        last = [*last, key][-100:]


def test_keys_are_their_texts():
    seen = lately.Filter()
    assert not seen.observe("17")
    for same in [17, b"17", np.int64(17), np.uint8(17), np.str_("17"), np.bytes_(b"17"), ("17",)]:
        assert seen.observe(same), repr(same)
    assert not seen.observe(-17)
    assert seen.observe("-17")
    assert not seen.observe(2**200)
    assert seen.observe(str(2**200))
    assert not seen.observe(2**64 - 1)
    assert seen.observe(str(2**64 - 1))
    # Several fields are another key than their texts in a row.
    assert not seen.observe(("a", "bc"))
    assert not seen.observe(("ab", "c"))
    assert not seen.observe("abc")
    assert seen.observe((b"a", "bc"))


@pytest.mark.parametrize("missing", [None, float("nan"), pandas.NA, pandas.NaT, ("a", None)])
def test_a_missing_key_is_never_a_duplicate(missing):
    seen = lately.Filter()
    assert [seen.classify(missing) for _ in range(2)] == ["missing_key"] * 2
    assert not seen.seen(missing)
    assert seen.last_seen(missing) is None
    assert len(seen) == 0


@pytest.mark.parametrize("wrong", [True, 1.5, Decimal("1"), object(), [1], ("a", 1.5), {}])
def test_other_keys_are_refused(wrong):
    with pytest.raises(lately.KeyTypeError, match="a key is str, bytes, int"):
        lately.Filter().observe(wrong)
    assert issubclass(lately.KeyTypeError, TypeError)


def test_times_of_all_kinds_are_one_moment():
    zone = timezone(timedelta(hours=2))
    moment = 1_714_557_600_123_456_000
    for time in [
        moment,
        moment / 1e9,
        datetime(2024, 5, 1, 10, 0, 0, 123456, timezone.utc),
        datetime(2024, 5, 1, 10, 0, 0, 123456),
        datetime(2024, 5, 1, 12, 0, 0, 123456, zone),
        np.datetime64("2024-05-01T10:00:00.123456"),
        np.int64(moment),
        np.float64(moment / 1e9),
        pandas.Timestamp(moment),
        pandas.Timestamp(moment, tz="UTC"),
        "2024-05-01T10:00:00.123456Z",
        b"1714557600.123456",
    ]:
        seen = lately.Filter(within="10s", slack="0s")
        seen.observe("a", time)
        # A float has no more than that.
        assert abs(seen.clock - moment) <= (200 if isinstance(time, float) else 0), repr(time)


def test_a_time_that_is_missing_is_that_of_the_clock():
    seen = lately.Filter(within="10s")
    seen.observe("a", NOON)
    for missing in [float("nan"), np.datetime64("NaT"), pandas.NaT]:
        assert seen.classify("a", missing) == "duplicate", repr(missing)
    assert seen.clock == NOON


@pytest.mark.parametrize(
    ("time", "text"),
    [("yesterday", "yesterday"), ("10:00", "time of day"), (2**70, "no time"), (1e300, "no time"), ([], "a time is")],
)
def test_what_is_no_time_is_refused(time, text):
    seen = lately.Filter(within="10s")
    with pytest.raises(lately.TimeError, match=text):
        seen.observe("a", time)
    assert len(seen) == 0


def test_terms_that_cannot_be_kept_name_themselves():
    for terms, text in [
        ({"within": "0s"}, "within: must be more than 0"),
        ({"within": "ten"}, "within: "),
        ({"within": "10s", "last": 5}, "last: "),
        ({"fpr": 2.0}, "fpr: a false positive rate of 2 cannot be planned"),
        ({"last": 10, "memory": 1}, "memory: this needs"),
        ({"slack": "1s"}, "slack: needs a window"),
        ({"structure": "cuckoo"}, "structure: "),
        ({"renew": "often"}, "renew: expected one of always, fresh"),
        ({"expect": 1.5}, "expect: 1.5 is no whole number"),
        ({"last": True}, "last: "),
    ]:
        with pytest.raises(lately.SpecError, match=f"^{text}"):
            lately.Filter(**terms)
    with pytest.raises(TypeError, match="unexpected keyword argument 'window'"):
        lately.Filter(window="10s")
    assert lately.Filter(within=timedelta(minutes=1), expect="10k", memory="64MiB").memory > 0


def test_last_seen_and_any_in():
    seen = lately.Filter(within="10s", slack="0s")
    seen.observe(4711, NOON)
    seen.observe(4711, NOON + SECOND)
    assert seen.last_seen(4711) == (NOON + SECOND, NOON + SECOND)
    assert seen.seen(4711, NOON + 11 * SECOND)
    assert not seen.seen(4711, NOON + 12 * SECOND)
    assert 4711 in seen and 4712 not in seen
    assert seen.any_in(range(4000, 5000))
    assert not seen.any_in(range(4712, 5000))
    assert not seen.any_in(range(0))
    assert seen.any_in(range(5000, 4000, -1))
    assert seen.any_in(["x", 4711]) and seen.any_in(np.arange(4711, 4712))
    huge = lately.Filter()
    huge.observe(2**70)
    assert huge.any_in(range(2**70, 2**70 + 2))


def _told(filter):
    return [filter.classify(key, time) for key, time in events(500, seed=4)]


@pytest.mark.parametrize(
    "terms",
    [
        {"within": "10s"},
        {"within": "10s", "lateness": "1m", "renew": "fresh", "seed": 7, "on_late": "judge"},
        {"within": "10s", "slack": "5%", "structure": "aged-buckets", "max_skew": "2h"},
        {"last": 300, "fpr": 1e-9},
        {"expect": 1000, "memory": "1MiB"},
    ],
)
def test_copies_answer_as_the_filter_does(terms, tmp_path):
    seen = lately.Filter(**terms)
    for key, time in events(2_000, seed=3):
        seen.observe(key, time)
    seen.save(tmp_path / "state")
    copies = [
        pickle.loads(pickle.dumps(seen)),
        copy.deepcopy(seen),
        lately.Filter.open(tmp_path / "state", **terms),
    ]
    again = pickle.loads(pickle.dumps(copies[0]))
    if "on_late" not in terms:
        copies.append(lately.Filter.load(tmp_path / "state"))
    expected = _told(seen)
    assert [_told(one) for one in [*copies, again]] == [expected] * (len(copies) + 1)
    assert str(copies[0].plan()) == str(seen.plan())


def test_an_empty_filter_keeps_its_clock(tmp_path):
    lately.Filter(within="10s").save(tmp_path / "state")
    seen = lately.Filter.load(tmp_path / "state")
    assert [seen.classify("a", NOON + at * SECOND) for at in [0, 30, 5]] == ["fresh", "fresh", "late"]


def test_merged_filters_know_the_keys_of_both():
    one, other, both = (lately.Filter(within="10s", expect=2000) for _ in range(3))
    for turn, (key, time) in enumerate(events(1_000, seed=5)):
        [one, other][turn % 2].observe((key, turn % 2), time)
        both.observe((key, turn % 2), time)
    one.merge(other)
    assert one.clock == both.clock
    for key in range(500):
        for half in range(2):
            assert one.seen((key, half)) == both.seen((key, half))
    one.merge(one)
    for terms, text in [
        ({"within": "9s", "expect": 2000}, "window: saved 10s, asked 9s"),
        ({"within": "10s", "expect": 3000}, "different plans"),
    ]:
        with pytest.raises(lately.MergeError, match=text):
            one.merge(lately.Filter(**terms))
    with pytest.raises(lately.MergeError, match="last n arrivals"):
        lately.Filter(last=5).merge(lately.Filter(last=5))
    timed, untimed = lately.Filter(within="10s"), lately.Filter(within="10s")
    timed.observe("a", NOON)
    untimed.observe("a")
    with pytest.raises(lately.MergeError, match="when they arrive"):
        timed.merge(untimed)


def test_states_that_do_not_fit_say_why(tmp_path):
    path = tmp_path / "state"
    with pytest.raises(FileNotFoundError, match="no such file"):
        lately.Filter.load(path)
    lately.Filter(last=10).save(path)
    with pytest.raises(lately.StateError, match="window: saved the last 10 records, asked ever"):
        lately.Filter.open(path)
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(lately.StateError, match="damaged"):
        lately.Filter.load(path)
    path.write_bytes(b"something else")
    with pytest.raises(lately.StateError, match="state .*state"):
        lately.Filter.load(path)
    for wrong in [b"", b"something", bytes(damaged)]:
        restore, (_, rest) = lately.Filter(last=10).__reduce__()
        with pytest.raises(lately.StateError):
            restore(wrong, rest)


def test_a_full_filter_says_so():
    seen = lately.Filter(within="1h", memory="64KiB", expect=1000)
    for key in range(50_000):
        seen.observe(key, NOON)
    assert seen.overload["forgotten"] > 0
    assert seen.memory <= 64 * 1024
    assert seen and 0 < len(seen) < 50_000
    assert "within='1h'" in repr(seen)
    assert seen.info()["filter"]["overloaded"]


def test_an_index_answers_for_intervals(tmp_path):
    index = lately.Index(within="10m", interval=100)
    times = [NOON + at * SECOND for at in range(1000)]
    assert index.observe_many(range(0, 100_000, 100), times) == 1000
    # The window and its slack reach back 675 s.
    for begin in range(40_000, 99_900, 100):
        assert index.any_in(begin, begin + 50)
    empty = sum(index.any_in(begin + 1, begin + 99) for begin in range(0, 100_000, 100))
    assert empty <= 10
    assert not index.any_in(0, 20_000)
    assert index.any_in("99900..") and index.any_in(99_900) and not index.any_in(1, within="1s")
    index.save(tmp_path / "index")
    for copied in [lately.Index.load(tmp_path / "index"), pickle.loads(pickle.dumps(index))]:
        assert copied.clock == index.clock
        assert copied.any_in(99_900) and not copied.any_in(0, 20_000)
    with pytest.raises(lately.KeyTypeError):
        index.observe(-1)
    with pytest.raises(lately.KeyTypeError):
        index.any_in("a..b")
    with pytest.raises(lately.SpecError):
        lately.Index()


def test_the_filter_of_a_shard_resumes_from_its_bytes():
    from lately._lately import shard_filter

    terms = {"within": "10s", "lateness": "40s", "expect": "100k", "memory": "64MiB"}
    whole, state, exact = shard_filter(None, 4, ["epc"], **terms), None, Exact(10 * SECOND, 40 * SECOND)
    for turn in range(4):
        one = shard_filter(state, 4, ["epc"], **terms)
        expected = [exact.classify(*event) for event in events(500, seed=turn)]
        assert [one.classify(*event) for event in events(500, seed=turn)] == expected
        assert [whole.classify(*event) for event in events(500, seed=turn)] == expected
        state = one.to_bytes()
    assert one.memory < lately.Filter(**terms).memory
    assert one.lateness == 40 * SECOND
    assert lately.Filter(last=5).lateness is None
    for shards, key, window, text in [
        (5, ["epc"], "10s", "shards: saved 4, asked 5"),
        (4, ["epc", "reader"], "10s", "key: saved epc, asked epc,reader"),
        (4, ["epc"], "11s", "window: saved 10s, asked 11s"),
    ]:
        with pytest.raises(lately.StateError, match=f"^{text}$"):
            shard_filter(state, shards, key, **{**terms, "within": window})
    with pytest.raises(lately.StateError):
        shard_filter(state[:-1], 4, ["epc"], **terms)
    for shards, more, text in [(0, {}, "shards: "), (1000, {}, "memory: this needs")]:
        with pytest.raises(lately.SpecError, match=f"^{text}"):
            shard_filter(None, shards, ["epc"], **{**terms, "memory": "1MiB", **more})


def test_bytes_are_those_of_a_saved_file(tmp_path):
    seen = lately.Filter(within="10s")
    seen.observe("a", NOON)
    (tmp_path / "state").write_bytes(seen.to_bytes())
    assert lately.Filter.load(tmp_path / "state").observe("a", NOON + SECOND)

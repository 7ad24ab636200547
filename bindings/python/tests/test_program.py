"""The files of the program are those of the package, and both do the same with the same records."""

import json
import signal
import subprocess
import sys
import threading

import lately
import numpy as np
import pytest
from conftest import NOON, ROOT, SECOND, events

READS = ROOT / "examples" / "rfid.csv"


@pytest.fixture
def reads(tmp_path):
    """A CSV file of events, and its rows."""
    rows = [(f"tag {key}", time) for key, time in events(3_000, seed=8)]
    path = tmp_path / "reads.csv"
    path.write_text("tag,at\n" + "".join(f"{tag},{time}\n" for tag, time in rows))
    return path, rows


def test_what_the_program_saves_answers_here(program, reads, tmp_path):
    path, rows = reads
    state = tmp_path / "state"
    first, rest = rows[:2_000], rows[2_000:]
    (tmp_path / "first.csv").write_text("tag,at\n" + "".join(f"{tag},{at}\n" for tag, at in first))
    arguments = ["--key", "tag", "--time", "at", "--within", "10s", "--state", state]
    done = program("dedup", tmp_path / "first.csv", *arguments)
    assert done.returncode == 0, done.stderr

    seen = lately.Filter.load(state)
    alone = lately.Filter(within="10s")
    assert [alone.observe(tag, at) for tag, at in first].count(False) == done.stdout.count("\n") - 1
    expected = [alone.classify(tag, at) for tag, at in rest]
    assert [seen.classify(tag, at) for tag, at in rest] == expected
    assert set(expected) == {"fresh", "duplicate"}

    # And the program resumes from what is saved here.
    lately.Filter.load(state).save(state)
    (tmp_path / "rest.csv").write_text("tag,at\n" + "".join(f"{tag},{at}\n" for tag, at in rest))
    done = program("dedup", tmp_path / "rest.csv", *arguments, "--mark")
    assert done.returncode == 0, done.stderr
    marks = [line.rsplit(",", 1)[1] for line in done.stdout.splitlines()[1:]]
    assert marks == expected


@pytest.mark.parametrize(
    ("header", "line", "flags", "key"),
    [
        ("", "{}", [], lambda key: f"{key}"),
        ("id\n", "{}", ["--key", "id"], lambda key: key),
        ("a,b\n", "{},x", ["--key", "a,b"], lambda key: (key, "x")),
        ("a,b\n", "{},x", ["--key", "b,a", "--format", "csv"], lambda key: ("x", str(key).encode())),
        ("", '{{"id":"{}"}}', ["--key", "id"], lambda key: str(key)),
        ("", '{{"id":{}}}', ["--key", "id"], lambda key: b"\xff%d" % key),
        ("", '{{"id":{},"k":"x"}}', ["--key", "id,k"], lambda key: (b"\xff%d" % key, "x")),
    ],
)
def test_keys_hash_as_in_the_program(program, tmp_path, header, line, flags, key):
    keys = [key for key, _ in events(300, seed=9)]
    text = header + "".join(line.format(one) + "\n" for one in keys)
    (tmp_path / "input").write_text(text)
    done = program("dedup", tmp_path / "input", *flags, "--state", tmp_path / "state")
    assert done.returncode == 0, done.stderr
    seen = lately.Filter.load(tmp_path / "state")
    assert all(seen.seen(key(one)) for one in keys)
    assert seen.seen_many([key(one) for one in keys]).all()
    assert not any(seen.seen(key(one)) for one in range(1_000, 2_000))


def test_what_is_saved_here_the_program_knows(program, tmp_path):
    state = tmp_path / "state"
    seen = lately.Filter(last=1000)
    seen.observe_many(np.array(["a", "b"]))
    seen.save(state)
    done = program("dedup", "--last", "1000", "--state", state, stdin="a\nc\nb\n")
    assert (done.returncode, done.stdout) == (0, "c\n")
    done = program("dedup", "--last", "999", "--state", state, stdin="a\n")
    with pytest.raises(lately.StateError) as raised:
        lately.Filter.open(state, last=999)
    # In the program's words.
    said = done.stderr.removeprefix("lately: ").strip()
    assert "window: saved the last 1,000 records, asked the last 999 records" in said
    assert str(raised.value).splitlines()[1:] == said.splitlines()[1:]


def test_an_index_of_the_program_answers_here(program, tmp_path):
    state = tmp_path / "index"
    text = "id\n" + "".join(f"{id}\n" for id in range(0, 100_000, 1000))
    done = program("index", "--key", "id", "--last", "1000", "--state", state, stdin=text)
    assert done.returncode == 0, done.stderr
    index = lately.Index.load(state)
    assert index.any_in(4_000, 4_100) and index.any_in("4000") and not index.any_in(4_001, 4_100)
    index.observe(123_456)
    index.save(state)
    assert program("ask", state, "--key", "123456").returncode == 0
    assert program("ask", state, "--key", "123457").returncode == 1


def test_terms_are_refused_in_the_programs_words(program):
    for flags, terms in [
        (["--last", "10", "--memory", "1B"], {"last": 10, "memory": 1}),
        (["--within", "0s"], {"within": "0s"}),
        (["--fpr", "1e-6", "--last", "5", "--structure", "bloom"], {"last": 5, "structure": "bloom", "fpr": 1e-6}),
    ]:
        with pytest.raises(lately.SpecError) as raised:
            lately.Filter(**terms)
        assert f"--{raised.value}" in program("dedup", *flags).stderr


def test_plans_are_those_of_the_program(program):
    for flags, terms in [
        (["--within", "10s", "--expect", "1M"], {"within": "10s", "expect": "1M"}),
        (["--last", "1M", "--fpr", "1e-4"], {"last": "1M", "fpr": 1e-4}),
        (["--memory", "1MiB"], {"memory": "1MiB"}),
    ]:
        table = lately.plan(**terms)
        shown = json.loads(program("plan", "--json", *flags).stdout)
        for row in shown:
            for name in ["interval", "every_window_bound_bits_per_key"]:
                row.pop(name, None)
            # Terms are flags there.
            if "error" in row:
                row["error"] = row["error"].removeprefix("--")
        assert list(table) == shown
        assert str(table) in program("plan", *flags).stdout.replace(" --", " ")


def test_files_are_deduplicated_as_by_the_program(program, reads, tmp_path):
    path, _ = reads
    for terms, flags in [
        ({"key": "tag", "time": "at", "within": "10s"}, ["--key", "tag", "--time", "at", "--within", "10s"]),
        ({"key": ["tag", "at"], "format": "csv"}, ["--key", "tag,at", "--format", "csv"]),
        ({}, []),
        ({"key_regex": "^([a-z])", "last": 9}, ["--key-regex", "^([a-z])", "--last", "9"]),
        ({"key": "tag", "last": 50, "fold_case": True}, ["--key", "tag", "--last", "50", "--key-case", "fold"]),
    ]:
        output, dropped = tmp_path / "clean.csv", tmp_path / "dropped.csv"
        found = lately.dedup_file(path, output, duplicates=dropped, **terms)
        summary, other = tmp_path / "summary", tmp_path / "other.csv"
        done = program("dedup", path, *flags, "--summary", summary, "--duplicates", other)
        assert output.read_text() == done.stdout
        assert dropped.read_text() == other.read_text()
        expected = json.loads(summary.read_text())
        for numbers in [expected, found]:
            numbers.pop("seconds")
        assert found == expected
    epcs = lately.dedup_file(READS, tmp_path / "epcs.csv", key="epc", time="timestamp", within="5s")
    flags = ["--key", "epc", "--time", "timestamp", "--within", "5s"]
    assert (tmp_path / "epcs.csv").read_text() == program("dedup", READS, *flags).stdout
    assert epcs["fresh"] > 0 and epcs["duplicate"] > 0


def test_a_state_is_shared_with_the_program(program, tmp_path):
    state, output = tmp_path / "state", tmp_path / "out.csv"
    lines = lambda name, keys: (tmp_path / name).write_text("".join(f"{key}\n" for key in keys))
    lines("one", "abca"), lines("two", "cde"), lines("three", "aefc")
    assert lately.dedup_file(tmp_path / "one", output, state=state)["fresh"] == 3
    done = program("dedup", tmp_path / "two", "--state", state, "--output", output)
    assert done.returncode == 0, done.stderr
    found = lately.dedup_file([tmp_path / "three"], output, state=state)
    assert (found["fresh"], found["duplicate"], found["state_saved"]) == (1, 3, True)
    assert output.read_text().split() == list("abcdef")
    with pytest.raises(lately.StateError, match="made with other settings"):
        lately.dedup_file(tmp_path / "one", output, state=state, key="x", format="csv")


def test_files_that_fail_leave_the_output_as_it_was(tmp_path):
    output = tmp_path / "output"
    output.write_text("before\n")
    reads = tmp_path / "reads.csv"
    reads.write_text("a,at\nx,1\ny,never\n")
    for inputs, terms, error, text in [
        (tmp_path / "missing", {}, lately.InputError, "missing"),
        (reads, {"key": "b"}, lately.InputError, "b"),
        (reads, {"key": "a", "time": "a", "within": "1s"}, lately.InputError, "no time could be read"),
        (reads, {"delimiter": ";", "format": "tsv"}, lately.InputError, "^delimiter: only CSV has one"),
        (reads, {"time_zone": "Chicago"}, lately.InputError, "^time-zone: "),
        (reads, {"format": "xls"}, lately.SpecError, "^format: unknown format `xls`"),
        (reads, {"within": "0s"}, lately.SpecError, "^within: must be more than 0"),
        (reads, {"windoww": "0s"}, TypeError, "windoww"),
        ([reads, output], {}, ValueError, "same file"),
        (reads, {"duplicates": output}, ValueError, "same file"),
        ([], {}, ValueError, "no input"),
        (tmp_path, {}, lately.InputError, tmp_path.name),
    ]:
        with pytest.raises(error, match=text):
            lately.dedup_file(inputs, output, **terms)
        assert output.read_text() == "before\n", terms
    with pytest.raises(OSError, match="cannot write"):
        lately.dedup_file(reads, tmp_path / "no" / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["output", "reads.csv"]


def test_a_state_in_use_is_left_alone(program, tmp_path):
    state = tmp_path / "state"
    with subprocess.Popen(
        [sys.executable, "-c", f"import time, fcntl; f = open({str(state)!r} + '.lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); time.sleep(60)"],
        stdout=subprocess.PIPE,
    ) as holder:
        holder.stdout.readline()
        with pytest.raises(lately.StateError, match="in use by another lately"):
            lately.Filter(last=5).save(state)
        with pytest.raises(lately.StateError, match="in use by another lately"):
            lately.dedup_file(__file__, tmp_path / "out", state=state)
        holder.kill()
    lately.Filter(last=5).save(state)


def test_ctrl_c_ends_a_run(tmp_path):
    path = tmp_path / "long"
    with open(path, "w") as file:
        for part in range(40):
            file.writelines(f"a line that is like no other, number {part}/{at}\n" for at in range(100_000))
    (tmp_path / "out").write_text("before\n")
    # A process that is started in the background of a script ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            while True:
                lately.dedup_file(path, tmp_path / "out", threads=1)
                (tmp_path / "out").write_text("before\n")
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    assert (tmp_path / "out").read_text() == "before\n"

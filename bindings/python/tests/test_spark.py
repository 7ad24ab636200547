"""Streams of Spark, against the exact judge. They run where PySpark and Java are: `pip install 'lately[spark]'`."""

import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime, timezone

import lately
import pytest
from conftest import ROOT, SECOND, Exact

FOLDER = pathlib.Path(__file__).parents[1]
#: At which clocks in Berlin go back by an hour: times that are read as those on the wall would be wrong.
CLOCKS_BACK = int(datetime(2023, 10, 29, 1, tzinfo=timezone.utc).timestamp()) * SECOND
#: A Java that starts soon: what is compiled here never runs for long.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def missing():
    """Why streams cannot run here, if so."""
    for module in ["pyspark", "google.protobuf"]:
        try:
            __import__(module)
        except ImportError:
            return f"{module} is not installed: pip install 'lately[spark]'"
    home = os.environ.get("JAVA_HOME")
    java = home and shutil.which("java", path=home + "/bin") or shutil.which("java")
    if not java:
        return "Java is not installed, which Spark needs"
    said = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    version = re.search(r'version "(\d+)', said)
    if not version or int(version[1]) < 17:
        return f"Java is older than 17, which Spark needs: {said.splitlines()[-3:]}"


def session(**settings):
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("lately")
    for name, value in {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "Europe/Berlin",
        "spark.sql.streaming.stateStore.providerClass": PROVIDER,
        **settings,
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@pytest.fixture(scope="module")
def spark():
    if reason := missing():
        pytest.skip(reason)
    made = session()
    yield made
    made.stop()


def events(count, seed, disorder, keys=400):
    """Keys and times in microseconds, as Spark has them, out of order by less than `disorder` seconds, around the
    hour that there is twice."""
    chance = random.Random(seed)
    for number in range(count):
        at = CLOCKS_BACK + (number - count // 2) * SECOND // 20 - chance.randrange(disorder * SECOND + 1)
        yield f"tag {chance.randrange(keys)}", at // 1000 * 1000


def write(folder, batches):
    """A file for each micro-batch, of rows with their number, key and time."""
    folder.mkdir(exist_ok=True)
    number = sum(len(file.read_text().splitlines()) for file in folder.iterdir())
    for batch in batches:
        at = len(list(folder.iterdir()))
        lines = [f"{number + row},{key},{micros // 1000}" for row, (key, micros) in enumerate(batch)]
        number += len(batch)
        # Spark takes the files in the order of their times, which it has in milliseconds.
        draft = folder.parent / f"draft{at}"
        draft.write_text("\n".join(lines) + "\n")
        os.utime(draft, (1_700_000_000 + at, 1_700_000_000 + at))
        draft.rename(folder / f"{at:04}.csv")


def cut(all, size):
    return [all[begin : begin + size] for begin in range(0, len(all), size)]


def read(spark, folder):
    """The stream of those files, one for each micro-batch."""
    lines = spark.readStream.schema("number long, key string, micros long").option("maxFilesPerTrigger", 1)
    return lines.csv(str(folder)).selectExpr("number", "key", "timestamp_micros(micros) AS at")


def finish(start):
    """Starts a stream and waits for its end. Its first micro-batch fails, before it has begun, where Spark waits in vain for a
    Python of its own: for ten seconds, which is fixed, and too short for a busy machine."""
    from pyspark.errors import StreamingQueryException

    for attempt in range(10):
        try:
            return start().awaitTermination()
        except StreamingQueryException as error:
            if "failed to connect back" not in str(error) or attempt == 9:
                raise


def run(df, checkpoint):
    """All that a stream has at hand: its rows, by micro-batch."""
    found = []
    writer = (
        df.writeStream.foreachBatch(lambda rows, number: found.append((number, rows.collect())))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
    )
    finish(writer.start)
    assert [number for number, _ in found] == list(range(found[0][0], found[0][0] + len(found)))
    return [rows for _, rows in found]


def classes_of(batches, exact):
    """What the law says of each row, by number: the rows of a micro-batch have the order of their times."""
    found, number = {}, 0
    for batch in batches:
        for row in sorted(range(len(batch)), key=lambda row: batch[row][1]):
            found[number + row] = exact.classify(*batch[row])
        number += len(batch)
    return found


def of_rows(rows):
    return {row["number"]: row["class"] for row in rows}


def alike(batches, found, expected):
    """Rows of one key and one time are exchanged at will, all others are what is expected."""

    def counted(classes):
        rows = [row for batch in batches for row in batch]
        return sorted((rows[number], name) for number, name in classes.items())

    assert found.keys() == expected.keys()
    assert counted(found) == counted(expected)


@pytest.mark.parametrize(("shards", "renew"), [(1, "always"), (7, "fresh")])
def test_events_are_judged_by_the_law(spark, tmp_path, shards, renew):
    import lately.spark

    batches = cut(list(events(3_000, seed=1, disorder=30)), 1_000)
    write(tmp_path / "in", batches)
    terms = {"within": "10s", "lateness": "1m", "slack": "0s", "renew": renew}
    df = lately.spark.dedup(
        read(spark, tmp_path / "in"), "key", "at", shards=shards, keep="all", max_skew="1h", **terms
    )
    found = run(df, tmp_path / "checkpoint")
    assert [len(rows) for rows in found] == [1_000] * 3
    exact = Exact(10 * SECOND, 60 * SECOND)
    if renew == "fresh":
        exact = ExactOnFresh(10 * SECOND, 60 * SECOND)
    expected = classes_of(batches, exact)
    alike(batches, of_rows(row for rows in found for row in rows), expected)
    assert {"fresh", "duplicate"} == set(expected.values())


class ExactOnFresh(Exact):
    """The law where only fresh records renew their key."""

    def classify(self, key, time):
        found = super().classify(key, time)
        if found == "duplicate":
            self.seen[key].pop()
        return found


def test_late_records_are_those_behind_the_micro_batches_before(spark, tmp_path):
    import lately.spark

    batches = cut(list(events(2_000, seed=2, disorder=30)), 400)
    write(tmp_path / "in", batches)
    terms = {"within": "10s", "lateness": "5s", "slack": "0s", "shards": 1}
    df = read(spark, tmp_path / "in")
    marked = lately.spark.dedup(df, "key", "at", keep="all", class_column="what", **terms)
    found = {row["number"]: row["what"] for rows in run(marked, tmp_path / "marked") for row in rows}
    expected = classes_of(batches, Exact(10 * SECOND, 5 * SECOND))
    alike(batches, found, expected)
    assert {"fresh", "duplicate", "late"} == set(expected.values())
    for keep, classes in [("fresh", {"fresh"}), ("forwarded", {"fresh", "late"})]:
        kept = lately.spark.dedup(df, "key", "at", keep=keep, **terms)
        assert kept.schema == df.schema
        rows = [row for rows in run(kept, tmp_path / keep) for row in rows]
        assert len(rows) == sum(name in classes for name in expected.values())


def test_late_records_do_not_overrule_the_clock_together(spark, tmp_path):
    """They are fewer than those that are not late, and in the order of their times they would come in a row."""
    import lately.spark

    def rows(count, begin):
        return [(f"tag {row % 30}", CLOCKS_BACK + (begin + row // 5) * SECOND) for row in range(count)]

    batches = [rows(20, 0), rows(100, -1000) + rows(150, 4), rows(100, -1000) + rows(150, 34)]
    write(tmp_path / "in", batches)
    df = lately.spark.dedup(
        read(spark, tmp_path / "in"), "key", "at", "10s", lateness="5s", slack="0s", shards=1, keep="all"
    )
    found = of_rows(row for rows in run(df, tmp_path / "checkpoint") for row in rows)
    expected = classes_of(batches, Exact(10 * SECOND, 5 * SECOND))
    alike(batches, found, expected)
    assert list(expected.values()).count("late") == 200


def test_records_pass_as_they_are(spark, tmp_path):
    """Of all types, with nulls, and in columns with the names that the steps use."""
    import lately.spark

    write(tmp_path / "in", [[(f"tag {row % 4}", CLOCKS_BACK + row * SECOND) for row in range(12)]])
    df = read(spark, tmp_path / "in").selectExpr(
        "*",
        "if(number = 3, null, number + 9007199254740993) AS large",
        "if(number = 4, null, if(number = 5, double('NaN'), number / 3)) AS `a.b`",
        "array(number, null) AS shard",
        "named_struct('x', cast(null AS int), 'at', at) AS piece",
        "map(key, cast(number AS decimal(20, 4))) AS `lately shard`",
        "if(number = 6, null, key = 'tag 1') AS flag",
        "cast(at AS timestamp_ntz) AS local",
        "cast('9999-12-31' AS date) AS never",
        "cast(key AS binary) AS bytes",
    )
    checked = []
    for key in ["number", ["number", "bytes"], ["key", "number"]]:
        kept = lately.spark.dedup(df, key, "at", within="1h", shards=3)
        assert kept.schema == df.schema
        rows = run(kept, tmp_path / f"kept{len(checked)}")[0]
        plain = run(df, tmp_path / f"plain{len(checked)}")[0]
        # Not a number equals nothing, itself neither.
        checked.append(sorted(map(repr, rows)))
        assert checked[-1] == sorted(map(repr, plain))
        assert any(math.isnan(row["a.b"] or 0) for row in rows)
    by_bytes = lately.spark.dedup(df, "bytes", "local", within="1h", shards=3)
    assert len(run(by_bytes, tmp_path / "bytes")[0]) == 4


def test_records_without_a_key_or_a_time(spark, tmp_path):
    import lately.spark

    write(tmp_path / "in", [[(f"tag {row % 2}", CLOCKS_BACK + row * SECOND) for row in range(6)]])
    df = read(spark, tmp_path / "in").selectExpr(
        "number", "if(number = 2, null, key) AS key", "if(number = 1, null, at) AS at"
    )
    rows = run(lately.spark.dedup(df, "key", "at", within="1h", shards=1, keep="all"), tmp_path / "checkpoint")[0]
    # Number 1 comes at the clock, after the others of its micro-batch.
    assert of_rows(rows) == {
        0: "fresh", 1: "duplicate", 2: "missing_key", 3: "fresh", 4: "duplicate", 5: "duplicate",
    }


RUN = """
import sys
sys.path.insert(0, sys.argv[1])
import test_spark, pathlib
test_spark.write_classes(test_spark.session(), pathlib.Path(sys.argv[2]))
"""


def last_file(offsets):
    """The number of the last file of a micro-batch."""
    return json.loads(offsets.read_text().splitlines()[-1])["logOffset"]


def write_classes(spark, folder, ends=False):
    """The stream that is killed: all records of `in` with their classes, as files in `out`."""
    import lately.spark

    terms = {"within": "10s", "lateness": "5s", "shards": 3, "keep": "all"}
    df = lately.spark.dedup(read(spark, folder / "in"), "key", "at", **terms)
    writer = df.writeStream.format("json").option("checkpointLocation", str(folder / "checkpoint"))
    if ends:
        writer = writer.trigger(availableNow=True)
    finish(lambda: writer.start(str(folder / "out")))


def test_a_stream_that_was_killed_resumes_from_its_checkpoint(spark, tmp_path):
    """The process ends amid its micro-batches, with `kill -9`; another one resumes."""
    import lately.spark

    batches = cut(list(events(3_200, seed=3, disorder=20)), 400)
    write(tmp_path / "in", batches)
    commits, offsets = tmp_path / "checkpoint/commits", tmp_path / "checkpoint/offsets"
    log = tmp_path / "log"
    with open(log, "wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, FOLDER / "tests", tmp_path], stdout=said, stderr=said, start_new_session=True
        )
    end = time.monotonic() + 240
    while not (commits / "3").exists():
        assert process.poll() is None and time.monotonic() < end, log.read_text()[-5000:]
        time.sleep(0.05)
    # The process and the Java that it has begun.
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    # As if it had been killed before the micro-batch was recorded, but after its state was: it is done again. What Spark
    # had noted of the next one is gone, too, but for what the source has.
    last = max(map(int, (file.name for file in commits.iterdir() if file.name.isdigit())))
    # With its checksum, without which Spark takes it for another stream's that is running.
    for file in [commits / str(last), commits / f".{last}.crc", offsets / str(last + 1), offsets / f".{last + 1}.crc"]:
        file.unlink(missing_ok=True)
    write_classes(spark, tmp_path, ends=True)
    rows = spark.read.json(str(tmp_path / "out")).collect()
    # None is lost, and none is repeated.
    assert len(rows) == 3_200

    # Without a kill, but with the same micro-batches: Spark puts a file that its source had noted, and that no
    # micro-batch had begun with, into one with the next file.
    ends = [last_file(offsets / str(number)) for number in range(sum(file.name.isdigit() for file in offsets.iterdir()))]
    assert ends[-1] == len(batches) - 1
    write(tmp_path / "same", [sum(batches[begin + 1 : end + 1], []) for begin, end in zip([-1, *ends], ends)])
    undisturbed = lately.spark.dedup(
        read(spark, tmp_path / "same"), "key", "at", "10s", lateness="5s", shards=3, keep="all"
    )
    expected = of_rows(row for rows in run(undisturbed, tmp_path / "undisturbed") for row in rows)
    assert {"fresh", "duplicate", "late"} == set(expected.values())
    alike(batches, of_rows(rows), expected)


def test_a_state_of_other_terms_is_refused(spark, tmp_path):
    import lately.spark
    from pyspark.errors import StreamingQueryException

    batches = cut(list(events(400, seed=4, disorder=5)), 200)
    write(tmp_path / "in", batches[:1])
    df = read(spark, tmp_path / "in")
    run(lately.spark.dedup(df, "key", "at", "10s", shards=4), tmp_path / "checkpoint")
    write(tmp_path / "in", batches[1:])
    with pytest.raises(StreamingQueryException, match="shards: saved 4, asked 2"):
        run(lately.spark.dedup(df, "key", "at", "10s", shards=2), tmp_path / "checkpoint")
    # The checkpoint is as good as before.
    assert run(lately.spark.dedup(df, "key", "at", "10s", shards=4), tmp_path / "checkpoint")


def test_what_cannot_be_kept_is_refused_at_once(spark, tmp_path):
    import lately.spark

    (tmp_path / "in").mkdir()
    df = read(spark, tmp_path / "in").selectExpr("*", "number / 2 AS half", "1 AS micros")
    good = {"key": "key", "time": "at", "within": "10s"}
    for terms, error, text in [
        ({"key": "tag"}, lately.InputError, "key: there is no column 'tag', but 'number', 'key', 'at'"),
        ({"key": []}, lately.InputError, "key: a key has at least one column"),
        ({"key": ["key", "half"]}, lately.KeyTypeError, "key: 'half' is of type double"),
        ({"time": "when"}, lately.InputError, "time: there is no column 'when'"),
        ({"time": "micros"}, lately.TimeError, "time: 'micros' is of type int: times are timestamps"),
        ({"within": "ten"}, lately.SpecError, "within: "),
        ({"within": "0s"}, lately.SpecError, "within: must be more than 0"),
        ({"within": None}, lately.SpecError, "within: a window of time is needed"),
        ({"last": 5}, lately.SpecError, "within: a window of time is needed"),
        ({"lateness": "soon"}, lately.SpecError, "lateness: "),
        ({"shards": 0}, lately.SpecError, "shards: expected 1 to 32768, not 0"),
        ({"shards": True}, lately.SpecError, "shards: expected 1 to 32768, not True"),
        ({"keep": "late"}, lately.SpecError, "keep: expected one of fresh, forwarded, all"),
        ({"class_column": "at"}, lately.InputError, "class_column: there is a column 'at' already"),
        ({"memory": 1000}, lately.SpecError, "memory: "),
        ({"colour": "red"}, TypeError, "unexpected keyword argument 'colour'"),
    ]:
        with pytest.raises(error, match=f"^{text}" if error is not TypeError else text):
            lately.spark.dedup(df, **{**good, **terms})
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDER.replace("RocksDB", "HDFSBacked"))
    try:
        with pytest.raises(lately.InputError, match="Spark has to keep the state in RocksDB: spark.conf.set"):
            lately.spark.dedup(df, **good)
    finally:
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDER)


def test_without_pyspark_it_says_what_to_install():
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.modules['pyspark'] = None; import lately.spark"],
        capture_output=True, text=True, timeout=120,
    )
    assert "pip install 'lately[spark]'" in done.stderr


#: Runs the example, and again after the same reads have come a day later.
TWICE = """
import pathlib, runpy, sys
sys.argv[:] = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
reads = sys.stdin.read().replace("2025-01-06T", "2025-01-07T")
(pathlib.Path(sys.argv[1]) / "2.csv").write_text(reads)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_the_example_runs(tmp_path):
    if reason := missing():
        pytest.skip(reason)
    reads = (ROOT / "examples/rfid.csv").read_text()
    found = lately.dedup_file(
        ROOT / "examples/rfid.csv", tmp_path / "clean.csv", key="epc", time="timestamp", within="5s"
    )
    (tmp_path / "in").mkdir()
    command = [sys.executable, "-c", TWICE, FOLDER / "examples/spark.py", tmp_path / "in", tmp_path / "out"]
    (tmp_path / "in/1.csv").write_text(reads)
    # As in `finish`: nothing was judged then.
    for _ in range(10):
        done = subprocess.run(command, input=reads, capture_output=True, text=True, timeout=300)
        if "failed to connect back" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    lines = [line for file in (tmp_path / "out").glob("*.csv") for line in file.read_text().splitlines()[1:]]
    assert len(lines) == found["fresh"] * 2

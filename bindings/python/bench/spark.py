#!/usr/bin/env python3
"""Runs streams of Spark in processes of their own, and prints the tables of docs/results/spark.md.

    python bindings/python/bench/spark.py disturb [EVENTS]    an executor is killed in the middle, and still exact
    python bindings/python/bench/spark.py compare [EVENTS]    against Spark's own: time, state and checkpoint

It needs `lately[spark]`, Java, 6 GB of memory and some minutes for each. Everything is in a temporary folder, and all
processes end with it.
"""
import contextlib
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyspark

#: 2024-05-01 in UTC, in milliseconds.
BEGIN = 1_714_521_600_000
#: One event per millisecond, up to this many milliseconds behind.
DISORDER = 30_000
#: The window, in seconds: all events of a million, and nearly all of 4,000,000.
WINDOW = 3600
#: Events of a file, which is a micro-batch.
FILE = 50_000
#: Nothing may take longer than this, in seconds.
PATIENCE = 1800
STATE = "org.apache.spark.sql.execution.streaming.state."
PROVIDERS = {"rocksdb": STATE + "RocksDBStateStoreProvider", "memory": STATE + "HDFSBackedStateStoreProvider"}


def mix(x):
    """The finalizer of SplitMix64: no two numbers have the same."""
    x = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def events(begin, end, keys):
    """The keys and the times, in microseconds, of the events with these numbers. No two events have one time."""
    numbers = np.arange(begin, end, dtype=np.uint64)
    random = mix(numbers)
    behind = (mix(random) % np.uint64(DISORDER)).astype(np.int64)
    times = (BEGIN + numbers.astype(np.int64) - behind) * 1000 + numbers.astype(np.int64) % 1000
    return random % np.uint64(keys), times


def write_events(folder, count, keys):
    folder.mkdir()
    for at, begin in enumerate(range(0, count, FILE)):
        end = min(count, begin + FILE)
        found, times = events(begin, end, keys)
        path = folder / f"{at:05}.csv"
        with open(path, "w") as out:
            for number, key, micros in zip(range(begin, end), found.tolist(), times.tolist(), strict=True):
                out.write(f"{number},3034257B{key:016X},{micros}\n")
        # Spark takes them in the order of their times.
        os.utime(path, (1_700_000_000 + at, 1_700_000_000 + at))


def exact(count, keys):
    """The numbers of the events that the law of docs/late.md forwards, where those of a micro-batch come in the order of
    their times. No event is later than the window, so the newest sighting of each key decides."""
    newest, forwarded = {}, []
    for begin in range(0, count, FILE):
        end = min(count, begin + FILE)
        found, times = events(begin, end, keys)
        order = np.argsort(times, kind="stable")
        rows = zip((begin + order).tolist(), found[order].tolist(), times[order].tolist(), strict=True)
        for number, key, at in rows:
            before = newest.get(key)
            if before is None or at - before > WINDOW * 1_000_000:
                forwarded.append(number)
            if before is None or at > before:
                newest[key] = at
    return sorted(forwarded)


def job(kind, provider, master, folder, keys):
    """The driver: deduplicates all there is, and prints what Spark says of it."""
    import lately.spark
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master(master)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.executor.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "WARN")
        .config("spark.local.dir", f"{folder}/local")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.stateStore.providerClass", PROVIDERS[provider])
        .config("spark.sql.streaming.numRecentProgressUpdates", "10000")
        .getOrCreate()
    )
    begin = time.monotonic()
    lines = spark.readStream.schema("number long, key string, micros long").option("maxFilesPerTrigger", 1)
    reads = lines.csv(f"{folder.parent}/in").selectExpr("number", "key", "timestamp_micros(micros) AS at")
    if kind == "spark":
        clean = reads.withWatermark("at", f"{WINDOW} seconds").dropDuplicatesWithinWatermark(["key"])
    else:
        clean = lately.spark.dedup(
            reads, "key", "at", f"{WINDOW}s", lateness="30s", shards=int(kind), expect=keys
        )
    query = (
        clean.select("number")
        .writeStream.format("csv")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{folder}/out")
    )
    query.awaitTermination()
    seconds = time.monotonic() - begin
    progress = [json.loads(one.json) for one in query.recentProgress]
    progress = [one for one in progress if one["stateOperators"] and one["numInputRows"]]
    states = [one["stateOperators"][0] for one in progress]
    # The first one also waits for all that has to be begun, as Python.
    later = [one["durationMs"]["triggerExecution"] / 1000 for one in progress[1:]]
    print(json.dumps({"seconds": seconds, "batches": len(states), "batch": statistics.median(later), "state": states[-1]}))
    spark.stop()


class Cluster:
    """A master and two workers with a core each, all of them processes."""

    def __init__(self, folder):
        folder.mkdir()
        self.folder = folder
        self.log = open(folder / "log.txt", "ab")
        self.processes = []
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        self.master = f"spark://127.0.0.1:{port}"
        try:
            self.start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
            self.wait(lambda: reachable(port))
            for at in range(2):
                self.start("worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "2g",
                           "--work-dir", str(folder / f"work{at}"), self.master)
        except BaseException:
            self.end()
            raise

    def start(self, main, *words):
        jars = pathlib.Path(pyspark.__file__).parent / "jars"
        opens = ["-XX:+IgnoreUnrecognizedVMOptions", "--add-opens=java.base/java.lang=ALL-UNNAMED",
                 "--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
                 "--add-opens=java.base/java.util=ALL-UNNAMED"]
        self.processes.append(subprocess.Popen(
            ["java", "-Xmx512m", *opens, "-cp", f"{jars}/*", f"org.apache.spark.deploy.{main}", *words],
            stdout=self.log, stderr=self.log, env=environment(), start_new_session=True,
        ))

    def executors(self):
        """The processes of the executors."""
        found = []
        for process in self.processes[1:]:
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
            for task in children.parent.parent.glob("*/children"):
                found += [int(pid) for pid in task.read_text().split()]
        return [pid for pid in found if b"CoarseGrainedExecutorBackend" in
                pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]

    def wait(self, condition):
        end = time.monotonic() + PATIENCE
        while not (found := condition()):
            if time.monotonic() > end:
                raise TimeoutError(f"see {self.folder}/log.txt")
            time.sleep(0.1)
        return found

    def end(self):
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.log.close()


@contextlib.contextmanager
def driver(kind, provider, master, folder, keys):
    """The process of a driver, which ends with the context."""
    with open(folder / "log.txt", "ab") as log:
        process = subprocess.Popen(
            [sys.executable, __file__, "job", kind, provider, master, str(folder), str(keys)],
            stdout=subprocess.PIPE, stderr=log, env=environment(), text=True, start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def finish(process):
    """Waits for the end of a driver: what it says."""
    said, _ = process.communicate(timeout=PATIENCE)
    if process.returncode:
        raise RuntimeError(f"the driver has failed: {said}")
    return json.loads(said.splitlines()[-1])


def environment():
    # What the launchers of a distribution work out.
    home = str(pathlib.Path(pyspark.__file__).parent)
    return os.environ | {"SPARK_HOME": home, "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_IP": "127.0.0.1",
                         "PYSPARK_PYTHON": sys.executable}


def reachable(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def committed(folder):
    return sum(file.name.isdigit() for file in (folder / "checkpoint/commits").glob("*"))


def numbers(folder):
    """The numbers that the sink has, sorted; each of them once for each time. Files that a failed task has left behind are
    not in its log, of which the tenth entry has those before, too."""
    log = folder / "out/_spark_metadata"
    newest = max(log.glob("*.compact"), key=lambda file: int(file.stem), default=None)
    paths = []
    entries = [newest] if newest else []
    since = int(newest.stem) if newest else -1
    entries += [file for file in log.glob("[0-9]*") if file.suffix != ".compact" and int(file.name) > since]
    for entry in entries:
        paths += [json.loads(line)["path"].removeprefix("file://") for line in entry.read_text().splitlines()[1:]]
    found = []
    for path in paths:
        found += map(int, pathlib.Path(path).read_text().split())
    return sorted(found)


def size(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def same(found, asked):
    if found == asked:
        return "the same"
    missing, more = set(asked) - set(found), set(found) - set(asked)
    return f"{len(missing)} missing, {len(more)} more, {len(found) - len(set(found))} repeated"


@contextlib.contextmanager
def scratch(count, keys):
    """A folder with the events, which is removed; the log of a cluster that failed is printed before."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        try:
            write_events(folder / "in", count, keys)
            yield folder
        except Exception:
            for log in folder.glob("*/log.txt"):
                print(log.read_text(errors="replace")[-10_000:], file=sys.stderr)
            raise


def disturb(count):
    keys = count // 4
    with scratch(count, keys) as folder:
        asked = exact(count, keys)
        print(f"{count:,} events, {keys:,} keys, {-(-count // FILE)} micro-batches, 16 shards:\n", flush=True)
        cluster = Cluster(folder / "cluster")
        begin = time.monotonic()

        def step(text):
            print(f"- after {time.monotonic() - begin:.0f} s: {text}", flush=True)

        try:
            with driver("16", "rocksdb", cluster.master, cluster.folder, keys) as process:
                for part in (1, 2):
                    until = -(-count // FILE) * part // 3
                    cluster.wait(lambda until=until: process.poll() is not None or committed(cluster.folder) >= until)
                    # Amid the micro-batch that follows.
                    time.sleep(0.7)
                    victims = cluster.executors()
                    os.kill(victims[0], signal.SIGKILL)
                    step(f"one of {len(victims)} executors is killed (`kill -9`) after {committed(cluster.folder)} micro-batches")
                said = finish(process)
            step(f"the stream has ended, after {said['batches']} micro-batches")
            started = len(list(cluster.folder.glob("work*/app-*/*/stderr")))
        finally:
            cluster.end()
        found = numbers(cluster.folder)
        print(f"\n{started} executors were begun. {len(found):,} events forwarded; and the exact program: {same(found, asked)}.")


def compare(count):
    keys = count // 4
    runs = [
        ("`dropDuplicatesWithinWatermark`, in memory", "spark", "memory"),
        ("`dropDuplicatesWithinWatermark`, RocksDB", "spark", "rocksdb"),
        ("lately, 16 shards", "16", "rocksdb"),
        ("lately, 128 shards", "128", "rocksdb"),
    ]
    with scratch(count, keys) as folder:
        asked = exact(count, keys)
        print(f"{count:,} events, {keys:,} keys, {-(-count // FILE)} micro-batches, a window of {WINDOW} s.\n")
        print("| | time, s | a micro-batch, s | state as Spark counts it, MB | all checkpoints, MB | forwarded "
              "| and the exact program |")
        print("|---|---:|---:|---:|---:|---:|---|", flush=True)
        for at, (name, kind, provider) in enumerate(runs):
            own = folder / str(at)
            own.mkdir()
            with driver(kind, provider, "local[2]", own, keys) as process:
                said = finish(process)
            found = numbers(own)
            written = size(own / "checkpoint/state")
            print(f"| {name} | {said['seconds']:.1f} | {said['batch']:.2f} | {said['state']['memoryUsedBytes'] / 1e6:.1f} | {written / 1e6:.1f} "
                  f"| {len(found):,} | {same(found, asked)} |", flush=True)
            print(json.dumps(said["state"]), file=sys.stderr, flush=True)


def main():
    words = sys.argv[1:]
    match words:
        case ["job", kind, provider, master, folder, keys]:
            job(kind, provider, master, pathlib.Path(folder), int(keys))
        case ["disturb" | "compare" as name, *rest] if len(rest) <= 1:
            {"disturb": disturb, "compare": compare}[name](int(rest[0]) if rest else 1_000_000)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Runs the operator in a cluster of processes, and prints the tables of docs/results/flink.md.

    bindings/flink/build && cargo build --release
    python3 bindings/flink/bench/heavy.py compare [EVENTS]    against Flink's own state: time and checkpoints
    python3 bindings/flink/bench/heavy.py sizes [EVENTS]      the same under several settings: bytes of checkpoints alone
    python3 bindings/flink/bench/heavy.py disturb [EVENTS]    killed, stopped and rescaled, and still exact
    python3 bindings/flink/bench/heavy.py grow KEYS...        all of them distinct: state and checkpoints

It needs 4 GB of memory (8 GB for 100 million keys) and some minutes for each. Everything is in a temporary folder, and all
processes end with it.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILT = ROOT / "target/flink"
LIB = os.environ.get("FLINK_LIB") or str(BUILT / "jars/pyflink/lib")
LATELY = os.environ.get("LATELY_PROGRAM") or str(ROOT / "target/release/lately")
#: What the launchers of a distribution open to Flink.
OPENS = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in (
    "java.lang", "java.lang.reflect", "java.net", "java.io", "java.nio", "sun.nio.ch", "java.text", "java.time", "java.util",
    "java.util.concurrent", "java.util.concurrent.atomic", "java.util.concurrent.locks")]
#: Nothing may take longer than this, in seconds.
PATIENCE = 580
#: The window, in seconds: nearly all events of 4,000,000, which are a millisecond apart, so that both remember the same keys.
WINDOW = 3600


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Cluster:
    """A job manager and two task managers with a slot each, all of them processes."""

    def __init__(self, folder, backend, heap="600m", interval=2, more=()):
        self.folder = folder
        self.heap = heap
        self.rest = free_port()
        folder.mkdir(parents=True)
        (folder / "conf").mkdir()
        (folder / "conf/config.yaml").write_text(
            f"""jobmanager.rpc.address: 127.0.0.1
jobmanager.rpc.port: {free_port()}
jobmanager.memory.process.size: 1g
rest.address: 127.0.0.1
rest.port: {self.rest}
taskmanager.host: 127.0.0.1
taskmanager.memory.process.size: 1600m
taskmanager.memory.task.off-heap.size: 256m
taskmanager.numberOfTaskSlots: 1
heartbeat.interval: 1000
heartbeat.timeout: 5000
io.tmp.dirs: {folder}/tmp
state.backend.type: {backend}
execution.checkpointing.interval: {interval} s
execution.checkpointing.dir: file://{folder}/checkpoints
execution.checkpointing.savepoint-dir: file://{folder}/savepoints
execution.checkpointing.externalized-checkpoint-retention: RETAIN_ON_CANCELLATION
restart-strategy.type: fixed-delay
restart-strategy.fixed-delay.attempts: 20
restart-strategy.fixed-delay.delay: 1 s
web.checkpoints.history: 1000
"""
            + "".join(f"{line}\n" for line in more)
        )
        (folder / "tmp").mkdir()
        self.manager = None
        self.workers = []
        self.start_manager()
        for _ in range(2):
            self.start_worker()
        self.wait(lambda: self.get("/overview")["slots-total"] == 2)

    def java(self, heap, main, *words):
        log = open(self.folder / "log.txt", "ab")
        options = [f"-Xmx{heap}", "-XX:MaxDirectMemorySize=512m", f"-Djava.io.tmpdir={self.folder}/tmp"]
        return subprocess.Popen(
            ["java", *OPENS, *options, "-cp", f"{LIB}/*", main, "--configDir", str(self.folder / "conf"), *words],
            stdout=log,
            stderr=log,
        )

    def start_manager(self):
        self.manager = self.java("768m", "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint")

    def start_worker(self):
        # What the launcher of a distribution works out from the configuration.
        sizes = subprocess.run(
            ["java", "-cp", f"{LIB}/*:{LIB}/../bin/bash-java-utils.jar", "org.apache.flink.runtime.util.bash.BashJavaUtils",
             "GET_TM_RESOURCE_PARAMS", "--configDir", str(self.folder / "conf")],
            capture_output=True, text=True, check=True,
        ).stdout
        lines = [line.removeprefix("BASH_JAVA_UTILS_EXEC_RESULT:") for line in sizes.splitlines()
                 if line.startswith("BASH_JAVA_UTILS_EXEC_RESULT:")]
        words = lines[1].split()
        self.workers.append(self.java(self.heap, "org.apache.flink.runtime.taskexecutor.TaskManagerRunner", *words))

    def get(self, path, data=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.rest}{path}",
            data=None if data is None else json.dumps(data).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def wait(self, condition):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                found = condition()
                if found:
                    return found
            except (urllib.error.URLError, ConnectionError, KeyError, TypeError, TimeoutError):
                pass
            time.sleep(0.2)
        raise TimeoutError(f"see {self.folder}/log.txt")

    def submit(self, words, parallelism, resume=None):
        command = ["java", *OPENS, "-cp", f"{LIB}/*", "org.apache.flink.client.cli.CliFrontend", "run", "--detached",
                   "--parallelism", str(parallelism), "--class", "HeavyJob"]
        if resume:
            command += ["--fromSavepoint", resume]
        said = subprocess.run(
            [*command, str(BUILT / "heavy.jar"), *words],
            env=os.environ | {"FLINK_CONF_DIR": str(self.folder / "conf")},
            capture_output=True, text=True,
        )
        if said.returncode:
            raise RuntimeError(said.stdout + said.stderr)
        return said.stdout.split("JobID ")[1].split()[0]

    def state(self, job):
        return self.get(f"/jobs/{job}")["state"]

    def finish(self, job):
        """Waits for the end: how long the job ran, in seconds, and its last checkpoint."""
        state = self.wait(lambda: (state := self.state(job)) in ("FINISHED", "FAILED", "CANCELED") and state)
        if state != "FINISHED":
            raise RuntimeError(f"{state}: see {self.folder}/log.txt")
        found = self.get(f"/jobs/{job}")
        return found["duration"] / 1000, self.get(f"/jobs/{job}/checkpoints")

    def completed(self, job):
        return self.get(f"/jobs/{job}/checkpoints")["counts"]["completed"]

    def stop(self, job):
        """Stops a job: the path of its savepoint."""
        trigger = self.get(f"/jobs/{job}/stop", {"drain": False})["request-id"]
        done = self.wait(
            lambda: (found := self.get(f"/jobs/{job}/savepoints/{trigger}"))["status"]["id"] == "COMPLETED" and found
        )
        return done["operation"]["location"]

    def end(self):
        for process in [self.manager, *self.workers]:
            if process.poll() is None:
                process.kill()
            process.wait()


def numbers(folder):
    """The numbers that a sink has written, sorted; each of them once for each time."""
    found = []
    for file in folder.glob("part-*"):
        found += map(int, file.read_text().split())
    return sorted(found)


def write_events(folder, events, keys):
    """The events as the job has them, in a file."""
    file = folder / "events.csv"
    with open(file, "wb") as out:
        subprocess.run(
            ["java", "-cp", f"{BUILT}/heavy.jar:{LIB}/*", "HeavyJob", "events", str(events), str(keys)],
            stdout=out, check=True,
        )
    return file


def exact(file):
    """The numbers of the events that the law of docs/late.md forwards. No event is later than the window, so the newest
    sighting of each key decides."""
    newest, found = {}, []
    with open(file) as lines:
        next(lines)
        for line in lines:
            number, key, at = line.split(",")
            at = int(at)
            before = newest.get(key)
            if before is None or at - before > WINDOW * 1000:
                found.append(int(number))
            if before is None or at > before:
                newest[key] = at
    return found


def program_run(file):
    """The numbers of the events that `lately dedup` forwards, and how long it took."""
    begin = time.monotonic()
    said = subprocess.run(
        [LATELY, "dedup", str(file), "--key", "key", "--time", "at", "--within", f"{WINDOW}s", "--lateness", "30s"],
        capture_output=True, text=True, check=True,
    )
    seconds = time.monotonic() - begin
    return [int(line.split(",")[0]) for line in said.stdout.splitlines()[1:]], seconds


def sizes(checkpoints):
    """The completed checkpoints: their bytes, and how long they took in milliseconds."""
    done = [one for one in checkpoints["history"] if one["status"] == "COMPLETED"]
    return [one["state_size"] for one in done], [one["end_to_end_duration"] for one in done]


def compare(events):
    keys = events // 4
    runs = [
        ("Flink's `ValueState` with a time to live, RocksDB", "ttl", "rocksdb"),
        ("lately, `hashmap`", "lately", "hashmap"),
        ("lately, RocksDB", "lately", "rocksdb"),
    ]
    with scratch() as folder:
        file = write_events(folder, events, keys)
        asked = exact(file)
        found, seconds = program_run(file)
        print(f"{events:,} events, {keys:,} keys, a window of {WINDOW} s.\n")
        print("| | time, s | largest checkpoint, MB | longest checkpoint, ms | forwarded | and the exact program |")
        print("|---|---:|---:|---:|---:|---|")
        print(f"| `lately dedup`, a file | {seconds:.1f} | | | {len(found):,} | {same(found, asked)} |", flush=True)
        for at, (name, kind, backend) in enumerate(runs):
            cluster = Cluster(folder / str(at), backend)
            try:
                out = cluster.folder / "out"
                job = cluster.submit([kind, str(events), str(keys), str(WINDOW), "0", str(out)], 2)
                seconds, checkpoints = cluster.finish(job)
            finally:
                cluster.end()
            found = numbers(out)
            bytes_, millis = sizes(checkpoints)
            print(f"| {name} | {seconds:.1f} | {max(bytes_) / 1e6:.1f} | {max(millis):,} "
                  f"| {len(found):,} | {same(found, asked)} |", flush=True)


def sizes_of_settings(events):
    keys = events // 4
    compressed, incremental = "execution.checkpointing.snapshot-compression: true", "execution.checkpointing.incremental: true"
    runs = [
        ("Flink's own, RocksDB", "ttl", "rocksdb", []),
        ("Flink's own, `hashmap`, compressed", "ttl", "hashmap", [compressed]),
        ("lately, `hashmap`", "lately", "hashmap", []),
        ("lately, `hashmap`, compressed", "lately", "hashmap", [compressed]),
        ("lately, 1 % of slack, `hashmap`, compressed", "rough", "hashmap", [compressed]),
        ("lately, RocksDB", "lately", "rocksdb", []),
        ("lately, RocksDB, incremental", "lately", "rocksdb", [incremental]),
    ]
    print(f"{events:,} events, {keys:,} keys, a window of {WINDOW} s.\n")
    print("| | refers to at most, MB | bits per key | writes: the first, MB | the median | the largest |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, kind, backend, more in runs:
        with scratch() as folder:
            cluster = Cluster(folder / "cluster", backend, heap="1500m", more=more)
            try:
                job = cluster.submit([kind, str(events), str(keys), str(WINDOW), "0"], 2)
                _, checkpoints = cluster.finish(job)
            finally:
                cluster.end()
        done = [one for one in checkpoints["history"] if one["status"] == "COMPLETED"]
        held = max(one["state_size"] for one in done)
        written = [one["checkpointed_size"] for one in done]
        print(f"| {name} | {held / 1e6:.1f} | {held * 8 / keys:.0f} | {written[-1] / 1e6:.1f} "
              f"| {statistics.median(written) / 1e6:.1f} | {max(written) / 1e6:.1f} |", flush=True)


def disturb(events):
    keys = events // 4
    with scratch() as folder:
        file = write_events(folder, events, keys)
        asked = exact(file)
        print(f"{events:,} events, {keys:,} keys, a window of {WINDOW} s:\n", flush=True)
        found = disturbed_run(folder / "cluster", events, keys)
        print(f"\n{len(found):,} events forwarded; and the exact program: {same(found, asked)}.")
        print(f"`lately dedup` and the exact program: {same(program_run(file)[0], asked)}.")


def disturbed_run(folder, events, keys):
    """A run through kill -9 of a task manager, 2 → 1 → 2 slots by savepoints, and kill -9 of the job manager: what was
    forwarded."""
    begin = time.monotonic()

    def step(text):
        print(f"- after {time.monotonic() - begin:.0f} s: {text}", flush=True)

    cluster = Cluster(folder, "hashmap")
    words = ["lately", str(events), str(keys), str(WINDOW), str(events / 90), str(folder / "out")]
    try:
        job = cluster.submit(words, 2)
        cluster.wait(lambda: cluster.completed(job) >= 2)
        victim = cluster.workers.pop(0)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        before = cluster.completed(job)
        step(f"a task manager is killed (`kill -9`) after {before} checkpoints, another one started")
        cluster.start_worker()
        cluster.wait(lambda: cluster.completed(job) > before + 1)
        restored = cluster.get(f"/jobs/{job}/checkpoints")["counts"]["restored"]
        step(f"the job runs again, restored {restored} times")
        for parallelism in (1, 2):
            savepoint = cluster.stop(job)
            cluster.wait(lambda job=job: cluster.state(job) == "FINISHED")
            job = cluster.submit(words, parallelism, savepoint)
            cluster.wait(lambda job=job: cluster.completed(job) >= 1)
            step(f"stopped with a savepoint, and resumed from it with {parallelism} slot{'s' * (parallelism > 1)}")
        cluster.manager.send_signal(signal.SIGKILL)
        cluster.manager.wait()
        kept = list((folder / "checkpoints" / job).glob("chk-*/_metadata"))
        newest = max(kept, key=lambda path: int(path.parent.name.removeprefix("chk-"))).parent
        cluster.start_manager()
        cluster.wait(lambda: cluster.get("/overview")["slots-available"] == 2)
        job = cluster.submit(words, 2, str(newest))
        step(f"the job manager is killed (`kill -9`); another one resumes from its last checkpoint, {newest.name}")
        cluster.finish(job)
        step("the job has ended")
    finally:
        cluster.end()
    return numbers(folder / "out")


def grow(counts):
    print("| distinct keys | time, s | keys per second | checkpoint, MB | bytes per key | longest checkpoint, s "
          "| forwarded |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for keys in counts:
        with scratch() as folder:
            cluster = Cluster(folder / "cluster", "rocksdb", heap="1500m", interval=max(2, keys // 5_000_000))
            try:
                # One per millisecond, and all within the window.
                job = cluster.submit(["lately", str(keys), "0", str(keys // 500), "0"], 2)
                seconds, checkpoints = cluster.finish(job)
                found = cluster.get(f"/jobs/{job}/accumulators")["user-task-accumulators"]
            finally:
                cluster.end()
        forwarded = sum(int(one["value"]) for one in found if one["name"] == "forwarded")
        bytes_, millis = sizes(checkpoints)
        print(f"| {keys:,} | {seconds:.1f} | {keys / seconds:,.0f} | {max(bytes_) / 1e6:.1f} | {max(bytes_) / keys:.2f} "
              f"| {max(millis) / 1e3:.2f} | {forwarded:,} |", flush=True)


def same(found, asked):
    if found == asked:
        return "the same"
    missing, more = set(asked) - set(found), set(found) - set(asked)
    return f"{len(missing)} missing, {len(more)} more, {len(found) - len(set(found))} repeated"


@contextlib.contextmanager
def scratch():
    """A folder that is removed; the log of a cluster that failed is printed before."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        try:
            yield folder
        except Exception:
            for log in folder.glob("*/log.txt"):
                print(log.read_text(errors="replace")[-10_000:], file=sys.stderr)
            raise


def build():
    classes = BUILT / "heavy-classes"
    shutil.rmtree(classes, ignore_errors=True)
    # The operator is in the jar of the job, as users have it.
    shutil.copytree(BUILT / "classes", classes)
    subprocess.run(
        ["javac", "--release", "17", "-d", str(classes), "-cp", f"{classes}:{LIB}/*",
         str(ROOT / "bindings/flink/bench/HeavyJob.java")],
        check=True,
    )
    subprocess.run(["jar", "--create", "--file", str(BUILT / "heavy.jar"), "-C", str(classes), "."], check=True)


def main():
    what, *numbers = sys.argv[1:] or ["--help"]
    numbers = [int(one) for one in numbers]
    if what not in ("compare", "sizes", "disturb", "grow") or what == "grow" and not numbers:
        sys.exit(__doc__)
    build()
    if what == "grow":
        grow(numbers)
    else:
        {"compare": compare, "sizes": sizes_of_settings, "disturb": disturb}[what](numbers[0] if numbers else 4_000_000)


if __name__ == "__main__":
    main()

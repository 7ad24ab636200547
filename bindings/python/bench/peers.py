"""Lately and what else Python has to ask "have I seen this?": ns per key and bytes per key, all in one run.

    pip install . rbloom pybloom-live pyprobables cachetools redis pyarrow
    python bench/peers.py > ../../docs/results/python.md      # redis-server is started if it is there

Each measurement is the best of several repetitions on a structure of its own, with keys that are new to it and
then with the same keys again. Bytes per key are what a process of its own has more with a million keys than before.
"""

from __future__ import annotations

import gc
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

KEYS = 100_000
MANY = 1_000_000
REPEAT = 5
WINDOW = 3600.0
# A window of as many records as there are keys.
ALL = object()


@dataclass
class Peer:
    """Something that is asked key by key, or by arrays."""

    name: str
    package: str
    window: bool
    make: Callable[[int], Callable[[Iterable[Any]], Any]]
    arrays: bool = False
    fpr: str = "1e-6"
    # The same for fewer keys, where many take minutes.
    slow: bool = False


def planned(count: int, terms: dict[str, Any]) -> dict[str, Any]:
    """The terms of a filter for so many keys, of which a window of records takes all."""
    if terms.get("last") is ALL:
        terms = {**terms, "last": count}
    return {"expect": count, **terms}


def lately_scalar(**terms: Any) -> Callable[[int], Callable[[Iterable[Any]], Any]]:
    def make(count: int) -> Callable[[Iterable[Any]], Any]:
        import lately

        observe = lately.Filter(**planned(count, terms)).observe

        def run(keys: Iterable[Any]) -> None:
            for key in keys:
                observe(key)

        return run

    return make


def lately_array(**terms: Any) -> Callable[[int], Callable[[Iterable[Any]], Any]]:
    def make(count: int) -> Callable[[Iterable[Any]], Any]:
        import lately

        return lately.Filter(**planned(count, terms)).observe_many

    return make


def rbloom(count: int) -> Callable[[Iterable[Any]], Any]:
    import rbloom

    bloom = rbloom.Bloom(count, 1e-6)

    def run(keys: Iterable[Any]) -> None:
        add = bloom.add
        for key in keys:
            if key not in bloom:
                add(key)

    return run


def rbloom_update(count: int) -> Callable[[Iterable[Any]], Any]:
    import rbloom

    return rbloom.Bloom(count, 1e-6).update


def pybloom(count: int) -> Callable[[Iterable[Any]], Any]:
    import pybloom_live

    add = pybloom_live.BloomFilter(count, 1e-6).add

    def run(keys: Iterable[Any]) -> None:
        for key in keys:
            add(key)

    return run


def pyprobables(count: int) -> Callable[[Iterable[Any]], Any]:
    import probables

    bloom = probables.BloomFilter(count, 1e-6)

    def run(keys: Iterable[Any]) -> None:
        for key in keys:
            if not bloom.check(key):
                bloom.add(key)

    return run


def ttl_cache(count: int) -> Callable[[Iterable[Any]], Any]:
    import cachetools

    cache = cachetools.TTLCache(maxsize=count, ttl=WINDOW)

    def run(keys: Iterable[Any]) -> None:
        for key in keys:
            if key not in cache:
                cache[key] = None

    return run


def dict_of_times(count: int) -> Callable[[Iterable[Any]], Any]:
    seen: dict[Any, float] = {}

    def run(keys: Iterable[Any]) -> None:
        now = time.monotonic
        for key in keys:
            at = now()
            last = seen.get(key)
            seen[key] = at
            # What has expired is swept out once a window; not within this run.
            _ = last is not None and at - last <= WINDOW

    return run


def plain_set(count: int) -> Callable[[Iterable[Any]], Any]:
    seen: set[Any] = set()

    def run(keys: Iterable[Any]) -> None:
        for key in keys:
            if key not in seen:
                seen.add(key)

    return run


def redis_set(count: int) -> Callable[[Iterable[Any]], Any]:
    client = redis_client()

    def run(keys: Iterable[Any]) -> None:
        for key in keys:
            client.set(key, "", nx=True, ex=3600)

    return run


def redis_pipeline(count: int) -> Callable[[Iterable[Any]], Any]:
    client = redis_client()

    def run(keys: Iterable[Any]) -> None:
        keys = list(keys)
        for begin in range(0, len(keys), 1000):
            pipeline = client.pipeline(transaction=False)
            for key in keys[begin : begin + 1000]:
                pipeline.set(key, "", nx=True, ex=3600)
            pipeline.execute()

    return run


SOCKET = os.path.join(tempfile.gettempdir(), f"lately-peers-{os.getpid()}.sock")


def redis_client() -> Any:
    import redis

    client = redis.Redis(unix_socket_path=os.environ.get("LATELY_PEERS_SOCKET", SOCKET))
    client.flushall()
    return client


PEERS = [
    Peer("`lately.Filter(within=…)`", "lately", True, lately_scalar(within="1h")),
    Peer("`lately.Filter(last=…)`", "lately", True, lately_scalar(last=ALL)),
    Peer("`lately.Filter()`", "lately", False, lately_scalar()),
    Peer("`rbloom.Bloom`", "rbloom", False, rbloom),
    Peer("`pybloom_live.BloomFilter`", "pybloom-live", False, pybloom),
    Peer("`probables.BloomFilter`", "pyprobables", False, pyprobables, slow=True),
    Peer("`set`", "", False, plain_set, fpr="0"),
    Peer("`dict` of times", "", True, dict_of_times, fpr="0"),
    Peer("`cachetools.TTLCache`", "cachetools", True, ttl_cache, fpr="0"),
    Peer("`redis`, `SET NX EX`", "redis", True, redis_set, fpr="0", slow=True),
    Peer("`lately`, `observe_many`, `within`", "lately", True, lately_array(within="1h"), arrays=True),
    Peer("`lately`, the same, records in order", "lately", True, lately_array(within="1h", lateness="0s"), arrays=True),
    Peer("`lately`, `observe_many`, `last`", "lately", True, lately_array(last=ALL), arrays=True),
    Peer("`lately`, `observe_many`, for ever", "lately", False, lately_array(), arrays=True),
    Peer("`rbloom.Bloom.update` (of a list, no answers)", "rbloom", False, rbloom_update, arrays=True),
    Peer("`redis`, pipelines of 1000", "redis", True, redis_pipeline, arrays=True, fpr="0", slow=True),
]


def best(peer: Peer, keys: Any) -> tuple[float, float]:
    """ns per key, for keys that are new and for known ones."""
    count = len(keys)
    repeat = 2 if peer.slow else REPEAT
    new, known = [], []
    for _ in range(repeat):
        run = peer.make(count)
        gc.collect()
        for times in [new, known]:
            begin = time.perf_counter()
            run(keys)
            times.append((time.perf_counter() - begin) / count * 1e9)
    return min(new), min(known)


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def bytes_per_key(name: str) -> float:
    """In a process of its own: what is resident with a million keys, less what was before; keys made one by one."""
    done = subprocess.run(
        [sys.executable, __file__, "--bytes", name],
        capture_output=True, text=True, check=True, env={**os.environ, "LATELY_PEERS_SOCKET": SOCKET},
    )
    return float(done.stdout)


def measure_bytes(name: str) -> None:
    peer = next(peer for peer in PEERS if peer.name == name)
    if peer.package == "redis":
        client = redis_client()
        before = client.info("memory")["used_memory"]
        peer.make(MANY)(text(key) for key in range(MANY // 10))
        print((client.info("memory")["used_memory"] - before) / (MANY // 10))
        return
    warm = peer.make(10)
    warm(["x"])
    gc.collect()
    before = resident()
    many = MANY // 20 if peer.slow else MANY
    run = peer.make(many)
    for begin in range(0, many, 1000):
        part = [text(key) for key in range(begin, begin + 1000)]
        run(np.array(part) if peer.arrays and peer.package == "lately" else part)
    gc.collect()
    print((resident() - before) / many)


def text(key: int) -> str:
    """A key of 24 bytes, as tags have."""
    return f"3034257BF7194E40{key:08X}"


def main() -> None:
    if sys.argv[1:2] == ["--bytes"]:
        return measure_bytes(sys.argv[2])
    server = None
    peers = PEERS
    if shutil.which("redis-server"):
        server = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", SOCKET, "--save", "", "--appendonly", "no"],
            stdout=subprocess.DEVNULL,
        )
        while not os.path.exists(SOCKET):
            time.sleep(0.05)
    else:
        peers = [peer for peer in PEERS if peer.package != "redis"]
    try:
        report(peers)
    finally:
        if server:
            server.terminate()


def report(peers: list[Peer]) -> None:
    import pyarrow as pa

    texts = [text(int(key)) for key in np.random.default_rng(1).permutation(KEYS)]
    inputs = {"list": texts, "arrow": pa.array(texts), "numpy": np.random.default_rng(2).permutation(KEYS) + 10**9}
    rows = []
    for peer in peers:
        if peer.arrays and peer.package == "lately":
            new, known = best(peer, inputs["numpy"])
            rows.append((peer, "int64 of NumPy", new, known))
            new, known = best(peer, inputs["arrow"])
            rows.append((peer, "str of Arrow", new, known))
        else:
            few = inputs["list"][: KEYS // 10] if peer.slow else inputs["list"]
            rows.append((peer, "str", *best(peer, few)))
    sizes = {peer.name: bytes_per_key(peer.name) for peer in peers}
    page(rows, sizes)


def page(rows: list[Any], sizes: dict[str, float]) -> None:
    names = sorted({peer.package for peer, *_ in rows if peer.package})
    print("# Python: how fast, and how much memory\n")
    print(
        f"`bindings/python/bench/peers.py`, one run on one machine: {os.cpu_count()} cores, {platform.machine()}, "
        f"Python {platform.python_version()}; " + ", ".join(f"{name} {version(name)}" for name in names) + ".\n"
    )
    print(
        f"{KEYS:,} distinct keys of 24 characters (or whole numbers of 10 digits), in random order: first all new, then all "
        "again. ns per key, the best of several repetitions; filters are planned for that many keys at one mistake in a "
        f"million, where they make any. Bytes per key: what a process has more with {MANY:,} keys.\n"
    )
    print("| | forgets after a time or a number | mistakes | keys | new, ns | known, ns | bytes per key |")
    print("|---|---|---:|---|---:|---:|---:|")
    for peer, kind, new, known in rows:
        window = "yes" if peer.window else "no"
        print(f"| {peer.name} | {window} | {peer.fpr} | {kind} | {new:,.1f} | {known:,.1f} | {sizes[peer.name]:,.1f} |")
    windows = [(peer, max(new, known)) for peer, _, new, known in rows if peer.window]
    fastest = min((time, peer.name) for peer, time in windows if peer.package != "lately")
    ours = min(time for peer, time in windows if peer.package == "lately" and peer.arrays)
    print(
        f"\nThe fastest other one with a window is {fastest[1]}: {fastest[0]:,.0f} ns per key, {fastest[0] / ours:.1f} times "
        f"as long as the fastest array of Lately with one ({ours:.1f} ns, {1e3 / ours:.0f} million keys per second)."
    )


if __name__ == "__main__":
    main()

"""What the tests share: the program, an exact judge, and a stream of events."""

import os
import pathlib
import random
import subprocess

import lately
import pytest

ROOT = pathlib.Path(__file__).parents[3]
SECOND = 1_000_000_000
NOON = 1_700_000_000 * SECOND


@pytest.fixture(autouse=True)
def _names(doctest_namespace):
    doctest_namespace["lately"] = lately


@pytest.fixture(scope="session")
def program():
    """Runs the program `lately`, which `./test` has built."""
    path = os.environ.get("LATELY_PROGRAM")
    if not path:
        pytest.skip("LATELY_PROGRAM does not name the program `lately`")

    def run(*arguments, stdin=""):
        done = subprocess.run(
            [path, *map(str, arguments)], input=stdin, capture_output=True, text=True, timeout=120
        )
        return done

    return run


class Exact:
    """The law of event time for a window, key by key: a record that is not late is a duplicate if an
    earlier one of its key lies within the window of it, before or after."""

    def __init__(self, window, lateness=None):
        self.window = window
        self.lateness = window if lateness is None else lateness
        self.now = None
        self.seen = {}

    def classify(self, key, time):
        if self.now is not None and self.now - time > self.lateness:
            return "late"
        self.now = time if self.now is None else max(self.now, time)
        times = self.seen.setdefault(key, [])
        found = any(abs(other - time) <= self.window for other in times)
        times.append(time)
        return "duplicate" if found else "fresh"


def events(count, seed, keys=500, step=SECOND // 10, disorder=5 * SECOND):
    """Keys and times, out of order by less than `disorder`."""
    chance = random.Random(seed)
    now = NOON
    for _ in range(count):
        now += chance.randrange(2 * step)
        yield chance.randrange(keys), now - chance.randrange(disorder)

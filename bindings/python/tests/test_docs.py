"""The examples of the documentation are run, and the stubs are those of the module."""

import doctest
import os
import pathlib
import subprocess
import sys

import lately
import lately.arrow
import lately.pandas
import lately.polars
import pytest

FOLDER = pathlib.Path(__file__).parents[1]


def docstrings():
    for module in [lately, lately.arrow, lately.pandas, lately.polars, lately._dedup]:
        yield module.__name__, module.__doc__
        for name, thing in vars(module).items():
            own = getattr(thing, "__module__", None) == module.__name__
            if own and not name.startswith("_") or module is lately and name in lately.__all__:
                yield f"{module.__name__}.{name}", getattr(thing, "__doc__", None)
                if isinstance(thing, type):
                    for inner, member in vars(thing).items():
                        yield f"{name}.{inner}", getattr(member, "__doc__", None)


EXAMPLES = {name: text for name, text in docstrings() if text and ">>>" in text}


def test_the_api_has_examples():
    shown = {name.split(".")[-1] for name in EXAMPLES}
    assert {"Filter", "Index", "dedup", "dedup_file", "plan", "observe_many", "merge", "open"} <= shown
    for kind in [lately.Filter, lately.Index]:
        for name, member in vars(kind).items():
            assert name.startswith("_") or member.__doc__, name


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    found = doctest.DocTestParser().get_doctest(EXAMPLES[name], {"lately": lately}, name, None, None)
    said = []
    result = doctest.DocTestRunner(optionflags=flags).run(found, out=said.append)
    assert result.failed == 0, "".join(said)
    assert result.attempted > 0


def test_the_notebook_runs(tmp_path):
    script = FOLDER / "examples" / "notebook.py"
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "MPLBACKEND": "agg"}, timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "plan.png").stat().st_size > 10_000
    # Every result that a comment of it states is printed.
    shown = [line[3:] for line in script.read_text().splitlines() if line.startswith("#> ")]
    assert len(shown) >= 5
    for line in shown:
        assert line in done.stdout, f"{line!r} is not in:\n{done.stdout}"


def test_the_readme_runs(tmp_path):
    """Its blocks of Python, in order, in one folder, which has the examples of the repository."""
    text = (FOLDER / "README.md").read_text()
    blocks = [part.split("```")[0] for part in text.split("```python\n")[1:]]
    assert len(blocks) >= 3
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples/rfid.csv").write_bytes((FOLDER.parents[1] / "examples/rfid.csv").read_bytes())
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "MPLBACKEND": "agg"}, timeout=300,
    )
    assert done.returncode == 0, done.stderr


def test_the_types_hold():
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", FOLDER / "python" / "lately", FOLDER / "tests" / "typed.py"],
        cwd=FOLDER, capture_output=True, text=True, timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stubs_are_those_of_the_module(tmp_path):
    allowed = tmp_path / "allowed"
    # Terms are keywords that the stub names and the module takes as `**terms`.
    allowed.write_text("lately._lately.dedup_file\nlately._lately.Index.__new__\nlately._lately.__all__\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "lately._lately", "--allowlist", allowed, "--ignore-unused-allowlist"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr

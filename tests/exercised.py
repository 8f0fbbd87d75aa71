"""Record what a test run exercises, and compare two runs.

Record the lines and branches of `src/` that a run reaches, in subprocesses too, and the combinations of law,
measure (or record), cloud and dtype that the laws check. What follows FOLDER goes to pytest:

    python -m tests.exercised record FOLDER -n 2 -m "nightly or not nightly"

Compare a run before a change of the suite with one or several after it, whose union counts:

    python -m tests.exercised compare BEFORE AFTER [AFTER ...]

The comparison prints every line, branch and combination that only the first run exercised, and fails if
there are any. To record an older commit, check it out elsewhere, copy this file into its `tests/` and set
PYTHONPATH to its `src`.
"""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from hypothesis import currently_in_test_context

LAWS = {
    "tests.laws.law_measures": (
        "agrees_with_definition", "within_bounds", "merged_as_whole", "invariant_as_declared",
        "any_dtype", "leaves_out_not_finite",
    ),
    "tests.laws.law_stats": ("associative", "commutative", "empty", "one_row", "batching"),
}  # fmt: skip
"""The checkers that take a measure (or the fold of a record) and a cloud."""

COVERAGE = """
[run]
source = {root}/src/isoscope
data_file = {folder}/.coverage
branch = True
parallel = True
sigterm = True
patch = subprocess, fork, _exit
"""

_combinations: set[str] = set()


def record(folder: Path, words: list[str]) -> int:
    """Run pytest with coverage and this plugin; write both records into a folder, and give the exit code."""
    folder.mkdir(parents=True)
    config = folder / "coveragerc"
    config.write_text(COVERAGE.format(root=Path.cwd(), folder=folder))
    coverage = [sys.executable, "-m", "coverage"]
    plugin = ["-p", "tests.exercised", f"--exercised={folder}"]
    ended = subprocess.run(
        [*coverage, "run", f"--rcfile={config}", "-m", "pytest", *plugin, *words]
    ).returncode
    subprocess.run([*coverage, "combine", f"--rcfile={config}"], check=True, stdout=subprocess.DEVNULL)
    return ended


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--exercised", metavar="FOLDER", help="write what the laws see into this folder")


def pytest_configure(config: Any) -> None:
    """Wrap the checkers before any test module imports them."""
    for name, laws in LAWS.items():
        module = import_module(name)
        wrapped = {law: _recording(getattr(module, law)) for law in laws}
        for law, checker in wrapped.items():
            setattr(module, law, checker)
        if hasattr(module, "LAWS"):
            module.LAWS = tuple(wrapped[law.__name__] for law in module.LAWS)


def pytest_sessionfinish(session: Any) -> None:
    folder = session.config.getoption("--exercised")
    if folder and _combinations:
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        path = Path(folder) / f"combinations-{worker}-{os.getpid()}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(sorted(_combinations)))


def _recording(check: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    @functools.wraps(check)
    def recorded(subject: Any, cloud: Any) -> None:
        check(subject, cloud)
        _combinations.add(" ".join((check.__name__, _name(subject), _digest(cloud), str(cloud.points.dtype))))

    return recorded


def _name(subject: Any) -> str:
    """A measure's name, or the code that folds a record."""
    if hasattr(subject, "name"):
        return str(subject.name)
    code = getattr(subject, "__code__", None)
    return str(code.co_consts) if subject.__name__ == "<lambda>" else str(subject.__qualname__)


def _digest(cloud: Any) -> str:
    """A name for a cloud, from its numbers. All clouds that hypothesis draws share one name."""
    if currently_in_test_context():
        return "drawn"
    made = hashlib.sha256(repr(tuple(cloud.points.shape)).encode())
    for part in (cloud.points.double(), cloud.sequence, cloud.key):
        made.update(b"" if part is None else part.contiguous().numpy().tobytes())
    return made.hexdigest()[:12]


def combinations(folder: Path) -> set[str]:
    """What the plugin wrote into a folder."""
    return {line for file in folder.glob("combinations-*.txt") for line in file.read_text().splitlines()}


def reached(folder: Path) -> tuple[set[str], set[str]]:
    """Lines and branches of the source that a run reached, each as "file:line" or "file:from->to"."""
    from coverage import CoverageData

    data = CoverageData(str(folder / ".coverage"))
    data.read()
    lines, branches = set(), set()
    for file in data.measured_files():
        name = file.split("src/isoscope/")[-1]
        lines |= {f"{name}:{line}" for line in data.lines(file) or ()}
        branches |= {f"{name}:{start}->{end}" for start, end in data.arcs(file) or ()}
    return lines, branches


def _lost(what: str, before: set[str], after: set[str]) -> int:
    lost = sorted(before - after)
    kept = 1 - len(lost) / max(1, len(before))
    print(f"{what}: {len(before)} before, {len(after)} after, {len(lost)} lost ({kept:.2%} kept)")
    for each in lost:
        print("  ", each)
    return len(lost)


def compare(before: Path, after: Iterable[Path]) -> int:
    """Print what only `before` exercised; give how many that are."""
    folders = list(after)
    (lines, branches), later = reached(before), [reached(folder) for folder in folders]
    return (
        _lost("lines", lines, set().union(*(lines for lines, _ in later)))
        + _lost("branches", branches, set().union(*(branches for _, branches in later)))
        + _lost("combinations", combinations(before), set().union(*map(combinations, folders)))
    )


if __name__ == "__main__":
    verb, first, *rest = sys.argv[1:]
    folder = Path(first).absolute()
    sys.exit(record(folder, rest) if verb == "record" else compare(folder, map(Path, rest)) > 0)

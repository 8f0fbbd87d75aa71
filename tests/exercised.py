"""Record what a test run exercises, and compare two runs.

Record the lines and branches of `src/` that a run reaches, in subprocesses too, and the combinations of law,
measure (or record), cloud and dtype that the laws check. What follows FOLDER goes to pytest:

    python -m tests.exercised record FOLDER -n 2 -m "nightly or not nightly"

Compare a run before a change of the suite with one or several after it, whose union counts:

    python -m tests.exercised compare BEFORE AFTER [AFTER ...]

The comparison prints every line, branch and combination that only the first run exercised, and fails if
there are any. Files that moved between the two commits are compared line by line with what they became; lines
that were changed or deleted in between are left out and counted. To record an older commit, check it out
elsewhere, copy this file into its `tests/` and set PYTHONPATH to its `src`.
"""

from __future__ import annotations

import difflib
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

Line = tuple[str, int]
Branch = tuple[str, int, int]

_combinations: set[str] = set()


def record(folder: Path, words: list[str]) -> int:
    """Run pytest with coverage and this plugin; write both records into a folder, and give the exit code."""
    folder.mkdir(parents=True)
    (folder / "commit").write_text(_git("rev-parse", "HEAD").strip())
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


def reached(folder: Path) -> tuple[set[Line], set[Branch]]:
    """Lines and branches of the source that a run reached, by file."""
    from coverage import CoverageData

    data = CoverageData(str(folder / ".coverage"))
    data.read()
    lines: set[Line] = set()
    branches: set[Branch] = set()
    for file in data.measured_files():
        name = file.split("src/isoscope/")[-1]
        lines |= {(name, line) for line in data.lines(file) or ()}
        branches |= {(name, start, end) for start, end in data.arcs(file) or ()}
    return lines, branches


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def kept_lines(before: str, after: str) -> dict[Line, Line]:
    """Where every unchanged line of one commit stands in another, through renames of its file."""
    found: dict[Line, Line] = {}
    root = "src/isoscope/"
    names = _git("ls-tree", "-r", "--name-only", before, root).split()
    renamed = {name: name for name in names if name.endswith(".py")}
    told = _git("diff", "-M30%", "-l0", "--name-status", before, after, "--", root).splitlines()
    renamed |= {parts[1]: parts[2] for line in told if len(parts := line.split("\t")) == 3}
    there = set(_git("ls-tree", "-r", "--name-only", after, root).split())
    for old, new in renamed.items():
        if new not in there or not old.endswith(".py"):
            continue
        texts = [_git("show", f"{at}:{file}").splitlines() for at, file in ((before, old), (after, new))]
        for block in difflib.SequenceMatcher(None, *texts, autojunk=False).get_matching_blocks():
            for i in range(1, block.size + 1):
                place = old.removeprefix(root), block.a + i
                found[place] = new.removeprefix(root), block.b + i
    return found


def possible(commit: str, file: str) -> set[Branch]:
    """All branches that the code of a file has in a commit."""
    from coverage.parser import PythonParser

    parser = PythonParser(text=_git("show", f"{commit}:src/isoscope/{file}"))
    parser.parse_source()
    return {(file, start, end) for start, end in parser.arcs()}


def _as_after(
    lines: set[Line], branches: set[Branch], moved: dict[Line, Line], after: str
) -> tuple[set[Line], set[Branch]]:
    """Lines and branches with the places that they have in the later commit; changed ones are left out."""
    there = {moved[line] for line in lines if line in moved}
    arcs: set[Branch] = set()
    for file, start, end in branches:
        # a negative end is the entry of a function or its exit, by the function's first line
        first, last = (moved.get((file, abs(at))) for at in (start, end))
        if first and last and first[0] == last[0]:
            arcs.add((first[0], first[1] if start > 0 else -first[1], last[1] if end > 0 else -last[1]))
    known = set().union(*(possible(after, file) for file in {file for file, *_ in arcs}))
    return there, arcs & known


def _lost(what: str, before: set[Any], after: set[Any], left_out: int = 0) -> int:
    lost = sorted(before - after)
    kept = 1 - len(lost) / max(1, len(before))
    print(f"{what}: {len(before)} before, {len(after)} after, {len(lost)} lost ({kept:.2%} kept)", end="")
    print(f"; {left_out} were changed or deleted in between" if left_out else "")
    for each in lost:
        print("  ", *(each if isinstance(each, tuple) else (each,)))
    return len(lost)


def compare(before: Path, after: Iterable[Path]) -> int:
    """Print what only `before` exercised; give how many that are."""
    folders = list(after)
    commits = [(folder / "commit").read_text() for folder in (before, *folders)]
    assert len(set(commits[1:])) == 1, "the later runs are of different commits"
    (lines, branches), later = reached(before), [reached(folder) for folder in folders]
    there, arcs = _as_after(lines, branches, kept_lines(*commits[:2]), commits[1])
    return (
        _lost("lines", there, set().union(*(lines for lines, _ in later)), len(lines) - len(there))
        + _lost("branches", arcs, set().union(*(each for _, each in later)), len(branches) - len(arcs))
        + _lost("combinations", combinations(before), set().union(*map(combinations, folders)))
    )


if __name__ == "__main__":
    verb, first, *rest = sys.argv[1:]
    folder = Path(first).absolute()
    sys.exit(record(folder, rest) if verb == "record" else compare(folder, map(Path, rest)) > 0)

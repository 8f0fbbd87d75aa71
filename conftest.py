"""Hooks of every test run: signals, what is collected, and one line for each reason to skip."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any

LONGEST = (
    "tests/test_docs.py", "tests/test_types.py", "tests/show/", "tests/cli/", "tests/sweeps/",
)  # fmt: skip
"""The paths that take longest. They run first, so that both processes finish at about the same time."""


def pytest_configure() -> None:
    """Restore the Ctrl-C handler: jobs that a shell starts in the background ignore Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Ignore files with neither tests nor doctests: collecting one would import it for nothing."""
    if collection_path.suffix != ".py" or collection_path.name.startswith("test_"):
        return None
    return None if ">>>" in collection_path.read_text(encoding="utf-8") else True


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Put the tests of `LONGEST` first; the rest stay as they are."""
    items.sort(
        key=lambda item: next(
            (at for at, of in enumerate(LONGEST) if item.nodeid.startswith(of)), len(LONGEST)
        )
    )


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print one line for each reason to skip, with the number of tests it applies to."""
    skipped = terminalreporter.getreports("skipped")
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped)
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"skipped {count}: {reason}")

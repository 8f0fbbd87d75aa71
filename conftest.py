"""Hooks of every test run: signals, what is collected, and one line for each reason to skip."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any

LONGEST = (
    "tests/test_docs.py", "tests/test_types.py", "tests/report/", "tests/cli/", "tests/run/sweep/",
)  # fmt: skip
"""What takes longest comes first, so that no process is left alone with it at the end."""


def pytest_configure() -> None:
    """Take Ctrl-C even where a shell started the tests in the background, which makes children ignore it."""
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

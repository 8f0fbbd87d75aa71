"""Write `tests/durations.md`: how long each tier of the tests takes, and its 20 slowest tests.

The targets of the Makefile leave a JUnit file per tier in `build/tests`; run `python -m tests.durations`
after `make quick`, `make test` and `make nightly`.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent
TIERS = ("quick", "test", "nightly")
SLOWEST = 20


def table(tier: str) -> str:
    """One tier as a section: wall-clock time, number of tests, the slowest with their seconds."""
    suite = ElementTree.parse(ROOT / "build" / "tests" / f"{tier}.xml").getroot()[0]
    cases = sorted(suite.iter("testcase"), key=lambda case: -float(case.attrib["time"]))
    skipped = int(suite.attrib["skipped"])
    seconds = float(suite.attrib["time"])
    lines = [
        f"## make {tier}",
        "",
        f"{len(cases) - skipped:,} tests in {seconds:.0f} s ({seconds / 60:.1f} min); {skipped} skipped.",
        "",
        "| seconds | test |",
        "|---:|---|",
    ]
    for case in cases[:SLOWEST]:
        file = case.attrib["classname"].replace(".", "/").removeprefix("tests/")
        lines.append(f"| {float(case.attrib['time']):.1f} | `{file}` {case.attrib['name']} |")
    return "\n".join(lines)


def page() -> str:
    """The whole file."""
    opening = (
        "# How long the tests take\n\nTwo cores, two processes, nothing else running. A test's time includes "
        "the fixtures it is the first to use. `python -m tests.durations` writes this file."
    )
    return "\n\n".join([opening, *map(table, TIERS)]) + "\n"


if __name__ == "__main__":
    (ROOT / "tests" / "durations.md").write_text(page(), encoding="utf-8")

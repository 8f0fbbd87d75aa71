"""How much longer `isoscope --help` takes than starting Python."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path


def seconds(*command: str) -> float:
    """The best of five runs."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    bare = seconds(sys.executable, "-c", "pass")
    shown = seconds(str(Path(sys.executable).with_name("isoscope")), "--help")
    print(
        f"isoscope --help   {shown:.2f} s, bare Python {bare:.2f} s: {shown - bare:.2f} s more (at most .4)"
    )


if __name__ == "__main__":
    main()

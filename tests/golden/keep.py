"""Keep a small run of every kind and what is shown of it: `python -m tests.golden.keep [KIND ...]`.

Each kind has a folder in `tests/golden/kept`. Its `run.zip` is the run folder as isoscope wrote it before the
upper floors were rebuilt (schema 1) and stays as it is. The other files hold what the page, the terminal and
the figures for print show of it; keep them again only for an intended difference, and list that difference
in the changelog. `--runs` makes the runs anew, too.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from isoscope.results.store import RunFolder, read_run
from tests.golden import runs, shown

KEPT = Path(__file__).parent / "kept"
MACHINE = KEPT / "machine.json"
_PARTS = ("run.json", "rows/*.parquet", "points/*.parquet")


def machine() -> dict[str, str]:
    """What decides the last bits of a number: the processor, what torch makes of it, and its version."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
    }


def unpacked(kind: str) -> RunFolder:
    """The run that was kept of a kind, unpacked into `kept/KIND` of the working directory."""
    folder = Path("kept") / kind
    with zipfile.ZipFile(KEPT / kind / "run.zip") as archive:
        archive.extractall(folder)
    return read_run(folder)


def seen(folder: RunFolder) -> dict[str, str]:
    """What the page and the terminal show of a run, by the name of the file that keeps it."""
    lines, figures = shown.page(folder)
    screen = runs.call("report", str(folder.path))
    return {"page.txt": _lines(lines), "figures.json": entries(figures), "screen.txt": _lines(screen)}


def printed(folder: RunFolder) -> str:
    """What the figures for print show."""
    return entries([{"figure": name, **one} for name, one in shown.printed(folder).items()])


def entries(values: Iterable[Any]) -> str:
    """Values as JSON, one per line, so that a difference is seen in its line."""
    return "[\n" + ",\n".join(json.dumps(value, ensure_ascii=False) for value in values) + "\n]\n"


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _pack(kind: str) -> None:
    folder = Path("runs") / kind
    (KEPT / kind).mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(KEPT / kind / "run.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(file for part in _PARTS for file in folder.glob(part)):
            archive.writestr(zipfile.ZipInfo(str(file.relative_to(folder))), file.read_bytes())


def main(words: list[str]) -> None:
    """Keep what is shown of the kinds that are named, or of all."""
    kinds = [word for word in words if word in runs.COMMANDS] or list(runs.COMMANDS)
    with tempfile.TemporaryDirectory() as here:
        os.chdir(here)
        if "--runs" in words:
            torch.set_num_threads(1)
            runs.give_inputs()
            for kind in runs.COMMANDS:
                runs.make(kind)
                _pack(kind)
            MACHINE.write_text(json.dumps(machine(), indent=2) + "\n")
        for kind in kinds:
            folder = unpacked(kind)
            for name, text in {**seen(folder), "print.json": printed(folder)}.items():
                (KEPT / kind / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

"""The page of a run that is looked at again and again, as a text; nothing is written.

Its files are remembered, so that only new ones are read: 10 ms a unit, which is 10 s of a training with 1,000
looks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from isoscope.kinds.report import page_of
from isoscope.results.store import read_run, read_unit


@dataclass(frozen=True)
class Remembered:
    """Reads files of a run folder; one that has kept its size and time since is not read again."""

    kept: dict[Path, tuple[int, int, pd.DataFrame, dict[str, object]]] = field(default_factory=dict)

    def __call__(self, file: Path, columns: dict[str, str]) -> tuple[pd.DataFrame, dict[str, object]]:
        """What the file holds."""
        try:
            told = file.stat()
        except OSError:
            return read_unit(file, columns)  # which says what is wrong with it
        size, when, table, known = self.kept.get(file, (-1, -1, None, {}))
        if table is None or (size, when) != (told.st_size, told.st_mtime_ns):
            table, known = read_unit(file, columns)
            self.kept[file] = (told.st_size, told.st_mtime_ns, table, known)
        return table, dict(known)


def page_text(path: Path, remembered: Remembered | None = None) -> str:
    """The text of `report.html`, from the rows that are in the folder now."""
    return page_of(read_run(path, remembered or Remembered()))

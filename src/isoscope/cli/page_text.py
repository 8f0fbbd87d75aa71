"""The page of a run that is looked at again and again, as a text; nothing is written.

Its files are remembered, so that only new ones are read: 10 ms a unit, which is 10 s of a training with 1,000
looks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from isoscope.cli.pages import page_of
from isoscope.results.schema import COLUMNS
from isoscope.results.store import RunFolder, read_run

Remembered = dict[Path, tuple[int, int, pd.DataFrame, dict[str, object]]]
"""Size and time of files as they were read, and what they held."""


def page_text(path: Path, remembered: Remembered | None = None) -> str:
    """The text of `report.html`, from the rows that are in the folder now."""
    return page_of(_Looked(path, read_run(path).run, {} if remembered is None else remembered))


@dataclass(frozen=True)
class _Looked(RunFolder):
    """A folder that reads what it does not remember."""

    remembered: Remembered

    def _read(  # type: ignore[override]  # that of RunFolder needs no folder
        self, file: Path, columns: dict[str, str] = COLUMNS
    ) -> tuple[pd.DataFrame, dict[str, object]]:
        try:
            told = file.stat()
        except OSError:
            return RunFolder._read(file, columns)  # which says what is wrong with it
        size, when, table, known = self.remembered.get(file, (-1, -1, None, {}))
        if table is None or (size, when) != (told.st_size, told.st_mtime_ns):
            table, known = RunFolder._read(file, columns)
            self.remembered[file] = (told.st_size, told.st_mtime_ns, table, known)
        return table, dict(known)

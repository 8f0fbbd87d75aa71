"""The page of a run of any kind as a text, made by what `isoscope report` makes it with; nothing is written.

It stands here and not in `report`: what a contrast shows is fitted by the lab, and claims are judged by
their papers. A run that is looked at again and again has its files remembered, so that only new ones are
read: 10 ms a unit, which is 10 s of a training with 1,000 looks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from isoscope.errors import IsoscopeError
from isoscope.results.schema import COLUMNS
from isoscope.results.store import RunFolder, read_run

Remembered = dict[Path, tuple[int, int, pd.DataFrame, dict[str, object]]]
"""Size and time of files as they were read, and what they held."""


def page_text(path: Path, remembered: Remembered | None = None) -> str:
    """The text of `report.html`, from the rows that are in the folder now."""
    folder = _Looked(path, read_run(path).run, {} if remembered is None else remembered)
    kind = folder.run.kind
    if kind == "contrast":
        return _contrast(folder)
    if kind == "block":
        return _block(folder)
    if kind == "reproduce":
        return _reproduce(folder)
    if kind == "sweep":
        from isoscope.report.sweep import sweep_page

        return sweep_page(folder)
    from isoscope.report.page import page

    return page(folder.run, folder.frame(), folder.facts(), folder.points())


@dataclass(frozen=True)
class _Looked(RunFolder):
    """A folder that reads what it does not remember, and hands its page over in place of keeping it."""

    remembered: Remembered
    texts: list[str] = field(default_factory=list)

    def write_page(self, text: str) -> Path:
        self.texts.append(text)
        return self.path

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


def _contrast(folder: RunFolder) -> str:
    from isoscope.cli.screen_contrast import _arms
    from isoscope.lab.contrast_fit import fit
    from isoscope.report.contrast import contrast_page

    rows, known = folder.frame(), folder.facts()
    found = fit(rows, str(folder.run.question["reference"]), _arms(known))
    fitted = (found.points, found.lines, found.differences, found.arms)
    return contrast_page(folder.run, rows, known, *fitted)


def _block(folder: RunFolder) -> str:
    from isoscope.cli.screen_block import finding, finding_of_norms
    from isoscope.lab.block_seeds import over_seeds
    from isoscope.report.block import block_page

    rows = folder.frame()
    lines = over_seeds(rows)
    said = (finding(lines), finding_of_norms(rows))
    return block_page(folder.run, rows, folder.facts(), folder.points(), lines, *said)


def _reproduce(folder: _Looked) -> str:
    from isoscope.cli.screen_reproduce import _write_page
    from isoscope.papers.paper import judged
    from isoscope.papers.table import paper_of

    paper = paper_of(str(folder.run.question["paper"]))
    found = judged(paper, folder)
    if not found:
        raise IsoscopeError(f"{folder.path} holds no claim of {paper.name} yet.")
    _write_page(folder, paper, found)
    return folder.texts[0]

"""Where the rows of a run in training are kept: a run folder, or memory where none was asked for.

A step is a unit. Its rows are announced only once they are on disk. Where the disk refuses, training goes on:
the rows wait in memory, are tried again with the next ones, and what could never be written is said at the
end.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isoscope.errors import IsoscopeError
from isoscope.results.row import frame
from isoscope.results.run import Run
from isoscope.results.store import RunFolder, open_run
from isoscope.results.units import unit_name

WAITING = 64  # steps that are held in memory while the disk refuses
RECENT = 16  # steps that alarms look back on


class Unit(NamedTuple):
    """The rows of one step, and what is known of it; `live` where they are of the batch that trained.

    `points` are those of its pictures and `influence` is the column by which its rows are paired; both are
    kept where there is a folder.
    """

    step: int
    rows: pd.DataFrame
    facts: Mapping[str, object]
    live: bool = False
    points: pd.DataFrame | None = None
    influence: NDArray[np.object_] | None = None


class Kept:
    """The rows so far. `folder` is None where they are kept in memory."""

    def __init__(self, out: str | Path | None, run: Run, *, resume: bool) -> None:
        if out is not None and not resume and (Path(out) / "run.json").exists():
            raise IsoscopeError(f"{out} holds a run; resume=True takes it up, or give another out.")
        if out is not None:
            clear_unbegun(Path(out))
        self.folder: RunFolder | None = None if out is None else open_run(Path(out).absolute(), run)
        self._rows: dict[int, pd.DataFrame] = {}
        self._live: dict[int, pd.DataFrame] = {}
        self._waiting: list[Unit] = []
        self._lost: list[int] = []
        self._refused = ""
        self._recent: tuple[list[int], pd.DataFrame] = [], frame([])
        if self.folder is not None:
            # by the names of their files: many are not to be opened to be counted
            names = (file.stem.split("-") for file in (self.folder.path / "rows").glob("step-*.parquet"))
            steps = sorted(int(parts[1]) for parts in names if len(parts) > 1 and parts[1].isdigit())
            for step in steps[-RECENT:]:
                self._rows[step] = self.folder.frame(unit_name(step))

    def has(self, step: int, *, live: bool = False) -> bool:
        """Whether this step has been measured."""
        waits = any((unit.step, unit.live) == (step, live) for unit in self._waiting)
        here = step in (self._live if live else self._rows)
        return waits or here or (self.folder is not None and self.folder.has(unit_name(step, live=live)))

    def known(self, step: int) -> Mapping[str, object]:
        """What the folder knows of this step; nothing where it has none."""
        return {} if self.folder is None else self.folder.known(unit_name(step))

    def recent(self, step: int, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows of the last steps before this one, and its own."""
        steps = [each for each in sorted(self._rows) if each < step][1 - RECENT :]
        had, joined = self._recent
        if steps and had[-len(steps) :] == steps:  # as a rule all but the first of the last look
            before = [joined.iloc[len(joined) - sum(len(self._rows[each]) for each in steps) :]]
        else:
            before = [self._rows[each] for each in steps]
        joined = pd.concat([*before, rows], ignore_index=True)
        self._recent = [*steps, step], joined
        return joined.copy(deep=False)  # what an alarm writes into it stays in its copy

    def keep(self, unit: Unit) -> list[Unit]:
        """Keep the rows of a step; gives the units that are safe now and were not before."""
        held = self._live if unit.live else self._rows
        if self.folder is None or not unit.live:
            held[unit.step] = unit.rows
        if self.folder is None:
            return [unit]
        while len(self._rows) > RECENT:
            del self._rows[min(self._rows)]
        self._waiting.append(unit)
        return self._write()

    def close(self) -> list[Unit]:
        """Try once more what waits, and say what is lost."""
        safe = self._write()
        if lost := sorted([*self._lost, *(unit.step for unit in self._waiting)]):
            steps = ", ".join(map(str, lost))
            warnings.warn(
                f"the rows of {len(lost)} steps could not be written and are lost ({steps}): {self._refused}",
                stacklevel=3,
            )
        self._waiting.clear()
        self._lost.clear()
        return safe

    def frame(self) -> pd.DataFrame:
        """All rows so far, step by step."""
        waiting = [unit.rows for unit in self._waiting]
        own = [*self._rows.values(), *self._live.values()]
        kept = own if self.folder is None else [self.folder.frame(), *waiting]
        there = [table for table in kept if len(table)]
        if not there:
            return frame([])
        return pd.concat(there, ignore_index=True).sort_values("step", kind="stable", ignore_index=True)

    def _write(self) -> list[Unit]:
        assert self.folder is not None or not self._waiting
        safe: list[Unit] = []
        while self._waiting and self.folder is not None:
            unit = self._waiting[0]
            try:
                rows = unit.rows if unit.influence is None else unit.rows.assign(influence=unit.influence)
                self.folder.write(unit_name(unit.step, live=unit.live), rows, unit.facts, unit.points)
            except (IsoscopeError, OSError) as reason:
                self._wait(str(reason))
                break
            safe.append(self._waiting.pop(0))
        return safe

    def _wait(self, reason: str) -> None:
        first, self._refused = not self._refused, reason
        while len(self._waiting) > WAITING:
            self._lost.append(self._waiting.pop(0).step)
        if first:
            warnings.warn(
                f"the rows of step {self._waiting[0].step} could not be written: {reason} Training goes on; "
                "they are held and tried again with the next ones.",
                stacklevel=4,
            )


def clear_unbegun(folder: Path) -> None:
    """Take away what a run leaves that was killed while its folder was made: it would be refused."""
    there = list(folder.iterdir()) if folder.is_dir() else []
    rows = folder / "rows"
    aside = list(folder.glob(".run.json.*"))
    if there and set(there) <= {rows, *aside} and not (rows.is_dir() and any(rows.iterdir())):
        for file in aside:
            file.unlink()
        if rows.is_dir():
            rows.rmdir()

"""A folder whose units are checkpoints, read as one trajectory: by step, and no more than is asked for.

A sweep of a large model has thousands of rows of heads a checkpoint: what is not asked for is not turned into
a table, and what is known of a unit is read from the end of its file alone, so that reading grows with the
number of checkpoints and with nothing else. Decided here: checkpoints without a step are numbered in the
order of their names; of two with the same step the first counts; the unit `BETWEEN` is no checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from isoscope.errors import IsoscopeError
from isoscope.results.row import COLUMNS, INFLUENCE
from isoscope.results.schema1 import COLUMNS_1, SCHEMA_1, upgraded
from isoscope.results.store import RunFolder, arrow_table, influences, kept_columns, schema_of

BETWEEN = "between"
"""The unit of what is read off all checkpoints together."""
FAILED = "failed"
"""The measure of a unit that could not be measured; its note is the reason."""
_METADATA = b"isoscope"


@dataclass(frozen=True)
class Trajectory:
    """The checkpoints of a folder that were measured, by step, and those that failed, with the reason.

    `numbered` where no steps are known; `doubled` are units left out since another has their step; `total`
    is the number of rows of all units.
    """

    folder: RunFolder
    units: tuple[str, ...]
    steps: tuple[int, ...]
    facts: dict[str, dict[str, object]]
    failed: dict[str, str]
    numbered: bool = False
    doubled: tuple[str, ...] = ()
    total: int = 0

    @property
    def step_of(self) -> dict[str, int]:
        """The step of each unit."""
        return dict(zip(self.units, self.steps, strict=True))

    def rows(
        self,
        measures: Collection[str] | None = None,
        *,
        heads: bool | None = None,
        only: Collection[int] | None = None,
        columns: Sequence[str] = tuple(COLUMNS),
        influence: Collection[int] = (),
    ) -> pd.DataFrame:
        """The rows of these measures, of heads, of sites, or of both, at these steps or at all.

        All are of one model, the run's title, whatever a checkpoint is called; `unit` is a further column.
        Fewer `columns` take less memory. `influence` are the steps whose rows can be paired: of all steps it
        would be as much again as the rows.
        """
        parts, moved = list[pa.Table](), list[NDArray[np.object_]]()
        units = [unit for unit, step in self.step_of.items() if only is None or step in only]
        for unit in units:
            file = self.folder.file_of(unit)
            part = read_part(file, measures, heads, influence=self.step_of[unit] in influence)
            moved.append(influences(part, file))
            parts.append(part.select(list(columns)))
        kinds = {name: COLUMNS[name] for name in columns}
        if not parts:
            empty = {name: pd.Series(dtype=kind) for name, kind in kinds.items()}
            return pd.DataFrame(empty).assign(unit=pd.Categorical([]))
        counts = [len(part) for part in parts]
        found = pa.concat_tables(parts).to_pandas().astype(kinds)
        found["unit"] = pd.Categorical.from_codes(np.repeat(np.arange(len(units)), counts), pd.Index(units))
        found["step"] = pd.array(np.repeat([self.step_of[unit] for unit in units], counts), "Int64")
        if influence:
            found[INFLUENCE] = np.concatenate(moved)
        fixed = {"model": self.folder.run.title, "revision": ""}
        return found.assign(**{name: value for name, value in fixed.items() if name in columns})


def read_part(
    file: Path,
    measures: Collection[str] | None = None,
    heads: bool | None = None,
    *,
    influence: bool = False,
) -> pa.Table:
    """Those rows of a file that are of these measures, and of heads or not; `influence` adds its columns."""
    try:
        with pq.ParquetFile(file) as body:
            told = json.loads((body.schema_arrow.metadata or {}).get(_METADATA, b"{}"))
            old = schema_of(file, told) == SCHEMA_1
            more = kept_columns(body) if influence else []
            table = body.read(columns=[*(COLUMNS_1 if old else COLUMNS), *more], use_threads=False)
        if old:
            table = arrow_table(upgraded(table.to_pandas().astype(COLUMNS_1), told), COLUMNS)
    except (OSError, pa.ArrowInvalid) as reason:
        why = str(reason).splitlines()[0].rstrip(".")
        raise IsoscopeError(f"cannot read {file}: {why}. Remove it to measure it again.") from reason
    if heads is not None:
        table = table.filter(pc.is_valid(table["head"]) if heads else pc.is_null(table["head"]))
    if measures is not None:
        table = table.filter(pc.is_in(table["measure"], pa.array(sorted(measures), pa.string())))
    return table.replace_schema_metadata(None)


def trajectory(folder: RunFolder) -> Trajectory:
    """The checkpoints of a folder."""
    facts: dict[str, dict[str, object]] = {}
    failed: dict[str, str] = {}
    steps: dict[str, int | None] = {}
    total = 0
    for file in folder.files():
        unit, known, step, measures, count = _ends(file)
        total += count
        if unit == BETWEEN:
            continue
        facts[unit] = known
        if measures == (FAILED, FAILED):
            failed[unit] = str(read_part(file)["note"][0].as_py() or "no reason is known")
        elif measures is not None:
            steps[unit] = step
    return replace(_ordered(folder, steps, facts, failed), total=total)


def _ordered(
    folder: RunFolder,
    steps: dict[str, int | None],
    facts: dict[str, dict[str, object]],
    failed: dict[str, str],
) -> Trajectory:
    known = {unit: step for unit, step in sorted(steps.items()) if step is not None}
    numbered = not known
    if numbered:
        known = {unit: number for number, unit in enumerate(sorted(steps))}
    by_step: dict[int, str] = {}
    for unit, step in known.items():
        by_step.setdefault(step, unit)
    kept = [by_step[step] for step in sorted(by_step)]
    doubled = tuple(unit for unit in sorted(steps) if unit not in kept)
    return Trajectory(folder, tuple(kept), tuple(sorted(by_step)), facts, failed, numbered, doubled)


def _ends(file: Path) -> tuple[str, dict[str, object], int | None, tuple[str, str] | None, int]:
    """Of a file of rows: its unit, what is known, its step, first and last name of a measure, how many."""
    try:
        with pq.ParquetFile(file) as body:
            told = json.loads((body.schema_arrow.metadata or {}).get(_METADATA, b"{}"))
            schema_of(file, told)
            count = body.metadata.num_rows
            ends = {name: _span(body.metadata, name) for name in ("step", "measure")}
    except (OSError, pa.ArrowInvalid, ValueError) as reason:
        why = str(reason).splitlines()[0].rstrip(".")
        raise IsoscopeError(f"cannot read {file}: {why}. Remove it to measure it again.") from reason
    step, measures = ends["step"], ends["measure"]
    named = None if measures is None else (str(measures[0]), str(measures[1]))
    return str(told.get("unit", file.stem)), told, None if step is None else int(str(step[0])), named, count


def _span(metadata: pq.FileMetaData, column: str) -> tuple[object, object] | None:
    """The least and the largest of a column, by what the file says of itself; None where it has none."""
    at = list(COLUMNS).index(column)
    each = [metadata.row_group(i).column(at).statistics for i in range(metadata.num_row_groups)]
    there = [(one.min, one.max) for one in each if one is not None and one.has_min_max]
    return (min(a for a, _ in there), max(b for _, b in there)) if there else None


def thinned(items: Iterable[int], most: int) -> list[int]:
    """At most so many, evenly spaced, the first and the last among them.

    >>> thinned(range(7), 4)
    [0, 2, 4, 6]
    """
    every = list(items)
    if len(every) <= most:
        return every
    return [every[round(i * (len(every) - 1) / (most - 1))] for i in range(most)]

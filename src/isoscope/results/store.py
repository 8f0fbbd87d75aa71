"""The run folder: `run.json`, `rows/*.parquet`, `points/*.parquet`, `report.html`. A unit has a file of each.

Every file is written aside and renamed, so a reader never meets half a file and a failed write leaves
nothing. A folder belongs to one question: asking the same again resumes it, asking another is refused.
What is known of one unit only (its weights' hash, its notes) travels in that unit's Parquet file, so
that many workers can write into one folder without sharing a file. The points of a unit's pictures are
written before its rows: a unit that has rows has its points, and points without rows are not read.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from isoscope.errors import IsoscopeError
from isoscope.results.points import POINT_COLUMNS, points_frame
from isoscope.results.reading import Influence
from isoscope.results.row import COLUMNS, INFLUENCE, Row, frame
from isoscope.results.run import SCHEMA, Run
from isoscope.results.schema1 import COLUMNS_1, SCHEMA_1, upgraded, upgraded_facts

_ARROW = {"str": pa.string(), "Int64": pa.int64(), "float64": pa.float64(), "float32": pa.float32()}
_FACTS = b"isoscope"
_INPUTS = "inputs"
_KEPT = (_INPUTS, INFLUENCE)

Reader = Callable[[Path, dict[str, str]], tuple[pd.DataFrame, dict[str, object]]]
"""Reads a file of these columns: its table, and what is known of its unit. `read_unit` is one."""


def read_unit(file: Path, columns: dict[str, str]) -> tuple[pd.DataFrame, dict[str, object]]:
    """What a unit's file of rows or points holds; one that cannot be read is an error that says so."""
    try:
        with pq.ParquetFile(file) as body:
            facts = json.loads((body.schema_arrow.metadata or {}).get(_FACTS, b"{}"))
            old = schema_of(file, facts) == SCHEMA_1 and "measure" in columns
            wanted = COLUMNS_1 if old else {name: kind for name, kind in columns.items() if name != INFLUENCE}
            moves = kept_columns(body) if INFLUENCE in columns else []
            table = body.read(columns=[*wanted, *moves])
        rows = table.select(list(wanted)).to_pandas().astype(wanted)
        if old:
            rows, facts = upgraded(rows, facts), upgraded_facts(facts)
        if INFLUENCE in columns:
            rows[INFLUENCE] = influences(table, file)
        return rows, {"unit": file.stem, **facts}
    except (OSError, pa.ArrowInvalid, ValueError, TypeError, KeyError) as reason:
        why = str(reason).splitlines()[0].rstrip(".")
        raise IsoscopeError(f"cannot read {file}: {why}. Remove it to measure it again.") from reason


def kept_columns(body: pq.ParquetFile) -> list[str]:
    """The columns by which the rows of a file are paired, where it has them."""
    return [name for name in _KEPT if name in body.schema_arrow.names]


def influences(table: pa.Table, file: Path) -> NDArray[np.object_]:
    """An `Influence` or None for each row, from the columns `inputs` and `influence` where they were read.

    Rows that do not say which inputs they are of are paired with those of the same file alone.
    """
    found = np.full(len(table), None)
    if INFLUENCE in table.column_names:
        there = np.flatnonzero(table[INFLUENCE].is_valid())
        held = table.select(_KEPT).take(there).combine_chunks()
        numbers = held[INFLUENCE].to_numpy()
        for at, inputs, moves in zip(there, held[_INPUTS].to_pylist(), numbers, strict=True):
            each = moves.astype(np.float64)
            found[at] = Influence(float(each[0]), float(each[1]), each[2:], inputs or str(file))
    return found


class NotKeptError(IsoscopeError):
    """Rows of a unit could not be written: they are in `rows`, and what is known of the unit in `facts`."""

    def __init__(self, reason: str, rows: pd.DataFrame, facts: Mapping[str, object]) -> None:
        super().__init__(reason)
        self.rows, self.facts = rows, facts

    def __reduce__(self) -> tuple[type[IsoscopeError], tuple[str]]:
        """In another process it is the sentence alone."""
        return IsoscopeError, (str(self),)


@dataclass(frozen=True)
class RunFolder:
    """A run on disk. Make one with `open_run` or `read_run`.

    `read` is what reads its files: who looks again and again can give one that remembers.
    """

    path: Path
    run: Run
    read: Reader = field(default=read_unit, repr=False, compare=False)

    def has(self, unit: str) -> bool:
        """Whether this unit has been measured and kept."""
        return self.file_of(unit).exists()

    def units(self) -> list[str]:
        """The units that are there, by name of their file, so the order does not depend on the disk."""
        return [str(facts["unit"]) for _, facts in self._each()]

    def write(
        self,
        unit: str,
        rows: Iterable[Row] | pd.DataFrame,
        facts: Mapping[str, object],
        points: pd.DataFrame | None = None,
    ) -> None:
        """Keep the rows, facts and points of one unit, whole or not at all (`NotKeptError`)."""
        told = {"unit": unit, "schema": SCHEMA}
        table = rows if isinstance(rows, pd.DataFrame) else frame(rows, influence=True)
        body = _parquet(table, COLUMNS, {**facts, **told})
        try:
            if points is not None and len(points):
                pictures = _parquet(points, POINT_COLUMNS, told)
                _make_folders(self.path / "points")
                write_whole(self._beside(self.file_of(unit)), pictures)
            write_whole(self.file_of(unit), body)
        except IsoscopeError as reason:
            raise NotKeptError(str(reason), table, facts) from reason

    def write_page(self, text: str) -> Path:
        """Keep the page, and say where."""
        page = self.path / "report.html"
        write_whole(page, text.encode())
        return page

    def frame(self, unit: str | None = None, *, influence: bool = False) -> pd.DataFrame:
        """The rows of one unit, or of all; `influence` adds the column by which two rows are `paired`."""
        files = self.files() if unit is None else [self.file_of(unit)]
        columns = {**COLUMNS, INFLUENCE: "object"} if influence else COLUMNS
        tables = [self.read(file, columns)[0] for file in files]
        return pd.concat(tables, ignore_index=True) if tables else frame([])

    def points(self, unit: str | None = None) -> pd.DataFrame:
        """The points of one unit's pictures, or of all units', with the unit in a first column."""
        kept = self.files() if unit is None else [file for file in [self.file_of(unit)] if file.exists()]
        found = [self.read(file, POINT_COLUMNS) for file in map(self._beside, kept) if file.exists()]
        tables = [table.assign(unit=str(facts["unit"])) for table, facts in found]
        every = pd.concat(tables, ignore_index=True) if tables else points_frame([]).assign(unit="")
        return every[["unit", *POINT_COLUMNS]].astype({"unit": "str"})

    def known(self, unit: str) -> dict[str, object]:
        """What is known of one unit; nothing where it is not there."""
        file = self.file_of(unit)
        return self.read(file, COLUMNS)[1] if file.exists() else {}

    def facts(self) -> dict[str, dict[str, object]]:
        """What is known of each unit, by unit."""
        return {str(facts["unit"]): facts for _, facts in self._each()}

    def _each(self) -> Iterator[tuple[pd.DataFrame, dict[str, object]]]:
        return (self.read(file, COLUMNS) for file in self.files())

    def files(self) -> list[Path]:
        """The files of all units' rows, by name."""
        return sorted((self.path / "rows").glob("*.parquet"))

    def file_of(self, unit: str) -> Path:
        """The file that holds the rows of a unit, or would hold them."""
        plain = re.sub(r"[^A-Za-z0-9]+", "-", unit).strip("-")[-48:]
        return self.path / "rows" / f"{plain}-{hashlib.sha256(unit.encode()).hexdigest()[:8]}.parquet"

    def _beside(self, file: Path) -> Path:
        """The points that belong to a file of rows."""
        return self.path / "points" / file.name


def open_run(path: str | PathLike[str], run: Run) -> RunFolder:
    """Make the folder for this run, or take up the one that is there if it asks the same."""
    folder = Path(path)
    if (folder / "run.json").exists():
        there = read_run(folder)
        if there.run.id != run.id:
            asked = {**run.question, "kind": run.kind}
            had = {**there.run.question, "kind": there.run.kind}
            differs = ", ".join(key for key in sorted(asked | had) if asked.get(key) != had.get(key))
            raise IsoscopeError(
                f"{folder} holds another run, asked with other settings ({differs}); "
                "give another --out, or remove that folder."
            )
        return there
    if folder.exists() and not folder.is_dir():
        raise IsoscopeError(f"cannot write a run to {folder}: a file is there; give another --out.")
    if folder.is_dir() and any(folder.iterdir()):
        raise IsoscopeError(f"cannot write a run to {folder}: it holds other files; give another --out.")
    made = _make_folders(folder / "rows")
    try:
        write_whole(folder / "run.json", run.to_json().encode())
    except IsoscopeError:
        for parent in reversed(made):
            with suppress(OSError):
                parent.rmdir()
        raise
    return RunFolder(folder, run)


def read_run(path: str | PathLike[str], read: Reader = read_unit) -> RunFolder:
    """Read a run folder; its files are read by `read` when they are asked for."""
    folder = Path(path)
    file = folder / "run.json"
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as reason:
        raise IsoscopeError(
            f"{folder} is no run folder: there is no {file}. `isoscope measure … --out DIR` makes one."
        ) from reason
    except (OSError, ValueError) as reason:
        raise IsoscopeError(f"cannot read {file}: {reason}.") from reason
    schema_of(file, told)
    parts = {"kind": str, "title": str, "question": dict, "measures": dict, "versions": dict, "created": str}
    if not isinstance(told, dict) or not all(
        isinstance(told.get(name), kind) for name, kind in parts.items()
    ):
        raise IsoscopeError(f"{file} does not have the fields of a run: {', '.join(parts)}.")
    return RunFolder(folder, Run(**{name: told[name] for name in parts}), read)


def arrow_table(table: pd.DataFrame, columns: dict[str, str]) -> pa.Table:
    """A table with these columns as Arrow holds it."""
    schema = pa.schema([(name, _ARROW[kind]) for name, kind in columns.items()])
    arrays = [
        pa.array(table[name].array, type=_ARROW[kind], from_pandas=True) for name, kind in columns.items()
    ]
    made = pa.Table.from_arrays(arrays, schema=schema)
    if INFLUENCE not in table or not table[INFLUENCE].notna().any():
        return made
    held = [each if isinstance(each, Influence) else None for each in table[INFLUENCE]]
    moves = [None if each is None else np.array([each.centre, each.degrees, *each.each]) for each in held]
    inputs = pa.array([None if each is None else each.inputs for each in held], pa.string())
    return made.append_column(_INPUTS, inputs).append_column(
        INFLUENCE, pa.array(moves, pa.list_(pa.float32()))
    )


def _parquet(table: pd.DataFrame, columns: dict[str, str], told: Mapping[str, object]) -> bytes:
    """A table as the bytes of a Parquet file, with what is told of it in the file's metadata."""
    body = arrow_table(table, columns)
    note = json.dumps(told, sort_keys=True)
    buffer = pa.BufferOutputStream()
    pq.write_table(body.replace_schema_metadata({_FACTS: note.encode()}), buffer)
    return bytes(buffer.getvalue().to_pybytes())


def schema_of(file: Path, facts: object) -> int:
    """The schema version that a file states; an error where this isoscope cannot read it."""
    version = facts.get("schema") if isinstance(facts, dict) else SCHEMA
    if version not in (SCHEMA_1, SCHEMA):
        raise IsoscopeError(
            f"{file} has schema version {version}; this isoscope reads versions {SCHEMA_1} and {SCHEMA}. "
            "Measure again into another folder, or use the isoscope that wrote it."
        )
    return int(str(version))


def _make_folders(folder: Path) -> list[Path]:
    missing = [parent for parent in [folder, *folder.parents] if not parent.exists()][::-1]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise IsoscopeError(
            f"cannot write to {folder.parent}: {reason.strerror or reason}; give another --out."
        ) from reason
    return missing


def write_file(path: str | PathLike[str], content: bytes) -> Path:
    """Write a file, with the folders that lead to it; into a folder, it is `report.html`. Return its path."""
    file = Path(path) / "report.html" if Path(path).is_dir() else Path(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise IsoscopeError(
            f"cannot write to {file.parent}: {reason.strerror or reason}; give another path."
        ) from reason
    write_whole(file, content)
    return file


def write_whole(file: Path, content: bytes) -> None:
    """Write a file aside and put it in its place, so that nobody meets half of it."""
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with aside.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        aside.replace(file)
    except OSError as reason:
        with suppress(OSError):
            aside.unlink()
        raise IsoscopeError(
            f"cannot write {file}: {reason.strerror or reason}; nothing was left half-written."
        ) from reason

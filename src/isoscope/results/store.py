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
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from isoscope.errors import IsoscopeError
from isoscope.results.points import POINT_COLUMNS, points_frame
from isoscope.results.row import COLUMNS, Row, frame
from isoscope.results.run import SCHEMA, Run

_ARROW = {"str": pa.string(), "Int64": pa.int64(), "float64": pa.float64(), "float32": pa.float32()}
_FACTS = b"isoscope"

Reader = Callable[[Path, dict[str, str]], tuple[pd.DataFrame, dict[str, object]]]
"""Reads a file of these columns: its table, and what is known of its unit. `read_unit` is one."""


def read_unit(file: Path, columns: dict[str, str]) -> tuple[pd.DataFrame, dict[str, object]]:
    """What a unit's file of rows or points holds; one that cannot be read is an error that says so."""
    try:
        table = pq.read_table(file)
        facts = json.loads((table.schema.metadata or {}).get(_FACTS, b"{}"))
        if isinstance(facts, dict) and facts.get("schema") != SCHEMA:
            raise other_schema(file, facts.get("schema"))
        return table.to_pandas()[list(columns)].astype(columns), {"unit": file.stem, **facts}
    except (OSError, pa.ArrowInvalid, ValueError, TypeError, KeyError) as reason:
        why = str(reason).splitlines()[0].rstrip(".")
        raise IsoscopeError(f"cannot read {file}: {why}. Remove it to measure it again.") from reason


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
        return self._file(unit).exists()

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
        """Keep the rows of one unit, what is known of it and its points, whole or not at all."""
        told = {"unit": unit, "schema": SCHEMA}
        table = rows if isinstance(rows, pd.DataFrame) else frame(rows)
        body = _parquet(table, COLUMNS, {**told, **facts})
        if points is not None and len(points):
            pictures = _parquet(points, POINT_COLUMNS, told)
            _make_folders(self.path / "points")
            write_whole(self._beside(self._file(unit)), pictures)
        write_whole(self._file(unit), body)

    def write_page(self, text: str) -> Path:
        """Keep the page, and say where."""
        page = self.path / "report.html"
        write_whole(page, text.encode())
        return page

    def frame(self, unit: str | None = None) -> pd.DataFrame:
        """The rows of one unit, or of all."""
        files = self._files() if unit is None else [self._file(unit)]
        tables = [self.read(file, COLUMNS)[0] for file in files]
        return pd.concat(tables, ignore_index=True) if tables else frame([])

    def points(self, unit: str | None = None) -> pd.DataFrame:
        """The points of one unit's pictures, or of all units', with the unit in a first column."""
        kept = self._files() if unit is None else [file for file in [self._file(unit)] if file.exists()]
        found = [self.read(file, POINT_COLUMNS) for file in map(self._beside, kept) if file.exists()]
        tables = [table.assign(unit=str(facts["unit"])) for table, facts in found]
        every = pd.concat(tables, ignore_index=True) if tables else points_frame([]).assign(unit="")
        return every[["unit", *POINT_COLUMNS]].astype({"unit": "str"})

    def known(self, unit: str) -> dict[str, object]:
        """What is known of one unit; nothing where it is not there."""
        file = self._file(unit)
        return self.read(file, COLUMNS)[1] if file.exists() else {}

    def facts(self) -> dict[str, dict[str, object]]:
        """What is known of each unit, by unit."""
        return {str(facts["unit"]): facts for _, facts in self._each()}

    def _each(self) -> Iterator[tuple[pd.DataFrame, dict[str, object]]]:
        return (self.read(file, COLUMNS) for file in self._files())

    def _files(self) -> list[Path]:
        return sorted((self.path / "rows").glob("*.parquet"))

    def _file(self, unit: str) -> Path:
        plain = re.sub(r"[^A-Za-z0-9]+", "-", unit).strip("-")[-48:]
        return self.path / "rows" / f"{plain}-{hashlib.sha256(unit.encode()).hexdigest()[:8]}.parquet"

    def _beside(self, file: Path) -> Path:
        """The points that belong to a file of rows."""
        return self.path / "points" / file.name


def open_run(path: str | Path, run: Run) -> RunFolder:
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


def read_run(path: str | Path, read: Reader = read_unit) -> RunFolder:
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
    if isinstance(told, dict) and told.get("schema") != SCHEMA:
        raise other_schema(file, told.get("schema"))
    parts = {"kind": str, "title": str, "question": dict, "measures": dict, "versions": dict, "created": str}
    if not isinstance(told, dict) or not all(
        isinstance(told.get(name), kind) for name, kind in parts.items()
    ):
        raise IsoscopeError(f"{file} does not have the fields of a run: {', '.join(parts)}.")
    return RunFolder(folder, Run(**{name: told[name] for name in parts}), read)


def _parquet(table: pd.DataFrame, columns: dict[str, str], told: Mapping[str, object]) -> bytes:
    """A table as the bytes of a Parquet file, with what is told of it in the file's metadata."""
    schema = pa.schema([(name, _ARROW[kind]) for name, kind in columns.items()])
    body = pa.Table.from_pandas(table, schema=schema, preserve_index=False)
    note = json.dumps(told, sort_keys=True)
    buffer = pa.BufferOutputStream()
    pq.write_table(body.replace_schema_metadata({_FACTS: note.encode()}), buffer)
    return bytes(buffer.getvalue().to_pybytes())


def other_schema(file: Path, found: object) -> IsoscopeError:
    """The error for a file whose schema version this isoscope cannot read."""
    return IsoscopeError(
        f"{file} has schema version {found}; this isoscope reads version {SCHEMA}. "
        "Measure again into another folder, or use the isoscope that wrote it."
    )


def _make_folders(folder: Path) -> list[Path]:
    missing = [parent for parent in [folder, *folder.parents] if not parent.exists()][::-1]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise IsoscopeError(
            f"cannot write to {folder.parent}: {reason.strerror or reason}; give another --out."
        ) from reason
    return missing


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

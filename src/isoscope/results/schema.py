"""A Row is one number with its n, null and interval; a Run is where rows come from.

The columns are fixed and specified in `docs/format.md`; `SCHEMA` counts their versions. Nothing here
needs torch, so results can be read anywhere.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from operator import attrgetter

import pandas as pd

SCHEMA = 1

COLUMNS: dict[str, str] = {
    "run": "str",
    "model": "str",
    "revision": "str",
    "step": "Int64",
    "kind": "str",
    "layer": "Int64",
    "head": "Int64",
    "measure": "str",
    "value": "float64",
    "n": "Int64",
    "null": "float64",
    "low": "float64",
    "high": "float64",
    "note": "str",
}


@dataclass(frozen=True)
class Row:
    """One number: which measure, where, its value, from how many, against what, how sure."""

    run: str
    model: str
    revision: str
    step: int | None
    kind: str
    layer: int | None
    head: int | None
    measure: str
    value: float
    n: int
    null: float = math.nan
    low: float = math.nan
    high: float = math.nan
    note: str = ""


@dataclass(frozen=True)
class Run:
    """What was asked, and with what: everything that fixes the rows is in `question`.

    `measures` carries every measure's own explanation, so that a page can be written from the folder
    alone, by a version of isoscope that no longer has the measure.
    """

    kind: str
    title: str
    question: Mapping[str, object]
    measures: Mapping[str, Mapping[str, object]]
    versions: Mapping[str, str] = field(default_factory=dict)
    created: str = ""
    schema: int = SCHEMA

    @property
    def id(self) -> str:
        """Twelve hex digits of what was asked: the same question has the same id."""
        text = json.dumps([self.schema, self.kind, self.question], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def to_json(self) -> str:
        """As `run.json` has it."""
        return json.dumps({"id": self.id, **asdict(self)}, indent=2, ensure_ascii=False)


def frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Rows as a tidy table, one column a field, with the types of `COLUMNS`."""
    held = list(zip(*map(attrgetter(*COLUMNS), rows), strict=True)) or [()] * len(COLUMNS)
    columns = zip(COLUMNS.items(), held, strict=True)
    return pd.DataFrame({name: pd.Series(values, dtype=kind) for (name, kind), values in columns})

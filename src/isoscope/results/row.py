"""A Row is a Reading with its coordinates: run, model, revision, step, site, head and measure.

The columns are fixed and specified in `docs/format.md`. Nothing here needs torch, so results can be read
anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from isoscope.results.reading import Reading

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
    "tag": "str",
    "p": "float64",
    "arm": "str",
    "seed": "Int64",
    "setting": "float64",
    "about": "str",
}


@dataclass(frozen=True, kw_only=True)
class Row(Reading):
    """A reading and where it was taken: one line of a run's table.

    Rows of an experiment have further coordinates: its `arm` (an attention variant, a norm), its `seed`, and
    the `setting` that it varies (the norm of a bias, the entropy aimed at). A row that speaks of another
    measure (its change, a jump in it) names that measure in `about`.
    """

    run: str
    model: str
    revision: str
    step: int | None
    kind: str
    layer: int | None
    head: int | None
    measure: str
    arm: str = ""
    seed: int | None = None
    setting: float = math.nan
    about: str = ""

    @classmethod
    def at(
        cls,
        run: str,
        model: str,
        revision: str,
        step: int | None,
        kind: str,
        layer: int | None,
        head: int | None,
        measure: str,
        reading: Reading,
        *,
        about: str = "",
    ) -> Row:
        """A reading put at these coordinates, which stand in the order of the columns."""
        return cls(
            *(reading.value, reading.n, reading.null, reading.low, reading.high, reading.note),
            tag=reading.tag,
            p=reading.p,
            influence=reading.influence,
            about=about,
            run=run,
            model=model,
            revision=revision,
            step=step,
            kind=kind,
            layer=layer,
            head=head,
            measure=measure,
        )


INFLUENCE = "influence"
"""The column of a table of rows that are to be paired: an `Influence` each, or None."""


def frame(rows: Iterable[Row], *, influence: bool = False) -> pd.DataFrame:
    """Rows as a tidy table with the types of `COLUMNS`, one column per field; `influence` adds its own."""
    rows = list(rows)
    held = list(zip(*map(attrgetter(*COLUMNS), rows), strict=True)) or [()] * len(COLUMNS)
    columns = zip(COLUMNS.items(), held, strict=True)
    arrays: dict[str, Any] = {}  # a series of a hundred rows takes three times as long to make as its array
    for (name, kind), values in columns:
        as_type: Any = kind
        arrays[name] = np.array(values, kind) if kind == "float64" else pd.array(values, dtype=as_type)
    if influence:
        arrays[INFLUENCE] = np.array([row.influence for row in rows], object)
    return pd.DataFrame(arrays, copy=False)

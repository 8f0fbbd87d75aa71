"""What an observation is: the records of every site, and the rows that measures read off them.

Two observations of the same model over different data merge into one, exactly: records are sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import pandas as pd

from isoscope.measures.base import Measure, Reading, undefined
from isoscope.measures.table import choose
from isoscope.results.schema import Row, frame
from isoscope.sites import Site
from isoscope.stats.base import Stat

Records = Mapping[type[Stat], Stat]


@dataclass(frozen=True)
class Observation:
    """Records by site. `frame()` gives the rows as a table, `merge` joins another's stream."""

    records: Mapping[Site, Records]
    measures: tuple[Measure, ...]
    model: str
    revision: str = ""
    step: int | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    not_kept: str = ""

    def frame(self) -> pd.DataFrame:
        """One row a site and measure, tidy: value, n, null, low, high, note."""
        return frame(self.rows())

    def rows(self, run: str = "") -> list[Row]:
        """The rows, marked with the run they belong to."""
        return [replace(row, run=run) for row in self._rows]

    def notes(self) -> list[str]:
        """What a reader must know: remarks of the run, and vectors that could not be used."""
        told = list(self.remarks)
        for row in self._rows:
            if row.measure == "not_finite" and row.value > 0:
                where = Site(row.kind, row.layer)
                bad = f"{row.value:.0f} of {row.n} vectors"
                told.append(f"{where}: {bad} have NaN or Inf, or overflow, and are left out")
        return told

    def known(self) -> dict[str, object]:
        """The facts with the notes: what a run keeps beside the rows."""
        return {**self.facts, "notes": self.notes()}

    def merge(self, other: Observation) -> Observation:
        """The observation of both streams; sites and records must be the same."""
        if (self.model, self.revision, self.step) != (other.model, other.revision, other.step):
            raise ValueError("observations of different models do not merge")
        if self.records.keys() != other.records.keys():
            raise ValueError("observations of different sites do not merge")
        if any(mine.keys() != other.records[site].keys() for site, mine in self.records.items()):
            raise ValueError("observations that keep different records do not merge")
        joined = {
            site: {kind: stat.merge(other.records[site][kind]) for kind, stat in mine.items()}
            for site, mine in self.records.items()
        }
        return replace(
            self,
            records=joined,
            facts=_joined_facts(self.facts, other.facts),
            remarks=tuple(dict.fromkeys((*self.remarks, *other.remarks))),
        )

    def __getstate__(self) -> dict[str, object]:
        """Measures go to another process by name: their readings are code."""
        held = {field.name: getattr(self, field.name) for field in fields(self)}
        return held | {"measures": [measure.name for measure in self.measures]}

    def __setstate__(self, held: dict[str, Any]) -> None:
        """Take the measures from the table again."""
        vars(self).update(held | {"measures": choose(held["measures"])})

    def _repr_html_(self) -> str:
        return self.frame().to_html(index=False)

    @cached_property
    def _rows(self) -> list[Row]:
        return list(self._read())

    def _read(self) -> Iterator[Row]:
        for site, records in self.records.items():
            for measure in self.measures:
                reading = self._reading(measure, records)
                yield Row(
                    run="",
                    model=self.model,
                    revision=self.revision,
                    step=self.step,
                    kind=site.kind,
                    layer=site.layer,
                    head=None,
                    measure=measure.name,
                    **vars(reading),
                )

    def _reading(self, measure: Measure, records: Records) -> Reading:
        if measure.stat not in records:
            return undefined(0, self.not_kept)
        return measure.read(records[measure.stat])


def _joined_facts(mine: Mapping[str, object], others: Mapping[str, object]) -> dict[str, object]:
    """What holds of both streams; their sizes add up."""
    facts = {key: value for key, value in mine.items() if others.get(key) == value}
    for key in ("sequences", "tokens", "vectors"):
        if isinstance(mine.get(key), int) and isinstance(others.get(key), int):
            facts[key] = int(str(mine[key])) + int(str(others[key]))
    return facts

"""What an observation is: the records of every site, and the rows that measures read off them.

Two observations of the same model over different data merge into one, exactly: records are sums.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from isoscope.measures.base import Measure, undefined
from isoscope.measures.table import choose
from isoscope.results.points import points_frame
from isoscope.results.reading import Reading
from isoscope.results.row import Row, frame
from isoscope.run.near import near_where_small
from isoscope.run.observe.fold import AGAIN
from isoscope.run.observe.pictures import MOST, heads_left_out, pictures
from isoscope.run.page import PAGE, write_page
from isoscope.sites import ATTENTION, Site
from isoscope.stats.base import Stat
from isoscope.stats.centre import Centre
from isoscope.stats.directions import Directions
from isoscope.stats.mass import Mass
from isoscope.stats.rows import Rows

Records = Mapping[type[Stat], Stat]


@dataclass(frozen=True)
class Observation:
    """Records by site. `frame()` gives the rows as a table, `merge` joins another's stream.

    `inputs` is the sum of the hashed keys of all sequences: it is the same for the same inputs in any order.
    """

    records: Mapping[Site, Records]
    measures: tuple[Measure, ...]
    model: str
    revision: str = ""
    step: int | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    not_kept: str = ""
    heads: bool = False
    inputs: int = 0

    def frame(self) -> pd.DataFrame:
        """One row a site and measure, tidy: value, n, null, low, high, note."""
        return frame(self.rows())

    def rows(self, run: str = "") -> list[Row]:
        """The rows, marked with the run they belong to."""
        of_run = (run, self.model, self.revision, self.step)
        return [
            Row.at(*of_run, site.kind, site.layer, head, measure, self._of_inputs(each))
            for site, head, measure, each in self._readings
        ]

    def _of_inputs(self, reading: Reading) -> Reading:
        """A reading that says which inputs it is of, where they are known: those are paired."""
        if reading.influence is None or not self.inputs:
            return reading
        return replace(reading, influence=replace(reading.influence, inputs=self._what))

    @cached_property
    def _what(self) -> str:
        """Which sequences were read and what of them counts, in sixteen hex digits."""
        what = repr((self.inputs, self.facts.get("counting"))).encode()
        return hashlib.blake2b(what, digest_size=8).hexdigest()

    def points(self, most: int = MOST) -> pd.DataFrame:
        """The points of pictures, at most so many: of each head of attention, its queries and keys."""
        return points_frame(pictures(self.records, most))

    def notes(self) -> list[str]:
        """What a reader must know: remarks of the run, what could not be used, heads not drawn."""
        lost = (f"{site}: {words}" for site, held in self.records.items() for words in _lost(held))
        return [*self.remarks, *filter(None, [heads_left_out(self.records)]), *lost]

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
            site: {
                kind: stat.merge(other.records[site][kind])
                for kind, stat in mine.items()
                if kind not in AGAIN  # each was read without its own means
            }
            for site, mine in self.records.items()
        }
        return replace(
            self,
            records=joined,
            inputs=(self.inputs + other.inputs) % 2**63,
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

    def report(self, path: str | PathLike[str] = PAGE) -> Path:
        """Write the page of this observation, one HTML file, and return its path."""
        return write_page(
            path, "measure", self.model, self.measures, frame(self.rows(), influence=True), self.known(),
            self.points(),
        )  # fmt: skip

    def _repr_html_(self) -> str:
        from isoscope.show.notebook import html_of

        return html_of(frame(self.rows(), influence=True), self.notes())

    @cached_property
    def _readings(self) -> list[tuple[Site, int | None, str, Reading]]:
        """Where, of which head, which measure, and what it reads: in the order of the rows."""
        return list(self._read())

    def _read(self) -> Iterator[tuple[Site, int | None, str, Reading]]:
        layers = [site for site in self.records if site.kind not in ATTENTION]
        held = near_where_small(self.records)
        for site in held:
            others = (
                {"previous": layers[layers.index(site) - 1], "first": layers[0]} if site in layers[1:] else {}
            )
            at = "layer" if site in layers else "attention"
            for measure in self.measures:
                if measure.at != at or (measure.against and not others):  # nothing comes before the first
                    continue
                if measure.stats == (Mass,) and Mass not in held[site]:
                    continue  # a softmax, which adds up to one
                other = others.get(measure.against, site)
                found = self._of(measure, held[site], held[other])
                yield site, None, measure.name, found[0]
                for head, reading in enumerate(found[1:] if self.heads else ()):
                    yield site, head, measure.name, reading

    def _of(self, measure: Measure, records: Records, others: Records) -> tuple[Reading, ...]:
        if not set(measure.stats) <= records.keys():
            return (undefined(0, self.not_kept if measure.at == "layer" else _NO_MEAN),)
        return measure.readings(records, others)


def _lost(held: Records) -> Iterator[str]:
    """What was left out at a site, whichever measures were asked for."""
    centre, directions, rows = (held.get(kind) for kind in (Centre, Directions, Rows))
    if isinstance(centre, Centre) and (bad := int(centre.not_finite)):
        yield f"{bad} of {centre.sums.n + bad} vectors have NaN or Inf, or overflow, and are left out"
    if isinstance(directions, Directions) and (bad := int(directions.zeros)):
        yield f"{bad} of {directions.sums.n + bad} vectors are zero: cosines leave them out"
    if isinstance(rows, Rows) and (bad := int(rows.not_finite.sum())):
        every = bad + int(rows.count.sum() + rows.unseeing.sum())
        yield f"{bad} of {every} rows have scores with NaN or Inf, and are left out"


_NO_MEAN = "its mean query cannot be taken away, or differs between the observations that were merged"


def _joined_facts(mine: Mapping[str, object], others: Mapping[str, object]) -> dict[str, object]:
    """What holds of both streams; their sizes add up."""
    facts = {key: value for key, value in mine.items() if others.get(key) == value}
    for key in ("sequences", "tokens", "vectors"):
        if isinstance(mine.get(key), int) and isinstance(others.get(key), int):
            facts[key] = int(str(mine[key])) + int(str(others[key]))
    return facts

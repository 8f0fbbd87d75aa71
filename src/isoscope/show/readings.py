"""Rows as words and figures use them: one SiteReading each, named, placed on the axis and in order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pandas as pd

from isoscope.formatting import listed, short
from isoscope.results.reading import Influence, Reading

_AFTER_LAYERS = ("output", "cloud")
PLACES = ("layer", *_AFTER_LAYERS)
ATTENTION = ("attention", "cross_attention")
QUERY_KEY = ("query_key", "cross_query_key")  # the weights of attention: queries and keys of every head
LAYERED = ("layer", *ATTENTION, *QUERY_KEY)
"""Kinds of site that are numbered, and stand on the axis at their number."""


@dataclass(frozen=True, kw_only=True)
class SiteReading(Reading):
    """A row as sentences and figures use it: `model` tells it from other models, `place` is on the axis."""

    model: str
    step: int | None
    kind: str
    layer: int | None
    head: int | None
    measure: str
    place: int
    about: str = ""

    @property
    def site(self) -> str:
        """As people say it: "layer 3", "output", "cross-attention 3 head 1"."""
        kind = self.kind.replace("_", "-")
        name = kind if self.layer is None else f"{kind} {self.layer}"
        return name if self.head is None else f"{name} head {self.head}"

    @property
    def at(self) -> str:
        """The site inside a sentence: "layer 3", "the output"."""
        return where([self])

    @property
    def number(self) -> str:
        """The value in three digits."""
        return short(self.value)

    @property
    def chance(self) -> float:
        """The null; 0 where there is none."""
        return self.null if math.isfinite(self.null) else 0.0


def read(rows: pd.DataFrame) -> list[SiteReading]:
    """Every row: by model in order of appearance, step, attention last, place, and then as the rows are."""
    if rows.empty:  # a page asks for what most runs do not have
        return []
    names = [str(name) for name in rows.columns]
    columns = (rows[name].astype(object).tolist() for name in rows.columns)
    records = [dict(zip(names, record, strict=True)) for record in zip(*columns, strict=True)]
    revisions: dict[tuple[str, int | None], set[str]] = {}
    for record in records:
        at = str(record["model"]), _whole(record["step"])
        revisions.setdefault(at, set()).add(_text(record["revision"]))
    ambiguous = {model for (model, _), names in revisions.items() if len(names) > 1}
    deepest = max((_whole(r["layer"]) or 0 for r in records if r["kind"] == "layer"), default=-1)
    found = [_reading(record, ambiguous, deepest) for record in records]
    order = {model: at for at, model in enumerate(unique(r.model for r in found))}
    return sorted(
        found, key=lambda r: (order[r.model], -1 if r.step is None else r.step, r.kind in ATTENTION, r.place)
    )


def _reading(record: Mapping[str, object], ambiguous: set[str], deepest: int) -> SiteReading:
    model, kind, layer = str(record["model"]), str(record["kind"]), _whole(record["layer"])
    revision = _text(record["revision"])
    after = _AFTER_LAYERS.index(kind) if kind in _AFTER_LAYERS else len(_AFTER_LAYERS)
    value, null, low, high = (_number(record[name]) for name in ("value", "null", "low", "high"))
    return SiteReading(
        value, _whole(record["n"]) or 0, null, low, high, _text(record["note"]), _text(record.get("tag")),
        _number(record.get("p")), about=_text(record.get("about")), measure=str(record["measure"]),
        model=f"{model}@{revision}" if model in ambiguous and revision else model, kind=kind,
        step=_whole(record["step"]), layer=layer, head=_whole(record["head"]),
        influence=moved if isinstance(moved := record.get("influence"), Influence) else None,
        place=layer if kind in LAYERED and layer is not None else deepest + 1 + after,
    )  # fmt: skip


def of(readings: Iterable[SiteReading], measure: str, *kinds: str) -> list[SiteReading]:
    """The readings of one measure at whole sites (no heads) of these kinds, with and without a value."""
    return [r for r in readings if r.measure == measure and r.head is None and (not kinds or r.kind in kinds)]


def models(readings: Iterable[SiteReading]) -> list[str]:
    """The models, in order of appearance."""
    return unique(r.model for r in readings)


def steps(readings: Iterable[SiteReading]) -> list[int]:
    """The steps, ascending; empty where rows have none."""
    return sorted({r.step for r in readings if r.step is not None})


def at_last(readings: list[SiteReading]) -> list[SiteReading]:
    """Those of the last step, or all where there are no steps."""
    last = steps(readings)[-1:]
    return [r for r in readings if not last or r.step == last[0]]


def latest(readings: Sequence[SiteReading]) -> list[SiteReading]:
    """The readings of every model at its own last step, by model."""
    return [r for name in models(readings) for r in at_last([r for r in readings if r.model == name])]


def ends(found: list[SiteReading]) -> tuple[SiteReading, SiteReading]:
    """The largest and the smallest."""
    return max(found, key=lambda r: r.value), min(found, key=lambda r: r.value)


def nulls(found: list[SiteReading]) -> str:
    """The null of the smallest and of the largest: two where widths differ; empty where there is none."""
    top, low = ends(found)
    return " and ".join(dict.fromkeys(short(r.null) for r in (low, top) if math.isfinite(r.null)))


def where(readings: Iterable[SiteReading]) -> str:
    """Say which sites these are, layers that follow each other as a range."""
    found = list(readings)
    said = _spans(r for r in found if r.kind == "layer")
    for kind in (*ATTENTION, *QUERY_KEY):
        own = [r for r in found if r.kind == kind]
        said += [f"the {kind.replace('_', '-')} of {numbered(own)}"] if own else []
    others = unique(r.site for r in found if r.kind not in LAYERED or r.layer is None)
    return listed([*said, *(f"the {site}" for site in others)])


def numbered(readings: Iterable[SiteReading]) -> str:
    """Say which layers these are, whatever kind of site: "layers 0 and 2–4"."""
    return listed(_spans(readings))


def _spans(readings: Iterable[SiteReading]) -> list[str]:
    layers = sorted({r.layer for r in readings if r.layer is not None})
    ends = [at for at, (a, b) in enumerate(pairwise(layers), 1) if b != a + 1]
    groups = [layers[a:b] for a, b in pairwise([0, *ends, len(layers)]) if layers]
    spans = [str(g[0]) if len(g) == 1 else f"{g[0]}–{g[-1]}" for g in groups]
    if spans:
        spans[0] = f"layer{'s' if len(layers) > 1 else ''} {spans[0]}"
    return spans


def unique(items: Iterable[str]) -> list[str]:
    """Without repeats, in order of appearance."""
    return list(dict.fromkeys(items))


def _missing(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def _whole(value: object) -> int | None:
    return value if type(value) is int else None if _missing(value) else int(str(value))


def _text(value: object) -> str:
    return "" if _missing(value) else str(value)


def _number(value: object) -> float:
    return value if type(value) is float else math.nan if _missing(value) else float(str(value))

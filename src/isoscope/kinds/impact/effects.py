"""The rows of an impact read as effects: a score before a repair and after it, the verdict, the geometry.

The column `model` names the repair. The change of a score is a measure of its own: its row names the score in
`about` and is tagged with the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from isoscope.formatting import short
from isoscope.results.reading import Reading
from isoscope.results.store import RunFolder
from isoscope.show.measures import Told, name_of
from isoscope.show.readings import read

AS_IT_IS = "as it is"
ACROSS = "mean_cosine_between"
"""The geometry that scores are drawn against."""

VERDICTS = {"helped": "▲", "hurt": "▼", "no difference": "·", "cannot matter": "=", "undefined": "?"}
MAIN = ("spearman", "accuracy", "accuracy_ridge", "accuracy_unpenalised", "reciprocal_rank", "perplexity")
"""The scores that stand for their tasks where there is room for one of each."""

Place = tuple[str, int | None]


@dataclass(frozen=True)
class Effect:
    """How one repair changed one score at one site: `by` how much; `x` is the anisotropy before and after."""

    place: Place
    measure: str
    repair: str
    before: float
    after: float
    by: Reading
    x: tuple[float, float]

    @property
    def verdict(self) -> str:
        """The verdict that the change is tagged with."""
        return self.by.tag if self.by.tag in VERDICTS else "undefined"

    @property
    def site(self) -> str:
        """What a reader calls the site."""
        kind, layer = self.place
        return kind if layer is None else f"{kind} {layer}"

    @property
    def change(self) -> str:
        """The change with its sign."""
        return f"{'+' * (self.by.value > 0)}{short(self.by.value, 2)}"

    def told(self) -> str:
        """The change with its interval.

        >>> Effect(("layer", 0), "m", "r", 0.5, 0.6, Reading(0.1, 9, 0.0, 0.05, 0.15), (0.0, 0.0)).told()
        '+0.1 [0.05, 0.15]'
        """
        return f"{self.change} [{short(self.by.low, 2)}, {short(self.by.high, 2)}]"


def ordered(folder: RunFolder) -> pd.DataFrame:
    """The rows of a folder in the order of the layers, repairs as they were asked for."""
    rows, asked = folder.frame(), folder.run.question.get("repairs")
    repairs = [AS_IT_IS, *map(str, asked if isinstance(asked, list | tuple) else ())]
    repair = rows["model"].map({name: number for number, name in enumerate(repairs)})
    layer = rows["layer"].fillna(10**6)
    at = pd.DataFrame({"layer": layer, "repair": repair}).sort_values(["layer", "repair"], kind="stable")
    return rows.loc[at.index].reset_index(drop=True)


def effects(rows: pd.DataFrame) -> list[Effect]:
    """Every change in these rows, site by site."""
    readings = sorted(read(rows), key=lambda r: _order((r.kind, r.layer)))
    value = {(r.kind, r.layer, r.model, r.measure): r.value for r in readings}
    found = []
    for by in readings:
        if by.about:
            before, after = (value[by.kind, by.layer, name, by.about] for name in (AS_IT_IS, by.model))
            x = [value.get((by.kind, by.layer, name, ACROSS), math.nan) for name in (AS_IT_IS, by.model)]
            place = by.kind, by.layer
            found.append(Effect(place, by.about, by.model, before, after, by, (x[0], x[1])))
    return found


def _order(place: Place) -> tuple[bool, int, str]:
    """Layers by number, then the other sites."""
    return place[1] is None, place[1] or 0, place[0]


def places(found: Sequence[Effect]) -> list[Place]:
    """The sites, in order."""
    return sorted({each.place for each in found}, key=_order)


def by_score(found: Sequence[Effect]) -> dict[tuple[Place, str], list[Effect]]:
    """The effects by site and score, site by site."""
    groups: dict[tuple[Place, str], list[Effect]] = {}
    for each in sorted(found, key=lambda each: _order(each.place)):
        groups.setdefault((each.place, each.measure), []).append(each)
    return groups


def is_main(measure: str) -> bool:
    """Whether this score stands for its task."""
    return measure.partition(".")[0] in MAIN


def headline(found: Sequence[Effect], told: Told) -> str:
    """Of the first task, which repair did most for it at the first site and at the last."""
    main = [each for each in found if is_main(each.measure)]
    first = [each for each in main if each.measure == main[0].measure]
    there = places(first)
    said = []
    for place in dict.fromkeys([*there[:1], *there[-1:]]):
        own = [each for each in first if each.place == place]
        name = f"{own[0].site.capitalize()}: {name_of(own[0].measure, told)} is {short(own[0].before)}"
        said.append(f"{name}; {_did(own)}.")
    return " ".join(said) or "There is nothing to compare."


def _did(own: Sequence[Effect]) -> str:
    """How many of these repairs help, or that none can be told to."""
    helped, hurt = ([each for each in own if each.verdict == word] for word in ("helped", "hurt"))
    if helped:
        best = max(helped, key=lambda each: abs(each.by.value))
        some = f"{len(helped)} of {len(own)} repairs help{'s' * (len(helped) == 1)}, most {best.repair}"
        return f"{some if len(own) > 1 else f'{best.repair} helps'}, to {short(best.after)}"
    if len(own) == 1:
        return f"{own[0].repair} {'hurts' if hurt else 'cannot be told to help or to hurt'}"
    told = f"{len(hurt)} hurt{'s' * (len(hurt) == 1)}" if hurt else "and none to hurt"
    return f"of {len(own)} repairs none can be told to help, {told}"


def finding(found: Sequence[Effect], told: Told) -> str:
    """What the repairs did to the main score of each task at each site: a line each, verdicts in turn."""
    lines = []
    for (_, measure), each in by_score([each for each in found if is_main(each.measure)]).items():
        lines.append(f"{each[0].site}, {name_of(measure, told)} {short(each[0].before)}: {_verdicts(each)}.")
    return "\n".join(lines) or "There is nothing to compare."


def _verdicts(effects: Sequence[Effect]) -> str:
    parts = []
    for verdict in VERDICTS:
        alike = [each for each in effects if each.verdict == verdict]
        alike.sort(key=lambda each: -abs(each.by.value))
        sure = verdict in ("helped", "hurt")
        names = ", ".join(f"{each.repair} {each.told()}" if sure else each.repair for each in alike)
        if verdict == "no difference" and alike:
            least = max((each.by.high - each.by.low) / 2 for each in alike)
            shown = f"one of {short(least, 2)} would have shown" if least else "all are alike"
            verdict = f"no difference at n = {alike[0].by.n:,} ({shown})"
        parts += [f"{verdict}: {names}"] if alike else []
    return "; ".join(parts)

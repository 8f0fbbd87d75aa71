"""The rows of an impact read as effects: a score before a repair and after it, the verdict, the geometry.

The column `model` names the repair; a change of a score is a measure of its own, whose note begins with the
verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from isoscope.formatting import short
from isoscope.results.reading import Reading
from isoscope.show.measures import Told, name_of
from isoscope.show.readings import unique

CHANGE, AS_IT_IS = ".change", "as it is"
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
        """The word that its note begins with."""
        return next((word for word in VERDICTS if self.by.note.startswith(word)), "undefined")

    @property
    def site(self) -> str:
        """What a reader calls the site."""
        kind, layer = self.place
        return kind if layer is None else f"{kind} {layer}"

    def told(self) -> str:
        """The change with its interval.

        >>> Effect(("layer", 0), "m", "r", 0.5, 0.6, Reading(0.1, 9, 0.0, 0.05, 0.15), (0.0, 0.0)).told()
        '+0.1 [0.05, 0.15]'
        """
        sign = "+" if self.by.value > 0 else ""
        return f"{sign}{short(self.by.value, 2)} [{short(self.by.low, 2)}, {short(self.by.high, 2)}]"


def effects(rows: pd.DataFrame) -> list[Effect]:
    """Every change in these rows, in their order."""
    value: dict[tuple[Place, str, str], float] = {}
    for place, model, measure, number in _each(rows, "value"):
        value[place, model, measure] = float(str(number))
    found = []
    changes = rows[rows["measure"].str.endswith(CHANGE)]
    columns = (changes[name].tolist() for name in ("low", "high", "n", "note"))
    for (place, repair, named, number), low, high, n, note in zip(
        _each(changes, "value"), *columns, strict=True
    ):
        measure = named.removesuffix(CHANGE)
        before, after = (value[place, each, measure] for each in (AS_IT_IS, repair))
        across = [value.get((place, each, ACROSS), math.nan) for each in (AS_IT_IS, repair)]
        by = Reading(float(str(number)), int(n), 0.0, float(low), float(high), str(note))
        found.append(Effect(place, measure, repair, before, after, by, (across[0], across[1])))
    return found


def _each(rows: pd.DataFrame, column: str) -> list[tuple[Place, str, str, object]]:
    layers = [None if pd.isna(layer) else int(layer) for layer in rows["layer"]]
    columns = (rows[name].tolist() for name in ("kind", "model", "measure", column))
    return [
        ((str(kind), layer), str(model), str(measure), number)
        for layer, kind, model, measure, number in zip(layers, *columns, strict=True)
    ]


def places(found: Sequence[Effect]) -> list[Place]:
    """The sites, in order: layers by number, then the others."""
    return sorted(
        {each.place for each in found}, key=lambda place: (place[1] is None, place[1] or 0, place[0])
    )


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
    for place in places(found):
        here = [each for each in found if each.place == place and is_main(each.measure)]
        for measure in unique(each.measure for each in here):
            own = [each for each in here if each.measure == measure]
            lines.append(f"{own[0].site}, {name_of(measure, told)} {short(own[0].before)}: {_verdicts(own)}.")
    return "\n".join(lines) or "There is nothing to compare."


def _verdicts(own: Sequence[Effect]) -> str:
    parts = []
    for verdict in VERDICTS:
        mine = sorted((each for each in own if each.verdict == verdict), key=lambda each: -abs(each.by.value))
        if not mine:
            continue
        if verdict in ("helped", "hurt"):
            names = ", ".join(f"{each.repair} {each.told()}" for each in mine)
        else:
            names = ", ".join(each.repair for each in mine)
        if verdict == "no difference":
            least = max((each.by.high - each.by.low) / 2 for each in mine)
            shown = f"one of {short(least, 2)} would have shown" if least else "all are alike"
            verdict = f"no difference at n = {mine[0].by.n:,} ({shown})"
        parts.append(f"{verdict}: {names}")
    return "; ".join(parts)

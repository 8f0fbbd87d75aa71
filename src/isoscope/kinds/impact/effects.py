"""The rows of an impact read as effects: a score before a repair and after it, the verdict, the geometry.

The column `model` names the repair. The change of a score is a measure of its own: its row names the score in
`about` and is tagged with the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from isoscope.formatting import short
from isoscope.repair.impact.outcome import MAIN
from isoscope.results.reading import Reading
from isoscope.results.store import RunFolder
from isoscope.show.measures import Told, name_of
from isoscope.show.readings import read

AS_IT_IS = "as it is"
ACROSS = "mean_cosine_between"
"""The geometry that scores are drawn against."""

VERDICTS = {"hurt": "▼", "helped": "▲", "no difference": "·", "cannot matter": "=", "undefined": "?"}
"""The sign of each verdict, in the order of the sentences: harm is reported before help."""

Place = tuple[str, int | None]


@dataclass(frozen=True)
class Effect:
    """How one repair changed one score at one site: `by` how much; `x` is the anisotropy before and after.

    A `main` score stands for its task where there is room for one of each.
    """

    place: Place
    measure: str
    repair: str
    before: float
    after: float
    by: Reading
    x: tuple[float, float]
    main: bool = True

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
    """Every change in these rows: layers by number, then the other sites."""
    readings = sorted(read(rows), key=lambda r: (r.layer is None, r.layer or 0, r.kind))
    value = {(r.kind, r.layer, r.model, r.measure): r.value for r in readings}
    main = {r.measure for r in readings if r.tag == MAIN}
    found = []
    for by in (r for r in readings if r.about):
        before, after = (value[by.kind, by.layer, name, by.about] for name in (AS_IT_IS, by.model))
        x, y = (value.get((by.kind, by.layer, name, ACROSS), math.nan) for name in (AS_IT_IS, by.model))
        place, is_main = (by.kind, by.layer), by.about in main
        found.append(Effect(place, by.about, by.model, before, after, by, (x, y), is_main))
    return found


def by_score(found: Sequence[Effect]) -> dict[tuple[Place, str], list[Effect]]:
    """The effects by site and score, in their order."""
    groups: dict[tuple[Place, str], list[Effect]] = {}
    for each in found:
        groups.setdefault((each.place, each.measure), []).append(each)
    return groups


def headline(found: Sequence[Effect], told: Told) -> str:
    """How many repairs hurt and help the first task, at the first site and at the last."""
    scores = by_score([each for each in found if each.main])
    first = [own for own in scores.values() if own[0].measure == next(iter(scores))[1]]
    said = []
    for own in first[:1] + first[1:][-1:]:
        hurt, helped = ([each for each in own if each.verdict == word] for word in ("hurt", "helped"))
        best = max(helped, key=lambda each: abs(each.by.value), default=None)
        most = f" (most {best.repair}, to {short(best.after)})" if best else ""
        score = f"{own[0].site.capitalize()}: {name_of(own[0].measure, told)} is {short(own[0].before)}"
        counts = f"{len(hurt)} certainly hurt and {len(helped)} certainly help{most}"
        said.append(f"{score}; of {len(own)} repairs, {counts}.")
    return " ".join(said) or "There is nothing to compare."


def finding(found: Sequence[Effect], told: Told) -> str:
    """What the repairs did to the main score of each task at each site: a line each, verdicts in turn."""
    lines = []
    for own in by_score([each for each in found if each.main]).values():
        score = f"{own[0].site}, {name_of(own[0].measure, told)} {short(own[0].before)}"
        lines.append(f"{score}: {'; '.join(_verdicts(own))}.")
    return "\n".join(lines) or "There is nothing to compare."


def _verdicts(own: Sequence[Effect]) -> Iterator[str]:
    for verdict in VERDICTS:
        alike = sorted((e for e in own if e.verdict == verdict), key=lambda e: -abs(e.by.value))
        sure = verdict in ("helped", "hurt")
        names = ", ".join(f"{each.repair} {each.told()}" if sure else each.repair for each in alike)
        if verdict == "no difference" and alike:
            least = max((each.by.high - each.by.low) / 2 for each in alike)
            shown = f" (one of {short(least, 2)} would have shown)" if least else ""
            verdict = f"no difference at n = {alike[0].by.n:,}{shown}"
        if alike:
            yield f"{verdict}: {names}"

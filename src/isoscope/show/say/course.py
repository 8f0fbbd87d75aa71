"""The course of a training run: how measures changed, where it broke, and what looking at it took.

Two steps differ where the 95 % interval of the change does not contain 0. It is paired where both steps read
the same inputs, and widened for the number of comparisons (Bonferroni): sites, and steps for a turn. Without
intervals nothing is claimed about chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf

import numpy as np
import pandas as pd

from isoscope.formatting import spread, two
from isoscope.results.paired import PAIRED, UNPAIRED, paired
from isoscope.results.units import step_of
from isoscope.show.readings import ATTENTION, SiteReading, steps
from isoscope.show.say.shapes import places

NOT_FINITE = ("not_finite", "not_finite_rows")
Facts = Mapping[str, Mapping[str, object]]  # what is known of each unit of a run
TURN = 0.25
"""A turn on the way lies outside both ends by more than this part of the change, or else of the size."""
Pair = tuple[SiteReading, SiteReading]  # a site at the first step and at the last


def changed(found: list[SiteReading], name: str, *, spanned: bool = True, of: str = "") -> str:
    """The sentence on one measure, `name` as a sentence has it; empty where no site is read at both ends.

    Unless `spanned`, the steps have been named before. `of` is the model, where it is to be named.
    """
    found = [r for r in while_whole(found) if r.known and r.head is None]
    pairs = _pairs(found)
    if not pairs:
        return ""
    first, last = steps(found)[0], steps(found)[-1]
    whose = f" of {of}" if of else ""
    span = f"From step {first:,} to step {last:,}{whose} the {name}" if spanned else f"The {name}"
    return f"{span} {_moved(pairs)}{_turn(found, pairs)}."


def against(found: list[SiteReading], one: str, other: str, name: str) -> str:
    """The sentence on how two models differ at the sites of both; empty unless their inputs are the same."""
    mine = {r.site: r for r in found if r.model == one and r.known and r.head is None}
    pairs = [(mine[r.site], r) for r in found if r.model == other and r.known and r.site in mine]
    if not pairs or any(paired(a, b).tag != PAIRED for a, b in pairs):
        return ""
    return f"Over the same inputs, from {one} to {other} the {name} {_moved(pairs)}."


def _moved(pairs: list[Pair]) -> str:
    """Where readings rose, where they fell and where neither is known, as the verb of a sentence."""
    old, new = (spread([pair[at].value for pair in pairs]) for at in (0, 1))
    changes = [paired(a, b, len(pairs)) for a, b in pairs]
    both = list(zip(pairs, changes, strict=True))
    rose, fell = [p for p, by in both if by.above(0)], [p for p, by in both if by.below(0)]
    still = [b for (_, b), by in both if not by.excludes(0)]
    if not all(by.bounded for by in changes):
        text = f"went from {old} to {new} (without intervals)"
    elif not rose and not fell:
        text = f"shows no change distinguishable from chance: {old}, then {new}"
    else:
        moves = (_move(verb, group, len(pairs)) for verb, group in (("rose", rose), ("fell", fell)) if group)
        text = " and ".join(moves)
        text += f"; in {places(still)} no change is distinguishable from chance" if still else ""
    loose = any(by.tag == UNPAIRED for by in changes)
    return f"{text} (intervals not paired)" if loose else text


def _pairs(found: list[SiteReading]) -> list[Pair]:
    """The sites that were read at the first step and at the last; none where there are not two steps."""
    if len(steps(found)) < 2:
        return []
    first, last = steps(found)[0], steps(found)[-1]
    begun = {r.site: r for r in found if r.step == first}
    return [(begun[r.site], r) for r in found if r.step == last and r.site in begun]


def _move(verb: str, group: list[Pair], sites: int) -> str:
    a, b = max(group, key=lambda pair: abs(pair[1].value - pair[0].value))
    change = "from {} to {}".format(*two(a.value, b.value))
    if sites == 1:
        return f"{verb} {change}"
    if len(group) == 1:
        return f"{verb} in {places([b])} ({change})"
    where = "everywhere" if len(group) == sites else f"in {places([b for _, b in group])}"
    return f"{verb} {where}, most in {places([b])} ({change})"


def _turn(found: list[SiteReading], pairs: list[Pair]) -> str:
    """The farthest peak or low on the way, where it is distinguishable from both ends."""
    turns, both = [], {a.site: (a, b) for a, b in pairs}
    looks = 2 * len(pairs) * max(1, len(steps(found)) - 2)
    for r in found:
        a, b = both.get(r.site, (r, r))
        room = TURN * (abs(b.value - a.value) or abs(a.value))
        over, under = r.value - max(a.value, b.value), min(a.value, b.value) - r.value
        if max(over, under) > room and all(_apart(r, end, looks) for end in (a, b)):
            turns.append((max(over, under), "a peak" if over > under else "a low", r))
    if not turns:
        return ""
    _, what, r = max(turns, key=lambda turn: turn[0])
    place = f" in {places([r])}" if len(pairs) > 1 else ""
    return f"; on the way it had {what} of {r.number}{place} at step {r.step:,}"


def _apart(one: SiteReading, other: SiteReading, looks: int) -> bool:
    """Whether two readings differ, as one of `looks`; without any interval the numbers decide."""
    return paired(one, other, looks).excludes(0) or not (one.bounded or other.bounded)


def first_not_finite(readings: Iterable[SiteReading]) -> SiteReading | None:
    """Where NaN or Inf was first seen: at the first step, first along the way of the data."""
    bad = [r for r in readings if r.measure in NOT_FINITE and r.head is None and r.value > 0]
    return min(bad, key=lambda r: (r.step or 0, r.place, r.kind not in ATTENTION), default=None)


def not_finite(first: SiteReading) -> str:
    """Where NaN or Inf was first seen, as a sentence without its point."""
    what = "attention rows" if first.measure == "not_finite_rows" else "vectors"
    at = "" if first.step is None else f" at step {first.step:,},"
    return f"NaN or Inf was first seen{at} in {first.site} ({first.value:,.0f} of {first.n:,} {what})"


def while_whole(readings: list[SiteReading]) -> list[SiteReading]:
    """Without the steps after the last one that has all the values that any step has: the run broke there."""
    values = Counter(r.step for r in readings if r.known and r.kind != "training" and r.step is not None)
    most = max(values.values(), default=0)
    last = max((step for step, count in values.items() if count == most), default=None)
    return [r for r in readings if last is None or r.step is None or r.step <= last]


def rows_while_whole(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows without the steps after the last whole one; in a long run they are too many to read one by one."""
    values = rows.loc[np.isfinite(rows["value"].astype(float)) & (rows["kind"] != "training"), "step"]
    counts = values.value_counts()
    if counts.empty:
        return rows
    return rows[rows["step"].isna() | (rows["step"] <= counts[counts == counts.max()].index.max())]


def cost(facts: Facts) -> str:
    """How much looking added to the time of training; empty where that is not recorded."""
    booked = [unit for unit, known in facts.items() if known.get("budget")]
    last = max(booked, key=_step, default="")
    budget = facts[last]["budget"] if last else None
    share = budget.get("share spent") if isinstance(budget, Mapping) else None
    if not isinstance(share, float | int):
        return ""
    until = "" if _step(last) == inf else f" up to step {_step(last):,.0f}, the last look"
    return f"Looking added {100 * share:.{0 if share >= 0.1 else 1}f} % to the time of training{until}."


def told_once(facts: Facts) -> dict[str, dict[str, object]]:
    """Facts with the note on the budget at the last unit only: every unit repeats it, with newer numbers."""
    last = max((unit for unit, known in facts.items() if known.get("budget note")), key=_step, default="")
    left = {unit: None if unit == last else known.get("budget note") for unit, known in facts.items()}
    return {
        unit: {**known, "notes": [note for note in notes_of(known) if note != left[unit]]}
        for unit, known in facts.items()
    }


def _step(unit: str) -> float:
    """The step of a unit, by which units are put in order; those without one come last."""
    step = step_of(unit)
    return inf if step is None else step


def notes_of(known: Mapping[str, object]) -> list[object]:
    """The notes that a unit recorded."""
    told = known.get("notes")
    return [told] if isinstance(told, str) else list(told) if isinstance(told, list | tuple) else []

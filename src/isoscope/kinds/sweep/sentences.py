"""What a sweep says in plain words: how many checkpoints, what is wrong, what changes, what goes together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from statistics import median

import pandas as pd

from isoscope.formatting import listed, plain
from isoscope.kinds.sweep.rows import STRAY, changes_of
from isoscope.results.trajectory import Trajectory
from isoscope.show.figures.step_axis import Changed
from isoscope.show.measures import Told, name_of
from isoscope.show.page.swept import Finding
from isoscope.show.readings import SiteReading, read, unique

_SURE = 0.01  # the p below which a correlation is counted
_MUCH = 0.9  # a CKA above it is called nearly there
_MOST = 3  # places of changes that are named


def opening(of: Trajectory, findings: tuple[Finding, ...], examined: bool) -> str:
    """How many checkpoints there are, how many are doubtful, how many failed."""
    count = len(of.units)
    span = f" from step {of.steps[0]:,} to step {of.steps[-1]:,}" if count > 1 and not of.numbered else ""
    said = [
        f"{count:,} checkpoint{'s' if count != 1 else ''}{span} {'were' if count != 1 else 'was'} measured"
    ]
    if of.failed:
        said.append(f"{len(of.failed):,} failed")
    doubtful = len({finding.checkpoint for finding in findings})
    if doubtful:
        said.append(f"{doubtful:,} may not be what {'they claim' if doubtful > 1 else 'it claims'} to be")
    elif examined:
        said.append(f"nothing was found wrong with {'their' if count != 1 else 'its'} files")
    return f"{listed(said)}."


def changes_words(between: pd.DataFrame, known: Mapping[str, object], told: Told) -> str:
    """Where most changes fall, and of how many series; or why none was looked for."""
    short_of = between[(between["measure"] == "changes") & between["value"].isna()]
    if len(short_of):
        note = str(short_of["note"].iloc[0])
        return f"{note[0].upper()}{note[1:]}."
    looked = known.get("series looked at for changes")
    if not isinstance(looked, int) or not looked:
        return ""
    found = changes_of(between)
    chance = (
        f"where none does, chance marks about {max(1, round(0.01 * looked)):,} of so many, and many more "
        "where shocks are of very different sizes"
    )
    if not found:
        return f"None of {looked:,} series jumps or turns by more than it wanders and bends anyway."
    said = [f"{_series(found):,} of {looked:,} series jump or turn; {chance}."]
    said += [_cluster(*each, told) for each in _clusters(found)]
    strays = Counter(change.step for change in changes_of(between, (STRAY,)))
    for step, count in strays.most_common(1):
        if count < max(3, 0.1 * looked):
            break
        said.append(f"The checkpoint of step {step:,} lies apart from its neighbours in {count:,} series.")
    return "\n".join(said)


def _series(found: list[Changed]) -> int:
    """How many series these changes are of: one may both jump and turn."""
    return len({(change.kind, change.layer, change.measure) for change in found})


def _clusters(found: list[Changed]) -> list[tuple[int, int, list[Changed]]]:
    """The spans that most intervals share, one after the other; alone, a change is told in the figures."""
    rest = found
    out: list[tuple[int, int, list[Changed]]] = []
    while rest and len(out) < _MOST:
        at = max(
            sorted({c.high for c in rest}),
            key=lambda high: _series([c for c in rest if c.low < high <= c.high]),
        )
        own = [change for change in rest if change.low < at <= change.high]
        if _series(own) < 2:
            break
        out.append((max(change.low for change in own), min(change.high for change in own), own))
        rest = [change for change in rest if change not in own]
    return out


def _cluster(low: int, high: int, own: list[Changed], told: Told) -> str:
    counts = Counter(change.measure for change in own)
    named = [name_of(measure, told) for measure, _ in counts.most_common(3)]
    rest = len(counts) - len(named)
    more = [f"{rest} more measure{'s' if rest > 1 else ''}"] if rest else []
    names = listed([*named, *more])
    return f"Between step {low:,} and step {high:,}, {_series(own):,} series change: {names}."


def alike_words(between: pd.DataFrame) -> str:
    """From which checkpoint on each site is nearly what it is at the end, by CKA with the last."""
    own = [r for r in read(between[between["measure"] == "cka_last_checkpoint"]) if r.known]
    said = []
    for site in unique(r.site for r in own):
        line = {r.step or 0: r.value for r in own if r.site == site}
        below = [step for step, value in line.items() if value <= _MUCH]
        after = [step for step in line if step > max(below, default=-1)]
        if not below:
            said.append(f"{site} from the first checkpoint on")
        else:
            said.append(f"{site} from step {min(after):,} on" if after else f"{site} only at the last")
    return f"CKA with the last checkpoint is above {_MUCH} in {'; '.join(said)}." if said else ""


def correlation_words(own: list[SiteReading]) -> str:
    """In how many heads (or layers) entropy goes with drift, as told for independent checkpoints."""
    said = []
    for drift, what in (("query", "queries"), ("key", "keys")):
        level, steps = (_counted(own, f"entropy_with_{drift}_drift{end}") for end in ("", "_changes"))
        if level:
            said.append(f"Along training the entropy correlates with the drift of the {what} at {level}.")
        if steps:
            said.append(f"From checkpoint to checkpoint at {steps}.")
    if said:
        said.append(
            "Two slow series correlate whatever they are: p is told for as many independent checkpoints as "
            "these are worth, and what holds from checkpoint to checkpoint no straight trend can make."
        )
    return "\n".join(said)


def _counted(own: list[SiteReading], name: str) -> str:
    """The median, and how many are below and above 0 beyond chance; of heads where there are any."""
    mine = [r for r in own if r.measure == name]
    heads = [r for r in mine if r.head is not None]
    mine = heads or mine
    if not mine:
        return ""
    sure = [r.value for r in mine if _chance(r.note) < _SURE]
    down = sum(value < 0 for value in sure)
    middle = plain(median(r.value for r in mine))
    unit = "head" if heads else "layer"
    if not sure:
        return f"{middle} in the median {unit}; in none of {len(mine):,} {unit}s can it be told from chance"
    sides = [f"{down:,} below 0" if down else "", f"{len(sure) - down:,} above 0" if len(sure) > down else ""]
    told = listed([side for side in sides if side])
    return f"{middle} in the median {unit}; with p < {_SURE} it is {told}, of {len(mine):,} {unit}s"


def _chance(note: str) -> float:
    found = re.match(r"p = ([0-9.e+-]+)", note)
    return float(found[1]) if found else 1.0

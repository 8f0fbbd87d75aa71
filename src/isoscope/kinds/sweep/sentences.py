"""What a sweep says in plain words: how many checkpoints, what is wrong, what changes, what goes together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from statistics import median

import pandas as pd

from isoscope.formatting import capital, listed, plain
from isoscope.kinds.sweep.rows import STRAY, changes_of
from isoscope.results.trajectory import Trajectory
from isoscope.show.measures import Told, name_of
from isoscope.show.page.training import Finding
from isoscope.show.readings import SiteReading, read, unique

_SURE = 0.01  # the p below which a correlation is counted
_MUCH = 0.9  # a CKA above it is called nearly there


def opening(of: Trajectory, findings: tuple[Finding, ...], examined: bool) -> str:
    """How many checkpoints there are, how many are doubtful, how many failed."""
    several = len(of.units) > 1 and not of.numbered
    span = f" from step {of.steps[0]:,} to step {of.steps[-1]:,}" if several else ""
    said = [f"Checkpoints measured: {len(of.units):,}{span}"]
    said += [f"failed: {len(of.failed):,}"] if of.failed else []
    doubtful = len({finding.checkpoint for finding in findings})
    if doubtful:
        said.append(f"possibly not what they claim to be: {doubtful:,}")
    elif examined:
        said.append("nothing wrong was found in their files")
    return f"{'; '.join(said)}."


def changes_words(between: pd.DataFrame, known: Mapping[str, object], told: Told) -> str:
    """In how many series there are changes and where most fall; or why none was looked for."""
    short_of = between[(between["measure"] == "changes") & between["value"].isna()]
    if len(short_of):
        return f"{capital(str(short_of['note'].iloc[0]))}."
    looked = known.get("series looked at for changes")
    if not isinstance(looked, int) or not looked:
        return ""
    found = changes_of(between)
    if not found:
        return f"None of {looked:,} series jumps or turns by more than it wanders and bends anyway."
    chance = f"chance alone marks about {max(1, round(0.01 * looked)):,}"
    jump = f"{_series(found):,} of {looked:,} series jump or turn"
    said = [f"{jump}; {chance}, more where shocks differ much in size."]
    # the span that most intervals share; the figures show the other changes
    ends = sorted({change.high for change in found})
    shared = ([c for c in found if c.meets(before, at)] for before, at in pairwise([-math.inf, *ends]))
    own = max(shared, key=_series)
    if _series(own) > 1:
        low, high = max(change.low for change in own), min(change.high for change in own)
        counts = Counter(change.about for change in own)
        names = [name_of(measure, told) for measure, _ in counts.most_common(3)]
        names += [f"{len(counts) - 3} more"] if len(counts) > 3 else []
        span = f"between step {low:,.0f} and step {high:,.0f}"
        said.append(f"The largest group ({_series(own):,}) changes {span}: {listed(names)}.")
    strays = Counter(int(change.value) for change in changes_of(between, (STRAY,)))
    for step, count in strays.most_common(1):
        if count >= max(3, 0.1 * looked):
            said.append(f"The checkpoint of step {step:,} differs from its neighbours in {count:,} series.")
    return "\n".join(said)


def _series(found: list[SiteReading]) -> int:
    """How many series these changes are of: one may both jump and turn."""
    return len({(change.kind, change.layer, change.about) for change in found})


def alike_words(between: pd.DataFrame) -> str:
    """The step from which on each site is nearly what it is at the end, by CKA with the last checkpoint."""
    own = [r for r in read(between[between["measure"] == "cka_last_checkpoint"]) if r.known]
    said = []
    for site in unique(r.site for r in own):
        line = [r for r in own if r.site == site]
        below = max((r.step or 0 for r in line if r.value <= _MUCH), default=-1)
        after = [r.step or 0 for r in line if (r.step or 0) > below]
        said += [f"{site} from step {min(after):,} on"] if after else []
    return f"CKA with the last checkpoint is above {_MUCH} in {listed(said)}." if said else ""


def correlation_words(own: list[SiteReading]) -> str:
    """In how many heads (or layers) entropy goes with drift, as told for independent checkpoints."""
    said = []
    for drift, what in (("query", "queries"), ("key", "keys")):
        for end, how in (("", "Along training"), ("_changes", "From checkpoint to checkpoint")):
            mine = [r for r in own if r.measure == f"entropy_with_{drift}_drift{end}"]
            heads = [r for r in mine if r.head is not None]
            mine, unit = (heads, "heads") if heads else (mine, "layers")
            if mine:
                sure = [r.value for r in mine if r.p < _SURE]
                below = sum(value < 0 for value in sure)
                middle = plain(median(r.value for r in mine))
                counts = f"r < 0 in {below:,}, r > 0 in {len(sure) - below:,} of {len(mine):,} {unit}"
                text = f"{how}, entropy and the drift of {what} correlate with a median r of {middle}"
                said.append(f"{text} (p < {_SURE} and {counts}).")
    if said:
        said.append(
            "Two slow series correlate in any case: p is for the number of independent checkpoints they are "
            "worth. No straight trend makes a correlation from checkpoint to checkpoint."
        )
    return "\n".join(said)

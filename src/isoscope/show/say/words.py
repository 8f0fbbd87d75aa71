"""What the numbers say, in plain words: one headline, and one or two sentences for each family.

Claims hang on `mean_cosine_between` and its interval, whose end nearer to the null gives the word of size.
"""

from __future__ import annotations

from pathlib import PurePath

import pandas as pd

from isoscope.formatting import capital, listed, plain, spread
from isoscope.show.readings import PLACES, SiteReading, at_last, ends, models, of, read, steps, where
from isoscope.show.say import attention, weights
from isoscope.show.say.course import against, changed, first_not_finite, not_finite, while_whole
from isoscope.show.say.families import said_of
from isoscope.show.say.shapes import GRADES, MOST_NAMED, STRONG, WEAK, graded, lowered

CLAIM = "mean_cosine_between"
LIVE = "live"
"""The revision of rows of batches that trained: no claim hangs on them, since each is another batch."""

SCALE_OF_WORDS = (
    f"Strongly: the whole 95 % interval of the mean cosine between sequences lies above {STRONG}, so the "
    "direction all vectors share outweighs everything else in them. "
    f"Weakly: it lies above 0 but begins under {WEAK}. "
    "Where the interval does not lie above the null, or is missing, nothing is claimed. "
    "Two steps differ where the 95 % interval of the change does not contain 0. Where both steps read the "
    "same inputs, the interval is paired: groups of sequences are left out of both at once. It is widened "
    "for the number of sites compared (Bonferroni)."
)
_SUBJECT = "mean cosine between sequences"


def headline(rows: pd.DataFrame) -> str:
    """The one sentence that says what was found, and further ones on attention and on weights."""
    probed = rows["revision"].fillna("") != LIVE
    every = read(rows[probed] if probed.any() else rows)
    readings = [r for r in every if r.head is None]
    out, alone = [], len(models(readings)) == 1
    if len(steps(readings)) > 1 and alone and (broken := first_not_finite(readings)):
        out, readings = [f"{not_finite(broken)}."], while_whole(readings)
    claimed = of(readings, CLAIM, *PLACES)
    weighed = _weights(every)
    out += [_clouds(claimed)] if claimed or not weighed else []
    if alone:
        attended, last = attention.in_brief(at_last(readings)), steps(readings)[1:]
        out.append(f"At step {last[-1]:,}, {lowered(attended)}" if attended and last else attended)
    return " ".join(filter(None, [*out, weighed]))


def _weights(readings: list[SiteReading]) -> str:
    out = []
    for name in models(readings)[:MOST_NAMED]:
        said = weights.in_brief(at_last([r for r in readings if r.model == name and r.known]))
        out.append(f"{name}: {lowered(said)}" if said and len(models(readings)) > 1 else said)
    return " ".join(filter(None, out))


def _clouds(claimed: list[SiteReading]) -> str:
    known = [r for r in claimed if r.known]
    if not claimed:
        return f"The {_SUBJECT} was not measured, so nothing is claimed about anisotropy."
    if not known:
        return f"The {_SUBJECT} of {listed(models(claimed))} is undefined everywhere; the notes say why."
    if len(models(known)) > 1:
        return _models(known)
    return changed(known, _SUBJECT, of=called(known[0].model)) or _sites(at_last(known))


def sentences(rows: pd.DataFrame, family: str) -> str:
    """One or two plain sentences for the figures of a family; empty where there is nothing to say."""
    return said_of(family, [r for r in read(rows) if r.known or r.measure == "attention_kind"])


def grade(reading: SiteReading) -> str:
    """The word this reading earns: one of `GRADES`, "untold" or, without an interval, "unsure".

    An interval under the null is untold too: the mean cosine of independent sequences is a squared
    length.
    """
    if not reading.bounded:
        return "unsure"
    return graded(reading.low) if reading.above(reading.chance) else "untold"


_UNCLAIMED = {"untold": "indistinguishable from chance", "unsure": "no interval, so nothing is claimed"}


def _sites(found: list[SiteReading]) -> str:
    """The sites that earn the largest word, and what is elsewhere."""
    words = {r.site: grade(r) for r in found}
    word = min(words.values(), key=(*GRADES, *_UNCLAIMED).index)
    group, rest = ([r for r in found if (words[r.site] == word) is own] for own in (True, False))
    step = f" at step {found[0].step:,}" if found[0].step is not None else ""
    cloud, model = all(r.kind == "cloud" for r in group), called(group[0].model) + step
    range_, null = spread([r.value for r in group], plain), plain(group[0].chance)
    numbers = f"{_SUBJECT} {range_}; an isotropic cloud has {null}"
    if word in _UNCLAIMED:
        place = model if cloud else f"{where(group)} of {model}"
        return f"No anisotropy is shown in {place}: {numbers} ({_UNCLAIMED[word]})."
    subject = model if cloud else f"{capital(where(group))} of {model}"
    told = [r for r in rest if words[r.site] in GRADES]
    untold = [r for r in rest if words[r.site] not in GRADES]
    text = f"{subject} {'are' if len(group) > 1 else 'is'} {word}: {numbers}."
    text += f" In {where(told)} it is {spread([r.value for r in told], plain)}." if told else ""
    return text + (f" In {where(untold)} it cannot be distinguished from chance." if untold else "")


def called(model: str) -> str:
    """A model in a sentence: of a place on this machine the last part, since the page has all of it above."""
    return PurePath(model).name if PurePath(model).is_absolute() else model


def _models(found: list[SiteReading]) -> str:
    names = models(found)
    highest = [ends(at_last([r for r in found if r.model == name]))[0] for name in names]
    the = "At the last step, the highest" if steps(found) else "The highest"
    said = listed([_top(top) for top in highest])
    if len(names) > MOST_NAMED:
        top, low = ends(highest)
        said = f"{_top(low)} to {_top(top)} ({len(names)} models)"
    last = [r for name in names for r in at_last([r for r in found if r.model == name])]
    told = [against(last, names[0], name, _SUBJECT) for name in names[1:MOST_NAMED]]
    text = f"{the} {_SUBJECT} is {said}; an isotropic cloud has {plain(highest[0].chance)}."
    return " ".join([text, *filter(None, told)])


def _top(top: SiteReading) -> str:
    place = top.model if top.kind == "cloud" else f"{top.at} of {top.model}"
    worth = {"untold": " (indistinguishable from chance)", "unsure": " (without an interval)"}
    return f"{plain(top.value)} in {place}{worth.get(grade(top), '')}"

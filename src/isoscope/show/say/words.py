"""What the numbers say, in plain words: one headline, and one or two sentences for each family.

Decided here: claims hang on `mean_cosine_between` and its interval, never on the bare `mean_cosine`,
which pairs within one sequence inflate. A word of size is given by the end of the interval nearer to
the null, so that chance alone does not earn it; where the interval includes the null nothing is
claimed. Two steps are told apart where their intervals do not overlap, which errs on the side of
silence. No plotly and no torch here.
"""

from __future__ import annotations

from pathlib import PurePath

import pandas as pd

from isoscope.formatting import listed, plain, spread, two
from isoscope.show.readings import PLACES, SiteReading, at_last, ends, models, of, read, steps, where
from isoscope.show.say import attention, weights
from isoscope.show.say.broken import first_not_finite, not_finite, while_whole
from isoscope.show.say.families import said_of
from isoscope.show.say.shapes import GRADES, MOST_NAMED, STRONG, WEAK, capital, graded, latest, lowered
from isoscope.show.say.training import Changes, Pair, widest

CLAIM = "mean_cosine_between"
LIVE = "live"
"""The revision of rows of batches that trained: no claim hangs on them, since each is another batch."""

SCALE_OF_WORDS = (
    f"Strongly: the whole 95 % interval of the mean cosine between sequences lies above {STRONG}, so the "
    "direction all vectors share outweighs everything else in them. "
    f"Weakly: it lies above 0 but begins under {WEAK}. "
    "Where the interval does not lie above the null, or is missing, nothing is claimed. "
    "Two steps are told apart where their intervals do not overlap."
)
_SUBJECT = "mean cosine between sequences"


def headline(rows: pd.DataFrame) -> str:
    """The one sentence that says what was found, and further ones on attention and on weights."""
    probed = rows["revision"].fillna("") != LIVE
    every = read(rows[probed] if probed.any() else rows)
    readings = [r for r in every if r.head is None]
    out = []
    if len(steps(readings)) > 1 and len(models(readings)) == 1 and (broken := first_not_finite(readings)):
        out, readings = [f"{not_finite(broken)}."], while_whole(readings)
    claimed = of(readings, CLAIM, *PLACES)
    weighed = _weights(every) or ("" if claimed else weights.in_short(every))
    out += [] if weighed and not claimed else [_clouds(claimed)]
    if len(models(readings)) == 1:
        shown, last = latest(readings)
        attended = attention.in_brief(shown)
        out.append(f"At step {last:,}, {lowered(attended)}" if attended and last is not None else attended)
    return " ".join(filter(None, [*out, weighed]))


def _weights(readings: list[SiteReading]) -> str:
    """What is said of weights, of each model at its last step; empty where none were measured."""
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
    return _training(known) if len(steps(known)) > 1 else _sites(known)


def sentences(rows: pd.DataFrame, family: str) -> str:
    """One or two plain sentences for the figures of a family; empty where there is nothing to say."""
    return said_of(family, [r for r in read(rows) if r.known])


def grade(reading: SiteReading) -> str:
    """The word this reading earns: one of `GRADES`, "untold" or, without an interval, "unsure".

    An interval under the null is untold too: over independent sequences the mean cosine is a squared
    length and cannot be negative, so a value below 0 is chance or a matter of this sample.
    """
    if not reading.bounded:
        return "unsure"
    return "untold" if reading.low <= reading.chance else graded(reading.low)


def _sites(found: list[SiteReading]) -> str:
    word = min(map(grade, found), key=(*GRADES, "untold", "unsure").index)
    group = [r for r in found if grade(r) == word]
    model = called(group[0].model)
    subject = model if all(r.kind == "cloud" for r in group) else f"{where(group)} of {model}"
    subject += f" at step {found[0].step:,}" if found[0].step is not None else ""
    range_, null = spread([r.value for r in group], plain), plain(group[0].chance)
    if word == "unsure":
        return (
            f"The {_SUBJECT} of {subject} is {range_}, where an isotropic cloud has {null}; "
            "without an interval it cannot be told from chance."
        )
    if word == "untold":
        both = "the 95 % intervals do" if len(group) > 1 else "the 95 % interval does"
        text = f"No anisotropy can be told from chance in {subject}: "
        text += f"the {_SUBJECT} is {range_} and {both} not lie above {null}"
    else:
        subject = subject if group[0].kind == "cloud" else capital(subject)
        verb = "are" if len(group) > 1 else "is"
        text = f"{subject} {verb} {word}: {_SUBJECT} {range_}, where an isotropic cloud has {null}"
    return f"{text}{_elsewhere([r for r in found if grade(r) != word])}."


def _elsewhere(rest: list[SiteReading]) -> str:
    told = [r for r in rest if grade(r) in GRADES]
    untold = [r for r in rest if grade(r) not in GRADES]
    parts = [f"in {where(told)} it is {spread([r.value for r in told], plain)}"] if told else []
    parts += [f"in {where(untold)} it cannot be told from chance"] if untold else []
    return "; " + listed(parts) if parts else ""


def called(model: str) -> str:
    """A model in a sentence: of a place on this machine the last part, since the page has all of it above.

    >>> called("/runs/models/f5d8"), called("google/bert-base")
    ('f5d8', 'google/bert-base')
    """
    return PurePath(model).name if PurePath(model).is_absolute() else model


def _training(found: list[SiteReading]) -> str:
    changes = Changes.of(found)
    pairs, moves = changes.pairs, changes.moves
    if not pairs:
        return _sites(at_last(found))
    span = f"Between step {steps(found)[0]:,} and step {steps(found)[-1]:,} of {called(found[0].model)}"
    if moves:
        text = f"the {_SUBJECT} {' and '.join(_move(*move) for move in moves.items())}"
        text += f", where an isotropic cloud has {plain(pairs[0][1].chance)}"
        text += f"; in {where(changes.still)} no change can be told from chance" if changes.still else ""
    else:
        why = "at this n" if any(a.bounded and b.bounded for a, b in pairs) else "without intervals"
        old, new = (spread([pair[at].value for pair in pairs], plain) for at in (0, 1))
        text = f"no change of the {_SUBJECT} can be told from chance {why}: it is {old}, then {new}"
    if turn := changes.turn(0.0, sure=True):
        what, r = turn
        place = "" if r.kind == "cloud" or len(pairs) == 1 else f" in {r.at}"
        text += f"; on the way it has {what} of {plain(r.value)}{place} at step {r.step:,}"
    return f"{span} {text}."


def _move(verb: str, pairs: list[Pair]) -> str:
    a, b = widest(pairs)
    old, new = two(a.value, b.value)
    change = f"from {old} to {new}"
    if a.kind == "cloud":
        return f"{verb} {change}"
    if len(pairs) == 1:
        return f"{verb} in {b.at} {change}"
    return f"{verb} in {where(b for _, b in pairs)}, most in {b.at} ({change})"


def _models(found: list[SiteReading]) -> str:
    names = models(found)
    highest = [max(at_last([r for r in found if r.model == name]), key=lambda r: r.value) for name in names]
    the = "At the last step, the" if steps(found) else "The"
    tail = f", where an isotropic cloud has {plain(highest[0].chance)}."
    if len(names) > MOST_NAMED:
        top, low = ends(highest)
        range_ = f"goes from {_top(low)} to {_top(top)}{tail}"
        return f"{the} highest {_SUBJECT} of each of {len(names)} models {range_}"
    return f"{the} {_SUBJECT} reaches {listed([_top(top) for top in highest])}{tail}"


def _top(top: SiteReading) -> str:
    place = top.model if top.kind == "cloud" else f"{top.at} of {top.model}"
    worth = {"untold": " (not to be told from chance)", "unsure": " (without an interval)"}
    return f"{plain(top.value)} in {place}{worth.get(grade(top), '')}"

"""What the numbers say, in plain words: one headline, and one or two sentences for each family.

Decided here: claims hang on `mean_cosine_between` and its interval, never on the bare `mean_cosine`,
which pairs within one sequence inflate. A word of size is given by the end of the interval nearer to
the null, so that chance alone does not earn it; where the interval includes the null nothing is
claimed. Two steps are told apart where their intervals do not overlap, which errs on the side of
silence. No plotly and no torch here.
"""

from __future__ import annotations

import math
from pathlib import PurePath

import pandas as pd

from isoscope.formatting import listed, plain, spread, two
from isoscope.show.readings import SiteReading, models, of, read, steps, where
from isoscope.show.say.attention import in_brief
from isoscope.show.say.broken import first_not_finite, not_finite, while_whole
from isoscope.show.say.families import SENTENCES
from isoscope.show.say.parts import generic
from isoscope.show.say.weights import in_brief as weights_in_brief
from isoscope.show.say.weights import in_short as weights_in_short

CLAIM = "mean_cosine_between"
LIVE = "live"
"""The revision of rows of batches that trained: no claim hangs on them, since each is another batch."""

ISOTROPIC = 0.0
"""The mean cosine of a cloud without preferred direction; used where a row carries no null."""

STRONG = 0.5
"""The mean cosine is ‖mean of x/‖x‖‖²: above .5 the shared direction outweighs all the rest together."""

WEAK = 0.1
"""Below .1 the shared direction holds less than a tenth of the squared length: a convention."""

MOST_NAMED = 4
"""So many models are told one by one in the headline; more are told by their range."""

GRADES = ("strongly anisotropic", "anisotropic", "weakly anisotropic")
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
    rows = rows[probed] if probed.any() else rows
    every = read(rows)
    readings = [r for r in every if r.head is None]
    broken = first_not_finite(readings) if len(steps(readings)) > 1 and len(models(readings)) == 1 else None
    readings = readings if broken is None else while_whole(readings)
    attended = ""
    if len(models(readings)) == 1:
        last = steps(readings)[-1] if len(steps(readings)) > 1 else None
        attended = in_brief([r for r in readings if last is None or r.step == last])
        if attended and last is not None:
            attended = f"At step {last:,}, {attended[0].lower()}{attended[1:]}"
    weighed = _weights(every)
    if not (weighed or of(readings, CLAIM)):
        weighed = weights_in_short(every)
    clouds = "" if weighed and not of(readings, CLAIM) else _clouds(readings)
    return " ".join(filter(None, [_broken(broken), clouds, attended, weighed]))


def _broken(first: SiteReading | None) -> str:
    return "" if first is None else f"{not_finite(first)}."


def _weights(readings: list[SiteReading]) -> str:
    """What is said of weights, of each model at its last step; empty where none were measured."""
    out = []
    for name in models(readings)[:MOST_NAMED]:
        own = [r for r in readings if r.model == name and r.known]
        last = steps(own)[-1:]
        said = weights_in_brief([r for r in own if not last or r.step == last[0]])
        out += [f"{name}: {said[0].lower()}{said[1:]}" if said and len(models(readings)) > 1 else said]
    return " ".join(filter(None, out))


def _clouds(readings: list[SiteReading]) -> str:
    asked = of(readings, CLAIM)
    found = [r for r in asked if r.known]
    if not asked:
        return f"The {_SUBJECT} was not measured, so nothing is claimed about anisotropy."
    if not found:
        return f"The {_SUBJECT} of {listed(models(asked))} is undefined everywhere; the notes say why."
    if len(models(found)) > 1:
        return _models(found)
    if len(steps(found)) > 1:
        return _training(found)
    return _sites(found)


def sentences(rows: pd.DataFrame, family: str) -> str:
    """One or two plain sentences for the figures of a family; empty where there is nothing to say."""
    readings = [r for r in read(rows) if r.known]
    write = SENTENCES.get(family)
    return write(readings) if write else generic(readings)


def grade(reading: SiteReading) -> str:
    """The word this reading earns: one of `GRADES`, "untold" or, without an interval, "unsure".

    An interval under the null is untold too: over independent sequences the mean cosine is a squared
    length and cannot be negative, so a value below 0 is chance or a matter of this sample.
    """
    null = _null(reading)
    if not reading.bounded:
        return "unsure"
    if reading.low <= null:
        return "untold"
    strong, middle, weak = GRADES
    return strong if reading.low > STRONG else middle if reading.low >= WEAK else weak


def _null(reading: SiteReading) -> float:
    return ISOTROPIC if math.isnan(reading.null) else reading.null


def _sites(found: list[SiteReading]) -> str:
    groups = {word: [r for r in found if grade(r) == word] for word in (*GRADES, "untold", "unsure")}
    word, group = next((word, group) for word, group in groups.items() if group)
    rest = [r for r in found if grade(r) != word]
    step = f" at step {found[0].step:,}" if found[0].step is not None else ""
    subject, range_ = _subject(group) + step, spread([r.value for r in group], plain)
    verb = "are" if len(group) > 1 else "is"
    null = plain(_null(group[0]))
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
        subject = subject if group[0].kind == "cloud" else subject[0].upper() + subject[1:]
        text = f"{subject} {verb} {word}: {_SUBJECT} {range_}, where an isotropic cloud has {null}"
    return f"{text}{_elsewhere(rest)}."


def _elsewhere(rest: list[SiteReading]) -> str:
    told = [r for r in rest if grade(r) in GRADES]
    untold = [r for r in rest if grade(r) not in GRADES]
    parts = [f"in {where(told)} it is {spread([r.value for r in told], plain)}"] if told else []
    parts += [f"in {where(untold)} it cannot be told from chance"] if untold else []
    return "; " + listed(parts) if parts else ""


def _subject(group: list[SiteReading]) -> str:
    model = called(group[0].model)
    return model if all(r.kind == "cloud" for r in group) else f"{where(group)} of {model}"


def called(model: str) -> str:
    """A model in a sentence: of a place on this machine the last part, since the page has all of it above.

    >>> called("/runs/models/f5d8"), called("google/bert-base")
    ('f5d8', 'google/bert-base')
    """
    return PurePath(model).name if PurePath(model).is_absolute() else model


def _training(found: list[SiteReading]) -> str:
    first, last = steps(found)[0], steps(found)[-1]
    begun = {r.site: r for r in found if r.step == first}
    pairs = [(begun[r.site], r) for r in found if r.step == last and r.site in begun]
    model = called(found[0].model)
    if not pairs:
        return _sites([r for r in found if r.step == last])
    span = f"Between step {first:,} and step {last:,} of {model}"
    rose = [(a, b) for a, b in pairs if b.low > a.high]
    fell = [(a, b) for a, b in pairs if b.high < a.low]
    still = [b for a, b in pairs if not (b.low > a.high or b.high < a.low)]
    if not rose and not fell:
        why = "at this n" if any(a.bounded and b.bounded for a, b in pairs) else "without intervals"
        text = f"{span} no change of the {_SUBJECT} can be told from chance {why}: it is "
        text += (
            f"{spread([a.value for a, _ in pairs], plain)}, then {spread([b.value for _, b in pairs], plain)}"
        )
        return f"{text}{_turn(found, pairs)}."
    moves = [_move("rose", rose)] if rose else []
    moves += [_move("fell", fell)] if fell else []
    null = plain(_null(pairs[0][1]))
    rest = f"; in {where(still)} no change can be told from chance" if still else ""
    turn = _turn(found, pairs)
    return f"{span} the {_SUBJECT} {' and '.join(moves)}, where an isotropic cloud has {null}{rest}{turn}."


def _move(verb: str, pairs: list[tuple[SiteReading, SiteReading]]) -> str:
    a, b = max(pairs, key=lambda pair: abs(pair[1].value - pair[0].value))
    old, new = two(a.value, b.value)
    change = f"from {old} to {new}"
    if a.kind == "cloud":
        return f"{verb} {change}"
    if len(pairs) == 1:
        return f"{verb} in {where([b])} {change}"
    return f"{verb} in {where(b for _, b in pairs)}, most in {where([b])} ({change})"


def _turn(found: list[SiteReading], pairs: list[tuple[SiteReading, SiteReading]]) -> str:
    """The widest peak or trough between the two steps that the intervals tell from both ends."""
    turns: list[tuple[float, str]] = []
    by_site: dict[str, list[SiteReading]] = {}
    for r in found:
        by_site.setdefault(r.site, []).append(r)
    for a, b in pairs:
        place = "" if a.kind == "cloud" or len(pairs) == 1 else f" in {where([a])}"
        for r in (r for r in by_site[a.site] if r.step not in (a.step, b.step)):
            if r.low > a.high and r.low > b.high:
                turns.append(
                    (r.value - max(a.value, b.value), f"a peak of {plain(r.value)}{place} at step {r.step:,}")
                )
            elif r.high < a.low and r.high < b.low:
                turns.append(
                    (min(a.value, b.value) - r.value, f"a low of {plain(r.value)}{place} at step {r.step:,}")
                )
    return f"; on the way it has {max(turns)[1]}" if turns else ""


def _models(found: list[SiteReading]) -> str:
    names = models(found)
    tops = []
    for name in names:
        own = [r for r in found if r.model == name]
        last = steps(own)[-1:]
        own = [r for r in own if not last or r.step == last[0]]
        tops.append(max(own, key=lambda r: r.value))
    the = "At the last step, the" if steps(found) else "The"
    tail = f", where an isotropic cloud has {plain(_null(tops[0]))}."
    if len(names) > MOST_NAMED:
        low, high = min(tops, key=lambda r: r.value), max(tops, key=lambda r: r.value)
        range_ = f"goes from {_top(low)} to {_top(high)}{tail}"
        return f"{the} highest {_SUBJECT} of each of {len(names)} models {range_}"
    return f"{the} {_SUBJECT} reaches {listed([_top(top) for top in tops])}{tail}"


def _top(top: SiteReading) -> str:
    place = top.model if top.kind == "cloud" else f"{where([top])} of {top.model}"
    told = {"untold": " (not to be told from chance)", "unsure": " (without an interval)"}.get(grade(top), "")
    return f"{plain(top.value)} in {place}{told}"

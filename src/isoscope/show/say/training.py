"""How a measure changed from the first step to the last, and where it turned, in one sentence.

Decided here: two steps are told apart where their intervals do not overlap, as everywhere; a measure without
intervals is told by its numbers, and nothing is claimed of chance. A turn is a step on the way that lies
outside both ends by more than `TURN` of the way that the measure went, or of its size where it went nowhere.
"""

from __future__ import annotations

from isoscope.formatting import short, spread
from isoscope.show.readings import SiteReading, numbered, steps, where
from isoscope.show.say.broken import while_whole

TURN = 0.25


def changed(found: list[SiteReading], name: str, *, spanned: bool = True) -> str:
    """The sentence on one measure, `name` as a sentence has it; empty where there are not two steps.

    Without `spanned`, which steps it is of has been said.
    """
    found = [r for r in while_whole(found) if r.known and r.head is None]
    if len(steps(found)) < 2:
        return ""
    first, last = steps(found)[0], steps(found)[-1]
    begun = {r.site: r for r in found if r.step == first}
    pairs = [(begun[r.site], r) for r in found if r.step == last and r.site in begun]
    if not pairs:
        return ""
    span = f"From step {first:,} to step {last:,} the {name}" if spanned else f"The {name}"
    told = all(a.bounded and b.bounded for a, b in pairs)
    moves = _moves(pairs) if told else _numbers(pairs)
    return f"{span} {moves}{_turn(found, pairs)}."


def _moves(pairs: list[tuple[SiteReading, SiteReading]]) -> str:
    rose = [(a, b) for a, b in pairs if b.low > a.high]
    fell = [(a, b) for a, b in pairs if b.high < a.low]
    still = [b for a, b in pairs if not (b.low > a.high or b.high < a.low)]
    parts = [_move(verb, group, pairs) for verb, group in (("rose", rose), ("fell", fell)) if group]
    if not parts:
        return f"shows no change that can be told from chance: {_ends(pairs)}"
    rest = f"; in {_places(still)} no change can be told from chance" if still else ""
    return " and ".join(parts) + rest


def _move(
    verb: str, group: list[tuple[SiteReading, SiteReading]], pairs: list[tuple[SiteReading, SiteReading]]
) -> str:
    a, b = max(group, key=lambda pair: abs(pair[1].value - pair[0].value))
    change = f"from {short(a.value)} to {short(b.value)}"
    if len(pairs) == 1:
        return f"{verb} {change}"
    if len(group) == 1:
        return f"{verb} in {_places([b])} ({change})"
    places = "everywhere" if len(group) == len(pairs) else f"in {_places([b for _, b in group])}"
    return f"{verb} {places}, most in {_places([b])} ({change})"


def _numbers(pairs: list[tuple[SiteReading, SiteReading]]) -> str:
    if len(pairs) == 1:
        return f"went from {short(pairs[0][0].value)} to {short(pairs[0][1].value)}"
    a, b = max(pairs, key=lambda pair: abs(pair[1].value - pair[0].value))
    most = f"most in {_places([b])} (from {short(a.value)} to {short(b.value)})"
    return f"went from {spread([a.value for a, _ in pairs])} to {spread([b.value for _, b in pairs])}, {most}"


def _ends(pairs: list[tuple[SiteReading, SiteReading]]) -> str:
    return f"{spread([a.value for a, _ in pairs])}, then {spread([b.value for _, b in pairs])}"


def _turn(found: list[SiteReading], pairs: list[tuple[SiteReading, SiteReading]]) -> str:
    """The farthest peak or low on the way, where one stands out."""
    turns = []
    by_site: dict[str, list[SiteReading]] = {}
    for r in found:
        by_site.setdefault(r.site, []).append(r)
    for a, b in pairs:
        least = TURN * (abs(b.value - a.value) or abs(a.value))
        for r in (r for r in by_site[a.site] if r.step not in (a.step, b.step)):
            over = r.value - max(a.value, b.value)
            under = min(a.value, b.value) - r.value
            if _apart(r, a) and _apart(r, b) and max(over, under) > least:
                turns.append((max(over, under), "a peak" if over > under else "a low", r))
    if not turns:
        return ""
    _, what, r = max(turns, key=lambda turn: turn[0])
    place = f" in {_places([r])}" if len(pairs) > 1 else ""
    return f"; on the way it had {what} of {short(r.value)}{place} at step {r.step:,}"


def _apart(one: SiteReading, other: SiteReading) -> bool:
    """Whether intervals do not overlap; where neither has one, numbers are all there is."""
    if not (one.bounded or other.bounded):
        return True
    return one.low > other.high or one.high < other.low


def _places(readings: list[SiteReading]) -> str:
    """Layers by number whatever is read there: the section says what."""
    return numbered(readings) if all(r.layer is not None for r in readings) else where(readings)

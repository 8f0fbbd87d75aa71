"""How a measure changed from the first step to the last, and where it turned, in one sentence.

Two steps differ where their intervals do not overlap; without intervals nothing is claimed about chance.
"""

from __future__ import annotations

from isoscope.formatting import spread, two
from isoscope.show.readings import SiteReading, steps
from isoscope.show.say.course import while_whole
from isoscope.show.say.shapes import places

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
    old, new = (spread([pair[at].value for pair in pairs]) for at in (0, 1))
    rose, fell = [(a, b) for a, b in pairs if b.over(a)], [(a, b) for a, b in pairs if a.over(b)]
    still = [b for a, b in pairs if not b.apart(a)]
    if not all(a.bounded and b.bounded for a, b in pairs):
        text = f"went from {old} to {new} (without intervals)"
    elif not rose and not fell:
        text = f"shows no change distinguishable from chance: {old}, then {new}"
    else:
        moves = (_move(verb, group, len(pairs)) for verb, group in (("rose", rose), ("fell", fell)) if group)
        text = " and ".join(moves)
        text += f"; in {places(still)} no change is distinguishable from chance" if still else ""
    return f"{span} {text}{_turn(found, pairs)}."


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
    for r in found:
        a, b = both.get(r.site, (r, r))
        room = TURN * (abs(b.value - a.value) or abs(a.value))
        over, under = r.value - max(a.value, b.value), min(a.value, b.value) - r.value
        if max(over, under) > room and all(_apart(r, end) for end in (a, b)):
            turns.append((max(over, under), "a peak" if over > under else "a low", r))
    if not turns:
        return ""
    _, what, r = max(turns, key=lambda turn: turn[0])
    place = f" in {places([r])}" if len(pairs) > 1 else ""
    return f"; on the way it had {what} of {r.number}{place} at step {r.step:,}"


def _apart(one: SiteReading, other: SiteReading) -> bool:
    """Whether intervals do not overlap; where neither has one, numbers are all there is."""
    return one.apart(other) or not (one.bounded or other.bounded)

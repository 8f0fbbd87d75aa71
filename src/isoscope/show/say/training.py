"""How a measure changed from the first step to the last, and where it turned, in one sentence.

Decided here: two steps are told apart where their intervals do not overlap, as everywhere; a measure without
intervals is told by its numbers, and nothing is claimed of chance. A turn is a step on the way that lies
outside both ends by more than `TURN` of the way that the measure went, or of its size where it went nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from isoscope.formatting import short, spread
from isoscope.show.readings import SiteReading, numbered, steps, where
from isoscope.show.say.broken import while_whole

TURN = 0.25


Pair = tuple[SiteReading, SiteReading]
"""A site at the first step and at the last."""


@dataclass(frozen=True)
class Changes:
    """Readings of one measure at several steps, and those of the first and the last step site by site."""

    found: list[SiteReading]
    pairs: list[Pair]

    @classmethod
    def of(cls, found: list[SiteReading]) -> Changes:
        """The changes among readings of two steps or more."""
        first, last = steps(found)[0], steps(found)[-1]
        begun = {r.site: r for r in found if r.step == first}
        return cls(found, [(begun[r.site], r) for r in found if r.step == last and r.site in begun])

    @property
    def moves(self) -> dict[str, list[Pair]]:
        """The sites that rose and those that fell, by the verb, where there are some."""
        rose = [(a, b) for a, b in self.pairs if b.over(a)]
        fell = [(a, b) for a, b in self.pairs if a.over(b)]
        return {verb: group for verb, group in (("rose", rose), ("fell", fell)) if group}

    @property
    def still(self) -> list[SiteReading]:
        """The last readings of sites of which no change can be told from chance."""
        return [b for a, b in self.pairs if not b.apart(a)]

    def turn(self, least: float, *, sure: bool) -> tuple[str, SiteReading] | None:
        """The farthest peak or low on the way, farther by this part than the ends are from each other.

        Where one must be `sure`, a reading without an interval is none.
        """
        turns = []
        sites: dict[str, list[SiteReading]] = {}
        for r in self.found:
            sites.setdefault(r.site, []).append(r)
        for a, b in self.pairs:
            room = least * (abs(b.value - a.value) or abs(a.value))
            for r in (r for r in sites[a.site] if r.step not in (a.step, b.step)):
                over, under = r.value - max(a.value, b.value), min(a.value, b.value) - r.value
                if max(over, under) > room and all(_apart(r, end, sure=sure) for end in (a, b)):
                    turns.append((max(over, under), "a peak" if over > under else "a low", r))
        return max(turns, key=lambda turn: turn[0])[1:] if turns else None


def _apart(one: SiteReading, other: SiteReading, *, sure: bool) -> bool:
    """Whether intervals do not overlap; where neither has one, numbers are all there is."""
    return one.apart(other) or not (sure or one.bounded or other.bounded)


def widest(pairs: list[Pair]) -> Pair:
    """The site that changed most."""
    return max(pairs, key=lambda pair: abs(pair[1].value - pair[0].value))


def changed(found: list[SiteReading], name: str, *, spanned: bool = True) -> str:
    """The sentence on one measure, `name` as a sentence has it; empty where there are not two steps.

    Without `spanned`, which steps it is of has been said.
    """
    found = [r for r in while_whole(found) if r.known and r.head is None]
    if len(steps(found)) < 2:
        return ""
    changes = Changes.of(found)
    pairs = changes.pairs
    if not pairs:
        return ""
    span = (
        f"From step {steps(found)[0]:,} to step {steps(found)[-1]:,} the {name}" if spanned else f"The {name}"
    )
    old, new = (spread([pair[at].value for pair in pairs]) for at in (0, 1))
    if not all(a.bounded and b.bounded for a, b in pairs):
        text = f"went from {old} to {new}"
        if len(pairs) > 1:
            a, b = widest(pairs)
            text += f", most in {_places([b])} (from {a.number} to {b.number})"
    elif not changes.moves:
        text = f"shows no change that can be told from chance: {old}, then {new}"
    else:
        text = " and ".join(_move(verb, group, len(pairs)) for verb, group in changes.moves.items())
        if changes.still:
            text += f"; in {_places(changes.still)} no change can be told from chance"
    if turn := changes.turn(TURN, sure=False):
        place = f" in {_places([turn[1]])}" if len(pairs) > 1 else ""
        text += f"; on the way it had {turn[0]} of {short(turn[1].value)}{place} at step {turn[1].step:,}"
    return f"{span} {text}."


def _move(verb: str, group: list[Pair], sites: int) -> str:
    a, b = widest(group)
    change = f"from {a.number} to {b.number}"
    if sites == 1:
        return f"{verb} {change}"
    if len(group) == 1:
        return f"{verb} in {_places([b])} ({change})"
    places = "everywhere" if len(group) == sites else f"in {_places([b for _, b in group])}"
    return f"{verb} {places}, most in {_places([b])} ({change})"


def _places(readings: list[SiteReading]) -> str:
    """Layers by number whatever is read there: the section says what."""
    return numbered(readings) if all(r.layer is not None for r in readings) else where(readings)

"""What looking took of a training run: one sentence, from what its last unit recorded."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

Facts = Mapping[str, Mapping[str, object]]


def cost(facts: Facts) -> str:
    """How much looking added to the time of training; empty where that is not recorded.

    >>> cost({"step 000000": {}, "step 000009": {"budget": {"share spent": 0.0173}}})
    'Looking added 1.7 % to the time of training up to step 9, the last look.'
    """
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
    return {
        unit: {**known, "notes": [n for n in _notes(known) if unit == last or n != known.get("budget note")]}
        for unit, known in facts.items()
    }


def _step(unit: str) -> float:
    """The step of a unit by its name, as a number: as text, "step 1000000" stands before "step 999999"."""
    number = unit.rpartition(" ")[2]
    return int(number) if number.isdecimal() else inf


def _notes(known: Mapping[str, object]) -> list[object]:
    told = known.get("notes")
    return [told] if isinstance(told, str) else list(told) if isinstance(told, list | tuple) else []

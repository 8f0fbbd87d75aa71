"""What looking took of a training run: one sentence, from what its last unit recorded."""

from __future__ import annotations

from collections.abc import Mapping

Facts = Mapping[str, Mapping[str, object]]
_BUDGET = "a budget of "
"""How the note begins that every unit repeats, with newer numbers, once a step was passed over."""


def cost(facts: Facts) -> str:
    """How much looking added to the time of training; empty where that is not recorded.

    >>> cost({"step 000000": {}, "step 000009": {"budget": {"share spent": 0.0173}}})
    'Looking added 1.7 % to the time of training.'
    """
    last = facts[max(facts)].get("budget") if facts else None
    share = last.get("share spent") if isinstance(last, Mapping) else None
    if not isinstance(share, float | int):
        return ""
    return f"Looking added {100 * share:.{0 if share >= 0.1 else 1}f} % to the time of training."


def told_once(facts: Facts) -> dict[str, dict[str, object]]:
    """The same facts with the note on the budget in the last unit only, whose numbers are the newest."""
    last = max(facts, default="")
    return {
        unit: {**known, "notes": [note for note in _notes(known) if unit == last or not _is_budget(note)]}
        for unit, known in facts.items()
    }


def _notes(known: Mapping[str, object]) -> list[object]:
    told = known.get("notes")
    return [told] if isinstance(told, str) else list(told) if isinstance(told, list | tuple) else []


def _is_budget(note: object) -> bool:
    return str(note).startswith(_BUDGET)

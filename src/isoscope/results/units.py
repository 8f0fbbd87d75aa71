"""Units of steps: what a run folder calls the rows of one step, and which step such a name is of."""

from __future__ import annotations

import re

_NAME = re.compile(r"(?:step|live) (\d+)")


def unit_name(step: int, *, live: bool = False) -> str:
    """What the rows of a step are called in its folder; `live` are those of the batch that trained.

    >>> unit_name(123), unit_name(123, live=True)
    ('step 000123', 'live 000123')
    """
    return f"{'live' if live else 'step'} {step:06d}"


def step_of(unit: str) -> int | None:
    """The step that a unit is of by its name; None where its name has none.

    >>> step_of("step 000123"), step_of("live 000123"), step_of("checkpoint-7")
    (123, 123, None)
    """
    found = _NAME.fullmatch(unit)
    return int(found[1]) if found else None

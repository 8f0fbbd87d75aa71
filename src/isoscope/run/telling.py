"""How a long call says what it does: progress and notes, of which nobody hears by default."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

Progress = Callable[[int, int | None], None]
"""Called with how much is done, of how much."""
Bar = Callable[[str], AbstractContextManager[Progress]]
"""From the name of a piece of work to a context that gives its progress."""


@dataclass(frozen=True)
class Telling:
    """A bar for each piece of work, and what is done with a note; both are silent by default."""

    bar: Bar = lambda work: nullcontext(lambda done, total: None)
    note: Callable[[str], None] = lambda note: None


SILENT = Telling()

"""Copies of what several sites show of one batch, so that they are folded at once.

A small batch costs its launches and not its arithmetic: k sites at once cost a GPU about as much as one. On a
CPU this holds for what lies in its cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from torch import Tensor

P = TypeVar("P")
AT_ONCE, ON_CPU = 2**29, 2**21
"""Bytes of what is shown, and of records made of it, that are folded at once."""


class Together(Generic[P]):
    """Holds copies, which the model cannot change later, until there is no more room or `flush` is called.

    Then `fold` gets the places and their tensors by name, each with an axis [k, …] in front; without that
    axis where it is one place. `same` is what places of one `kind` share.
    """

    def __init__(self, fold: Callable[[list[P], dict[str, Tensor], Any], None]) -> None:
        self._fold = fold
        self._held: dict[Any, tuple[list[P], dict[str, Tensor], Any]] = {}

    def add(self, place: P, tensors: dict[str, Tensor], kind: Any, same: Any, room: int) -> None:
        """Hold what one place shows; where there is room for no other, fold it as it is."""
        if room <= 1:
            self._fold([place], tensors, same)
            return
        kind = kind, *((name, each.shape, each.dtype, each.device) for name, each in tensors.items())
        if kind not in self._held:
            held = {name: each.new_empty(room, *each.shape) for name, each in tensors.items()}
            self._held[kind] = [], held, same
        places, held, _ = self._held[kind]
        for name, each in tensors.items():
            held[name][len(places)] = each
        places.append(place)
        if len(places) == room:
            self._fold(*self._held.pop(kind))

    def flush(self) -> None:
        """Fold what is held."""
        for places, held, same in self._held.values():
            few = {name: each[: len(places)] if len(places) > 1 else each[0] for name, each in held.items()}
            self._fold(places, few, same)
        self._held.clear()

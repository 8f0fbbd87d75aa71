"""What penalties of activations share: the forward that runs, and what they find in it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor, nn

from isoscope.errors import IsoscopeError
from isoscope.run.monitor.live import is_compiled


class Forward:
    """The last forward of a model, without what backward computes again: what counts, and what was found."""

    def __init__(self) -> None:
        self.runs = False
        self.counts: Tensor | None = None  # [b, t]
        self.found: list[Any] = []

    def begin(self, module: nn.Module, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """Forget the forward before this one, and keep the mask of padding that this one was given."""
        self.runs, self.found = True, []
        given = inspect.signature(module.forward).bind_partial(*inputs, **keywords).arguments
        mask = given.get("attention_mask", given.get("kwargs", {}).get("attention_mask"))
        self.counts = mask.bool() if isinstance(mask, Tensor) and mask.dim() == 2 else None

    def end(self, module: nn.Module, inputs: Any, output: Any) -> None:
        """Let nothing more be found."""
        self.runs = False

    def counted(self, size: int, length: int) -> Tensor | None:
        """Which of [size, length] positions count, of the first sequences; None where all do."""
        if self.counts is None or self.counts.shape[1] != length or len(self.counts) < size:
            return None
        return self.counts[:size]


Forwards = WeakKeyDictionary[nn.Module, Forward]


@contextmanager
def watched(name: str, model: nn.Module, forwards: Forwards) -> Iterator[Forward]:
    """While inside, every forward of the model is a new `Forward`; the last is kept in `forwards`."""
    if is_compiled(model):
        raise IsoscopeError(
            f"{name} sees what flows, and compiled code runs out of sight; train the model uncompiled."
        )
    forward = forwards[model] = Forward()
    with ExitStack() as hooks:
        hooks.enter_context(model.register_forward_pre_hook(forward.begin, with_kwargs=True))
        hooks.enter_context(model.register_forward_hook(forward.end))
        try:
            yield forward
        finally:
            forward.runs = False


def last(name: str, model: nn.Module, forwards: Forwards, what: str) -> list[Any]:
    """What was found in the last forward of the model; an error where there was none."""
    if model not in forwards:
        raise IsoscopeError(
            f"{name} sees what flows: put the model's forward inside `with penalty.watch(model):`."
        )
    if not forwards[model].found:
        raise IsoscopeError(f"{name} saw no {what} in the last forward of {type(model).__name__}.")
    return forwards[model].found

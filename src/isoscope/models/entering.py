"""What enters named modules while a model runs, and what leaves them, through hooks that are always removed.

Weights are known by name, a running model by its modules: here the two meet. A module may be called more than
once in a forward (ALBERT's one block); its calls are numbered, so that each can be told from the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from isoscope.models.blocks import float_tensors, plain_name

Receive = Callable[[str, int, Tensor, Tensor], None]  # name, call from 0, what enters, what leaves


def find_module(module: nn.Module, name: str) -> nn.Module | None:
    """The part of this name; where a file of weights has more in front of it, or less, the one that ends so.

    >>> model = nn.ModuleDict({"ln": nn.LayerNorm(2)})
    >>> find_module(model, "bert.ln") is model["ln"], find_module(model, "norm")
    (True, None)
    """
    there = {plain_name(key): part for key, part in module.named_modules()}
    parts = name.split(".")
    for start in range(len(parts)):
        if (found := there.get(".".join(parts[start:]))) is not None:
            return found
    ends = [part for key, part in there.items() if key.endswith(f".{name}")]
    return ends[0] if len(ends) == 1 else None


@contextmanager
def entering(module: nn.Module, names: Iterable[str], receive: Receive) -> Iterator[None]:
    """While inside, `receive` gets the first float tensor each named module takes and gives, calls from 0."""
    calls: Counter[str] = Counter()

    def start(whole: nn.Module, inputs: Any) -> None:
        calls.clear()

    def show(name: str) -> Callable[..., None]:
        def hook(part: nn.Module, inputs: Any, keywords: dict[str, Any], output: Any) -> None:
            taken, given = float_tensors(inputs, keywords), float_tensors(output)
            if taken and given:
                first = taken[0].detach()
                if isinstance(part, nn.MultiheadAttention) and not part.batch_first and first.dim() == 3:
                    first = first.transpose(0, 1)  # [b, t, d] where torch's own attention takes [t, b, d]
                receive(name, calls[name], first, given[0].detach())
            calls[name] += 1

        return hook

    with ExitStack() as hooks:
        hooks.enter_context(module.register_forward_pre_hook(start))
        for name in dict.fromkeys(names):
            if (part := find_module(module, name)) is not None:
                hooks.enter_context(part.register_forward_hook(show(name), with_kwargs=True))
        yield

"""Hooks that show what flows through a model's blocks, and are always removed.

Layers are numbered by call, not by module: ALBERT calls one module twelve times and has twelve layers.
Layer 0 is what enters the first block, layer i what leaves block i. The site `output` is what leaves
the final norm, known by being fed what the last block gave; a model without one has no such site.
The model's outputs stay bit for bit what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import ref

import torch
from torch import Tensor, nn

from isoscope.errors import IsoscopeError
from isoscope.models.blocks import float_tensors
from isoscope.sites import Site

Receive = Callable[[Site, Tensor], None]


@contextmanager
def tap(
    module: nn.Module, blocks: Mapping[str, nn.Module], receive: Receive, *, gives: int = 0, takes: int = 0
) -> Iterator[None]:
    """While inside, every forward of `module` hands what flows at each site to `receive`, in order.

    The hidden state is the tensor number `takes` of those a block takes, `gives` of those it gives.
    """
    inside = {id(part) for block in blocks.values() for part in block.modules()}
    flow = _Flow(receive, gives, takes)
    with ExitStack() as hooks:
        hooks.enter_context(module.register_forward_pre_hook(flow.start))
        hooks.enter_context(module.register_forward_hook(flow.finish))
        for block in {id(block): block for block in blocks.values()}.values():
            hooks.enter_context(block.register_forward_pre_hook(flow.enter_block, with_kwargs=True))
            hooks.enter_context(block.register_forward_hook(flow.leave_block))
        for part in module.modules():
            if "norm" in type(part).__name__.lower() and id(part) not in inside:
                hooks.enter_context(part.register_forward_hook(flow.leave_norm, with_kwargs=True))
        yield


class _Flow:
    """One forward at a time: counts the calls of blocks, and remembers what may be the model's output."""

    def __init__(self, receive: Receive, gives: int, takes: int) -> None:
        self.receive = receive
        self.gives, self.takes = gives, takes
        self.calls = 0
        self.last: Callable[[], Tensor | None] = lambda: None
        self.normed: Tensor | None = None

    def start(self, module: nn.Module, inputs: Any) -> None:
        self.calls, self.normed, self.last = 0, None, lambda: None

    def enter_block(self, block: nn.Module, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        if self.calls == 0:
            self.receive(Site("layer", 0), _hidden(float_tensors(inputs, keywords), self.takes, block))
        self.normed = None

    def leave_block(self, block: nn.Module, inputs: Any, output: Any) -> None:
        self.calls += 1
        hidden = _hidden(float_tensors(output), self.gives, block)
        self.last = ref(hidden)
        self.receive(Site("layer", self.calls), hidden)

    def leave_norm(
        self, norm: nn.Module, inputs: tuple[Any, ...], keywords: dict[str, Any], output: Any
    ) -> None:
        given = next(iter((*inputs, *keywords.values())), None)
        if given is not None and given is self.last() and isinstance(output, Tensor):
            self.normed = output

    def finish(self, module: nn.Module, inputs: Any, output: Any) -> None:
        normed, self.normed = self.normed, None
        if normed is not None:
            self.receive(Site("output"), normed)


def _hidden(found: list[Tensor], number: int, block: nn.Module) -> Tensor:
    if not found:
        raise IsoscopeError(f"{type(block).__name__} passes on no tensor that could be measured.")
    return found[number] if number < len(found) else found[0]


@contextmanager
def at_rest(module: nn.Module) -> Iterator[None]:
    """Eval mode, no gradients, no fast path, nothing compiled: the state in which a model is measured.

    Every module's own train flag is put back afterwards, and set without `eval()`: adapters that fold their
    weights into others there would not take them out again. Hooks never fire inside compiled code, so
    compiled models are run eagerly, which recompiles nothing; the fused path of
    nn.TransformerEncoder skips the blocks, so it is switched off.
    """
    training = [part for part in module.modules() if part.training]
    fast = torch.backends.mha.get_fastpath_enabled()
    for part in training:
        part.training = False
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for part in training:
            part.training = True

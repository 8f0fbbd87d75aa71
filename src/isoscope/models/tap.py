"""Hooks that show what flows through a model's blocks, and are always removed.

Layers are numbered by call, not by module: ALBERT calls one module twelve times and has twelve layers.
Layer 0 is what enters the first block, layer i what leaves block i. The site `output` is what leaves
the final norm, known by being fed what the last block gave; a model without one has no such site.
The model's outputs stay bit for bit what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import ref

import torch
from torch import Tensor, nn

from isoscope.data.batch import Batch
from isoscope.errors import IsoscopeError
from isoscope.models.blocks import find_blocks, first_tensor
from isoscope.sites import Site

Receive = Callable[[Site, Tensor], None]


@contextmanager
def tap(module: nn.Module, blocks: Mapping[str, nn.Module], receive: Receive) -> Iterator[None]:
    """While inside, every forward of `module` hands what flows at each site to `receive`, in order."""
    inside = {id(part) for block in blocks.values() for part in block.modules()}
    flow = _Flow(receive)
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

    def __init__(self, receive: Receive) -> None:
        self.receive = receive
        self.calls = 0
        self.last: Callable[[], Tensor | None] = lambda: None
        self.normed: Tensor | None = None

    def start(self, module: nn.Module, inputs: Any) -> None:
        self.calls, self.normed, self.last = 0, None, lambda: None

    def enter_block(self, block: nn.Module, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        if self.calls == 0:
            self.receive(Site("layer", 0), _hidden((*inputs, *keywords.values()), block))
        self.normed = None

    def leave_block(self, block: nn.Module, inputs: Any, output: Any) -> None:
        self.calls += 1
        hidden = _hidden(output, block)
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


def _hidden(given: Any, block: nn.Module) -> Tensor:
    found = first_tensor(given)
    if found is None:
        raise IsoscopeError(f"{type(block).__name__} passes on no tensor that could be measured.")
    return found


@contextmanager
def at_rest(module: nn.Module) -> Iterator[None]:
    """Eval mode, no gradients, no fast path, nothing compiled: the state in which a model is measured.

    Every module's own train flag is put back afterwards. Hooks never fire inside compiled code, so
    compiled models are run eagerly, which recompiles nothing; the fused path of
    nn.TransformerEncoder skips the blocks, so it is switched off.
    """
    training = [part for part in module.modules() if part.training]
    fast = torch.backends.mha.get_fastpath_enabled()
    module.eval()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for part in training:
            part.training = True


@dataclass(frozen=True)
class Survey:
    """What a model shows: its blocks by name, the block each layer leaves, the shape at each site.

    `channels` is the axis that holds the dimensions of a vector: the last, or 1 for feature maps.
    """

    blocks: Mapping[str, nn.Module]
    leaves: Mapping[Site, str]
    shapes: Mapping[Site, tuple[int, ...]]
    channels: Mapping[Site, int]

    def width(self, site: Site) -> int:
        """The dimensions of a vector there."""
        return self.shapes[site][self.channels[site]]

    def vectors(self, site: Site, seen: Tensor) -> Tensor:
        """A feature map [b, c, h, w] as its spatial positions [b, h·w, c]."""
        return seen.movedim(self.channels[site], -1).flatten(1, -2)


def survey(module: nn.Module, batch: Batch) -> Survey:
    """Find the blocks of a model and the sites they show, in order. Runs it once or twice."""
    shapes: dict[Site, tuple[int, ...]] = {}
    leaves: dict[Site, str] = {}
    with at_rest(module):
        blocks = find_blocks(module, lambda: batch.call(module))
        names = {id(block): name for name, block in blocks.items()}
        called: list[str] = []

        def note(site: Site, seen: Tensor) -> None:
            shapes[site] = tuple(seen.shape)
            if site.layer:
                leaves[site] = called[-1]

        with ExitStack() as hooks:
            for block in blocks.values():
                hooks.enter_context(block.register_forward_hook(lambda b, *_: called.append(names[id(b)])))
            hooks.enter_context(tap(module, blocks, note))
            batch.call(module)
    if not shapes:
        raise IsoscopeError(f"{type(module).__name__} never called its blocks ({', '.join([*blocks][:3])}).")
    channels = {}
    for site, shape in shapes.items():
        block = blocks[leaves.get(site, next(iter(blocks)))] if site.kind == "layer" else module
        channels[site] = _channel_axis(block, shape)
    return Survey(blocks, leaves, shapes, channels)


def _channel_axis(block: nn.Module, shape: tuple[int, ...]) -> int:
    """1 where a convolution or batch norm of the block has as many channels as axis 1, else the last."""
    if len(shape) < 4:
        return -1
    sizes: set[object] = set()
    for part in block.modules():
        sizes |= {getattr(part, name, None) for name in ("in_channels", "out_channels", "num_features")}
    return 1 if shape[1] in sizes else -1


def batch_axis(module: nn.Module) -> int:
    """Which axis of what flows numbers the sequences: 1 for torch.nn's modules unless batch_first."""
    attention = next((part for part in module.modules() if isinstance(part, nn.MultiheadAttention)), None)
    return 1 if attention is not None and not attention.batch_first else 0

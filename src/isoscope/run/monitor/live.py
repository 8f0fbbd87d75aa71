"""Look at the batch that trains while it runs, in place of the probe: in train mode, dropout and all.

The taps stand in the model's own forward, so nothing is run twice and the training is what it was. What a
checkpointed block computes again in the backward pass is outside that forward and is not counted. Hooks never
fire in compiled code: a compiled model is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from inspect import Parameter, signature
from typing import Any

import torch
from torch import Tensor, nn

from isoscope.data.batch import Batch, as_batch
from isoscope.errors import IsoscopeError
from isoscope.models.attention.tap import Attended, attention_tap
from isoscope.models.tap import tap
from isoscope.run.monitor.probe import Probe
from isoscope.run.observe.fold import Folder
from isoscope.sites import Site


@contextmanager
def live(probe: Probe, module: nn.Module, folder: Folder) -> Iterator[None]:
    """While inside, every forward of the module is folded, one batch each."""
    if is_compiled(module):
        raise IsoscopeError(
            "watch() sees what runs, and compiled code runs out of sight; call step() instead, which looks "
            "with the probe, or train the model uncompiled."
        )
    running = _Running(probe, folder)
    found = probe.found
    with ExitStack() as taps:
        taps.enter_context(module.register_forward_pre_hook(running.begin, with_kwargs=True))
        taps.enter_context(tap(module, found.blocks, running.layer, gives=found.gives, takes=found.takes))
        if folder.attends:
            taps.enter_context(
                attention_tap(
                    module, found.blocks, running.attention, takes=found.takes, learnt=folder.learnt
                )
            )
        # after the tap's own, which has the output
        taps.enter_context(module.register_forward_hook(running.end))
        yield
    if not running.seen:
        raise IsoscopeError("the model was not called inside watch(); put its forward there.")


def is_compiled(module: nn.Module) -> bool:
    """Whether it, or a part of it, runs as compiled code."""
    return any(
        hasattr(part, "_orig_mod") or getattr(part, "_compiled_call_impl", None) is not None
        for part in module.modules()
    )


class _Running:
    """The batch of the forward that runs; none outside of one."""

    def __init__(self, probe: Probe, folder: Folder) -> None:
        self.folder, self.axis, self.counting = folder, probe.found.input_axis, probe.counting
        self.sites = set(probe.sites)
        self.batch: Batch | None = None
        self.seen = 0

    def begin(self, module: nn.Module, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        batch = as_batch(_given(module, inputs, keywords), seed=0, batch_axis=self.axis)
        self.batch = self.counting.apply(batch, self.axis)

    def end(self, module: nn.Module, inputs: Any, output: Any) -> None:
        self.batch = None
        self.seen += 1
        self.folder.finish()

    def layer(self, site: Site, seen: Tensor) -> None:
        if self.batch is not None and site in self.sites:
            with torch.no_grad():
                self.folder.add_layer(site, seen.detach(), self.batch)

    def attention(self, site: Site, attended: Attended) -> None:
        if self.batch is not None and site in self.sites:
            with torch.no_grad():
                self.folder.add_attention(site, attended, self.batch)


def _given(
    module: nn.Module, inputs: tuple[Any, ...], keywords: Mapping[str, Any]
) -> Tensor | dict[str, Tensor]:
    """What the model was called with, as a batch has it: its first tensor, or all by name.

    What stands after the first has the name that the model's forward gives it: a mask is a mask there too.
    """
    tensors = {name: x.detach() for name, x in keywords.items() if isinstance(x, Tensor)}
    first = next((x for x in inputs if isinstance(x, Tensor)), None)
    if first is None:
        return tensors
    wrapped = getattr(module, "module", module)  # by DDP
    taken = signature(wrapped.forward).parameters.values()
    names = [each.name for each in taken if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
    after = zip(names, inputs, strict=False)
    others = {name: x.detach() for name, x in after if isinstance(x, Tensor) and x is not first} | tensors
    return {"input_ids": first.detach(), **others} if others else first.detach()

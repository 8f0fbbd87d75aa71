"""Leave a model that trains, and all that it trains with, as if nobody had looked.

Inside, anything may be run; afterwards every random state (torch on CPU and accelerators, Python, NumPy,
those that modules hold themselves), every module's train flag, every buffer, the grad mode and the autocast
state are what they were. What a module keeps in other attributes, such as a counter in Python, is not known.
Gradients are not made in the first place: what runs inside is to run without. Four traps are closed here.
Autocast keeps the casts of weights for a whole region: inside, none that are kept are used, which may be
older than the weights, and none are added. FSDP2 leaves the weights of its root gathered after a forward: an
optimiser step would then change shards that nobody reads; so they are sharded again. DDP exchanges buffers
before a forward, and remembers that it did: inside it does not. Buffers are written back past autograd, so
that no graph that holds them is spoiled; BatchNorm, for one, does not count its writes there.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import torch
from torch import Tensor, nn


@contextmanager
def untouched(module: nn.Module, generators: tuple[torch.Generator, ...] = ()) -> Iterator[None]:
    """While inside, whatever is done to the module's state is undone at the end.

    `generators` are further random states to put back, such as a DataLoader's own.
    """
    with ExitStack() as stack:
        own = {id(x): x for part in module.modules() for x in vars(part).values() if _is_random(x)}
        stack.enter_context(_random_states((*generators, *own.values())))
        stack.enter_context(_exchanges(module))
        stack.enter_context(_train_flags(module))
        stack.enter_context(_buffers(module))
        stack.enter_context(_modes())
        stack.callback(_shard_again, module)
        stack.enter_context(warnings.catch_warnings())
        # checkpointing says so of every forward without gradient, and means it for training
        warnings.filterwarnings("ignore", message="None of the inputs have requires_grad=True")
        yield


def _is_random(held: object) -> bool:
    return issubclass(held.__class__, torch.Generator)  # isinstance asks a slow metaclass, thousands of times


@contextmanager
def _exchanges(module: nn.Module) -> Iterator[None]:
    """Without what DDP sends from rank to rank before a forward, and remembers having sent."""
    wrapped = [part for part in module.modules() if isinstance(part, nn.parallel.DistributedDataParallel)]
    flags = [part.require_forward_param_sync for part in wrapped]
    for part in wrapped:
        part.require_forward_param_sync = False
    try:
        yield
    finally:
        for part, flag in zip(wrapped, flags, strict=True):
            part.require_forward_param_sync = flag


@contextmanager
def _random_states(generators: tuple[torch.Generator, ...]) -> Iterator[None]:
    own = [generator.get_state() for generator in generators]
    cpu, python, arrays = torch.get_rng_state(), random.getstate(), np.random.get_state()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None  # type: ignore[no-untyped-call]
    mps = torch.mps.get_rng_state() if torch.backends.mps.is_available() else None
    try:
        yield
    finally:
        for generator, state in zip(generators, own, strict=True):
            generator.set_state(state)
        torch.set_rng_state(cpu)
        random.setstate(python)
        np.random.set_state(arrays)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)
        if mps is not None:
            torch.mps.set_rng_state(mps)


@contextmanager
def _train_flags(module: nn.Module) -> Iterator[None]:
    flags = [(part, part.training) for part in module.modules()]
    try:
        yield
    finally:
        for part, training in flags:
            part.training = training


@contextmanager
def _buffers(module: nn.Module) -> Iterator[None]:
    """Put back buffers that were written to, replaced, or made for the first time."""
    none = [(part, name) for part in module.modules() for name, x in part._buffers.items() if x is None]
    held = [
        (part, name, buffer, buffer.detach().clone())
        for part in module.modules()
        for name, buffer in part._buffers.items()
        if isinstance(buffer, Tensor) and writable(buffer)
    ]
    try:
        yield
    finally:
        for part, name, buffer, copy in held:
            part._buffers[name] = buffer
            buffer.data.copy_(copy)
        for part, name in none:
            part._buffers[name] = None


def writable(buffer: Tensor) -> bool:
    """Whether every element has a place of its own; one that is expanded cannot be written to, by anybody.

    >>> writable(torch.zeros(3)), writable(torch.zeros(1).expand(3))
    (True, False)
    """
    return all(stride > 0 or size < 2 for size, stride in zip(buffer.shape, buffer.stride(), strict=True))


@contextmanager
def _modes() -> Iterator[None]:
    grad, cached = torch.is_grad_enabled(), torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(cached)
        torch.set_grad_enabled(grad)


def _shard_again(module: nn.Module) -> None:
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return
    from torch.distributed.fsdp import FSDPModule

    for part in module.modules():
        if isinstance(part, FSDPModule):
            part.reshard()

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
    parts = list(module.modules())
    with ExitStack() as end:  # calls what is registered here, the last first
        held = (x for part in parts for x in vars(part).values())
        # isinstance asks a slow metaclass, thousands of times
        own = {id(x): x for x in held if issubclass(x.__class__, torch.Generator)}
        for generator in (*generators, *own.values()):
            end.callback(generator.set_state, generator.get_state())
        _put_back_random_states(end)
        for part in parts:
            if isinstance(part, nn.parallel.DistributedDataParallel):
                end.callback(setattr, part, "require_forward_param_sync", part.require_forward_param_sync)
                part.require_forward_param_sync = False
            end.callback(setattr, part, "training", part.training)
            for name, buffer in part._buffers.items():
                if buffer is None:
                    end.callback(part._buffers.__setitem__, name, None)
                elif isinstance(buffer, Tensor) and writable(buffer):
                    end.callback(_put_back, part, name, buffer, buffer.detach().clone())
        end.callback(torch.set_grad_enabled, torch.is_grad_enabled())
        end.callback(torch.set_autocast_cache_enabled, torch.is_autocast_cache_enabled())
        torch.set_autocast_cache_enabled(False)
        end.callback(_shard_again, module)
        end.enter_context(warnings.catch_warnings())
        # checkpointing says so of every forward without gradient, and means it for training
        warnings.filterwarnings("ignore", message="None of the inputs have requires_grad=True")
        yield


def _put_back_random_states(end: ExitStack) -> None:
    """Put back the random states of torch, Python and NumPy at the end."""
    end.callback(torch.set_rng_state, torch.get_rng_state())
    end.callback(random.setstate, random.getstate())
    end.callback(np.random.set_state, np.random.get_state())
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        end.callback(torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all())
    if torch.backends.mps.is_available():
        end.callback(torch.mps.set_rng_state, torch.mps.get_rng_state())


def _put_back(part: nn.Module, name: str, buffer: Tensor, copy: Tensor) -> None:
    """The buffer as it was, whether it was written to or replaced."""
    part._buffers[name] = buffer
    buffer.data.copy_(copy)


def writable(buffer: Tensor) -> bool:
    """Whether every element has a place of its own; one that is expanded cannot be written to, by anybody."""
    return all(stride > 0 or size < 2 for size, stride in zip(buffer.shape, buffer.stride(), strict=True))


def _shard_again(module: nn.Module) -> None:
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return
    from torch.distributed.fsdp import FSDPModule

    for part in module.modules():
        if isinstance(part, FSDPModule):
            part.reshard()

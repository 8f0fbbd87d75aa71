"""Several processes that train one model look at it together: each with its share of the probe.

Records are sums, so the shares merge into what one process would have seen. Rank 0 merges, writes and
decides; the others are told, so that all go the same way. Where every rank was given the same probe, it is
dealt out batch by batch; where each has its own, each looks with all of it. Under FSDP2 every rank must run
every forward: one with fewer batches runs some for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

import torch
from torch import Tensor, distributed, nn

from isoscope.data.batch import Batch
from isoscope.run.monitor.untouched import writable
from isoscope.run.observe.observation import Observation

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """How many processes train together, and which one this is."""

    size: int
    rank: int

    @classmethod
    def now(cls) -> Ranks:
        """As torch.distributed has it; one alone where it is not in use."""
        if not (distributed.is_available() and distributed.is_initialized()):
            return cls(1, 0)
        return cls(distributed.get_world_size(), distributed.get_rank())

    @property
    def first(self) -> bool:
        """Whether this is the rank that writes and decides."""
        return self.rank == 0

    def told(self, by_first: T) -> T:
        """What rank 0 says, on every rank."""
        if self.size == 1:
            return by_first
        held: list[T] = [by_first]
        distributed.broadcast_object_list(held, src=0)
        return held[0]

    def gathered(self, mine: T) -> list[T]:
        """What every rank says, on rank 0; elsewhere nothing."""
        if self.size == 1:
            return [mine]
        held: list[T | None] | None = [None] * self.size if self.first else None
        distributed.gather_object(mine, held, dst=0)
        return [] if held is None else [each for each in held if each is not None]

    def share_buffers(self, module: nn.Module) -> None:
        """Give every rank the buffers of rank 0, as DDP does before a forward: BatchNorm's differ by rank."""
        if self.size == 1:
            return
        near = distributed.get_backend() != "nccl"  # which moves nothing that is on the CPU
        for buffer in module.buffers():
            if type(buffer) is Tensor and writable(buffer) and (near or buffer.is_cuda):
                sent = buffer.detach().clone(memory_format=torch.contiguous_format)
                distributed.broadcast(sent, src=0)
                buffer.data.copy_(sent)

    def share(self, batches: Sequence[Batch], *, whole: bool) -> Share:
        """Of a probe that all ranks were given, every n-th batch, unless it must be whole; else all of it."""
        keys = [batch.keys.tolist() for batch in batches]
        alike = self.size > 1 and self.told(len(set(map(repr, self.gathered(keys)))) == 1)
        mine = tuple(batches[self.rank :: self.size] if alike and not whole else batches)
        counts = self.gathered(len(mine))
        return Share(mine, self.told(max(counts, default=0)) - len(mine), alone=whole or self.size == 1)


@dataclass(frozen=True)
class Share:
    """The batches of one rank, how many fewer they are than another's, and whether rank 0 saw all `alone`."""

    batches: tuple[Batch, ...]
    behind: int
    alone: bool


def merged(shares: Sequence[Observation], share: Share) -> Observation:
    """The observation of all shares; those of ranks that had no batch hold nothing and are left out."""
    seen = shares[:1] if share.alone else [each for each in shares if any(each.records.values())]
    return reduce(lambda one, other: one.merge(other), seen)


def is_sharded(module: nn.Module) -> bool:
    """Whether its weights lie on several ranks, so that all must run every forward."""
    if not distributed.is_available():
        return False
    from torch.distributed.fsdp import FSDPModule

    return any(isinstance(part, FSDPModule) for part in module.modules())


def bare(module: nn.Module) -> nn.Module:
    """The model inside DistributedDataParallel, whose forward would exchange buffers; compiled or not."""
    inner = getattr(module, "_orig_mod", module)
    return inner.module if isinstance(inner, nn.parallel.DistributedDataParallel) else module

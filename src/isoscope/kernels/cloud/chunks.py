"""Rows of a cloud cut into chunks that one program of a GPU sums, and how they get there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

CHUNK = 128  # rows that one program sums


@dataclass(frozen=True, eq=False)
class Chunks:
    """Rows of one label that stand together, at most `CHUNK`: the first, how many, and which label, [c]."""

    first: Tensor
    size: Tensor
    label: Tensor
    labels: int

    @classmethod
    def of(cls, label: Tensor, labels: int) -> Chunks | None:
        """Cut rows [n] whose labels ascend; None where they do not.

        >>> cut = Chunks.of(torch.tensor([0] * 130 + [2] * 3), 3)
        >>> cut.first.tolist(), cut.size.tolist(), cut.label.tolist()
        ([0, 128, 130], [128, 2, 3], [0, 0, 2])
        """
        if len(label) == 0 or bool((label.diff() < 0).any()):
            return None
        names, sizes = torch.unique_consecutive(label, return_counts=True)
        pieces = (sizes + CHUNK - 1) // CHUNK
        owner = torch.arange(len(names)).repeat_interleave(pieces)
        number = torch.arange(len(owner)) - (pieces.cumsum(0) - pieces)[owner]
        first = (sizes.cumsum(0) - sizes)[owner] + CHUNK * number
        return cls(first, (sizes[owner] - CHUNK * number).clamp_max(CHUNK), names[owner], labels)

    def to(self, device: torch.device) -> Chunks:
        """The same on another device."""
        first, size, label = (sent(each, device) for each in (self.first, self.size, self.label))
        return Chunks(first, size, label, self.labels)

    @cached_property
    def member(self) -> Tensor:
        """Which label each chunk belongs to, [l, c] of 0 and 1."""
        return (torch.arange(self.labels, device=self.label.device)[:, None] == self.label).double()


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """The same on a device. From pageable memory a copy to a GPU would wait until the GPU is done."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)

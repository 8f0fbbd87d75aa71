"""The highway layers that CharacterBERT and MANTa put after their convolutions over characters."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Highway(nn.Module):
    """x ← g ⊙ x + (1 − g) ⊙ relu(A x), g = σ(B x), A and B the halves of one weight [2d, d]; x [..., d]."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self._layers = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        """The same shape, part of it carried through."""
        for layer in self._layers:
            changed, carried = layer(x).chunk(2, dim=-1)
            gate = torch.sigmoid(carried)
            x = gate * x + (1 - gate) * functional.relu(changed)
        return x

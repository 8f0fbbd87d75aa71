"""σReparam: the largest singular value of the projections is a parameter of its own (Zhai et al. 2023)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class SigmaLinear(nn.Module):
    """x ↦ Ŵx + b, Ŵ = (γ/σ(W)) W; σ(W) by one power iteration a step, γ learnt, σ of the first W at first.

    The iteration moves on in training only; what its vectors are of is not in the gradient. Whoever reads the
    module, or what is saved of it, finds Ŵ as its `weight`, W as its `direction`.
    """

    left: Tensor
    right: Tensor

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.direction = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.gain = nn.Parameter(torch.ones(()))
        self.register_buffer("left", torch.empty(outputs))
        self.register_buffer("right", torch.empty(inputs))
        self.start(inputs**-0.5)

    @torch.no_grad()
    def start(self, std: float) -> None:
        """Draw W from N(0, std²), find its first singular vectors, and let γ be its singular value."""
        nn.init.normal_(self.direction, std=std)
        left, values, right = torch.linalg.svd(self.direction, full_matrices=False)
        self.left.copy_(left[:, 0])
        self.right.copy_(right[0])
        self.gain.copy_(values[0])

    @property
    def weight(self) -> Tensor:
        """Ŵ, [outputs, inputs]."""
        with torch.autocast(self.direction.device.type, enabled=False):  # σ in 16 bits is off by .4 %
            norm = self.left.clone() @ self.direction @ self.right.clone()
            return self.gain / norm * self.direction

    def forward(self, x: Tensor) -> Tensor:
        """[..., inputs] to [..., outputs]."""
        if self.training:
            with torch.no_grad(), torch.autocast(self.direction.device.type, enabled=False):
                self.right.copy_(F.normalize(self.direction.mT @ self.left, dim=0))
                self.left.copy_(F.normalize(self.direction @ self.right, dim=0))
        return F.linear(x, self.weight, self.bias)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}weight"] = self.weight if keep_vars else self.weight.detach()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        state_dict.pop(f"{prefix}weight", None)  # made of the rest
        super()._load_from_state_dict(state_dict, prefix, *others)

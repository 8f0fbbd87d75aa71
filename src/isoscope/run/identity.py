"""Whether a training is the one that a folder has rows of: told by a few of its weights."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor, nn

FEW = 16  # numbers of each weight


def weights_sample(module: nn.Module) -> str:
    """Sixteen hex digits of the first numbers of every weight; empty where they lie on several ranks.

    All weights are hashed nowhere in training: of a large model that takes longer than looking at it.
    """
    weights = [weight.detach() for weight in module.parameters()]
    if not weights or any(type(weight) not in (Tensor, nn.Parameter) for weight in weights):
        return ""
    first = [weight.reshape(-1)[:FEW].to(weights[0].device, torch.float64) for weight in weights]
    return hashlib.blake2b(torch.cat(first).cpu().numpy().tobytes(), digest_size=8).hexdigest()

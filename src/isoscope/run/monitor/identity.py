"""Whether a training is the one that a folder has rows of: told by a few numbers of a few matrices."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor, nn

MATRICES, NUMBERS = 8, 16


def weights_sample(module: nn.Module) -> str:
    """Sixteen hex digits of the first numbers of eight matrices; empty where they lie on several ranks.

    The matrices are spread over the model, the last among them. Norms start alike whatever the seed; and all
    weights are hashed nowhere in training: of a large model that takes longer than looking at it.
    """
    weights = [weight.detach() for weight in module.parameters() if weight.dim() > 1]
    if not weights or any(type(weight) not in (Tensor, nn.Parameter) for weight in weights):
        return ""
    last = len(weights) - 1
    chosen = sorted({last - last * number // MATRICES for number in range(MATRICES)})
    first = [weights[i].flatten()[:NUMBERS].to(weights[0].device, torch.float64) for i in chosen]
    return hashlib.blake2b(torch.cat(first).cpu().numpy().tobytes(), digest_size=8).hexdigest()

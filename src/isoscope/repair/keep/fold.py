"""An affine repair as a linear layer, and folded into the one before it: y = A(Wx + b) + c."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from isoscope.errors import IsoscopeError
from isoscope.repair.keep.repair import Repair


def as_linear(repair: Repair) -> nn.Linear:
    """The repair as one layer in float32: weight A, bias c."""
    return _linear(*repair.affine(), torch.zeros(1))


def fold(repair: Repair, linear: nn.Linear) -> nn.Linear:
    """One layer that does what `linear` and then the repair do, as precise as it: W' = AW, b' = Ab + c."""
    matrix, offset = repair.affine()
    if linear.out_features != repair.width:
        raise IsoscopeError(
            f"'{repair.name}' takes vectors of {repair.width} dimensions; "
            f"the layer to fold it into gives {linear.out_features}."
        )
    weight = linear.weight.detach()
    bias = torch.zeros(linear.out_features) if linear.bias is None else linear.bias.detach()
    bias = bias.to("cpu", torch.float64)
    return _linear(matrix @ weight.to("cpu", torch.float64), matrix @ bias + offset, weight)


def _linear(weight: Tensor, bias: Tensor, like: Tensor) -> nn.Linear:
    made = nn.Linear(weight.shape[1], weight.shape[0], device=like.device, dtype=like.dtype)
    with torch.no_grad():
        made.weight.copy_(weight)
        made.bias.copy_(bias)
    return made

"""VAN (Guo et al. 2022): a convolutional network whose blocks gate their input with a very large kernel.

Names as in `models/van.py` of github.com/Visual-Attention-Network/VAN-Classification at 72e17fdb; `config_of`
reads the config off their shapes. `RENAMED` has the names in the hub's `van-*` folders.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from isoscope.models.arch.configs import VanConfig

STAGES = 4
_OF_A_BLOCK = {  # the hub's names, and the authors'
    "pre_normomalization": "norm1",  # so it is spelled
    "attention.pre_projection.conv": "attn.proj_1",
    "attention.attention_layer.attention.depth_wise": "attn.spatial_gating_unit.conv0",
    "attention.attention_layer.attention.depth_wise_dilated": "attn.spatial_gating_unit.conv_spatial",
    "attention.attention_layer.attention.point_wise": "attn.spatial_gating_unit.conv1",
    "attention.post_projection": "attn.proj_2",
    "post_normalization": "norm2",
    "mlp.in_dense": "mlp.fc1",
    "mlp.depth_wise": "mlp.dwconv.dwconv",
    "mlp.out_dense": "mlp.fc2",
}
_STAGE = r"^(?:van\.)?encoder\.stages\."
RENAMED = {
    **{rf"{_STAGE}{i}\.embeddings\.convolution\.": f"patch_embed{i + 1}.proj." for i in range(STAGES)},
    **{rf"{_STAGE}{i}\.embeddings\.normalization\.": f"patch_embed{i + 1}.norm." for i in range(STAGES)},
    **{rf"{_STAGE}{i}\.normalization\.": f"norm{i + 1}." for i in range(STAGES)},
    **{rf"{_STAGE}{i}\.layers\.": f"block{i + 1}." for i in range(STAGES)},
    r"\.attention_scaling\.weight$": ".layer_scale_1",
    r"\.mlp_scaling\.weight$": ".layer_scale_2",
    **{rf"\.{re.escape(name)}\.": f".{own}." for name, own in _OF_A_BLOCK.items()},
}


def config_of(weights: Mapping[str, Tensor]) -> VanConfig:
    """The settings that the authors' weights have, by their shapes."""
    first = [weights[f"patch_embed{i}.proj.weight"] for i in range(1, STAGES + 1)]
    inner = [weights[f"block{i}.0.mlp.fc1.weight"] for i in range(1, STAGES + 1)]
    return VanConfig(
        num_channels=first[0].shape[1],
        patch_sizes=[each.shape[-1] for each in first],
        hidden_sizes=[each.shape[0] for each in first],
        depths=[sum(f"block{i}.{j}.norm1.weight" in weights for j in range(999)) for i in range(1, 5)],
        mlp_ratios=[each.shape[0] // each.shape[1] for each in inner],
    )


class LargeKernel(nn.Module):
    """x ⊙ W₁(D x): D a kernel of 5×5 and one of 7×7 with holes of 3, each channel alone; W₁ mixes them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv0 = nn.Conv2d(width, width, 5, padding=2, groups=width)
        self.conv_spatial = nn.Conv2d(width, width, 7, padding=9, groups=width, dilation=3)
        self.conv1 = nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        """The gated map, [b, c, h, w] as it came."""
        gated: Tensor = x * self.conv1(self.conv_spatial(self.conv0(x)))
        return gated


class _Attention(nn.Module):
    """What the authors call attention; no softmax, no queries and keys."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.proj_1, self.proj_2 = nn.Conv2d(width, width, 1), nn.Conv2d(width, width, 1)
        self.spatial_gating_unit = LargeKernel(width)

    def forward(self, x: Tensor) -> Tensor:
        added: Tensor = x + self.proj_2(self.spatial_gating_unit(functional.gelu(self.proj_1(x))))
        return added


class _DepthWise(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(width, width, 3, padding=1, groups=width)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.dwconv(x)
        return found


class _FeedForward(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(width, inner, 1), nn.Conv2d(inner, width, 1)
        self.dwconv = _DepthWise(inner)

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.fc2(functional.gelu(self.dwconv(self.fc1(x))))
        return made


class VanBlock(nn.Module):
    """A gate and a feed-forward part, each after a BatchNorm, scaled by channel and added."""

    def __init__(self, width: int, ratio: int, scale: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.attn, self.mlp = _Attention(width), _FeedForward(width, width * ratio)
        self.layer_scale_1, self.layer_scale_2 = (nn.Parameter(torch.full((width,), scale)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        """The map [b, c, h, w] one block on."""
        x = x + self.layer_scale_1[:, None, None] * self.attn(self.norm1(x))
        return x + self.layer_scale_2[:, None, None] * self.mlp(self.norm2(x))


class _Patches(nn.Module):
    """Overlapping patches: a map of fewer positions and more channels."""

    def __init__(self, inside: int, width: int, size: int, stride: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(inside, width, size, stride, padding=size // 2)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        cut: Tensor = self.norm(self.proj(x))
        return cut


class Van(PreTrainedModel):
    """Four stages of blocks; the classifier is left away."""

    config_class = VanConfig
    base_model_prefix = "van"
    main_input_name = "pixel_values"
    _keys_to_ignore_on_load_unexpected = [r"^head\.", r"^classifier\."]  # noqa: RUF012

    def __init__(self, config: VanConfig) -> None:
        super().__init__(config)
        widths = (config.num_channels, *config.hidden_sizes)
        for i in range(STAGES):
            width = widths[i + 1]
            patches = _Patches(widths[i], width, config.patch_sizes[i], config.strides[i])
            blocks = (
                VanBlock(width, config.mlp_ratios[i], config.layer_scale_init_value)
                for _ in range(config.depths[i])
            )
            self.add_module(f"patch_embed{i + 1}", patches)
            self.add_module(f"block{i + 1}", nn.ModuleList(blocks))
            self.add_module(f"norm{i + 1}", nn.LayerNorm(width, eps=config.layer_norm_eps))
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(self, pixel_values: Tensor) -> BaseModelOutput:
        """The last map [b, c, h, w] of pictures [b, 3, h, w]."""
        x = pixel_values
        for i in range(1, STAGES + 1):
            x = self.get_submodule(f"patch_embed{i}")(x)
            for block in self.get_submodule(f"block{i}").children():
                x = block(x)
            x = self.get_submodule(f"norm{i}")(x.movedim(1, -1)).movedim(-1, 1)
        return BaseModelOutput(x)  # type: ignore[arg-type]

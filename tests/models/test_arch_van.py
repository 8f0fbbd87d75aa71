"""VAN: the authors' names and sizes, the large kernel by hand, both kinds of published files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
import transformers

import isoscope
from isoscope.models.arch.configs import VanConfig
from isoscope.models.arch.van import LargeKernel, Van, VanBlock, config_of
from isoscope.models.source import fingerprint

NORM = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
OF_A_BLOCK = (
    *(f"{norm}.{what}" for norm in ("norm1", "norm2") for what in NORM),
    *(
        f"{part}.{what}"
        for part in (
            "attn.proj_1", "attn.proj_2", "attn.spatial_gating_unit.conv0", "mlp.fc1", "mlp.dwconv.dwconv",
            "attn.spatial_gating_unit.conv_spatial", "attn.spatial_gating_unit.conv1", "mlp.fc2",
        )
        for what in ("weight", "bias")
    ),
    "layer_scale_1", "layer_scale_2",
)  # fmt: skip
SIZES = {  # depths, widths, millions of parameters with the classifier: the table of the authors' README
    "tiny": ((3, 3, 5, 2), (32, 64, 160, 256), 4.1),
    "small": ((2, 2, 4, 2), (64, 128, 320, 512), 13.9),
    "base": ((3, 3, 12, 3), (64, 128, 320, 512), 26.6),
    "large": ((3, 5, 27, 3), (64, 128, 320, 512), 44.8),
}
SETTINGS = {"hidden_sizes": [8, 12, 16, 20], "depths": [1, 2, 1, 1], "mlp_ratios": [2, 2, 3, 2]}
ON_THE_HUB = (  # the authors' names, and those of the folders that transformers wrote
    (r"^patch_embed(\d)\.proj", r"stages.\1.embeddings.convolution"),
    (r"^patch_embed(\d)\.norm", r"stages.\1.embeddings.normalization"),
    (r"^norm(\d)", r"stages.\1.normalization"),
    (r"^block(\d)\.(\d)\.norm1", r"stages.\1.layers.\2.pre_normomalization"),
    (r"^block(\d)\.(\d)\.norm2", r"stages.\1.layers.\2.post_normalization"),
    (r"^block(\d)\.(\d)\.layer_scale_1", r"stages.\1.layers.\2.attention_scaling.weight"),
    (r"^block(\d)\.(\d)\.layer_scale_2", r"stages.\1.layers.\2.mlp_scaling.weight"),
    (r"^block(\d)\.(\d)\.attn\.proj_1", r"stages.\1.layers.\2.attention.pre_projection.conv"),
    (r"^block(\d)\.(\d)\.attn\.proj_2", r"stages.\1.layers.\2.attention.post_projection"),
    (r"^block(\d)\.(\d)\.attn\.spatial_gating_unit\.conv0", r"stages.\1.layers.\2.LARGE.depth_wise"),
    (
        r"^block(\d)\.(\d)\.attn\.spatial_gating_unit\.conv_spatial",
        r"stages.\1.layers.\2.LARGE.depth_wise_dilated",
    ),
    (r"^block(\d)\.(\d)\.attn\.spatial_gating_unit\.conv1", r"stages.\1.layers.\2.LARGE.point_wise"),
    (r"^block(\d)\.(\d)\.mlp\.fc1", r"stages.\1.layers.\2.mlp.in_dense"),
    (r"^block(\d)\.(\d)\.mlp\.fc2", r"stages.\1.layers.\2.mlp.out_dense"),
    (r"^block(\d)\.(\d)\.mlp\.dwconv\.dwconv", r"stages.\1.layers.\2.mlp.depth_wise"),
)


def small() -> Van:
    torch.manual_seed(0)
    model = Van(VanConfig(**SETTINGS)).eval()
    with torch.no_grad():
        for part in model.modules():
            if isinstance(part, torch.nn.BatchNorm2d):
                part.running_mean.normal_(std=0.1)
                part.running_var.uniform_(0.5, 2)
            if isinstance(part, VanBlock):
                part.layer_scale_1.normal_()
                part.layer_scale_2.normal_()
    return model


def on_the_hub(name: str) -> str:
    for own, other in ON_THE_HUB:
        name = re.sub(own, other, name)
    name = name.replace("LARGE", "attention.attention_layer.attention")
    return re.sub(r"^stages\.(\d)", lambda found: f"van.encoder.stages.{int(found[1]) - 1}", name)


@pytest.mark.parametrize("size", SIZES)
def test_names_and_sizes_are_the_published_ones(size: str) -> None:
    depths, widths, millions = SIZES[size]
    with torch.device("meta"):
        model = Van(VanConfig(depths=depths, hidden_sizes=widths))
    assert set(model.state_dict()) == {
        *(f"patch_embed{i}.proj.{what}" for i in range(1, 5) for what in ("weight", "bias")),
        *(f"patch_embed{i}.norm.{what}" for i in range(1, 5) for what in NORM),
        *(f"norm{i}.{what}" for i in range(1, 5) for what in ("weight", "bias")),
        *(f"block{i}.{j}.{name}" for i in range(1, 5) for j in range(depths[i - 1]) for name in OF_A_BLOCK),
    }
    weights = sum(weight.numel() for weight in model.parameters()) + 1000 * (widths[-1] + 1)
    assert round(weights / 1e6, 1) == millions


def test_the_large_kernel_by_hand() -> None:
    torch.manual_seed(2)
    gate, height, width = LargeKernel(3).double(), 11, 9
    x = torch.randn(1, 3, height, width, dtype=torch.float64)
    held = gate.state_dict()

    def alone(x: torch.Tensor, name: str, side: int, hole: int) -> torch.Tensor:
        out, reach = torch.zeros_like(x), hole * (side // 2)
        for c in range(3):
            for row in range(height):
                for column in range(width):
                    total = held[f"{name}.bias"][c].clone()
                    for i in range(side):
                        for j in range(side):
                            y, z = row + hole * i - reach, column + hole * j - reach
                            if 0 <= y < height and 0 <= z < width:
                                total += held[f"{name}.weight"][c, 0, i, j] * x[0, c, y, z]
                    out[0, c, row, column] = total
        return out

    far = alone(alone(x, "conv0", 5, 1), "conv_spatial", 7, 3)
    mixed = torch.einsum("oi,bihw->bohw", held["conv1.weight"][..., 0, 0], far)
    with torch.no_grad():
        torch.testing.assert_close(gate(x), x * (mixed + held["conv1.bias"][:, None, None]))


def test_a_kernel_reaches_as_far_as_23() -> None:
    gate = LargeKernel(1)
    x = torch.zeros(1, 1, 41, 41, requires_grad=True)
    far = gate.conv_spatial(gate.conv0(x))[0, 0, 20, 20]
    rows = torch.autograd.grad(far, x)[0][0, 0].abs().sum(1).nonzero().flatten()
    assert (rows.min(), rows.max()) == (20 - 11, 20 + 11)


def test_a_block_by_hand() -> None:
    block = small().block2[1].double()
    x = torch.randn(2, 12, 5, 5, dtype=torch.float64)
    held = block.state_dict()

    def normed(x: torch.Tensor, name: str) -> torch.Tensor:
        by = {what: held[f"{name}.{what}"][:, None, None] for what in NORM[:4]}
        return (x - by["running_mean"]) / (by["running_var"] + 1e-5).sqrt() * by["weight"] + by["bias"]

    def mix(x: torch.Tensor, name: str) -> torch.Tensor:
        return (
            torch.einsum("oi,bihw->bohw", held[f"{name}.weight"][..., 0, 0], x)
            + held[f"{name}.bias"][:, None, None]
        )

    gelu = torch.nn.functional.gelu
    with torch.no_grad():
        inside = normed(x, "norm1")
        gated = mix(block.attn.spatial_gating_unit(gelu(mix(inside, "attn.proj_1"))), "attn.proj_2") + inside
        y = x + held["layer_scale_1"][:, None, None] * gated
        fed = mix(gelu(block.mlp.dwconv(mix(normed(y, "norm2"), "mlp.fc1"))), "mlp.fc2")
        torch.testing.assert_close(block(x), y + held["layer_scale_2"][:, None, None] * fed)


def test_the_authors_file_needs_no_config(tmp_path: Path) -> None:
    held = small().state_dict() | {"head.weight": torch.zeros(5, 20), "head.bias": torch.zeros(5)}
    file = tmp_path / "van_small.pth.tar"
    torch.save({"state_dict": held, "epoch": 300, "arch": "van_small"}, file)
    assert config_of(held).depths == SETTINGS["depths"]
    loaded = isoscope.load(str(file))
    assert fingerprint(loaded.module) == fingerprint(small())
    table = isoscope.observe(loaded, [torch.randn(2, 3, 64, 64)], measures=["mean_cosine"]).frame()
    assert table.layer.tolist() == [0, 1, 2, 3, 4, 5]
    assert table.n.tolist() == [512, 512, 128, 128, 32, 8]
    assert loaded.processor is not None


@pytest.mark.parametrize("names", ["authors", "hub"])
def test_folders_load_and_are_measured(names: str, tmp_path: Path) -> None:
    """The same weights by either names; no attention is seen, for there is no softmax."""
    held = {(on_the_hub(name) if names == "hub" else name): x for name, x in small().state_dict().items()}
    assert names == "authors" or all(name.startswith("van.encoder.stages.") for name in held)
    head = {"classifier.weight": torch.zeros(5, 20), "classifier.bias": torch.zeros(5)}
    torch.save(held | (head if names == "hub" else {}), tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "van", **SETTINGS}))
    transformers.ViTImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(tmp_path)
    loaded = isoscope.load(str(tmp_path))
    assert loaded.notes == ()
    assert loaded.takes == "images"
    assert fingerprint(loaded.module) == fingerprint(small())
    seen = isoscope.observe(loaded, "embedded", measures=["mean_cosine", "relative_drift"])
    table = seen.frame()
    assert sorted(set(table.layer)) == [0, 1, 2, 3, 4, 5]
    assert not any("attention" in kind for kind in set(table.kind))
    assert table[table.layer < 5].value.notna().all()

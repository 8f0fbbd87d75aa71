"""Where a block is normed: each line against its formula."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from isoscope.lab.model.norms import NORMS, Norm
from isoscope.lab.model.transformer import Block, Shape, build
from isoscope.models.weights import open_weights


def normed(x: Tensor, norm: nn.Module) -> Tensor:
    """LayerNorm or RMSNorm by hand; whatever else lets x through."""
    if isinstance(norm, nn.RMSNorm):
        return x / (x.square().mean(-1, keepdim=True) + torch.finfo(x.dtype).eps).sqrt() * norm.weight
    if not isinstance(norm, nn.LayerNorm):
        assert isinstance(norm, nn.Identity)
        return x
    centred = x - x.mean(-1, keepdim=True)
    out = centred / (centred.square().mean(-1, keepdim=True) + norm.eps).sqrt() * norm.weight
    return out if norm.bias is None else out + norm.bias


FORMULAS = {  # f a sublayer, with the norms before it, on its output, and on the sum
    "pre": lambda x, f, before, inner, after: x + f(normed(x, before)),
    "post": lambda x, f, before, inner, after: normed(x + f(x), after),
    "rms": lambda x, f, before, inner, after: x + f(normed(x, before)),
    "sandwich": lambda x, f, before, inner, after: x + normed(f(normed(x, before)), inner),
    "unshifted": lambda x, f, before, inner, after: x + f(normed(x, before)),
    "none": lambda x, f, before, inner, after: x + f(x),
}
every = pytest.mark.parametrize("norm", NORMS, ids=lambda norm: norm.name)


def test_every_norm_has_a_formula():
    assert set(FORMULAS) == {norm.name for norm in NORMS}


def changed(norm: Norm) -> Shape:
    return Shape(7, width=8, layers=2, heads=2, length=5, norm=norm.name)


@every
def test_a_block_is_normed_as_its_formula_says(norm: Norm):
    block = Block(changed(norm), 1).double()
    with torch.no_grad():
        for weight in block.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    of = FORMULAS[norm.name]
    middle = of(
        x,
        lambda y: block.attention(y, None),
        block.norm_attention,
        block.inner_attention,
        block.after_attention,
    )
    expected = of(middle, block.mlp, block.norm_mlp, block.inner_mlp, block.after_mlp)
    torch.testing.assert_close(block(x), expected)


@every
def test_the_kinds_of_norm_are_those_that_the_name_says(norm: Norm):
    model = build(changed(norm), seed=0)
    kinds = {type(part) for part in model.modules() if isinstance(part, nn.LayerNorm | nn.RMSNorm)}
    expected = {"rms": {nn.RMSNorm}, "none": set()}.get(norm.name, {nn.LayerNorm})
    assert kinds == expected
    biases = [part.bias for part in model.modules() if isinstance(part, nn.LayerNorm)]
    assert all(bias is None for bias in biases) == (norm.name in ("unshifted", "rms", "none"))
    assert isinstance(model.norm, nn.Identity) == (norm.name in ("post", "none"))


@every
def test_the_norm_in_front_of_attention_is_found_among_the_weights(norm: Norm):
    model = build(changed(norm), seed=0)
    names = [each.norm and each.norm.name for each in open_weights(model).projections()]
    expected = {
        "post": [None, "blocks.0.after_mlp"],
        "none": [None, None],
    }.get(norm.name, ["blocks.0.norm_attention", "blocks.1.norm_attention"])
    assert names == expected


@every
def test_every_norm_learns(norm: Norm):
    model = build(changed(norm), seed=0)
    ids = torch.arange(5).repeat(2, 1)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(40):
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), (ids.flatten() + 1) % 7)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.4 * losses[0]

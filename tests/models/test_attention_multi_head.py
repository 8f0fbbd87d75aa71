"""The inside of nn.MultiheadAttention: its probabilities against those it returns, masks, orders of axes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from isoscope.models.attention.tap import Attended
from isoscope.sites import Site
from tests.models.test_attention_tap import look, probabilities, products

B, T, S, WIDTH, HEADS = 3, 5, 7, 16, 4


class One(nn.Module):
    """One block around one attention, called as `call` says."""

    def __init__(self, attention: nn.MultiheadAttention, call: Callable[..., tuple[Tensor, Tensor]]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            [nn.ModuleDict({"attention": attention, "other": nn.Linear(WIDTH, WIDTH)})]
        )
        self.blocks[0].forward = lambda *given: call(self.blocks[0]["attention"], *given)

    def forward(self, *given: Tensor) -> tuple[Tensor, Tensor]:
        return self.blocks[0](*given)


def read(module: One, *given: Tensor) -> tuple[Attended, Site]:
    seen = look(module, lambda: module(*given))
    assert len(seen) == 1
    return seen[0][1], seen[0][0]


def mask_of(kind: str, generator: torch.Generator, columns: int) -> Tensor | None:
    visible = torch.rand(T, columns, generator=generator) < 0.6
    visible[:, 0] = True
    added = torch.randn(B * HEADS, T, columns, generator=generator)
    return {"none": None, "boolean": ~visible, "added": added.masked_fill(~visible, -torch.inf)}[kind]


@pytest.mark.parametrize(
    ("batch_first", "weights", "mask", "padding"),
    list(product([True, False], [True, False], ["none", "boolean", "added"], [True, False])),
)
@pytest.mark.parametrize("cross", [True, False])
def test_probabilities_are_those_it_returns(
    batch_first: bool, weights: bool, mask: str, padding: bool, cross: bool
) -> None:
    generator = torch.Generator().manual_seed(11)
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=batch_first).eval()
    with torch.no_grad():
        attention.in_proj_weight.mul_(4)
        attention.in_proj_bias.normal_()
    columns = S if cross else T
    hidden = torch.zeros(B, columns, dtype=torch.bool)
    hidden[1:, columns - 2 :] = True
    options = {"attn_mask": mask_of(mask, generator, columns), "average_attn_weights": False}
    if padding and mask != "added":
        options["key_padding_mask"] = hidden
    x, other = torch.randn(B, T, WIDTH, generator=generator), torch.randn(B, S, WIDTH, generator=generator)
    x, other = (x, other) if batch_first else (x.transpose(0, 1), other.transpose(0, 1))

    def call(attend: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        y = y if cross else x
        return attend(x, y, y, need_weights=weights, **options)

    module = One(attention, call)
    y = other if cross else x
    with torch.no_grad():
        output, told = attention(x, y, y, need_weights=True, **options)
    outputs: list[Tensor] = []
    seen = look(module, lambda: outputs.append(module(x, other)[0]))
    [(site, attended)] = seen
    assert site == Site("cross_attention" if cross else "attention", 1)
    assert attended.path == "multi_head_attention"
    assert attended.module == "blocks.0.attention"
    assert attended.why == ""
    assert (attended.scores is not None) == weights
    assert attended.query is not None and attended.query.shape == (B, HEADS, T, WIDTH // HEADS)
    for ours in (probabilities(attended), products(attended)):
        assert (ours - told).abs().max() < 1e-6
    torch.testing.assert_close(outputs[-1], output)
    with torch.no_grad():
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            assert torch.equal(outputs[-1], call(attention, x, other)[0])
        finally:
            torch.backends.mha.set_fastpath_enabled(True)


def test_a_single_sequence_and_added_keys() -> None:
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(WIDTH, HEADS, add_bias_kv=True, add_zero_attn=True, kdim=6, vdim=6)
    x, y = torch.randn(T, WIDTH), torch.randn(S, 6)

    def call(attend: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return attend(x, y, y, average_attn_weights=False)

    attended, site = read(One(attention, call), x, y)
    with torch.no_grad():
        told = call(attention.eval(), x, y)[1]
    assert site.kind == "cross_attention"
    assert told.shape == (HEADS, T, S + 2)
    assert (products(attended)[0] - told).abs().max() < 1e-6


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_torch_encoder_and_decoder(batch_first: bool, norm_first: bool) -> None:
    """Lengths are equal, and once the decoder is given one tensor as both: names tell then."""
    torch.manual_seed(0)
    options = {"batch_first": batch_first, "norm_first": norm_first}
    module = nn.Transformer(WIDTH, HEADS, 2, 3, 32, **options).eval()
    x, y = torch.randn(2, 6, WIDTH), torch.randn(2, 6, WIDTH)
    x, y = (x, y) if batch_first else (x.transpose(0, 1), y.transpose(0, 1))
    causal = nn.Transformer.generate_square_subsequent_mask(6)
    seen = look(module, lambda: module(x, y, tgt_mask=causal, tgt_is_causal=True))
    expected = [Site("attention", 1), Site("attention", 2)]
    for layer in (3, 4, 5):
        expected += [Site("attention", layer), Site("cross_attention", layer)]
    assert [site for site, _ in seen] == expected
    for site, attended in seen:
        above = products(attended).triu(1).abs().max()
        assert (above == 0) == (site.kind == "attention" and site.layer > 2)
    again = look(module.decoder, lambda: module.decoder(x, x))
    assert [site for site, _ in again] == [
        Site(kind, layer) for layer in (1, 2, 3) for kind in ("attention", "cross_attention")
    ]

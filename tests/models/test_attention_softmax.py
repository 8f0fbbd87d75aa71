"""Attention written by hand: what is traced from the softmax gives its probabilities, or a reason."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from isoscope.models.attention.tap import Attended
from tests.models.test_attention_tap import Stack, look, probabilities, products

B, H, T, E = 3, 4, 7, 4
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
generator = torch.Generator().manual_seed(2)
VISIBLE = torch.ones(T, T, dtype=torch.bool).tril()
HIDDEN = torch.zeros(T, T).masked_fill(~VISIBLE, torch.finfo(torch.float32).min)
BIAS = torch.randn(H, T, T, generator=generator)
LOWEST = torch.finfo(torch.float32).min


def with_scores(change: Callable[[Tensor], Tensor]) -> Attend:
    return lambda q, k, v: functional.softmax(change(q @ k.transpose(-1, -2)), dim=-1) @ v


def folded(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k, v = (each.reshape(B * H, T, E) for each in (q, k, v))
    scores = torch.bmm(q * 0.5, k.transpose(1, 2))
    scores = scores.view(B, H, T, T) + HIDDEN
    return torch.bmm(scores.view(B * H, T, T).softmax(-1), v).view(B, H, T, E)


def slopes(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k = (each.reshape(B * H, T, E) for each in (q, k))
    slope = (torch.arange(H)[:, None, None] * torch.arange(T)).repeat(B, 1, 1).float()
    scores = slope.baddbmm(batch1=q, batch2=k.mT, beta=0.5, alpha=0.3).view(B, H, T, T)
    return torch.softmax(scores.masked_fill(~VISIBLE, LOWEST), -1) @ v


def in_place(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.matmul(q, k.mT)
    scores /= math.sqrt(E)
    scores += BIAS
    scores.masked_fill_(~VISIBLE, -torch.inf)
    return scores.softmax(dim=-1) @ v


def einsum(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.einsum("bhse,bhte->bhts", k, q) * 0.5
    return torch.einsum("bhts,bhse->bhte", scores.softmax(-1), v)


def rows_first(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k, v = (each.permute(2, 0, 1, 3) for each in (q, k, v))
    scores = torch.einsum("ibnd, jbnd -> bnij", q, k) + BIAS
    return torch.einsum("bnij,jbnd->bnid", scores.softmax(3), v)


def grouped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q.unflatten(1, (2, 2)) @ k[:, ::2].unsqueeze(2).mT
    return (scores.softmax(-1) @ v.unflatten(1, (2, 2))).flatten(1, 2)


def windows(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k, w = (each[:, :, :6].unflatten(2, (2, 3)).transpose(1, 2) for each in (q, k, v))
    done = (q @ k.mT + BIAS[:, :3, :3]).softmax(-1) @ w
    return torch.cat([done.transpose(1, 2).flatten(2, 3), v[:, :, 6:]], 2)


KNOWN: dict[str, Attend] = {
    "plain": with_scores(lambda s: s),
    "scaled": with_scores(lambda s: 2 * (s / math.sqrt(E))),
    "scaled by a tensor": with_scores(lambda s: s / torch.tensor(2.0)),
    "each head scaled": with_scores(lambda s: s * torch.linspace(0.5, 2, H).view(H, 1, 1)),
    "mask added": with_scores(lambda s: s / 2 + HIDDEN),
    "mask first": with_scores(lambda s: HIDDEN + s),
    "mask taken away": with_scores(lambda s: s - 1e9 * (~VISIBLE)[None].float()),
    "bias, then mask": with_scores(lambda s: (s + BIAS).masked_fill(~VISIBLE, -torch.inf)),
    "mask, then bias": with_scores(lambda s: s.masked_fill(~VISIBLE, LOWEST) + BIAS),
    "scaled after the bias": with_scores(lambda s: (s + BIAS) / 3),
    "where": with_scores(lambda s: torch.where(VISIBLE, s, torch.tensor(LOWEST))),
    "where not": with_scores(lambda s: torch.where(~VISIBLE, LOWEST, s)),
    "largest taken away": with_scores(lambda s: s - s.amax(-1, keepdim=True)),
    "cast": with_scores(lambda s: (s.double() + HIDDEN).type_as(s).contiguous()),
    "folded": folded,
    "slopes": slopes,
    "in place": in_place,
    "einsum": einsum,
    "rows first": rows_first,
    "grouped": grouped,
    "windows": windows,
}


def both(attend: Attend) -> tuple[Attended, Tensor]:
    """What the tap reads in the first block, and the probabilities that the softmax gave there."""
    torch.manual_seed(4)
    module, x = Stack(attend), torch.randn(B, T, 16)
    for block in module.blocks:
        nn.init.normal_(block.query.weight, std=0.5)
    given: list[Tensor] = []

    def keep(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda *args, **kwargs: given.append(function(*args, **kwargs)) or given[-1]

    with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "softmax", keep(torch.softmax))
        patch.setattr(Tensor, "softmax", keep(Tensor.softmax))  # F.softmax calls it
        expected = module(x)
    outputs: list[Tensor] = []
    seen = look(module, lambda: outputs.append(module(x)))
    assert torch.equal(outputs[-1], expected)
    assert len(seen) == 2 == len(given)
    return seen[0][1], given[0]


@pytest.mark.parametrize("name", KNOWN)
def test_query_key_scale_and_mask_give_the_probabilities(name: str) -> None:
    seen, given = both(KNOWN[name])
    assert seen.why == ""
    assert seen.path == "softmax"
    assert seen.scores is not None and seen.scores.dim() == 4
    expected = given.reshape(seen.scores.shape)
    assert (probabilities(seen) - expected).abs().max() < 1e-6
    assert (products(seen) - expected).abs().max() < 1e-6
    assert seen.query is not None and seen.key is not None
    heads = {"grouped": 2}.get(name, H)
    assert (seen.query.shape[1], seen.key.shape[1]) == (H, heads)
    assert seen.unrotated is not None and torch.equal(seen.unrotated, seen.query)


def filled(scores: Tensor) -> Tensor:
    scores[..., 0] = 1.0
    return scores


REASONS: dict[str, tuple[Attend, str]] = {
    "capped": (with_scores(lambda s: 2.5 * torch.tanh(s / 2 / 2.5) + HIDDEN), "capped at ±2.5"),
    "squared": (with_scores(lambda s: s.square()), "pass through square"),
    "a further product": (lambda q, k, v: (q @ k.mT + q @ k.flip(2).mT).softmax(-1) @ v, "further terms"),
    "a term of the key": (
        lambda q, k, v: (q @ k.mT + k.sum(-1)[:, :, None]).softmax(-1) @ v,
        "further terms",
    ),
    "filled": (with_scores(filled), "pass through setitem"),
}


@pytest.mark.parametrize("name", REASONS)
def test_what_is_not_linear_is_given_as_scores_with_a_reason(name: str) -> None:
    attend, why = REASONS[name]
    seen, given = both(attend)
    assert seen.scores is not None
    assert (probabilities(seen) - given).abs().max() < 1e-6
    assert (seen.query, seen.key, seen.mask, seen.unrotated, seen.rotate) == (None,) * 5
    assert why in seen.why


def test_a_sink_is_one_more_column() -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = torch.cat([q @ k.mT, torch.ones(B, H, T, 1)], -1)
        return scores.softmax(-1)[..., :-1] @ v

    seen, given = both(attend)
    assert "pass through cat" in seen.why
    assert given.shape == (B, H, T, T + 1)
    assert (probabilities(seen) - given).abs().max() < 1e-6


def test_a_cap_is_read() -> None:
    seen, _ = both(REASONS["capped"][0])
    assert seen.softcap == pytest.approx(2.5)
    assert seen.scale == pytest.approx(0.5)


def test_what_was_changed_behind_a_view_is_found_out() -> None:
    """The numbers are compared once: a query that was traced wrongly is not passed on."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = q @ k.mT
        q.mul_(2)  # after it has been used
        return scores.softmax(-1) @ v

    seen, given = both(attend)
    assert seen.query is None
    assert "do not give the scores" in seen.why
    assert (probabilities(seen) - given).abs().max() < 1e-6


def test_a_softmax_that_is_no_attention_is_passed_over() -> None:
    """Over experts, over channels, or over queries."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        gate = functional.linear(v, torch.eye(E)).softmax(-1)
        return v * gate * (q * k).softmax(-1) + (q @ k.mT).softmax(dim=-2) @ v

    module, x = Stack(attend), torch.randn(B, T, 16)
    assert look(module, lambda: module(x)) == []

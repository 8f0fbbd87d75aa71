"""What the mean query does, on models where it is known; its controls; and where a shift of keys matters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import isoscope
from isoscope.geometry import query_key
from isoscope.models.attention.tap import Attended
from isoscope.run.observe import attend, fold
from isoscope.run.observe.observation import Observation
from isoscope.sites import Site
from isoscope.stats.queries import Queries
from tests.models import modal, tiny
from tests.models.test_attention_tap import build
from tests.run.attending import HEADS, LENGTH, WIDTH, Sinking, Small, Untrained, vectors

COUNTERFACTUAL = ("drift_share", "entropy_without_drift", "sink_mass_without_drift")


def look(module: nn.Module, data: Any) -> Observation:
    return isoscope.observe(module, [data], layers="*attention.*", heads=True)


def table(seen: Observation) -> pd.DataFrame:
    """Values by (kind, layer, head) and measure; the layer's own rows are left out."""
    rows = seen.frame().dropna(subset="head")
    return rows.pivot_table(index=["kind", "layer", "head"], columns="measure", values="value", dropna=False)


def apart(one: pd.DataFrame, other: pd.DataFrame, *names: str) -> float:
    return float((one[list(names)] - other[list(names)]).abs().max(axis=None))


# ── what cancels and what does not ───────────────────────────────────────────────────────────────────────

ROWS = (
    "entropy",
    "normalised_entropy",
    "largest_weight",
    "score_std",
    "sink_mass",
    "attended_distance",
    "drift_share",
    "cross_term",
    "entropy_without_drift",
    "sink_mass_without_drift",
    "normalised_entropy_without_random",
    "normalised_entropy_beside_first_without_drift",
)
SHIFT = torch.randn(HEADS, 1, WIDTH, generator=torch.Generator().manual_seed(2), dtype=torch.float64) * 3


def shifted(module: Small, place: str) -> Small:
    for each in module.attentions:
        setattr(each, place, nn.Parameter(SHIFT, requires_grad=False))
    return module


@pytest.mark.parametrize("options", [{}, {"causal": False}, {"rotary": True}, {"norm": True}], ids=str)
def test_keys_shifted_as_they_enter_the_softmax_change_nothing(options: dict[str, Any]) -> None:
    plain, moved = Small(**options), shifted(Small(**options), "after")
    x = vectors()
    assert (plain(x) - moved(x)).abs().max() < 1e-12
    one, other = table(look(plain, x)), table(look(moved, x))
    assert apart(one, other, *ROWS) < 1e-12
    assert apart(one, other, "key_drift", "largest_score", "query_key_product") > 1


@pytest.mark.parametrize(
    ("options", "place"),
    [({"rotary": True}, "before"), ({"norm": True}, "before"), ({"cap": 3.0, "causal": False}, "after")],
    ids=str,
)
def test_keys_shifted_before_position_before_a_norm_or_under_a_cap_do(
    options: dict[str, Any], place: str
) -> None:
    x = vectors()
    one, other = table(look(Small(**options), x)), table(look(shifted(Small(**options), place), x))
    assert apart(one, other, "entropy") > 0.05
    assert apart(one, other, "score_std") > 0.05


def test_a_soft_cap_has_no_counterfactual_and_says_why() -> None:
    seen = look(Small(cap=3.0, causal=False), vectors())
    rows = seen.frame().set_index("measure")
    for name in COUNTERFACTUAL:
        assert rows.loc[[name]].value.isna().all()
        assert "its mean query cannot be taken away" in rows.loc[[name]].note.iloc[0]
    assert rows.loc["entropy"].value.notna().all()
    assert any("capped at ±3 by a tanh" in note for note in seen.notes())


# ── the drift share ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("length", [0.0, 8.0, 16.0, 32.0])
def test_untrained_heads_under_a_bias(length: float) -> None:
    """E[share] = N²/(N² + d): over 16 heads within .03 (d = 256, 16 sequences of 64)."""
    width, random = 256, torch.Generator().manual_seed(5)
    words = functional.layer_norm(torch.randn(16, 64, width, generator=random), (width,))
    bias = torch.randn(width, generator=random)
    x = words + length * bias / bias.norm()
    module = Untrained(width, 16)
    rows = isoscope.observe(module, [x], layers="attention.1", measures=["drift_share"]).frame()
    expected = length**2 / (length**2 + width)
    assert rows.value[0] == pytest.approx(expected, abs=0.03)
    if length == 0:
        assert rows.value[0] == pytest.approx(rows.null[0], rel=0.2)


def oracle(
    query: Tensor, key: Tensor, *, scale: float, added: Tensor | None = None, causal: bool = False
) -> dict[str, Tensor]:
    """Share, cross term, and row numbers with and without the mean, by hand, [h]; every query counts."""
    mean = query.mean((0, 2))
    drift = (scale * mean[None, :, None] @ key.mT).expand(*query.shape[:3], key.shape[2])
    scores = scale * query @ key.mT + (0 if added is None else added)
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), -math.inf)
    scores = torch.where(scores < -1e30, -math.inf, scores)
    counts = torch.ones(len(query), query.shape[2], dtype=torch.bool)
    weight = torch.where(scores == -math.inf, -math.inf, scores - drift).softmax(-1)
    return {
        "drift_share": query_key.drift_share(scores, drift, counts),
        "cross_term": query_key.cross_term(scores, drift, counts),
        "entropy_without_drift": -torch.xlogy(weight, weight).sum(-1).mean((0, 2)),
        "sink_mass_without_drift": weight[..., 0].mean((0, 2)),
    }


def shown(module: nn.Module, call: Callable[[], object], *parts: nn.Module) -> list[Tensor]:
    """What these modules give during a call."""
    found: list[Tensor] = []
    hooks = [part.register_forward_hook(lambda *given: found.append(given[2].detach())) for part in parts]
    with torch.no_grad():
        call()
    for hook in hooks:
        hook.remove()
    return found


def drift_share_closed(query: Tensor, key: Tensor) -> Tensor:
    """q̄ᵀΣ_k q̄/(q̄ᵀΣ_k q̄ + tr Σ_qΣ_k): exact without a mask, every query counting, Σ_k within sequences.

    Σ_q is the covariance of all queries; with Σ_k differing between sequences, the means over them.
    """
    found = []
    for q, k in zip(query.double().transpose(0, 1), key.double().transpose(0, 1), strict=True):
        mean = q.flatten(0, 1).mean(0)
        drift = rest = 0.0
        for mine, its in zip(q, k, strict=True):
            spread = torch.cov(its.T, correction=0)
            apart = mine - mean
            drift += float(mean @ spread @ mean)
            rest += float(torch.einsum("te,ef,tf->t", apart, spread, apart).mean())
        found.append(drift / (drift + rest))
    return torch.tensor(found, dtype=torch.float64)


def test_the_closed_form_where_it_is_exact_and_where_it_is_not() -> None:
    x = vectors()
    x[:, 0] = 4 * x[:1, 0]  # one key unlike the others, which every causal row sees
    exact, causal = Small(causal=False), Small(causal=True)
    part = exact.attentions[0]
    query, key = (
        each.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
        for each in shown(exact, lambda: exact(x), part.query, part.key)
    )
    closed = drift_share_closed(query, key)
    for module, near in ((exact, True), (causal, False)):
        found = table(look(module, x)).loc[("attention", 1), "drift_share"].to_numpy()
        gap = float((torch.tensor(found) - closed).abs().max())
        assert gap < 1e-9 if near else gap > 0.05
    longer = query.clone()
    longer[:8] += 2  # keys of sequences differ in spread, queries in place: means over sequences then
    sequences = torch.ones(len(x), LENGTH, dtype=torch.bool)
    scores, mean = WIDTH**-0.5 * longer @ key.mT, longer.mean((0, 2))
    drift = (WIDTH**-0.5 * mean[None, :, None] @ key.mT).expand_as(scores)
    expected = query_key.drift_share(scores, drift, sequences)
    assert (drift_share_closed(longer, key) - expected).abs().max() < 1e-9


def test_a_bias_of_positions_stays_in_the_scores_and_out_of_the_drift() -> None:
    """T5 adds a bias for every distance: part of what the softmax sees, no part of the mean query."""
    module = build("t5").double()
    with torch.no_grad():
        for stack in (module.encoder, module.decoder):
            stack.block[0].layer[0].SelfAttention.relative_attention_bias.weight.mul_(8)
    given = tiny.ids(4, 15)
    given = {"input_ids": given["input_ids"], "decoder_input_ids": given["input_ids"].flip(0)}
    found = table(isoscope.observe(module, [given], layers="*attention.*", heads=True, **tiny.EVERY))
    encoder, decoder = module.encoder.block[0].layer, module.decoder.block[0].layer
    first, own, across = encoder[0].SelfAttention, decoder[0].SelfAttention, decoder[1].EncDecAttention
    for site, part, causal in (
        (("attention", 1), first, False),
        (("attention", 4), own, True),
        (("cross_attention", 4), across, False),
    ):
        query, key = (
            each.unflatten(-1, (2, 8)).transpose(1, 2)
            for each in shown(module, lambda: module(**given), part.q, part.k)
        )
        biased = part.has_relative_attention_bias
        bias = part.compute_bias(15, 15, device="cpu").detach().double() if biased else None
        expected = oracle(query, key, scale=1.0, added=bias, causal=causal)
        for name, numbers in expected.items():
            assert found.loc[site, name].tolist() == pytest.approx(numbers.tolist(), rel=1e-6), (site, name)
        if bias is not None:
            wrong = oracle(query, key, scale=1.0, causal=causal)["drift_share"]
            assert (wrong - expected["drift_share"]).abs().max() > 0.02


# ── which mean ───────────────────────────────────────────────────────────────────────────────────────────


def hides_rotation(tap: Callable[..., AbstractContextManager[Any]]) -> Callable[..., Any]:
    """A tap that cannot see queries before rotary position."""

    @contextmanager
    def hiding(module: Any, blocks: Any, receive: Callable[..., None], **options: Any) -> Iterator[Any]:
        def blind(site: Site, attended: Attended) -> None:
            receive(site, replace(attended, unrotated=None, rotate=None))

        with tap(module, blocks, blind, **options) as mode:
            yield mode

    return hiding


def test_leaving_a_sequence_out_agrees_with_the_mean_before_rotation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean at a position is of n = 47 others: its noise adds V_c/n to V_d and to V_c alike."""
    module, x = Small(rotary=True), vectors(48)
    before = look(module, x)
    monkeypatch.setattr(fold, "attention_hooks", hides_rotation(fold.attention_hooks))
    leaving = look(module, x)
    said = [seen.facts["counterfactual"]["mean query"] for seen in (before, leaving)]  # type: ignore[index]
    assert said == ["before rotary position, over all data", "at its position, over the other sequences"]
    one, other = table(before), table(leaving)
    assert one.drift_share.min() > 0.05
    noise = (1 - one.drift_share) / 47
    expected = (one.drift_share + noise) / (1 + 2 * noise)
    assert (other.drift_share - expected).abs().max() < 0.015
    assert abs(float((other.drift_share - expected).mean())) < 0.005
    for name in ("normalised_entropy_without_drift", "sink_mass_without_drift", "entropy_without_drift"):
        assert apart(one, other, name) < 0.03, name
    nulls = [seen.frame().query("measure == 'drift_share'").null for seen in (before, leaving)]
    assert float(nulls[0].max()) < 0.01
    assert nulls[1].tolist() == pytest.approx([1 / 48] * len(nulls[1]))
    # the mean after rotation, over all positions, would not do: fast planes cancel in it
    turned = torch.tensor(before.frame().query("measure == 'query_drift' and head.notna()").value.to_numpy())
    straight = [queries_of(before, site).mean_query.norm(dim=1) for site in (1, 2)]
    assert (turned < 0.8 * torch.cat(straight)).all()


def queries_of(seen: Observation, layer: int) -> Queries:
    found = seen.records[Site("attention", layer)][Queries]
    assert isinstance(found, Queries)
    return found


def test_too_few_sequences_to_leave_one_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "attention_hooks", hides_rotation(fold.attention_hooks))
    rows = look(Small(rotary=True), vectors(7)).frame().set_index("measure")
    assert rows.loc["drift_share"].value.isna().all()
    assert (rows.loc["drift_share"].note != "").all()
    assert rows.loc["entropy"].value.notna().all()
    enough = look(Small(rotary=True), vectors(8)).frame().set_index("measure")
    assert enough.loc["drift_share"].value.notna().all()


@pytest.mark.parametrize("rotary", [False, True])
def test_removing_the_mean_twice_changes_nothing(rotary: bool) -> None:
    """With its mean query taken away inside the model, attention is what the counterfactual said."""
    module, x = Small(rotary=rotary), vectors()
    first = look(module, x)
    site = module.attentions[0]
    site.centre = nn.Parameter(queries_of(first, 1).mean_query[:, None], requires_grad=False)
    one, two = (table(seen).loc[("attention", 1)] for seen in (first, look(module, x)))
    for name in ("entropy", "normalised_entropy", "sink_mass", "largest_weight"):
        assert two[name].tolist() == pytest.approx(one[f"{name}_without_drift"].tolist(), abs=1e-10)
        assert two[f"{name}_without_drift"].tolist() == pytest.approx(two[name].tolist(), abs=1e-10)
        assert (one[name] - two[name]).abs().max() > 1e-3
    assert two.drift_share.abs().max() < 1e-20
    assert two.normalised_entropy_without_random.tolist() == pytest.approx(two.normalised_entropy.tolist())


# ── controls ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("hidden", [False, True])
def test_the_random_vector_is_as_long_as_the_mean_at_every_row(
    monkeypatch: pytest.MonkeyPatch, hidden: bool
) -> None:
    held: list[tuple[Tensor, Tensor]] = []

    def see(attended: Attended, where: Any, means: Tensor, random: Tensor, behind: Tensor) -> Any:
        held.append((means, random))
        return attend.see_counterfact(attended, where, means, random, behind)

    monkeypatch.setattr(fold, "see_counterfact", see)
    if hidden:
        monkeypatch.setattr(fold, "attention_hooks", hides_rotation(fold.attention_hooks))
    look(Small(rotary=True), vectors())
    assert sum(len(means) if means.dim() == 5 else 1 for means, _ in held) == 2, "one for each attention"
    for means, random in held:
        assert random.norm(dim=-1).flatten().tolist() == pytest.approx(means.norm(dim=-1).flatten().tolist())
        assert functional.cosine_similarity(means, random, dim=-1).abs().mean() < 0.7


def test_a_sink_planted_through_the_mean_query_is_found() -> None:
    x = vectors(16, 32).float()
    rows = isoscope.observe(Sinking(), [x], layers="attention.1").frame().set_index("measure")
    value, null = rows.value, rows.null
    assert value["sink_mass"] > 0.9 > 0.2 > null["sink_mass"]
    assert value["sink_mass_without_drift"] == pytest.approx(null["sink_mass_without_drift"], abs=0.02)
    assert value["sink_mass_without_random"] > 0.5
    assert value["normalised_entropy"] < 0.3 < 0.9 < value["normalised_entropy_without_drift"]
    assert value["normalised_entropy_beside_first"] > 0.9, "apart from the sink it was even all along"
    assert value["drift_share"] > 0.9


def test_queries_without_a_mean_lose_nothing() -> None:
    """Every sequence comes with its negative, and the projection has no bias."""
    module = Small(causal=False)
    for part in module.attentions:
        nn.init.zeros_(part.query.bias)
    x = vectors(8)
    rows = table(isoscope.observe(module, [torch.cat([x, -x])], layers="attention.1", heads=True))
    for name in ("entropy", "normalised_entropy", "sink_mass", "largest_weight"):
        assert rows[f"{name}_without_drift"].tolist() == pytest.approx(rows[name].tolist(), abs=1e-12)
    assert rows.drift_share.max() < 1e-20


# ── where there is none ──────────────────────────────────────────────────────────────────────────────────


def test_observations_that_were_merged_have_no_counterfactual_and_say_why() -> None:
    module = Small()
    first, second = look(module, vectors(8, seed=1)), look(module, vectors(8, seed=2))
    both = first.merge(second).frame().set_index("measure")
    assert both.loc[["drift_share"]].value.isna().all()
    assert both.loc[["drift_share"]].note.str.contains("differs between the observations").all()
    whole = isoscope.observe(
        module, [vectors(8, seed=1), vectors(8, seed=2)], layers="*attention.*", heads=True
    )
    assert both.value["entropy"].tolist() == pytest.approx(
        whole.frame().set_index("measure").value["entropy"].tolist(), rel=1e-9
    )


def test_it_is_left_out_where_it_is_not_wanted() -> None:
    rows = isoscope.observe(Small(), [vectors()], counterfactual=False).frame()
    assert not set(COUNTERFACTUAL) & set(rows.measure)
    assert "entropy" in set(rows.measure)


def test_a_convolutional_model_has_no_rows_of_attention() -> None:
    module, x = modal.build("resnet"), {"pixel_values": torch.randn(2, 3, 32, 32)}
    rows = isoscope.observe(module, [x]).frame()
    assert set(rows.kind) <= {"layer", "output"}
    for name in ("entropy", "drift_share", "query_drift"):
        with pytest.raises(isoscope.IsoscopeError) as caught:
            isoscope.observe(module, [x], measures=[name])
        said = str(caught.value)
        assert said.startswith(f"{name} needs attention: no attention was seen (looked for ")
        assert said.endswith(").") and said.count(". ") == 0 and "\n" not in said

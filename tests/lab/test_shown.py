"""What attention tells of itself is what it does: in the tap, compiled, and without its mean query."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import isoscope
from isoscope.geometry.attention import row_statistics, weight_rows
from isoscope.lab.model.transformer import Shape, Transformer, build
from isoscope.lab.variants.base import Given
from isoscope.lab.variants.table import VARIANTS, Variant
from isoscope.models.attention.shown import mixed, weigh
from isoscope.models.attention.tap import Attended, attention_tap
from isoscope.sites import Site
from tests.lab import naive
from tests.tiers import nightly

LENGTH, SIZE = 7, 9
ROWS = ("entropy", "normalised_entropy", "largest_weight", "effective_keys", "sink_mass", "attended_distance")
SOFTMAX = ("softmax", "qk-norm", "gated", "centred", "sigma", "temperature", "log-length")  # seen as such
every = pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
attending = pytest.mark.parametrize("variant", naive.ATTENDING, ids=lambda variant: variant.name)


def sharp(variant: Variant) -> Transformer:
    """A tiny model whose attention is neither even nor on one key, in eval mode."""
    shape = Shape(7, width=naive.WIDTH, layers=naive.LAYER, heads=2, length=LENGTH, attention=variant.name)
    model, random = build(shape, seed=0).eval(), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in (*model.named_parameters(), *model.named_buffers()):
            if "attend." in name or name.endswith((".gain", "mean")):
                weight.add_(0.4 * torch.randn(weight.shape, generator=random))
            elif ".query." in name or ".key." in name:
                weight.mul_(30)
            elif "tokens" in name or "positions" in name:
                weight.mul_(50)
    return model


def ids(size: int = SIZE) -> Tensor:
    return torch.randint(7, (size, LENGTH), generator=torch.Generator().manual_seed(0))


PADDED = (torch.arange(LENGTH) < torch.arange(SIZE)[:, None] % 5 + 3).long()


@contextmanager
def entering(model: Transformer) -> Iterator[list[Given]]:
    """What enters the attention of every layer."""
    found: list[Given] = []
    hooks = [
        block.attention.attend.register_forward_pre_hook(lambda _, given: found.append(given[0]))
        for block in model.blocks
    ]
    yield found
    for hook in hooks:
        hook.remove()


def by_hand(weight: Tensor, counts: Tensor) -> dict[str, list[float]]:
    """The mean over rows that count of each of `ROWS`, of every head, whatever the weights add up to."""
    found: dict[str, list[float]] = {name: [] for name in ROWS}
    for head in range(weight.shape[1]):
        each: dict[str, list[float]] = {name: [] for name in ROWS}
        for n, i in torch.nonzero(counts).tolist():
            seen = [j for j in range(LENGTH) if j <= i and counts[n, j]]
            p = weight[n, head, i, seen].abs() / weight[n, head, i, seen].abs().sum()
            entropy = -sum(float(x) * math.log(x) for x in p if x > 0)
            each["entropy"].append(entropy)
            if len(seen) > 1:
                each["normalised_entropy"].append(entropy / math.log(len(seen)))
            each["largest_weight"].append(float(p.max()))
            each["effective_keys"].append(1 / float((p**2).sum()))
            each["sink_mass"].append(float(p[0]))
            each["attended_distance"].append(sum(float(x) * abs(i - j) for x, j in zip(p, seen, strict=True)))
        for name, numbers in each.items():
            found[name].append(sum(numbers) / len(numbers))
    return found


def read(model: nn.Module, data: object, *names: str) -> pd.DataFrame:
    """Values by (kind, layer) and measure, a list of heads each."""
    seen = isoscope.observe(
        model, [data], measures=names or ROWS, layers="*attention*", heads=True, skip_first=False
    )
    rows = seen.frame().dropna(subset="head")
    return rows.groupby(["kind", "layer", "measure"])["value"].apply(list).unstack()


@attending
@pytest.mark.parametrize("counts", [None, PADDED], ids=["whole", "padded"])
def test_rows_in_the_tap_are_those_of_the_true_weights(variant: Variant, counts: Tensor | None):
    model = sharp(variant)
    data = {"input_ids": ids()} if counts is None else {"input_ids": ids(), "attention_mask": counts}
    with torch.no_grad(), entering(model) as entered:
        model(**data)
    table = read(model, data)
    there = torch.ones(SIZE, LENGTH) if counts is None else counts
    last = model.blocks[-1].attention.attend
    maps = [by_hand(each, there) for each in naive.MAPS[variant.name](last.double(), _double(entered[-1]))]
    heads = maps[:2] if variant.name == "differential" else maps
    for name in ROWS:
        mine = [value for of in heads for value in of[name]]
        assert table.loc[("attention", naive.LAYER), name] == pytest.approx(mine, abs=2e-5)
        assert mine[0] > 0.05
    if variant.name == "differential":
        assert table.loc[("mixed_attention", naive.LAYER), "entropy"] == pytest.approx(
            maps[2]["entropy"], abs=2e-5
        )
    else:
        assert set(table.index.get_level_values("kind")) == {"attention"}


def _double(given: Given) -> Given:
    parts = [x.double() for x in (given.hidden, given.query, given.key, given.value)]
    return Given(*parts, given.causal, given.counts)


@attending
def test_what_weights_add_up_to_is_told_apart(variant: Variant):
    model = sharp(variant)
    with torch.no_grad(), entering(model) as entered:
        model(ids())
    table = isoscope.observe(
        model, [ids()], layers="*attention.*", heads=True, counterfactual=False, skip_first=False
    ).frame()
    told = table[(table.measure == "attention_mass") & (table.layer == naive.LAYER)].dropna(subset="head")
    last = model.blocks[-1].attention.attend
    maps = naive.MAPS[variant.name](last.double(), _double(entered[-1]))
    if variant.name in SOFTMAX:
        assert told.empty
    else:
        expected = [float(mass) for each in maps for mass in each.sum(-1).mean((0, 2))]
        assert list(told.value) == pytest.approx(expected, abs=2e-5)
        assert not told.value.between(0.99, 1.01).all() or variant.name in ("softcap", "sparsemax", "entmax")


def test_a_convolution_shows_no_attention():
    (convolution,) = (variant for variant in VARIANTS if variant.name == "convolution")
    seen = isoscope.observe(sharp(convolution), [ids()], measures=["mean_cosine"])
    assert not [site for site in seen.records if "attention" in site.kind]


@every
@pytest.mark.parametrize("training", [True, False], ids=["training", "eval"])
def test_looking_changes_no_bit(variant: Variant, training: bool):
    plain, looked_at = sharp(variant).train(training), sharp(variant).train(training)
    blocks = {str(number): block for number, block in enumerate(looked_at.blocks)}
    for counts in (None, PADDED):
        expected = plain(ids(), counts)
        with attention_tap(looked_at, blocks, lambda site, attended: None):
            found = looked_at(ids(), counts)
        assert torch.equal(found, expected)
        for model, out in ((plain, expected), (looked_at, found)):
            model.zero_grad()
            out.square().sum().backward()
        for mine, its in zip(plain.parameters(), looked_at.parameters(), strict=True):
            assert (mine.grad is None and its.grad is None) or torch.equal(mine.grad, its.grad)


@pytest.mark.parametrize(
    "variant",
    [VARIANTS[0], *nightly(*VARIANTS[1:])],
    ids=lambda variant: variant.name,
)
def test_compiled_is_as_uncompiled_and_can_be_observed(variant: Variant):
    torch._dynamo.reset()
    shape = Shape(7, width=8, layers=1, heads=2, length=LENGTH, attention=variant.name)
    plain, model = build(shape, seed=0), build(shape, seed=0)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for _ in range(2):  # what a step leaves behind is the same as well
        expected, found = plain(ids()), compiled(ids())
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    expected.square().sum().backward()
    found.square().sum().backward()
    for mine, its in zip(plain.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(its.grad, mine.grad, rtol=1e-4, atol=1e-6)
    for mine, its in zip(plain.buffers(), model.buffers(), strict=True):
        torch.testing.assert_close(its, mine)
    if variant.name != "convolution":
        pd.testing.assert_frame_equal(read(compiled, ids()), read(model, ids()))
    torch._dynamo.reset()


@attending
def test_without_the_mean_query_as_by_hand(variant: Variant):
    model = sharp(variant)
    with torch.no_grad(), entering(model) as entered:
        model(ids())
    name = "normalised_entropy_without_drift"
    found = read(model, ids(), name).loc[("attention", naive.LAYER), name]
    seen: list[Attended] = []
    blocks = {str(number): block for number, block in enumerate(model.blocks)}
    with torch.no_grad(), attention_tap(model, blocks, lambda site, each: seen.append(each)):
        model(ids())
    mine = [each for each in seen[-3:] if each.query is not None]
    mine = mine if variant.name == "differential" else mine[-1:]
    expected = []
    for attended in mine:
        query, key = attended.query.double(), attended.key.double()
        if variant.name == "log-length":  # the mean before each row was scaled by its own log v
            growth = torch.arange(1, LENGTH + 1).clamp_min(2).double().log()[:, None]
            query = query - growth * (query / growth).mean((0, 2), keepdim=True)
        else:
            query = query - query.mean((0, 2), keepdim=True)
        given = Given(entered[-1].hidden, query, key, entered[-1].value, True)
        module = model.blocks[-1].attention.attend
        told = attended.path == "shown" and variant.name != "differential"
        weight = naive.MAPS[variant.name if told else "softmax"](module, given)[0]
        expected += by_hand(weight, torch.ones(SIZE, LENGTH))["normalised_entropy"]
    assert found == pytest.approx(expected, abs=2e-5)


# ── the functions themselves ─────────────────────────────────────────────────────────────────────────────


class Told(nn.Module):
    """A block that weighs once and mixes once."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        query, key = self.one(x)[:, None], self.two(x)[:, None]
        scores = query @ key.mT
        weights = weigh(query, key, scores, 1.0, torch.sigmoid)
        return (mixed(weights - 0.1, scores) @ x[:, None])[:, 0]


def test_the_tap_is_told_by_any_model():
    model = nn.Sequential(Told(), Told())
    seen: list[tuple[Site, Attended]] = []
    blocks = dict(model.named_children())
    x = torch.randn(2, 5, 4)
    with attention_tap(model, blocks, lambda site, each: seen.append((site, each))):
        model(x)
    assert [str(site) for site, _ in seen] == [
        "attention.1", "mixed_attention.1", "attention.2", "mixed_attention.2"
    ]  # fmt: skip
    (_, one), (_, two) = seen[:2]
    assert one.path == two.path == "shown" and one.module == "0"
    torch.testing.assert_close(one.scores, one.query @ one.key.mT)
    torch.testing.assert_close(two.weights_of(two.scores), one.weights_of(one.scores) - 0.1)
    assert two.query is None and "mixed" in two.why


def test_rows_of_weights_are_those_of_the_softmax_where_they_are_one():
    random = torch.Generator().manual_seed(0)
    scores = torch.randn(2, 3, 5, 5, generator=random, dtype=torch.float64)
    visible = torch.ones(5, 5, dtype=torch.bool).tril().expand_as(scores)
    scores = scores.masked_fill(~visible, -math.inf)
    plain = row_statistics(scores, visible)
    for size in (1.0, 1e-3, -2.0):  # whatever they add up to
        told = weight_rows(size * scores.softmax(-1), scores)
        for name, mine in vars(plain).items():
            torch.testing.assert_close(getattr(told, name), mine, msg=name)


def test_rows_of_weights_that_cannot_be_read_are_nan():
    scores = torch.zeros(1, 1, 4, 3)
    scores[0, 0, 0] = -math.inf  # sees nothing
    weights = torch.ones(1, 1, 4, 3)
    weights[0, 0, 1] = 0  # weighs nothing
    weights[0, 0, 2, 1] = math.nan
    rows = weight_rows(weights, scores)
    assert rows.visible[0, 0].tolist() == [0, 3, 3, 3]
    for name in ("entropy", "largest", "collision", "first_key", "distance"):
        assert getattr(rows, name)[0, 0].isnan().tolist() == [True, True, True, False], name

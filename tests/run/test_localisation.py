"""Profiles, walks and predictions on data, against what they are by definition; and a planted walk."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import permutations
from typing import Any

import pandas as pd
import pytest
import torch
import transformers
from scipy.stats import spearmanr
from torch import Tensor

from isoscope.data.batch import Batch
from isoscope.geometry.propagation import propagation
from isoscope.geometry.spectra import covariance_root, qk_matrix, qk_spectrum
from isoscope.models.attention.tap import attention_tap
from isoscope.models.entering import entering, find_module
from isoscope.models.source import Model
from isoscope.models.tap import at_rest
from isoscope.models.weights import open_weights
from isoscope.results.row import frame
from isoscope.run.observe.observe import look
from isoscope.run.weigh.agreement import EXACT, ORDERS, _density_within, held
from isoscope.run.weigh.data import data_part
from isoscope.run.weigh.looking import Localiser, Walked
from isoscope.run.weigh.predict import _random_frobenius, _random_signal, _signal, walk_factors
from isoscope.run.weigh.weighed import Findings
from isoscope.stats.profiles import BINS, Profiles, averaged, density
from isoscope.stats.seen import GROUPS
from isoscope.stats.walks import WalkSpread
from tests.models import tiny, weighed
from tests.run.walking import Walking, batches, walks


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def part_of(module: Any, data: Any, **options: Any) -> Findings:
    source = Model(module, "tiny")
    return data_part(source, open_weights(source), data, **options)


def heads(part: Findings, measure: str, layer: int = 1) -> pd.DataFrame:
    found = frame(part.rows)
    found = found[(found["measure"] == measure) & (found["layer"] == layer) & found["head"].notna()]
    return found.set_index("head").sort_index()


def literal_density(weights: list[float], bins: int) -> list[float]:
    """The mean over every bin of the step function that is T·weight on each key's stretch."""
    length = len(weights)

    def overlap(key: int, stretch: int) -> Fraction:
        low = max(Fraction(key, length), Fraction(stretch, bins))
        high = min(Fraction(key + 1, length), Fraction(stretch + 1, bins))
        return max(high - low, Fraction(0))

    return [
        sum(bins * length * weight * float(overlap(key, stretch)) for key, weight in enumerate(weights))
        for stretch in range(bins)
    ]


@pytest.mark.parametrize("length", [1, 2, 5, 7, 12, 40])
@pytest.mark.parametrize("bins", [1, 4, 5])
def test_density_is_the_mean_over_stretches(length: int, bins: int) -> None:
    weights = normal(length, length).softmax(0)
    found = density(weights, bins=bins)
    assert found.tolist() == pytest.approx(literal_density(weights.tolist(), bins), rel=1e-9)
    assert float(found.mean()) == pytest.approx(1)
    assert density(torch.full((length,), 1 / length), bins=bins).tolist() == pytest.approx([1.0] * bins)


def test_density_of_keys_that_are_hidden() -> None:
    """Keys that are not shown leave no gap, wherever they stand; other rows are not touched."""
    weights, shown = normal(0, 2, 3, 9).softmax(-1), normal(1, 2, 3, 9) > -0.3
    found = density(weights, shown)
    for i in range(2):
        for j in range(3):
            alone = weights[i, j][shown[i, j]]
            torch.testing.assert_close(found[i, j], density(alone))
    assert float(density(torch.ones(4), torch.zeros(4, dtype=torch.bool)).abs().sum()) == 0


def test_a_profile_is_averaged_not_added() -> None:
    assert (
        averaged(torch.full((2, 50), 0.3, dtype=torch.float64)).tolist() == [pytest.approx([0.3] * BINS)] * 2
    )


def last_rows(module: Any, given: dict[str, Tensor]) -> list[Tensor]:
    """By layer, the mean density of the last real query [h, bins], from the rows the model itself computes.

    Every sequence runs alone and without its padding.
    """
    total: list[Tensor] = []
    for ids, mask in zip(given["input_ids"], given["attention_mask"].bool(), strict=True):
        with torch.no_grad():
            maps = module(input_ids=ids[mask][None], output_attentions=True).attentions
        each = [density(attention[0, :, -1]) / len(given["input_ids"]) for attention in maps]
        total = [one + two for one, two in zip(total, each, strict=True)] if total else each
    return total


@pytest.mark.parametrize(
    ("family", "left"),
    [("bert", 0), ("gpt2", 0), ("llama", 0), ("llama", 1), ("opt", 0), ("opt", 1), ("t5", 0), ("t5", 1)],
)
def test_profiles_are_those_of_the_models_own_rows(family: str, left: int) -> None:
    """Padded on either side, grouped heads, rotary position, a bias of position, bidirectional and causal."""
    eager, module = (weighed.model(family).double() for _ in range(2))
    if family == "t5":
        eager, module = eager.encoder, module.encoder
    eager.set_attn_implementation("eager")
    given = tiny.ids(3, 21)
    given = {name: part.flip(1) for name, part in given.items()} if left else given
    batch = Batch(given, given["attention_mask"].bool(), torch.arange(3))
    localiser = Localiser((), look(Model(module, "tiny"), batch), 2e9)
    localiser.start(batch)
    with at_rest(module), attention_tap(module, localiser.found.blocks, localiser.attends):
        module(**given)
    for (site, found), expected in zip(localiser.profiles.items(), last_rows(eager, given), strict=True):
        assert site.kind == "attention"
        torch.testing.assert_close(
            found.mean, expected.double(), rtol=1e-5, atol=1e-5
        )  # some rows are float32
        assert found.keys.tolist() == [float(given["attention_mask"].sum())] * len(expected)
        with pytest.raises(AssertionError):
            torch.testing.assert_close(found.mean.flip(1), expected.double(), rtol=1e-5, atol=1e-5)


def test_keys_after_the_query_are_left_out_and_told() -> None:
    scores = torch.tensor([[[0.0, 0.0, 0.0, math.log(3.0)]]])
    visible = torch.ones(1, 1, 4, dtype=torch.bool)
    found = Profiles.of(scores, visible, torch.tensor([2]), torch.tensor([True]))
    assert found.mean[0].tolist() == pytest.approx([1.0] * BINS)
    assert float(found.after) == pytest.approx(0.5) and float(found.keys) == 3
    for own, counts, value in ((0, True, 0.0), (2, False, 0.0), (2, True, math.nan)):
        spoiled = scores.masked_fill(torch.tensor([False, True, False, False]), value)
        none = Profiles.of(spoiled, visible, torch.tensor([own]), torch.tensor([counts]))
        assert float(none.rows) == 0 and float(none.total.abs().sum()) == 0


@pytest.mark.parametrize(
    ("width", "inner", "query_heads", "key_heads"), [(7, 3, 4, 2), (5, 5, 2, 2), (4, 6, 3, 1)]
)
def test_factors_of_a_walk_have_its_spectrum(
    width: int, inner: int, query_heads: int, key_heads: int
) -> None:
    query, key = normal(0, query_heads, width, inner), normal(1, key_heads, width, inner)
    spread = normal(2, width, width - 1)
    covariance = spread @ spread.mT  # singular
    parts = walk_factors(query, key, 0.3, covariance)
    found = qk_spectrum(parts.query, parts.key, scale=1.0)
    expected = qk_spectrum(query, key, scale=0.3, root=covariance_root(covariance))
    for name in ("trace", "trace_square", "frobenius_square", "spectral_norm", "effective_rank"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("length", [20, 64, 200])
def test_the_signal_over_stretches_is_that_over_positions(length: int) -> None:
    """The middle of a stretch stands for its mean: within .02, wherever ρ does not step."""
    parts = walk_factors(
        normal(0, 2, 40, 40) / 90, normal(1, 2, 40, 40), 1.0, torch.eye(40, dtype=torch.float64)
    )
    spectrum = qk_spectrum(parts.query, parts.key, scale=1.0)
    found, way = _signal(spectrum, parts, length, 256, 0)
    expected = propagation(spectrum, parts, length, walks=256, seed=0)
    torch.testing.assert_close(found, averaged(expected.value), rtol=0, atol=0.02)
    assert way == expected.way and float(found.amax() - found.amin()) > 0.1


def increments_of(inputs: list[Tensor], counts: list[Tensor]) -> Tensor:
    """The covariance of x_{t+1} − x_t over neighbours that both count, [d, d]."""
    moves = [
        x[t + 1] - x[t]
        for batch, mine in zip(inputs, counts, strict=True)
        for x, counted in zip(batch, mine, strict=True)
        for t in range(len(x) - 1)
        if counted[t] and counted[t + 1]
    ]
    return torch.stack(moves).T.double().cov()


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "albert"])
def test_the_spectrum_on_data_is_that_of_what_enters(family: str) -> None:
    """tr(WΣ) by definition from captured inputs; and the same with γ folded into W and Σ that of x̂."""
    module, given = weighed.model(family).double(), tiny.ids(4, 20)
    part = part_of(module, [given])
    live = open_weights(module)
    names = [step.place.query[0].rpartition(".")[0] for step in live.steps]
    seen: dict[tuple[str, int], Tensor] = {}
    with torch.no_grad(), entering(module, names, lambda n, c, x, _: seen.update({(n, c): x})):
        module(**given)
    for number, (found, name) in enumerate(zip(live.projections(), names, strict=True)):
        x = seen[name, names[:number].count(name)]
        covariance = increments_of([x], [given["attention_mask"].bool()])
        matrix = qk_matrix(found.query, found.key, scale=found.scale)
        root = covariance_root(covariance)
        traces = [float((one @ covariance).trace()) for one in matrix]
        sizes = [float((root @ one @ root).norm()) for one in matrix]
        assert heads(part, "trace_on_data", number + 1)["value"].tolist() == pytest.approx(traces, rel=1e-6)
        assert heads(part, "frobenius_on_data", number + 1)["value"].tolist() == pytest.approx(
            sizes, rel=1e-6
        )
        if found.norm is not None:
            bias = 0 if found.norm.bias is None else found.norm.bias
            plain = increments_of([(x - bias) / found.norm.weight], [given["attention_mask"].bool()])
            folded = qk_matrix(found.query, found.key, scale=found.scale, gamma=found.norm.weight)
            again = [float((one @ plain).trace()) for one in folded]
            assert again == pytest.approx(traces, rel=1e-6)


PLANTED = (0.2, -0.2, 0.1, -0.1, 0.3, -0.3, 0.4, -0.4)


def planted() -> Walking:
    """Heads that lean to late keys and to early ones by turns, each by directions of its own.

    Heads of the same directions would see the same noise, and where it leans all of them err together.
    """
    own = torch.eye(24, dtype=torch.float64).view(24, 8, 3).transpose(0, 1)
    return Walking(own, torch.tensor(PLANTED, dtype=torch.float64)[:, None, None] * own)


def p_of(part: Findings, measure: str = "propagation_agreement") -> float:
    found = frame(part.rows)
    (note,) = found[(found["measure"] == measure) & found["head"].isna()]["note"]
    return float(re.findall(r"p = (.+)", note)[0])


def test_a_planted_walk_attends_where_it_is_predicted_to() -> None:
    part = part_of(planted(), batches(walks(150, 160, 24), 50), length=160)
    rows = frame(part.rows)
    slope = rows[rows["measure"] == "walk_slope"].iloc[0]
    assert slope["value"] == pytest.approx(1, abs=0.05) and slope["low"] < 1 < slope["high"]
    assert heads(part, "trace_on_data")["note"].tolist()[:2] == ["regime: late", "regime: early"]
    for measure in ("propagation_agreement", "softmax_agreement"):
        agree = heads(part, measure)
        assert (agree["value"] > 0.85).all()
        assert (agree["null"].abs() < 0.3).all()  # of others and their mirror images as many lean either way
        assert p_of(part, measure) < 0.02  # those who lean alike may change places: 4!·4!/8! = .014
    assert (heads(part, "regime_density")["value"][:2] > 1.5).all()
    # the test can fail: the profile of one head is not that of the other
    points = part.points
    measured, predicted = (
        {head: some["y"].to_numpy() for head, some in points[points["series"] == series].groupby("head")}
        for series in ("measured", "predicted")
    )
    swapped = pd.Series(predicted[0]).corr(pd.Series(measured[1]), method="spearman")
    assert swapped < -0.9


def test_inputs_that_stay_where_they_are_do_not() -> None:
    """The same heads on inputs that do not walk: slope 0, and own predictions tell no more than others.

    The last input as its own key is the one that leans as predicted: one stretch of 32.
    """
    part = part_of(planted(), batches(walks(150, 160, 24, still=True), 50), length=160)
    rows = frame(part.rows)
    assert rows[rows["measure"] == "walk_slope"].iloc[0]["value"] == pytest.approx(0, abs=0.02)
    assert any("median -0.00 (1: a walk" in remark or "median 0.00" in remark for remark in part.remarks)
    agree = heads(part, "propagation_agreement")
    assert (agree["value"].abs() < 0.8).all()
    assert abs((agree["value"] - agree["null"]).mean()) < 0.2
    assert p_of(part) > 0.05


def literal_chance(own: Callable[[int, int], float], mirrored: Callable[[int, int], float], k: int) -> float:
    """How many of all orders of k predictions exceed the mean over the others by as much as the given one."""

    def excess(order: Sequence[int]) -> float:
        return sum(
            own(i, order[i])
            - sum(own(i, j) + mirrored(i, j) for j in range(k) if j != order[i]) / (2 * (k - 1))
            for i in range(k)
        )

    orders = list(permutations(range(k)))
    return sum(excess(order) >= excess(range(k)) - 1e-9 for order in orders) / len(orders)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_predictions_are_held_against_those_of_other_heads(k: int) -> None:
    predicted, measured = normal(k, k + 1, BINS), normal(k + 9, k + 1, BINS)
    measured[:k] += 0.5 * predicted[:k]
    predicted[k] = 0.25  # flat: no head of it

    @cache
    def spearman(i: int, j: int, step: int = 1) -> float:
        return float(spearmanr(measured[i].numpy(), predicted[j].numpy()[::step]).statistic)

    found = held(predicted, measured)
    assert found.against == 2 * (k - 1)
    for i in range(k):
        others = [spearman(i, j) for j in range(k) if j != i]
        mirrored = [spearman(i, j, -1) for j in range(k) if j != i]
        assert float(found.own[i]) == pytest.approx(spearman(i, i))
        assert float(found.others[i]) == pytest.approx(sum(others) / (k - 1))
        assert float(found.mirrored[i]) == pytest.approx(sum(mirrored) / (k - 1))
        assert float(found.control[i]) == pytest.approx(sum(others + mirrored) / (2 * k - 2))
        assert int(found.better[i]) == sum(one >= spearman(i, i) for one in others + mirrored)
    for values in (found.own, found.control, found.better):
        assert values[k].isnan() and values[:k].isfinite().all()
    assert found.chance == pytest.approx(literal_chance(spearman, lambda i, j: spearman(i, j, -1), k))


@pytest.mark.parametrize(("own", "common"), [(2.0, 0.0), (2.0, 3.0), (0.0, 3.0)])
def test_what_all_heads_share_is_no_agreement(own: float, common: float) -> None:
    """A slope of all predictions and all profiles makes r large and p no smaller; own shapes make p small."""
    chances = []
    rise = common * torch.linspace(-2, 2, BINS, dtype=torch.float64)
    for seed in range(20):
        predicted, noise = normal(seed, 12, BINS), normal(seed + 100, 12, BINS)
        found = held(predicted + rise, own * predicted + noise + rise)
        chances.append(found.chance)
        assert float(found.own.mean()) > 0.4
        assert found.chance * (ORDERS + 1) == pytest.approx(round(found.chance * (ORDERS + 1)), abs=1e-6)
    assert max(chances) < 0.01 if own else 0.2 < sum(chances) / len(chances) < 0.8
    assert len(predicted) > EXACT


def test_a_head_alone_has_nothing_to_be_held_against() -> None:
    found = held(normal(0, 1, BINS), normal(1, 1, BINS))
    assert found.own.isfinite().all() and found.control.isnan().all() and math.isnan(found.chance)
    identity = torch.eye(4, dtype=torch.float64)[None]
    part = part_of(Walking(identity, 0.3 * identity), batches(walks(9, 40, 4), 4))
    rows = frame(part.rows)
    row = rows[(rows["measure"] == "propagation_agreement") & rows["head"].isna()].iloc[0]
    assert row["note"] == "no other head to hold it against" and math.isnan(row["null"]) and row["value"] > 0


@pytest.mark.parametrize("length", [40, 128])
def test_the_mean_of_random_weights_is_that_of_many(length: int) -> None:
    """Within .01 of the mean over 400 random W, both signs of each, every one with walks of its own."""
    width, inner = 24, 6
    values = normal(0, width).exp()
    sizes = torch.tensor([0.5, 8.0, math.nan], dtype=torch.float64)
    found = _random_signal(sizes, values, inner, length, 0)
    made = normal(1, 2, 400, width, inner) / math.sqrt(width * inner)
    for size, mine in zip(sizes[:2].tolist(), found, strict=False):
        queries = torch.cat([made[0], -made[0]]) * size
        parts = walk_factors(queries, made[1].repeat(2, 1, 1), 1.0, values.diag())
        expected, _ = _signal(qk_spectrum(parts.query, parts.key, scale=1.0), parts, length, 64, 3)
        torch.testing.assert_close(mine, expected.mean(0), rtol=0, atol=0.01)
        assert float((mine - mine.flip(0)).abs().max()) < 0.2  # it leans to neither side by much
    assert found[2].isnan().all() and float((found[0] - found[1]).abs().max()) > 0.1
    again = _random_signal(sizes, values, inner, length, 1)
    assert float((again - found)[:2].abs().max()) < 0.01
    units = made / made.norm(dim=(2, 3), keepdim=True)
    norms = (values.sqrt()[:, None] * units[0] @ (values.sqrt()[:, None] * units[1]).mT).norm(dim=(1, 2))
    assert _random_frobenius(values, inner, 0) == pytest.approx(float(norms.mean()), rel=0.1)


def test_heads_whose_regime_names_no_place_are_no_remark() -> None:
    part = part_of(weighed.model("bert"), [tiny.ids(6, 20)])
    for layer in (1, 2, 3):
        regimes, inside = heads(part, "trace_on_data", layer)["note"], heads(part, "regime_density", layer)
        for head, row in inside.iterrows():
            silent = regimes[head].removeprefix("regime: ") in (
                "undecided",
                "uniform",
                "uniform_half",
                "vanishing",
            )
            assert math.isnan(row["value"]) == silent and (row["note"] == "") == silent


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_batches_do_not_matter(family: str) -> None:
    module, given = weighed.model(family).double(), tiny.ids(6, 20)
    whole = part_of(module, [given])
    order = torch.tensor([4, 0, 5, 2, 1, 3])
    one = [{name: part[i : i + 1] for name, part in given.items()} for i in order.tolist()]
    short = [
        {name: part[:, : int(each["attention_mask"].sum())] for name, part in each.items()} for each in one
    ]
    first, other = frame(whole.rows), frame(part_of(module, short).rows)
    assert first[["kind", "layer", "head", "measure", "n"]].equals(
        other[["kind", "layer", "head", "measure", "n"]]
    )
    for column in ("value", "null", "low", "high"):
        left, right = (torch.tensor(table[column].to_numpy()) for table in (first, other))
        torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-5, equal_nan=True)


def test_a_head_of_nan_spoils_no_other() -> None:
    module, given = weighed.model("bert").double(), tiny.ids(4, 16)
    sound = part_of(module, [given])
    weights = open_weights(module)
    with torch.no_grad():
        broken = weighed.model("bert").double()
        broken.encoder.layer[0].attention.self.query.weight[0, 0] = torch.nan
    part = data_part(Model(module, "tiny"), open_weights(broken), [given])
    for measure in ("trace_on_data", "frobenius_on_data", "propagation_agreement"):
        before, after = heads(sound, measure), heads(part, measure)
        assert math.isnan(after["value"][0]) and after["note"][0]
        assert after["value"][1] == before["value"][1]
    assert weights.sites


def test_what_cannot_be_predicted_is_said() -> None:
    part = part_of(
        weighed.model("t5"), [{**tiny.ids(3, 12), "decoder_input_ids": tiny.ids(3, 9)["input_ids"]}]
    )
    assert any("attention across two sequences is left out" in remark for remark in part.remarks)
    found = frame(part.rows)
    assert set(found[found["measure"] == "walk_slope"]["layer"]) == {1, 2, 3, 4, 5, 6}
    short = part_of(weighed.model("gpt2"), [{"input_ids": torch.tensor([[7], [8]])}])
    rows = frame(short.rows)
    assert rows[rows["measure"] == "walk_slope"]["value"].isna().all()
    assert any("fewer than two increments count" in remark for remark in short.remarks)


def test_memory_thins_the_layers_evenly() -> None:
    part = part_of(weighed.model("bert"), [tiny.ids()], memory=16 * 16 * 16 * 2)
    found = frame(part.rows)
    assert sorted(set(found[found["measure"] == "walk_slope"]["layer"])) == [1, 3]
    assert any("2 of 3 attentions are kept" in remark for remark in part.remarks)


@pytest.mark.parametrize("length", [1, 2, 9])
def test_a_walk_is_recorded_as_its_twins_have_it(length: int) -> None:
    """Positions that do not count or are not finite take part in no pair; groups add up to the whole."""
    x, counts = normal(0, 7, length, 4), normal(1, 7, length) > -1
    x[2, 0, 1] = torch.nan
    keys = torch.tensor([0, 1, 32, 5, 5, 64, 3])
    found, halves = (
        Walked.of(x, counts, keys),
        [Walked.of(x[part], counts[part], keys[part]) for part in (slice(4), slice(4, 7))],
    )
    usable = counts & x.isfinite().all(-1)
    for record in (found, halves[0].merge(halves[1])):
        for group in range(GROUPS):
            rows = keys % GROUPS == group
            if bool(rows.any()):
                twin = WalkSpread.of(x[rows], counts[rows])
                torch.testing.assert_close(record.spreads[group].squares, twin.squares)
                assert record.spreads[group].pairs.tolist() == twin.pairs.tolist()
        assert int(record.sequences.sum()) == int((usable[:, 1:] & usable[:, :-1]).any(1).sum())
        if length > 2:
            torch.testing.assert_close(record.increments.covariance, increments_of([x], [usable]))
            torch.testing.assert_close(record.spread.slope, WalkSpread.of(x, counts).slope)
            rest = WalkSpread.of(x[keys % GROUPS != 0], counts[keys % GROUPS != 0]).slope
            assert float(record.slopes_without()[0]) == pytest.approx(rest)


@pytest.mark.parametrize(
    ("label", "trace", "ends"),
    [
        ("late", 1.0, (16, 32)),
        ("early", -1.0, (0, 16)),
        ("middle", 4.0, (16, 24)),
        ("middle_early", -4.0, (8, 16)),
    ],
)
def test_density_where_a_regime_says(label: str, trace: float, ends: tuple[int, int]) -> None:
    profile = normal(3, BINS).exp()
    expected = float(profile[slice(*ends)].mean())
    assert _density_within(profile, label, trace) == pytest.approx(expected)
    assert math.isnan(_density_within(profile, "undecided", trace))


def test_modules_are_found_by_the_names_of_files() -> None:
    module = transformers.BertModel(tiny.CONFIGS["bert"]())
    norm = module.encoder.layer[0].output.LayerNorm
    for name in (
        "encoder.layer.0.output.LayerNorm",
        "bert.encoder.layer.0.output.LayerNorm",
        "layer.0.output.LayerNorm",
    ):
        assert find_module(module, name) is norm
    assert find_module(module, "output.LayerNorm") is None  # many end so

"""The final norm's stages are those of the running model; edits change what they should and nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor

from isoscope.data.batch import Batch
from isoscope.errors import IsoscopeError
from isoscope.geometry import cosine, drift, spectrum
from isoscope.models.entering import entering
from isoscope.models.source import Model
from isoscope.models.weights import Norm, open_weights
from isoscope.results.row import frame
from isoscope.run.weigh.data import data_part
from isoscope.run.weigh.norm_stages import OUTPUT, Change, NormRecords, bias_cancels, stages, standardised
from isoscope.run.weigh.weighed import Findings
from isoscope.stats.centre import Centre
from isoscope.stats.moments import Moments
from isoscope.stats.reservoir import Reservoir
from isoscope.stats.seen import Places, Vectors
from tests.models import tiny, weighed

FAMILIES = ("bert", "gpt2", "llama", "albert", "gemma", "roberta", "opt")
DEFINITIONS: dict[str, Any] = {
    "mean_cosine": cosine.mean_cosine,
    "drift": drift.drift,
    "relative_drift": drift.relative_drift,
    "mean_norm": drift.mean_norm,
    "isoscore": spectrum.isoscore,
    "participation_ratio": spectrum.participation_ratio,
    "effective_rank": spectrum.effective_rank,
}


def part_of(module: Any, data: Any, edits: Mapping[str, Norm] | None = None) -> Findings:
    source = Model(module, "tiny")
    return data_part(source, open_weights(source), data, edits=edits)


def table(part: Findings) -> pd.DataFrame:
    found = frame(part.rows)
    return found[found["layer"].isna()].set_index(["kind", "measure"]).sort_index()


def passing(module: Any, given: Mapping[str, Tensor]) -> tuple[Norm, Tensor, Tensor]:
    """The final norm, and what enters and leaves its last call, at the positions that count."""
    norm = open_weights(module).final_norm()
    assert norm is not None
    seen: list[tuple[Tensor, Tensor]] = []
    with torch.no_grad(), entering(module, [norm.name], lambda _, __, x, y: seen.append((x, y))):
        module(**given)
    counts = given["attention_mask"].bool()
    return norm, seen[-1][0][counts], seen[-1][1][counts]


def naive(norm: Norm, x: Tensor) -> dict[str, Tensor]:
    """The stages from the definition."""
    x = x.double()
    mean = x.mean(1, keepdim=True) if norm.kind == "LayerNorm" else 0.0
    plain = (x - mean) / (((x - mean) ** 2).mean(1, keepdim=True) + norm.eps) ** 0.5
    bias = 0.0 if norm.bias is None else norm.bias.double()
    return {
        "norm_before": x,
        "norm_standardised": plain,
        "norm_scaled": plain * norm.weight.double(),
        "norm_output": plain * norm.weight.double() + bias,
        "norm_without_weight": plain + bias,
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_the_last_stage_is_the_models_own_output(family: str) -> None:
    module, given = weighed.model(family).double(), tiny.ids(3, 17)
    norm, x, y = passing(module, given)
    made = stages(norm)[OUTPUT].of(standardised(norm, x))
    torch.testing.assert_close(made, y, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(made, weighed.normed(norm, x), rtol=1e-9, atol=1e-9)
    wrong = replace(norm, kind="RMSNorm" if norm.kind == "LayerNorm" else "LayerNorm")
    assert not torch.allclose(stages(wrong)[OUTPUT].of(standardised(wrong, x)), y, atol=1e-3)
    whole = module(**given).last_hidden_state[given["attention_mask"].bool()]
    torch.testing.assert_close(made, whole, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "albert"])
def test_rows_are_the_definitions_of_every_stage(family: str) -> None:
    module, given = weighed.model(family).double(), tiny.ids(5, 16, seed=4)
    part = part_of(module, [given])
    norm, x, _ = passing(module, given)
    rows = table(part)
    for kind, cloud in naive(norm, x).items():
        for measure, definition in DEFINITIONS.items():
            row = rows.loc[(kind, measure)]
            assert row["value"] == pytest.approx(float(definition(cloud)), rel=1e-6, abs=1e-9), (
                kind,
                measure,
            )
            assert row["n"] == len(x)
    fact = part.facts["final norm"]
    assert isinstance(fact, dict) and fact["apart"] < 1e-6 and fact["name"] == norm.name


def test_edits_change_what_they_should_and_nothing_else() -> None:
    module, given = weighed.model("gpt2").double(), tiny.ids(5, 16)
    norm, x, _ = passing(module, given)
    random = torch.Generator().manual_seed(1)
    other = replace(norm, weight=torch.rand(16, generator=random), bias=torch.randn(16, generator=random))
    plain, edited = part_of(module, [given]), part_of(module, [given], {"from another checkpoint": other})
    own = table(edited).loc[["norm_from_another_checkpoint"]]
    cloud = naive(other, x)["norm_output"]
    for measure, definition in DEFINITIONS.items():
        row = own.loc[("norm_from_another_checkpoint", measure)]
        assert row["value"] == pytest.approx(float(definition(cloud)), rel=1e-6)
    rest = table(edited).drop(index="norm_from_another_checkpoint")
    pd.testing.assert_frame_equal(rest, table(plain))
    scaled, bare = (rest.loc[[kind]].droplevel(0) for kind in ("norm_scaled", "norm_without_bias"))
    pd.testing.assert_frame_equal(scaled, bare)
    assert not rest.loc[["norm_output"]].droplevel(0)["value"].equals(scaled["value"])


def test_a_norm_without_bias() -> None:
    part = part_of(weighed.model("llama"), [tiny.ids()])
    rows = table(part)
    assert "norm_without_bias" not in rows.index.get_level_values(0)
    row = rows.loc[("norm", "bias_cancels")]
    assert math.isnan(row["value"]) and row["note"] == "the final norm has no bias"
    assert any("it has no bias" in remark for remark in part.remarks)


def test_edits_that_cannot_be() -> None:
    norm = open_weights(weighed.model("gpt2")).final_norm()
    assert norm is not None
    with pytest.raises(
        IsoscopeError, match="the norm 'small' has 3 dimensions where the model's final norm has 16"
    ):
        stages(norm, {"small": replace(norm, weight=torch.ones(3), bias=None)})
    with pytest.raises(IsoscopeError, match="an edit cannot be called 'output': norm_output is a stage"):
        stages(norm, {"output": norm})


def vectors(seed: int, n: int = 40, width: int = 6) -> tuple[Tensor, Places]:
    random = torch.Generator().manual_seed(seed)
    points = torch.randn(n, width, generator=random, dtype=torch.float64) * 3 + torch.arange(width)
    sequence = torch.arange(n) // 4
    return points, Places.of(n, sequence, torch.randint(2**40, (n // 4,), generator=random))


@pytest.mark.parametrize("weight", [None, torch.linspace(-1, 2, 6)])
@pytest.mark.parametrize("bias", [None, torch.linspace(3, -1, 6)])
def test_spread_and_sample_follow_from_those_before(weight: Tensor | None, bias: Tensor | None) -> None:
    points, places = vectors(0)
    change = Change(weight, bias)
    seen, changed = Vectors.at(points, places), Vectors.at(change.of(points), places)
    for stat in (Moments, Reservoir):
        found, expected = change.of_record(stat.of(seen)), stat.of(changed)
        for name, value in vars(expected).items():
            torch.testing.assert_close(getattr(found, name), value, rtol=1e-12, atol=1e-10)


def test_records_merge() -> None:
    norm = Norm("ln", "LayerNorm", torch.rand(6), torch.randn(6), 1e-5, "")
    changes = stages(norm)
    both = [vectors(seed) for seed in (1, 2)]
    parts = [NormRecords.of(norm, changes, *one) for one in both]
    one, other = parts[0].merge(parts[1]).whole(changes), parts[1].merge(parts[0]).whole(changes)
    cloud = torch.cat([points for points, _ in both])
    for kind, stage in naive(norm, cloud).items():
        for merged in (one, other):
            moments: Any = merged[kind][Moments]
            assert moments.n == 80
            assert spectrum.isoscore(stage) == pytest.approx(
                float((moments.spread.sum() ** 2 / (moments.spread**2).sum() - 1) / 5), rel=1e-9
            )


def test_a_bias_that_cancels_is_found() -> None:
    """β planted against the mean removes all of the drift; along it adds; at random it does neither."""
    module, given = weighed.model("gpt2").double(), tiny.ids(12, 30)
    norm, x, _ = passing(module, given)
    mean = naive(norm, x)["norm_scaled"].mean(0)
    random = torch.randn(16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    sideways = random - (random @ mean) / (mean @ mean) * mean
    for bias, cosine_of, removed in (
        (-mean, 1.0, 1.0),
        (mean, -1.0, -1.0),
        (-mean / 2, 1.0, 0.5),
        (sideways, 0.0, None),
    ):
        with torch.no_grad():
            module.ln_f.bias.copy_(bias)
        rows = table(part_of(module, [given]))
        cancels, share = (rows.loc[("norm", name)] for name in ("bias_cancels", "drift_removed_by_bias"))
        assert cancels["value"] == pytest.approx(cosine_of, abs=1e-6)
        assert cancels["low"] <= cancels["value"] <= cancels["high"]
        assert share["value"] == pytest.approx(share["null"] if removed is None else removed, abs=1e-6)


def test_no_vector_and_no_mean() -> None:
    nothing = Centre.of(
        Vectors.at(torch.zeros(0, 3), Places.of(0, torch.zeros(0).long(), torch.zeros(0).long()))
    )
    assert math.isnan(bias_cancels(nothing, torch.ones(3)).value)
    still = Centre.of(Vectors.at(torch.zeros(4, 3), Places.of(4, torch.arange(4), torch.arange(4))))
    assert bias_cancels(still, torch.ones(3)).note == "the bias or the mean is zero"


def test_what_is_not_the_norm_of_the_weights_is_told() -> None:
    """Weights of another model: the stages are of those, and a remark says so."""
    one, other = weighed.model("gpt2"), weighed.model("gpt2")
    with torch.no_grad():
        other.ln_f.weight.mul_(2)
    part = data_part(Model(one, "one"), open_weights(other), [tiny.ids()])
    assert any("is not γ⊙x̂ + β as read" in remark for remark in part.remarks)
    assert not any("as read" in remark for remark in part_of(one, [tiny.ids()]).remarks)


def test_not_finite_vectors_are_left_out() -> None:
    module, given = weighed.model("gpt2"), tiny.ids(2, 12)
    with torch.no_grad():
        module.wte.weight[int(given["input_ids"][0, 11])] = torch.nan  # spreads over the first sequence
    part = part_of(module, [Batch(given, given["attention_mask"].bool(), torch.arange(2))])
    assert table(part).loc[("norm_output", "drift")]["n"] == int(given["attention_mask"][1].sum())


def test_standardising_two_dimensions_by_hand() -> None:
    norm = Norm("ln", "LayerNorm", torch.ones(2), None, 0.0, "")
    assert standardised(norm, torch.tensor([[1.0, 3.0]])).tolist() == [[-1.0, 1.0]]

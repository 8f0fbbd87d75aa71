"""Weights weighed: against the model and the definitions; where one part fails, the others go on."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import isoscope
from isoscope.errors import IsoscopeError
from isoscope.geometry import partition as partitions
from isoscope.geometry.propagation import regime
from isoscope.geometry.spectra import qk_spectrum
from isoscope.run.observe.observe import describe
from isoscope.run.weigh.weigh import weigh
from isoscope.run.weigh.weighed import Weighed
from tests.models.tiny import VOCABULARY
from tests.run.weighing import bert, llama, t5, value


@pytest.fixture(scope="module")
def decoder() -> tuple[nn.Module, Weighed]:
    model = llama()
    return model, weigh(model, length=64)


def test_heads_are_those_of_the_model(decoder: tuple[nn.Module, Weighed]) -> None:
    model, found = decoder
    table = found.frame()
    for layer, block in enumerate(model.model.layers, start=1):
        wq, wk = (
            projection.weight.detach().double().reshape(-1, 4, 16).mT
            for projection in (block.self_attn.q_proj, block.self_attn.k_proj)
        )
        right = qk_spectrum(wq, wk, gamma=block.input_layernorm.weight.detach())
        for head in range(4):
            for measure, field in (("trace", "trace"), ("spectrum_variance", "variance")):
                one = value(table, "query_key", measure, layer, head)
                assert one.value == pytest.approx(float(getattr(right, field)[head]), rel=1e-6)
        labels = regime(right.trace, right.trace_square, right.frobenius_square, 64)
        notes = [value(table, "query_key", "trace", layer, head).note for head in range(4)]
        assert notes == [f"regime: {label}" for label in labels]
        whole = value(table, "query_key", "frobenius", layer)
        assert whole.value == pytest.approx(float(right.frobenius_square.sqrt().mean()))
        assert whole.null > 0 and whole.n == 4


def without_top(matrix: Tensor) -> Tensor:
    """All-but-the-top by hand: one direction at these widths."""
    centred = matrix.double() - matrix.double().mean(0)
    first = torch.linalg.svd(centred, full_matrices=False).Vh[:1]
    return centred - centred @ first.T @ first


def test_vocabularies_are_measured_as_clouds_and_in_every_form(decoder: tuple[nn.Module, Weighed]) -> None:
    model, found = decoder
    table = found.frame()
    for kind, matrix in (
        ("input_vocabulary", model.model.embed_tokens.weight.detach()),
        ("output_vocabulary", model.lm_head.weight.detach()),
    ):
        forms = {
            kind: matrix,
            f"{kind}_centred": matrix.double() - matrix.double().mean(0),
            f"{kind}_without_top": without_top(matrix),
        }
        for name, points in forms.items():
            asked = ["mean_cosine", "mean_norm", "isoscore", "effective_rank", "top_share"]
            right = describe(points, measures=asked).frame().set_index("measure").value
            for measure in asked:
                one = value(table, name, measure)
                assert one.value == pytest.approx(right[measure], rel=1e-4, abs=1e-6), (name, measure)
                assert one.n == VOCABULARY
            both, one_sign, unit = partitions.forms(points)
            for measure, number in (("", both), ("_one_sign", one_sign), ("_unit", unit)):
                one = value(table, name, f"partition_isotropy{measure}")
                assert one.value == pytest.approx(number, rel=1e-4)
                assert 0 < one.null <= 1 and "sampled" not in one.note
        literal = partitions.partition_isotropy_float32(matrix)
        assert value(table, kind, "partition_isotropy_float32").value == pytest.approx(literal, rel=1e-5)
        entropy = value(table, kind, "singular_entropy")
        share = torch.linalg.svdvals(matrix.double())
        share = share / share.sum()
        assert entropy.value == pytest.approx(float((share * (share * len(share)).log()).sum()), rel=1e-6)
        assert entropy.value > entropy.null > 0


def test_a_form_changes_nothing_in_the_model() -> None:
    model = llama()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    weigh(model, length=16)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_the_final_norm_is_read_against_the_output_vocabulary(decoder: tuple[nn.Module, Weighed]) -> None:
    model, found = decoder
    gamma, mean = model.model.norm.weight.detach().double(), model.lm_head.weight.detach().double().mean(0)
    table = found.frame()
    right = float(torch.cosine_similarity(gamma, mean, dim=0))
    assert value(table, "norm", "weight_vocabulary_cosine").value == pytest.approx(right, rel=1e-6)
    assert value(table, "norm", "norm_weight_size").value == pytest.approx(float(gamma.norm()) / 4, rel=1e-6)
    beta = value(table, "norm", "norm_bias_size")
    assert math.isnan(beta.value) and beta.note == "the norm has no β"


def test_every_number_has_its_null_or_none_by_name(decoder: tuple[nn.Module, Weighed]) -> None:
    table = decoder[1].frame()
    bare = set(table[table["null"].isna() & table.value.notna()].measure)
    assert bare == {"mean_norm", "largest_activation", "key_bias_norm"}


def test_points_of_the_pictures(decoder: tuple[nn.Module, Weighed]) -> None:
    _, found = decoder
    points = found.points()
    assert set(points.picture) == {"spectrum", "plane", "propagation", "svd"}
    spectrum = points[(points.picture == "spectrum") & (points.layer == 2) & (points["head"] == 1)]
    table = found.frame()
    assert len(spectrum) == 4
    assert spectrum.x.sum() == pytest.approx(value(table, "query_key", "trace", 2, 1).value, rel=1e-4)
    assert spectrum.y.sum() == pytest.approx(0, abs=1e-4)
    plane = points[points.picture == "plane"]
    assert len(plane) == 12
    one = plane[(plane.layer == 3) & (plane["head"] == 0)].iloc[0]
    assert one.x == pytest.approx(value(table, "query_key", "trace", 3, 0).value, rel=1e-5)
    assert one.y == pytest.approx(value(table, "query_key", "frobenius", 3, 0).value, rel=1e-5)
    assert f"regime: {one.series}" == value(table, "query_key", "trace", 3, 0).note
    profile = points[(points.picture == "propagation") & (points.layer == 1) & (points["head"] == 2)]
    assert {series: len(part) for series, part in profile.groupby("series")} == {
        "predicted": 32,
        "random": 32,
    }
    assert profile.x.between(0, 1).all() and profile.y.between(0, 1).all()
    rows = points[points.picture == "svd"]
    sizes = rows.groupby(["kind", "series"]).size().to_dict()
    sides = ("input_vocabulary", "output_vocabulary")
    assert sizes == {(side, series): VOCABULARY for side in sides for series in ("raw", "centred")}
    raw = rows[(rows.kind == "input_vocabulary") & (rows.series == "raw")]
    energy = float((raw.x**2).sum() + (raw.y**2).sum())
    singular = torch.linalg.svdvals(decoder[0].model.embed_tokens.weight.detach().double())
    assert energy == pytest.approx(float((singular[:2] ** 2).sum()), rel=1e-4)
    assert raw.x.mean() > 0


def test_an_encoder_without_a_head_says_so(tmp_path: Path) -> None:
    model = bert()
    model.save_pretrained(tmp_path)
    found = weigh(str(tmp_path))
    table = found.frame()
    assert "output_vocabulary: the weights are of BertModel, which has no vocabulary head" in found.remarks
    assert set(table.kind) == {
        "query_key", "input_vocabulary", "input_vocabulary_centred", "input_vocabulary_without_top", "norm",
    }  # fmt: skip
    lost = value(table, "norm", "bias_vocabulary_cosine")
    assert math.isnan(lost.value) and "no vocabulary head" in lost.note
    bias = model.encoder.layer[-1].output.LayerNorm.bias.detach().double()
    assert value(table, "norm", "norm_bias_size").value == pytest.approx(float(bias.norm()), rel=1e-6)
    live = weigh(model).frame().drop(columns=["model", "revision"])
    pd.testing.assert_frame_equal(live, table.drop(columns=["model", "revision"]), rtol=1e-6)


def test_tied_matrices_are_measured_once() -> None:
    found = weigh(llama(tie_word_embeddings=True))
    assert "output_vocabulary: tied: the output is the same matrix" in found.remarks
    assert not found.frame().kind.str.startswith("output").any()
    assert not math.isnan(value(found.frame(), "norm", "weight_vocabulary_cosine").value)


def test_attention_across_has_a_kind_of_its_own_and_no_regime() -> None:
    found = weigh(t5(), length=16)
    table = found.frame()
    assert set(table[table.kind == "cross_query_key"].layer) == {3, 4}
    assert set(table[table.kind == "query_key"].layer) == {1, 2, 3, 4}
    across = table[(table.kind == "cross_query_key") & (table.measure == "trace")]
    assert set(across.note) == {""}
    pictures = found.points().groupby("kind").picture.unique()
    assert list(pictures["cross_query_key"]) == ["spectrum"]


def test_length_decides_regimes_and_must_be_two() -> None:
    model = llama()
    with torch.no_grad():
        for block in model.model.layers:
            block.self_attn.q_proj.weight.mul_(1e-3)
    for length, regimes in ((2, {"uniform"}), (10**6, {"uniform_half", "undecided", "late", "early"})):
        points = weigh(model, length=length).points()
        assert set(points[points.picture == "plane"].series) <= regimes
    with pytest.raises(IsoscopeError, match="length is the number of positions, at least 2; it is 1"):
        weigh(model, length=1)


def test_progress_reaches_its_end() -> None:
    seen: list[tuple[int, int | None]] = []
    weigh(bert(), progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[-1] == (10, 10)


def test_public_names() -> None:
    assert all(hasattr(isoscope, name) for name in isoscope.__all__)
    assert set(isoscope.__all__) < set(dir(isoscope))
    rho = isoscope.signal_propagation(torch.tensor(1.0), torch.tensor(0.0), torch.tensor(0.01), 8)
    assert rho.shape == (8,)
    assert isoscope.qk_spectrum(torch.eye(3), torch.eye(3), scale=1.0).trace.tolist() == [3.0]
    assert isoscope.partition_isotropy(torch.eye(3), unit=True) < 1
    assert isoscope.weigh is weigh


def test_with_data_the_weights_are_those_at_the_address(tmp_path: Path) -> None:
    """What is loaded to run has no vocabulary head; what is weighed has."""
    llama().save_pretrained(tmp_path)  # type: ignore[operator]
    batches = [torch.randint(5, VOCABULARY, (4, 12), generator=torch.Generator().manual_seed(0))]
    alone, found = weigh(str(tmp_path), length=16), weigh(str(tmp_path), length=16, data=batches)
    table = found.frame()
    assert (alone.frame().kind == "output_vocabulary").any()
    pd.testing.assert_frame_equal(table[: len(alone.frame())], alone.frame())
    assert set(alone.remarks) <= set(found.remarks)
    assert value(table, "output_vocabulary", "frequency_norm_correlation").n > 2
    assert {"walk_slope", "trace_on_data"} <= set(table.measure)


def test_names_that_were_given_hold_for_the_model_that_runs(tmp_path: Path) -> None:
    llama().save_pretrained(tmp_path)  # type: ignore[operator]
    batches = [torch.randint(5, VOCABULARY, (4, 12), generator=torch.Generator().manual_seed(0))]
    named = {part: rf"layers\.(\d+)\.self_attn\.{part[0]}_proj\.weight" for part in ("query", "key")}
    found = weigh(str(tmp_path), length=16, data=batches, **named)
    assert {"walk_slope", "trace_on_data"} <= set(found.frame().measure)


def test_with_data_what_the_weights_do_is_added() -> None:
    model = llama()
    batches = [
        torch.randint(5, VOCABULARY, (4, 12), generator=torch.Generator().manual_seed(i)) for i in (0, 1)
    ]
    found = weigh(model, length=16, data=batches)
    alone = weigh(model, length=16).frame()
    table = found.frame()
    assert {"walk_slope", "propagation_agreement", "trace_on_data"} <= set(table.measure)
    assert {"norm_before", "norm_output"} <= set(table.kind)
    kept = table[: len(alone)]
    pd.testing.assert_frame_equal(kept, alone)
    profile = found.points()[found.points().picture == "propagation"]
    assert {"predicted", "measured"} <= set(profile.series)
    assert not profile.duplicated(["kind", "layer", "head", "series", "x"]).any()

"""A repair kept and read back, as a module, inside sentence-transformers, and folded into a layer."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from isoscope.errors import IsoscopeError
from isoscope.repair.fit.transforms import fit
from isoscope.repair.keep.export import CONFIG, TENSORS, load_repair, save_repair
from isoscope.repair.keep.fold import as_linear, fold
from isoscope.repair.keep.module import RepairModule
from tests.repair.naive import RECIPES, cloud

TEXTS = ["a line of text", "another, longer line of text", "short"]


@pytest.mark.parametrize("recipe", RECIPES)
def test_what_is_read_back_is_what_was_kept(recipe: str, tmp_path: Path) -> None:
    points = cloud(200, 9)
    repair = fit(recipe, points, facts={"layer": "output", "data": {"tokens": 7}})
    again = load_repair(save_repair(repair, tmp_path / "deep" / "folder"))
    assert torch.equal(again.apply(points), repair.apply(points))
    for name in ("name", "n", "left_out", "notes", "facts", "is_affine", "is_invertible", "width", "gives"):
        assert getattr(again, name) == getattr(repair, name)
    assert {file.name for file in (tmp_path / "deep" / "folder").iterdir()} == {CONFIG, TENSORS}


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_module_does_what_the_repair_does(recipe: str, tmp_path: Path) -> None:
    points = cloud(200, 9)
    repair = fit(recipe, points)
    module = RepairModule(repair)
    given = points.float()
    size = float(repair.apply(given).abs().max())
    assert torch.allclose(module(given), repair.apply(given), rtol=0, atol=1e-6 * size)
    assert module({"sentence_embedding": given, "kept": 3})["kept"] == 3
    assert torch.equal(module({"sentence_embedding": given})["sentence_embedding"], module(given))
    assert list(module.parameters()) == []
    module.bfloat16().save(tmp_path)  # what is saved is as precise as what was fitted
    assert torch.equal(RepairModule.load(tmp_path).repair.apply(points), repair.apply(points))
    assert repair.name in repr(module)


@pytest.mark.parametrize("recipe", ["abtt,whiten:8,centre", "cluster-abtt:3:2", "standardise"])
def test_the_last_module_of_sentence_transformers(recipe: str, tiny_bert: Path, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    parts = library.sentence_transformer.modules
    encoder = parts.Transformer(str(tiny_bert), max_seq_length=64)
    bare = library.SentenceTransformer(modules=[encoder, parts.Pooling(24, "mean")], device="cpu")
    lines = [f"line {i} of {i * i % 7} texts" + " and more" * (i % 5) for i in range(60)]
    vectors = bare.encode(lines, convert_to_numpy=True)
    repair = fit(recipe, vectors)
    ours = RepairModule(repair)
    whole = library.SentenceTransformer(modules=[encoder, parts.Pooling(24, "mean"), ours], device="cpu")
    wanted = repair.apply(bare.encode(TEXTS, convert_to_numpy=True))
    found = whole.encode(TEXTS, convert_to_numpy=True)
    size = abs(wanted).max()
    assert abs(found - wanted).max() < 1e-6 * max(1.0, size)
    assert whole.get_embedding_dimension() == repair.gives
    whole.save(str(tmp_path / "model"), create_model_card=False)
    again = library.SentenceTransformer(str(tmp_path / "model"), device="cpu", trust_remote_code=True)
    assert isinstance(again[-1], RepairModule)
    assert abs(again.encode(TEXTS, convert_to_numpy=True) - wanted).max() < 1e-6 * max(1.0, size)


@pytest.mark.parametrize("recipe", [recipe for recipe in RECIPES if "cluster" not in recipe])
@pytest.mark.parametrize("bias", [True, False])
def test_folded_is_composed(recipe: str, bias: bool) -> None:
    points = torch.randn(150, 14)
    linear = nn.Linear(14, 9, bias=bias)
    before = linear.weight.clone()
    with torch.no_grad():
        repair = fit(recipe, linear(points))
        composed = repair.apply(linear(points))
        folded = fold(repair, linear)
        assert torch.allclose(folded(points), composed, rtol=0, atol=1e-6 * float(composed.abs().max() + 1))
        alone = as_linear(repair)(linear(points))
        assert torch.allclose(alone, composed, rtol=0, atol=1e-6 * float(composed.abs().max() + 1))
    assert torch.equal(linear.weight, before)
    exact = fold(repair, linear.double())
    assert exact.weight.dtype == torch.float64


def test_what_cannot_be_folded() -> None:
    points = cloud(200, 9)
    with pytest.raises(IsoscopeError, match="is no affine map: what it does depends on the cluster"):
        fold(fit("cluster-abtt:3", points), nn.Linear(4, 9))
    with pytest.raises(IsoscopeError, match="of 9 dimensions; the layer to fold it into gives 8"):
        fold(fit("centre", points), nn.Linear(4, 8))


def test_damaged_files_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(IsoscopeError, match=r"no repair at .* repair\.json is missing"):
        load_repair(tmp_path)
    folder = save_repair(fit("abtt,whiten:4", cloud(100, 6)), tmp_path / "good")
    config = json.loads((folder / CONFIG).read_text())
    tensors = load_file(folder / TENSORS)
    for changed, said in (
        ({"format": "else"}, "holds no repair of this version"),
        ({"takes": 7}, "its tensors do not fit repair.json"),
        ({"steps": [{"map": "twisted"}]}, "is damaged: KeyError"),
        ({"steps": []}, "is damaged: IndexError"),
    ):
        (folder / CONFIG).write_text(json.dumps(config | changed))
        with pytest.raises(IsoscopeError, match=re.escape(said)):
            load_repair(folder)
    (folder / CONFIG).write_text(json.dumps(config))
    del tensors["1.matrix"]
    save_file(tensors, folder / TENSORS)
    with pytest.raises(IsoscopeError, match=r"is damaged: KeyError\('1.matrix'\)"):
        load_repair(folder)
    (folder / TENSORS).write_bytes(b"nonsense")
    with pytest.raises(IsoscopeError, match="cannot read the repair"):
        load_repair(folder)
    (tmp_path / "file").write_text("")
    with pytest.raises(IsoscopeError, match="cannot write the repair"):
        save_repair(fit("centre", cloud(100, 6)), tmp_path / "file" / "below")


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_a_model_in_16_bits_repairs_in_float32(kind: torch.dtype) -> None:
    narrow = 1 + 1e-5 * torch.randn(200, 6)  # whitening stretches by 1e5, more than float16 holds
    off = 100 + torch.randn(200, 6)
    for points in (narrow, off):
        repair = fit("whiten", points)
        module = RepairModule(repair).to(kind)
        assert torch.equal(module(points.to(kind)), repair.apply(points.to(kind)))
        assert torch.allclose(module(points), repair.apply(points), rtol=1e-5, atol=1e-5)
    assert {tensor.dtype for tensor in RepairModule(repair).double().buffers()} == {torch.float64}


def test_the_module_says_what_width_it_takes() -> None:
    module = RepairModule(fit("centre", cloud(100, 6)))
    with pytest.raises(
        IsoscopeError, match=re.escape("takes vectors of 6 dimensions; got the shape (2, 5).")
    ):
        module(torch.ones(2, 5))

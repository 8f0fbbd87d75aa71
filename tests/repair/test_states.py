"""A model's vectors at a layer, against transformers itself; and files of vectors that are mapped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.numpy import save_file

from isoscope.errors import IsoscopeError
from isoscope.models.source import load
from isoscope.repair.fit.transforms import fit
from isoscope.repair.states import open_states
from isoscope.repair.vectors import holds_vectors, open_vectors, write_repaired

LINES = [f"line {i}" + " and some more words" * (i % 3) for i in range(23)]


@pytest.fixture
def lines(tmp_path: Path) -> str:
    file = tmp_path / "lines.txt"
    file.write_text("\n".join(LINES))
    return str(file)


def by_transformers(folder: Path, layer: int, pool: str) -> torch.Tensor:
    """Pooled one text at a time, so that nothing is padded."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokens = transformers.AutoTokenizer.from_pretrained(folder)
    found = []
    for line in LINES:
        ids = tokens(line, return_tensors="pt")["input_ids"][:, :64]
        with torch.no_grad():
            states = model(ids, output_hidden_states=True).hidden_states[layer][0]
        found.append({"mean": states.mean(0), "cls": states[0], "last": states[-1]}[pool])
    return torch.stack(found)


@pytest.mark.parametrize("pool", ["mean", "cls", "last"])
@pytest.mark.parametrize("layer", ["output", "1"])
def test_pooled_states(tiny_bert: Path, lines: str, pool: str, layer: str) -> None:
    states = open_states(load(str(tiny_bert), device="cpu"), lines, layer=layer, pool=pool, batch_size=5)
    ours = torch.cat([points for points, _ in states])
    wanted = by_transformers(tiny_bert, 2 if layer == "output" else 1, pool)
    assert ours.shape == wanted.shape
    nearest = torch.cdist(ours, wanted).min(1)  # batches are of like length
    assert float(nearest.values.max()) < 1e-5
    assert sorted(nearest.indices.tolist()) == list(range(len(LINES)))
    assert torch.equal(ours, torch.cat([points for points, _ in states]))  # walked over again


def test_tokens_know_their_sequence(tiny_bert: Path, lines: str) -> None:
    states = open_states(load(str(tiny_bert), device="cpu"), lines, pool="token", max_length=16, limit=6)
    points, sequence = (torch.cat(part) for part in zip(*states, strict=True))
    assert len(points) == len(sequence) == 6 * 14  # special tokens do not count
    assert torch.unique(sequence, return_counts=True)[1].tolist() == [14] * 6


def test_names_that_do_not_exist(tiny_bert: Path, lines: str) -> None:
    model = load(str(tiny_bert), device="cpu")
    with pytest.raises(IsoscopeError, match="no way to pool is called 'men'; did you mean 'mean'"):
        open_states(model, lines, pool="men")
    with pytest.raises(IsoscopeError, match=r"'9' selects no site; there are: layer\.0"):
        open_states(model, lines, layer="9")


def test_files_are_mapped_where_they_can_be(tmp_path: Path) -> None:
    points = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)
    np.save(tmp_path / "a.npy", points)
    np.save(tmp_path / "whole.npy", np.arange(12).reshape(6, 2))
    save_file({"x": points}, tmp_path / "a.safetensors")
    np.savetxt(tmp_path / "a.csv", points, delimiter=",")
    found, _ = open_vectors(tmp_path / "a.npy")
    assert isinstance(found, np.memmap)
    for name in ("a.npy", "a.safetensors", "a.csv"):
        assert holds_vectors(str(tmp_path / name))
        np.testing.assert_allclose(open_vectors(tmp_path / name)[0], points, rtol=1e-6)
    assert open_vectors(tmp_path / "whole.npy")[0].dtype == np.float64
    (tmp_path / "config.json").write_text("{}")
    assert not holds_vectors(str(tmp_path / "a.safetensors"))  # the weights of a model
    assert not holds_vectors("owner/name")
    np.save(tmp_path / "flat.npy", points[0])
    np.save(tmp_path / "objects.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
    for name, said in (("flat.npy", "holds the shape"), ("objects.npy", "holds pickled objects")):
        with pytest.raises(IsoscopeError, match=said):
            open_vectors(tmp_path / name)


def test_repaired_vectors_are_written(tmp_path: Path) -> None:
    points = np.random.default_rng(0).standard_normal((20000, 5)).astype(np.float32)
    repair = fit("whiten:3", points)
    told: list[tuple[int, int | None]] = []
    write_repaired(
        repair, points, tmp_path / "out.npy", progress=lambda done, total: told.append((done, total))
    )
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), repair.apply(points))
    assert told == [(8192, 20000), (16384, 20000), (20000, 20000)]
    assert [file.name for file in tmp_path.iterdir()] == ["out.npy"]
    with pytest.raises(IsoscopeError, match=r"are written as \.npy"):
        write_repaired(repair, points, tmp_path / "out.csv")

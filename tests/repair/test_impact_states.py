"""Vectors of all layers in one walk, against transformers text by text; and what a layer is judged by."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from scipy import stats

from isoscope.errors import IsoscopeError
from isoscope.models.source import Model, load
from isoscope.repair.fit.kinds import parse_repairs
from isoscope.repair.fit.transforms import fit
from isoscope.repair.impact.impact import AS_IT_IS, judge, known, refuse_too_many
from isoscope.repair.impact.overlap import Split
from isoscope.repair.impact.states import Encoded, encode, open_inputs
from isoscope.repair.impact.tasks import Pairs
from isoscope.sites import Site

TEXTS = [f"line {i}" + " and some more words" * (i % 3) for i in range(40)]


@pytest.fixture(scope="module")
def bert(tiny_bert: Path) -> Model:
    return load(str(tiny_bert), device="cpu")


def by_transformers(folder: Path, layer: int, pool: str) -> torch.Tensor:
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokens = transformers.AutoTokenizer.from_pretrained(folder)
    found = []
    for text in TEXTS:
        ids = tokens(text, return_tensors="pt", truncation=True, max_length=32)["input_ids"]
        with torch.no_grad():
            states = model(ids, output_hidden_states=True).hidden_states[layer][0]
        found.append({"mean": states.mean(0), "cls": states[0], "last": states[-1]}[pool])
    return torch.stack(found)


@pytest.mark.parametrize("pool", ["mean", "cls", "last"])
def test_every_layer_text_by_text(bert: Model, tiny_bert: Path, pool: str) -> None:
    ready = open_inputs(bert, TEXTS, layers="layer.*", pool=pool, max_length=32, batch_size=7)
    assert [str(site) for site in ready.sites] == ["layer.0", "layer.1", "layer.2"]
    moved: list[int] = []
    found = encode(ready, lambda done, total: moved.append(done))
    assert moved[-1] == len(TEXTS)
    for layer in range(3):
        ours = found.at(Site("layer", layer), TEXTS)
        torch.testing.assert_close(ours, by_transformers(tiny_bert, layer, pool), atol=1e-5, rtol=1e-5)
    turned = found.at(Site("layer", 1), TEXTS[::-1])
    assert torch.equal(turned, found.at(Site("layer", 1), TEXTS).flip(0))


def test_which_layers(bert: Model) -> None:
    assert [str(site) for site in open_inputs(bert, TEXTS).sites] == ["layer.0", "layer.2"]
    assert [str(site) for site in open_inputs(bert, TEXTS, layers="1").sites] == ["layer.1"]
    assert [str(site) for site in open_inputs(bert, TEXTS, layers="0, output").sites] == [
        "layer.0",
        "layer.2",
    ]
    for layers in ("ends", "all"):  # what enters the first block is one vector for all texts
        first = open_inputs(bert, TEXTS, layers=layers, pool="cls").sites
        assert [str(site) for site in first] == ["layer.1", "layer.2"]
    with pytest.raises(IsoscopeError, match="selects no site"):
        open_inputs(bert, TEXTS, layers="9")
    with pytest.raises(IsoscopeError, match="no way to pool is called 'token'"):
        open_inputs(bert, TEXTS, pool="token")


def test_a_text_without_anything_to_read(bert: Model) -> None:
    with pytest.raises(IsoscopeError, match="1 of 2 texts hold nothing"):
        open_inputs(bert, ["a", "  "])


def made(n: int = 120, d: int = 6) -> tuple[Encoded, Split, Site]:
    """Vectors off the origin whose pairs are scored by the cosine of what is left without the mean."""
    random = np.random.default_rng(0)
    points = random.standard_normal((n, d)).astype(np.float32)
    texts = [f"t{i}" for i in range(n)]
    half = n // 3
    a, b = points[:half], points[half : 2 * half]
    scores = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    site = Site("layer", 0)
    rows = {text: i for i, text in enumerate(texts)}
    split = Split(texts[2 * half :], [Pairs("made", texts[:half], texts[half : 2 * half], scores)])
    return Encoded({site: torch.from_numpy(points + 5)}, rows), split, site


def test_a_planted_mean_is_repaired() -> None:
    encoded, split, site = made()
    found = judge(split, encoded, site, ["centre", "whiten:3"])
    before, centred, _ = found
    assert (before.label, before.repair, before.changes) == (AS_IT_IS, None, [])
    a, b = (encoded.exact(site, part) for part in (split.tasks[0].first, split.tasks[0].second))  # type: ignore[union-attr]
    mean = encoded.exact(site, split.fitted).mean(0)
    unit = [(x - mean) / np.linalg.norm(x - mean, axis=1, keepdims=True) for x in (a, b)]
    wanted = stats.spearmanr((unit[0] * unit[1]).sum(1), split.tasks[0].scores).statistic  # type: ignore[union-attr]
    assert centred.outcomes[0].value == pytest.approx(wanted, abs=1e-9)
    assert centred.changes[0].verdict == "helped"
    rows = centred.rows("run", "r", site, 0)
    told = {row.measure: row for row in rows}
    assert {row.model for row in rows} == {"centre"}
    assert told["mean_cosine_between"].value < 0.1
    assert told["spearman.made.change"].note == "helped"
    change = told["spearman.made.change"]
    assert change.value == pytest.approx(wanted - before.outcomes[0].value)
    assert change.low < change.value < change.high
    facts = known(found, split, site)
    assert facts["order"] == [AS_IT_IS, "centre", "whiten:3"]
    assert facts["repairs"]["whiten:3"]["invertible"] is False  # type: ignore[index]


def test_the_fit_sees_no_judged_text() -> None:
    encoded, split, site = made()
    one = judge(split, encoded, site, ["whiten"])[1].repair
    rows = torch.tensor([encoded.rows[text] for text in split.judged])
    moved = encoded.states[site].clone()
    moved[rows] *= 9
    two = judge(split, Encoded({site: moved}, encoded.rows), site, ["whiten"])[1].repair
    assert one is not None
    assert two is not None
    assert torch.equal(one.affine()[0], two.affine()[0])
    mine = fit("whiten", encoded.at(site, split.fitted), precise=True)
    assert torch.equal(one.affine()[0], mine.affine()[0])


def test_rows_with_nan_are_counted_and_said() -> None:
    encoded, split, site = made()
    states = encoded.states[site].clone()
    states[encoded.rows[split.judged[0]], 1] = torch.nan
    states[encoded.rows[split.fitted[0]], 1] = torch.inf
    found = judge(split, Encoded({site: states}, encoded.rows), site, ["centre"])
    notes = known(found, split, site)["notes"]
    assert "layer.0: spearman.made: 1 pairs have a vector with NaN or Inf and are left out" in notes  # type: ignore[operator]
    assert any("1 of 40 vectors have NaN or Inf" in note for note in notes)  # type: ignore[attr-defined]
    assert found[1].outcomes[0].n == 39


def test_constant_vectors_are_refused() -> None:
    encoded, split, site = made()
    states = encoded.states[site].clone()
    for which, said in ((split.judged, "that are judged"), (split.fitted, "repairs are fitted on")):
        same = states.clone()
        same[[encoded.rows[text] for text in which]] = states[0]
        with pytest.raises(IsoscopeError, match=f"layer.0: the texts .*{said} all have the same vector"):
            judge(split, Encoded({site: same}, encoded.rows), site, ["centre"])


def test_recipes() -> None:
    assert parse_repairs(" abtt , whiten:3 ;centre;; centre") == ("abtt,whiten:3", "centre")
    with pytest.raises(IsoscopeError, match="did you mean 'whiten'"):
        parse_repairs("centre;whitten")
    with pytest.raises(IsoscopeError, match="names no repair"):
        parse_repairs(" ; ")
    refuse_too_many(["whiten:6", "centre"], [6, 9])
    with pytest.raises(IsoscopeError, match="'whiten:7' asks for more dimensions than the 6"):
        refuse_too_many(["centre", "abtt,whiten:7"], [6, 9])


def test_a_repair_that_cannot_be_fitted_is_left_out() -> None:
    encoded, split, site = made()
    found = judge(split, encoded, site, ["cluster-abtt:20", "centre"])
    assert [each.label for each in found] == [AS_IT_IS, "centre"]
    (note,) = [note for note in known(found, split, site)["notes"] if "left out" in note]  # type: ignore[attr-defined]
    assert note.startswith("layer.0: cluster-abtt:20 is left out: 'cluster-abtt:20' finds 20 clusters")
    with pytest.raises(IsoscopeError, match="finds 20 clusters in at least 80 vectors; got 40"):
        judge(split, encoded, site, ["cluster-abtt:20"])

"""Two checkpoints over the same inputs: planted changes are found where intervals overlap, chance is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from torch import Tensor, nn
from transformers import AutoModel

import isoscope
from isoscope.errors import IsoscopeError
from isoscope.measures.per_head import per_head
from isoscope.measures.table import choose
from isoscope.results.paired import PAIRED, UNPAIRED, paired
from isoscope.results.reading import Influence, Reading
from isoscope.results.row import INFLUENCE, Row, frame
from isoscope.run.measure import measure
from isoscope.run.monitor.monitor import Monitor
from isoscope.show.readings import read
from isoscope.show.say.course import changed
from isoscope.show.say.words import headline
from isoscope.stats.intervals import left
from isoscope.stats.places import GROUPS, mix
from isoscope.stats.seen import Vectors
from tests.models import tiny
from tests.run.training import language, probe
from tests.tiers import nightly

MEASURES = (
    "mean_cosine_between", "drift", "relative_drift", "mean_norm", "rank_residual", "intra_similarity",
    "intra_similarity_adjusted",
)  # fmt: skip
WIDTH, LENGTH, HEADS = 16, 12, 4


def checkpoint(
    source: torch.Generator, keys: Tensor, common: Tensor, shared: float, mean: float
) -> Mapping[str, Reading]:
    """Readings of one checkpoint: of the noise `common` to both a share, documents and norms that differ."""
    own = torch.randn(common.shape, generator=source, dtype=torch.float64)
    noise = shared**0.5 * common + (1 - shared) ** 0.5 * own
    points = noise[:, 1:] + 0.4 * noise[:, :1]  # the first of a sequence is its document
    points[..., 0] += mean
    label = torch.arange(len(keys)).repeat_interleave(LENGTH)
    seen = Vectors.see(points.reshape(-1, WIDTH), label, keys)
    found = {m.name: m.reading({s: s.of(seen) for s in m.stats}, {}) for m in choose(MEASURES)}
    return {**found, "attention": of_heads(points[:, :HEADS, 0], keys)}


def of_heads(values: Tensor, keys: Tensor) -> Reading:
    """The mean over heads of a number per sequence and head, as of attention."""
    group = torch.nn.functional.one_hot(keys % GROUPS, GROUPS).double().T
    size = group.sum(1)[:, None].expand(-1, HEADS)
    found = left(group @ values) / left(size)
    return per_head(found, size.sum(0).numpy(), size=size, sequences=group.sum(1), joint=torch.tensor(0))[0]


def pairs_of(
    number: int, sequences: int, *, shared: float, mean: float, planted: float = 0.0
) -> list[dict[str, tuple[Reading, Reading]]]:
    found = []
    source = torch.Generator().manual_seed(number)
    for _ in range(number):
        keys = mix(torch.randint(0, 2**60, (sequences,), generator=source))
        common = torch.randn(sequences, LENGTH + 1, WIDTH, generator=source, dtype=torch.float64)
        one, other = (checkpoint(source, keys, common, shared, mean + more) for more in (0, planted))
        found.append({name: (one[name], other[name]) for name in one})
    return found


def most(pairs: int) -> float:
    """So many of these pairs chance may take for a change, at 5 % each, in 999 of 1,000 runs of the test."""
    return float(stats.binom.ppf(0.999, pairs, 0.05))


@pytest.mark.parametrize(
    ("number", "sequences", "shared", "mean"),
    [
        (100, 48, 0.9, 2.0),
        *nightly(*((600, n, s, m) for n in (12, 48) for s in (0.0, 0.5, 0.9) for m in (0.0, 0.3, 2.0))),
    ],
)
def test_chance_is_no_change(number: int, sequences: int, shared: float, mean: float) -> None:
    found = pairs_of(number, sequences, shared=shared, mean=mean)
    for name in found[0]:
        changes = [paired(*pair[name]) for pair in found]
        assert sum(by.excludes(0) for by in changes) <= most(number), name
        if (mean, sequences) == (2.0, 48):
            assert {by.tag for by in changes} == {PAIRED}


@pytest.mark.parametrize(("number", "share"), [(60, 0.9), *nightly((600, 0.8), (600, 0.99))])
def test_a_part_of_the_sequences_is_paired_with_all(number: int, share: float) -> None:
    """As attention without the mean query, which is read on the sequences with the smallest keys."""
    source, wrong = torch.Generator().manual_seed(0), 0
    for _ in range(number):
        keys = mix(torch.randint(0, 2**60, (256,), generator=source))
        one, noise = torch.randn(2, 256, HEADS, generator=source, dtype=torch.float64)
        other, few = share * one + (1 - share**2) ** 0.5 * noise, keys.argsort()[:64]
        by = paired(of_heads(one, keys), of_heads(other[few], keys[few]))
        assert by.tag == PAIRED
        wrong += by.excludes(0)
    assert wrong <= most(number)


@pytest.mark.parametrize("number", [20, *nightly(300)])
def test_a_planted_change_is_found_where_intervals_overlap(number: int) -> None:
    found = pairs_of(number, 64, shared=0.95, mean=2.0, planted=0.08)
    for name in ("mean_cosine_between", "drift", "relative_drift", "attention"):
        pairs = [pair[name] for pair in found]
        assert np.mean([paired(*pair).above(0) for pair in pairs]) > 0.8, name
        apart = [other.low > one.high or other.high < one.low for one, other in pairs]
        unpaired = [paired(replace(one, influence=None), other) for one, other in pairs]
        assert not any(apart)
        assert np.mean([by.excludes(0) for by in unpaired]) < 0.1


@pytest.mark.parametrize("number", [60, *nightly(400)])
def test_a_sentence_on_many_sites_is_wrong_as_seldom_as_one(number: int) -> None:
    """Of eight independent sites, without a correction, a third of the sentences would be wrong."""
    source, wrong = np.random.default_rng(0), 0
    for _ in range(number):
        rows = []
        for step in (0, 1):
            for layer in range(8):
                x = source.normal(size=GROUPS)
                moves = Influence(x.mean(), GROUPS - 1, (x - x.mean()) / (GROUPS * (GROUPS - 1)) ** 0.5)
                made = Reading(x.mean(), 32, 0.0, -9.0, 9.0, influence=moves)
                rows.append(Row.at("", "m", "", step, "layer", layer, None, "x", made))
        wrong += "no change" not in changed(read(frame(rows, influence=True)), "x")
    assert wrong <= most(number)


def tags(one: pd.DataFrame, other: pd.DataFrame) -> set[str]:
    mine, its = ({(r.site, r.measure): r for r in read(rows) if r.bounded} for rows in (one, other))
    return {paired(r, its[at]).tag for at, r in mine.items() if at in its}


def test_observations_of_the_same_batches_are_paired() -> None:
    model, batches = language(), probe()
    rows = {
        what: frame(isoscope.observe(model, some, measures=MEASURES).rows(), influence=True)
        for what, some in (("as they are", batches), ("turned", batches[::-1]), ("fewer", batches[1:]))
    }
    parts = [isoscope.observe(model, some, measures=MEASURES) for some in (batches[:1], batches[1:])]
    rows["merged"] = frame(parts[0].merge(parts[1]).rows(), influence=True)
    first = rows.pop("as they are")
    assert {what: tags(first, other) for what, other in rows.items()} == {
        "turned": {PAIRED}, "fewer": {UNPAIRED}, "merged": {PAIRED},
    }  # fmt: skip


def test_other_counting_is_not_paired() -> None:
    one = isoscope.observe(language(), probe(), measures=MEASURES)
    other = replace(one, facts={**one.facts, "counting": {"position 0": "counted"}})
    assert tags(*(frame(each.rows(), influence=True) for each in (one, other))) == {UNPAIRED}


def test_steps_of_a_training_are_paired(tmp_path: Path) -> None:
    model = language()
    monitor = Monitor(model, probe(), every=1, budget=None, out=tmp_path / "run", heads=True)
    monitor.step(0)
    with torch.no_grad():
        model.norm.bias += 0.02  # a little along one direction
    monitor.step(1)
    monitor.close()
    rows = isoscope.read_run(tmp_path / "run").frame(influence=True)
    assert INFLUENCE not in monitor.frame() and rows[INFLUENCE].notna().any()
    assert rows.loc[rows["head"].notna(), INFLUENCE].isna().all()
    first, last = (rows[(rows["step"] == step) & (rows["kind"] == "output")] for step in (0, 1))
    assert tags(first, last) == {PAIRED}
    text = changed([r for r in read(rows) if r.measure == "relative_drift" and r.kind == "output"], "drift")
    assert "rose from" in text and "not paired" not in text
    bare = rows.drop(columns=INFLUENCE)
    text = changed([r for r in read(bare) if r.measure == "relative_drift" and r.kind == "output"], "drift")
    assert "no change distinguishable" in text and "(intervals not paired)" in text


def trained(folder: Path, shift: float) -> nn.Module:
    """A tiny BERT whose last LayerNorm is shifted a little, with its tokenizer."""
    model = AutoModel.from_pretrained(tiny.save("bert", folder))
    with torch.no_grad():
        model.encoder.layer[-1].output.LayerNorm.bias += shift
    model.save_pretrained(folder)
    return model


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A model, and the same with a small change."""
    folders = [tmp_path_factory.mktemp(name) for name in ("before", "after")]
    for folder, shift in zip(folders, (0.0, 0.05), strict=True):
        trained(folder, shift)
    return [str(folder) for folder in folders]


def test_changes_between_observations_and_run_folders(
    checkpoints: list[str], lines: str, tmp_path: Path
) -> None:
    seen = [
        isoscope.observe(
            isoscope.load(each), isoscope.text(lines, isoscope.load(each).tokenizer, max_length=64)
        )
        for each in checkpoints
    ]
    found = isoscope.changes(*seen)
    own = found[(found["kind"] == "layer") & (found["layer"] == 3) & found["low"].notna()].set_index("about")
    assert set(own["tag"]) == {PAIRED} and own["low"]["mean_norm"] > 0
    before = found[(found["kind"] == "layer") & (found["layer"] == 0) & found["low"].notna()]
    assert (before["value"] == 0).all() and len(before)
    folders = [
        measure(each, lines, limit=None, max_length=64, out=tmp_path / str(at), counterfactual=False)
        for at, each in enumerate(checkpoints)
    ]
    again = isoscope.changes(folders[0], folders[1].path)
    assert set(again.loc[again["low"].notna(), "tag"]) == {PAIRED}
    fewer = measure(checkpoints[1], lines, limit=40, max_length=64, out=tmp_path / "fewer")
    apart = isoscope.changes(folders[0], fewer)
    assert set(apart.loc[apart["low"].notna(), "tag"]) == {UNPAIRED}
    many = isoscope.changes(*seen, comparisons=50)
    assert (many["low"] <= found["low"]).sum() == found["low"].notna().sum()


def test_models_are_compared_over_the_same_inputs(checkpoints: list[str], lines: str, tmp_path: Path) -> None:
    runs = [
        measure(each, lines, limit=None, max_length=64, out=tmp_path / str(at), counterfactual=False)
        for at, each in enumerate(checkpoints)
    ]
    folder = isoscope.compare([str(run.path) for run in runs], out=tmp_path / "both")
    text = headline(folder.frame(influence=True))
    assert "Over the same inputs, from" in text and "in layer 3 (from" in text
    assert "; in layers 0–2 no change is distinguishable" in text
    assert "Over the same inputs" not in headline(folder.frame())
    with pytest.raises(IsoscopeError, match="holds rows of 3 models; changes are between two runs of one"):
        isoscope.changes(folder, folder)

"""Pictures of queries and keys: the points of what enters the scores, whatever the batches and padding."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

import isoscope
from isoscope.geometry.clouds import AXES, Axes, pull, shared_axes
from isoscope.run.observe.observation import Observation
from isoscope.run.observe.pictures import LEAST, MOST
from isoscope.stats.clouds import SIZE, Clouds
from tests.conftest import Answer
from tests.models import tiny
from tests.run.attending import HEADS, WIDTH, Small, turned, vectors

OF_A_HEAD = ["picture", "kind", "layer", "head"]


def look(module: torch.nn.Module, data: list[Tensor]) -> Observation:
    return isoscope.observe(module, data, layers="attention.*", counterfactual=False)


def entering(module: Small, x: Tensor) -> tuple[Tensor, Tensor]:
    """The queries and keys of the first block as its scores take them, [b, h, t, e]."""
    own = module.attentions[0]
    with torch.no_grad():
        split = [part(x).unflatten(-1, (HEADS, WIDTH)).transpose(1, 2) for part in (own.query, own.key)]
        if own.rotary:
            tables = [table[: x.shape[1]].double() for table in (own.cos, own.sin)]
            split = [turned(part, *tables) for part in split]
    return split[0], split[1]


def coordinates(points: pd.DataFrame, how: str, head: int, series: str) -> np.ndarray:
    at = (points.picture == how) & (points.layer == 1) & (points["head"] == head) & (points.series == series)
    return points[at][["x", "y"]].to_numpy(dtype=float)


@pytest.mark.parametrize("rotary", [False, True])
def test_the_points_are_those_of_all_queries_and_keys_where_they_are_few(rotary: bool) -> None:
    module, x = Small(rotary=rotary), vectors(5, 7)
    points = look(module, [x]).points()
    query, key = entering(module, x)
    for head in range(HEADS):
        for how in ("shared", "centred"):
            mine, its = query[:, head].flatten(0, 1), key[:, head].flatten(0, 1)
            expected = shared_axes(mine, its, how)  # type: ignore[arg-type]
            for series, places in (("query", expected.query), ("key", expected.key)):
                found = coordinates(points, how, head, series)
                by_x = lambda each: each[each[:, 0].argsort()]  # noqa: E731
                np.testing.assert_allclose(by_x(found), by_x(places.numpy()), rtol=1e-4, atol=1e-4)
            share = coordinates(points, how, head, "share")
            np.testing.assert_allclose(share, expected.share[None].numpy(), rtol=1e-5)


def test_a_query_and_the_key_of_its_position_are_both_there() -> None:
    """In order of place, so that the n-th query and the n-th key are of one position."""
    module, x = Small(), vectors(40, 12)
    points = look(module, [x]).points()
    query, key = (part[:, 0].flatten(0, 1) for part in entering(module, x))
    clouds = look(module, [x]).records[isoscope.sites.Site("attention", 1)][Clouds]
    mine, its = clouds.pair(0)  # type: ignore[attr-defined]
    assert len(mine) == len(its) == len(coordinates(points, "shared", 0, "query")) == SIZE < len(query)
    places = [int((query - one).abs().sum(1).argmin()) for one in mine]
    torch.testing.assert_close(its, key[places])


def test_order_and_columns() -> None:
    points = look(Small(), [vectors(4, 6)]).points()
    series = points.drop_duplicates([*OF_A_HEAD, "series"])
    assert series["series"].tolist() == ["query", "key", "share"] * (2 * HEADS * len(AXES))
    assert series.picture.drop_duplicates().tolist() == list(AXES)
    assert series[["layer", "head"]].drop_duplicates().to_numpy().tolist() == [
        [layer, head] for layer in (1, 2) for head in range(HEADS)
    ]
    assert points.dtypes[["x", "y"]].astype(str).tolist() == ["float32"] * 2
    pd.testing.assert_frame_equal(points, look(Small(), [vectors(4, 6)]).points())


def test_batches_and_their_order_and_merging_change_nothing() -> None:
    module, x = Small(rotary=True), vectors(20, 11)
    whole = look(module, [x])
    order = torch.randperm(20, generator=torch.Generator().manual_seed(0))
    parts = [x[order[i : i + 3]] for i in range(0, 20, 3)]
    in_parts = look(module, parts)
    merged = reduce(Observation.merge, [look(module, [part]) for part in parts])
    for other in (in_parts, merged):
        pd.testing.assert_frame_equal(whole.points(), other.points(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_padding_changes_nothing(family: str, lines: str) -> None:
    module = tiny.model(family).double()
    words = tiny.tokenizer("both")
    ragged = [
        isoscope.text(lines, words, max_length=24, batch_size=size, pack=False, limit=20) for size in (1, 7)
    ]
    seen = [
        isoscope.observe(module, data, layers="attention.*", counterfactual=False).points() for data in ragged
    ]
    heads = module.config.num_attention_heads * module.config.num_hidden_layers
    assert len(seen[0].drop_duplicates(OF_A_HEAD)) == heads * len(AXES)
    pd.testing.assert_frame_equal(*seen, rtol=1e-4, atol=1e-5)


def test_what_is_not_finite_is_in_no_picture() -> None:
    x = vectors(6, 8)
    x[2, 3] = torch.nan
    points = look(Small(causal=True), [x]).points()
    assert np.isfinite(points[["x", "y"]].to_numpy()).all()
    assert len(coordinates(points, "shared", 0, "query")) == 6 * 8 - 1


def test_few_points_are_shared_among_heads_and_then_heads_are_left_out() -> None:
    seen = look(Small(), [vectors(20, 12)])
    heads = 2 * HEADS
    every = 3 * heads * (2 * SIZE + 1)
    assert len(seen.points()) == every <= MOST
    fewer = seen.points(3 * heads * (2 * 30 + 1))
    assert len(coordinates(fewer, "random", 3, "key")) == 30
    assert len(fewer) == 3 * heads * (2 * 30 + 1)
    few, many = (coordinates(table, "random", 3, "query") for table in (fewer, seen.points()))
    np.testing.assert_array_equal(abs(few), abs(many[:30]))  # the same points: those of the smallest places
    one_each = seen.points(3 * 2 * (2 * LEAST + 1))
    assert len(one_each) == 3 * 2 * (2 * LEAST + 1)
    for layer, own in one_each.groupby("layer"):
        clouds = seen.records[isoscope.sites.Site("attention", int(str(layer)))][Clouds]
        pulled = [pull(*clouds.pair(head, LEAST)) for head in range(HEADS)]  # type: ignore[attr-defined]
        assert own["head"].unique().tolist() == [int(np.argmax(pulled))]


def test_a_note_says_which_heads_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = look(Small(), [vectors(20, 12)])
    assert not any("pictures" in note for note in seen.notes())
    monkeypatch.setattr("isoscope.run.observe.pictures._room", lambda found, most: (3, LEAST))
    (note,) = [note for note in seen.notes() if "pictures" in note]
    assert note.startswith("pictures of queries and keys show 3 heads of each layer: those whose mean")


@pytest.mark.parametrize(
    ("given", "there"),
    [({"measures": ["entropy"]}, False), ({"layers": "layer.*"}, False), ({"measures": ["key_drift"]}, True)],
)
def test_pictures_come_with_the_measures_of_queries_and_keys(given: dict[str, object], there: bool) -> None:
    seen = isoscope.observe(Small(), [vectors(4, 6)], counterfactual=False, **given)  # type: ignore[arg-type]
    assert (len(seen.points()) > 0) == there


def test_a_cloud_of_points_has_none() -> None:
    assert len(isoscope.describe(torch.randn(20, 3)).points()) == 0


def test_the_command_keeps_points_and_a_page_made_again_is_the_same(
    isoscope: Callable[..., Answer], tiny_bert: Path, tmp_path: Path
) -> None:
    from isoscope import read_run

    asked = ("measure", tiny_bert, "--limit", 8, "--no-counterfactual", "--heads", "--out", tmp_path / "run")
    assert isoscope(*asked).code == 0
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    points = read_run(tmp_path / "run").points()
    assert len(points.drop_duplicates(["layer", "head"])) == 4
    assert 'class="points"' in page
    assert isoscope("report", tmp_path / "run").code == 0
    assert (tmp_path / "run" / "report.html").read_text(encoding="utf-8") == page


def test_axes_are_named_as_they_are_kept() -> None:
    named: tuple[Axes, ...] = AXES
    from isoscope.show.figures.clouds import AXES as SHOWN

    assert tuple(SHOWN) == named

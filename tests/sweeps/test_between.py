"""What checkpoints say together: CKA against its definition, entropy with drift, pictures, distances."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from isoscope.errors import IsoscopeError
from isoscope.geometry import alignment
from isoscope.results.reading import Reading
from isoscope.results.row import Row
from isoscope.results.run import Run
from isoscope.results.store import RunFolder, open_run
from isoscope.results.trajectory import BETWEEN, trajectory
from isoscope.run.observe.observation import Observation
from isoscope.sites import Site
from isoscope.stats.base import Stat
from isoscope.stats.clouds import Clouds, Sample
from isoscope.stats.reservoir import Reservoir
from isoscope.sweeps.together import alike, together
from isoscope.sweeps.together.between import EXPLANATIONS, doubted_steps, keep_sample, read_samples, summarise
from isoscope.sweeps.together.moving import STEPS, fitted, moving_points
from isoscope.sweeps.verify.fingerprint import Fingerprint
from isoscope.sweeps.work.samples import SIZE, Head, read_heads, sample_file

SITES = (Site("layer", 0), Site("layer", 1), Site("layer", 2), Site("output"))
Array = NDArray[np.float64]


def a_folder(path: Path) -> RunFolder:
    return open_run(path / "run", Run("sweep", "small", {"of": "test"}, {}))


def reservoir(points: torch.Tensor, places: torch.Tensor, kept: torch.Tensor | None = None) -> Reservoir:
    order = places.argsort()
    there = torch.ones(len(places), dtype=torch.bool) if kept is None else kept
    return Reservoir(torch.tensor(float(len(points))), places[order], points[order], there[order])


def clouds(random: torch.Generator, heads: int = 3, width: int = 5, points: int = 40) -> Clouds:
    place = torch.arange(points)[:, None].expand(points, heads)
    sound = torch.ones(points, heads, dtype=torch.int8)
    query, key = (Sample(place, torch.randn(points, heads, width, generator=random), sound) for _ in range(2))
    return Clouds(query, key)


def seen(records: dict[Site, dict[type[Stat], Stat]], step: int) -> Observation:
    return Observation(records, (), "m", step=step)


def rows(step: int, values: dict[tuple[str, int, int | None, str], float] | None = None) -> list[Row]:
    made = {("layer", layer, None, "drift"): 0.1 * layer + 0.01 * step for layer in range(3)} | (values or {})
    return [
        Row.at("r", "m", f"step{step}", step, kind, layer, head, measure, Reading(value, 64))
        for (kind, layer, head, measure), value in made.items()
    ]


# CKA


@pytest.mark.parametrize("positions", [300, 37])
def test_cka_of_checkpoints_is_its_definition(tmp_path: Path, positions: int) -> None:
    folder, random = a_folder(tmp_path), torch.Generator().manual_seed(positions)
    places = torch.randperm(10 * positions, generator=random)[:positions]
    base = torch.randn(positions, 9, generator=random)
    held: dict[int, dict[Site, torch.Tensor]] = {}
    for step in (0, 1, 2, 4, 8):
        held[step] = {
            site: base @ torch.randn(9, 6, generator=random) * 10.0**step
            + torch.randn(positions, 6, generator=random)
            + 1e3
            for site in SITES
        }
        records = {site: {Reservoir: reservoir(points, places)} for site, points in held[step].items()}
        keep_sample(folder, f"step{step}", seen(records, step))  # type: ignore[arg-type]
        folder.write(f"step{step}", rows(step), {})
    found = list(alike.cka_rows(trajectory(folder)))
    first = places.argsort()[:SIZE]
    pairs = [row for row in found if row.measure == alike.PAIRS]
    assert len(pairs) == 10 * len(SITES)
    for row in found:
        assert row.step is not None
        site = Site(row.kind, row.layer)
        other = {alike.PAIRS: row.revision.removeprefix("step"), alike.LAST: "8"}
        before = max((step for step in held if step < row.step), default=0)
        one, two = (held[s][site][first].double() for s in (row.step, int(other.get(row.measure, before))))
        assert row.value == pytest.approx(alignment.cka(one, two), abs=2e-5)
        assert row.n == min(positions, SIZE) and row.null == 0.0
    assert len(found) - len(pairs) == 2 * 4 * len(SITES)


def test_positions_that_one_lacks_are_left_out_of_both(tmp_path: Path) -> None:
    folder, random = a_folder(tmp_path), torch.Generator().manual_seed(1)
    places = torch.arange(60)
    points = [torch.randn(60, 7, generator=random) for _ in range(3)]
    points[1] += points[0]
    kept = [torch.ones(60, dtype=torch.bool) for _ in range(3)]
    kept[1][[3, 17, 40]] = False
    kept[2][4:] = False
    for step in range(3):
        records = {Site("layer", 0): {Reservoir: reservoir(points[step], places, kept[step])}}
        keep_sample(folder, str(step), seen(records, step))  # type: ignore[arg-type]
        folder.write(str(step), rows(step), {})
    pairs = {
        (row.revision, row.step): row
        for row in alike.cka_rows(trajectory(folder))
        if row.measure == alike.PAIRS
    }
    both = kept[0] & kept[1]
    oracle = alignment.cka(points[0][both].double(), points[1][both].double())
    assert pairs["0", 1].value == pytest.approx(oracle, abs=1e-5) and pairs["0", 1].n == 57
    assert oracle != pytest.approx(alignment.cka(points[0].double(), points[1].double()), abs=1e-5)
    assert pairs["1", 2].n == 3 and math.isnan(pairs["1", 2].value)
    assert pairs["1", 2].note == "needs 4 positions that both checkpoints have"


def test_a_checkpoint_without_a_sample_has_nan_and_the_reason(tmp_path: Path) -> None:
    folder, random = a_folder(tmp_path), torch.Generator().manual_seed(2)
    for step in (0, 1, 2):
        if step != 1:
            records = {
                Site("output"): {Reservoir: reservoir(torch.randn(20, 4, generator=random), torch.arange(20))}
            }
            keep_sample(folder, str(step), seen(records, step))  # type: ignore[arg-type]
        folder.write(str(step), rows(step), {})
    found = [row for row in alike.cka_rows(trajectory(folder)) if row.measure == alike.PAIRS]
    lacking = [row for row in found if math.isnan(row.value)]
    assert len(found) == 3 and len(lacking) == 2
    assert {row.note for row in lacking} == {"no sample of 1 was kept"}
    assert all(math.isnan(row.null) for row in lacking)


def test_equal_vectors_have_no_cka_and_no_sample_is_no_rows(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    for step in (0, 1):
        folder.write(str(step), rows(step), {})
    assert list(alike.cka_rows(trajectory(folder))) == []
    for step in (0, 1):
        records = {Site("layer", 0): {Reservoir: reservoir(torch.ones(20, 4), torch.arange(20))}}
        keep_sample(folder, str(step), seen(records, step))  # type: ignore[arg-type]
    found = [row for row in alike.cka_rows(trajectory(folder)) if row.measure == alike.PAIRS]
    assert [row.note for row in found] == ["all vectors of a checkpoint are the same"]


def test_pairs_do_not_grow_with_the_square(tmp_path: Path) -> None:
    folder, random = a_folder(tmp_path), torch.Generator().manual_seed(3)
    for step in range(alike.MOST + 16):
        records = {
            Site("layer", 0): {Reservoir: reservoir(torch.randn(8, 3, generator=random), torch.arange(8))}
        }
        keep_sample(folder, f"{step:03d}", seen(records, step))  # type: ignore[arg-type]
        folder.write(f"{step:03d}", rows(step), {})
    found = list(alike.cka_rows(trajectory(folder)))
    pairs = [row for row in found if row.measure == alike.PAIRS]
    assert len(pairs) == alike.MOST * (alike.MOST - 1) // 2
    assert {row.step for row in pairs} >= {alike.MOST + 15} and len(found) - len(pairs) == 2 * (
        alike.MOST + 15
    )


def test_a_sample_is_whole_and_a_broken_one_is_told(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    keep_sample(folder, "none", seen({Site("layer", 0): {}}, 0))
    assert not (folder.path / "samples").exists() and read_samples(folder, "none") == {}
    records = {Site("layer", 0): {Reservoir: reservoir(torch.randn(8, 3), torch.arange(8))}}
    keep_sample(folder, "one", seen(records, 0))  # type: ignore[arg-type]
    assert [file.name[0] for file in (folder.path / "samples").iterdir()] == ["o"]  # nothing aside
    file = sample_file(folder, "one")
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(IsoscopeError, match="Remove it, and its file of rows, to measure it again"):
        read_samples(folder, "one")


def test_huge_and_tiny_vectors_are_kept(tmp_path: Path) -> None:
    folder, points = a_folder(tmp_path), torch.randn(30, 5, generator=torch.Generator().manual_seed(4))
    for step, size in enumerate((1e-30, 1e30)):
        records = {Site("layer", 0): {Reservoir: reservoir(points.double() * size, torch.arange(30))}}
        keep_sample(folder, str(step), seen(records, step))  # type: ignore[arg-type]
    one, two = (read_samples(folder, name)[Site("layer", 0)] for name in "01")
    assert alike.alike(one, two)[0] == pytest.approx(1.0, abs=1e-6)


# Entropy with drift


def test_correlations_are_spearmans_and_nan_is_left_out() -> None:
    random = np.random.default_rng(0)
    x, y = random.standard_normal((2, 30, 17))
    y += x
    x[3, [2, 5]] = y[4, 16] = math.nan
    x[5] = 1.0
    x[6, 3:] = math.nan
    value, n, alone = together.correlate(x, y)
    for i in range(30):
        both = np.isfinite(x[i]) & np.isfinite(y[i])
        assert n[i] == both.sum()
        if i in (5, 6):
            assert math.isnan(value[i])
        else:
            assert value[i] == pytest.approx(stats.spearmanr(x[i][both], y[i][both]).statistic, abs=1e-12)
            assert 2 <= alone[i] <= n[i]


def independent(x: Array, y: Array) -> float:
    """The definition, lag by lag."""
    n = len(x)
    a, b = (stats.rankdata(each) - (n + 1) / 2 for each in (x, y))
    total = 1.0
    for k in range(1, n // 4 + 1):
        r, q = ((each[k:] @ each[:-k]) / (each @ each) * n / (n - k) for each in (a, b))
        total += 2 * (1 - k / n) * r * q
    return float(np.clip(n / max(total, 1.0), 2, n))


@pytest.mark.parametrize("steps", [5, 8, 31, 100])
def test_how_many_checkpoints_would_be_as_good(steps: int) -> None:
    x, y = np.random.default_rng(steps).standard_normal((2, 20, steps)).cumsum(2)
    _, _, alone = together.correlate(x, y)
    assert alone == pytest.approx([independent(a, b) for a, b in zip(x, y, strict=True)], rel=1e-9)


def test_walks_that_have_nothing_to_do_with_each_other_are_not_told_to_go_together() -> None:
    """At 32 checkpoints half of all pairs have a nominal p below .05; by n* about one in twenty has."""
    x, y = np.random.default_rng(1).standard_normal((2, 600, 32)).cumsum(2)
    value, n, alone = together.correlate(x, y)
    nominal = np.mean([together.chance(v, 32) < 0.05 for v in value])
    told = np.mean([together.chance(v, a) < 0.05 for v, a in zip(value, alone, strict=True)])
    changes, n, alone = together.correlate(np.diff(x, axis=1), np.diff(y, axis=1))
    stepwise = np.mean([together.chance(v, a) < 0.05 for v, a in zip(changes, alone, strict=True)])
    assert nominal > 0.45 and told < 0.09 and stepwise < 0.08 and set(n) == {31}


def test_rows_of_heads_and_layers(tmp_path: Path) -> None:
    """Head 0 sharpens as queries drift, head 1 does not; layer 0 enters the attention of block 1."""
    folder, random = a_folder(tmp_path), np.random.default_rng(2)
    drift = random.standard_normal(24).cumsum()
    for step in range(24):
        values: dict[tuple[str, int, int | None, str], float] = {
            ("attention", 1, 0, "normalised_entropy"): -drift[step],
            ("attention", 1, 1, "normalised_entropy"): random.standard_normal(),
            ("attention", 1, None, "normalised_entropy"): -drift[step],
            ("attention", 1, 0, "query_relative_drift"): drift[step],
            ("attention", 1, 1, "query_relative_drift"): drift[step],
            ("attention", 1, None, "query_relative_drift"): math.nan if step else 1.0,
            ("layer", 0, None, "relative_drift"): drift[step],
            ("layer", 1, None, "relative_drift"): random.standard_normal(),
        }
        folder.write(f"{step:02d}", rows(step, values), {})
    found = {(row.layer, row.head, row.measure): row for row in together.correlation_rows(trajectory(folder))}
    for changes in (False, True):
        name = together.name("query", changes=changes)
        assert found[1, 0, name].value == pytest.approx(-1.0) and found[1, 0, name].n == 24 - changes
        assert abs(found[1, 1, name].value) < 0.6 and found[1, 1, name].null == 0.0
        assert math.isnan(found[1, None, name].value) and found[1, None, name].note == together.FEW
        assert found[1, None, together.name("layer", changes=changes)].value == pytest.approx(-1.0)
    assert "independent checkpoints" in found[1, 0, together.name("query", changes=False)].note
    assert not any("key" in measure for *_, measure in found)  # its drift was not measured
    assert len(found) == 8


# Pictures, distances, and all of it


def test_axes_are_those_of_all_steps_together() -> None:
    random = np.random.default_rng(3)
    steps = [
        Head(*(s * random.standard_normal((9, 6)).astype(np.float32) + 1 for _ in range(2))) for s in (1, 50)
    ]
    for how in ("shared", "centred", "random"):
        axes, share = fitted(steps, how, seed=1)
        assert axes.T @ axes == pytest.approx(np.eye(2), abs=1e-9)
        assert (steps[-1].query.astype(float).mean(0) @ axes >= 0).all()
        assert share[1] > 0 and share.sum() < 1 + 1e-9
    parts = []
    for step in steps:
        size = math.sqrt(np.mean([(c.astype(float) ** 2).mean() for c in (step.query, step.key)]))
        parts += [step.query.astype(float) / size, step.key.astype(float) / size]
    oracle = np.linalg.svd(np.concatenate(parts))[2][:2].T
    axes, _ = fitted(steps, "shared")
    assert np.abs(oracle.T @ axes) == pytest.approx(np.eye(2), abs=1e-6)


def test_moving_points_of_every_step_are_on_the_same_axes(tmp_path: Path) -> None:
    folder, random = a_folder(tmp_path), torch.Generator().manual_seed(5)
    for step in range(STEPS + 9):
        keep_sample(
            folder, f"{step:03d}", seen({Site("attention", 1): {Clouds: clouds(random, width=2)}}, step)
        )
        folder.write(f"{step:03d}", rows(step), {})
    points = moving_points(trajectory(folder))
    assert set(points["picture"]) == {"steps shared", "steps centred", "steps random"}
    drawn = {name for name in points["series"] if name != "share"}
    assert len(drawn) == 2 * STEPS and {"query 0", f"key {STEPS + 8}"} <= drawn
    own = points[(points["picture"] == "steps shared") & (points["head"] == 1)]
    for step in (0, STEPS + 8):
        vectors = read_heads(folder, f"{step:03d}")[Site("attention", 1), 1].query
        shown = own[own["series"] == f"query {step}"][["x", "y"]].to_numpy()
        assert shown @ shown.T == pytest.approx(vectors @ vectors.T, abs=1e-4)  # in 2 dimensions all is seen


def a_print(sketch: list[float]) -> str:
    return Fingerprint(digest="d", config="c", sketch=tuple(sketch)).to_json()


def test_all_of_it_is_one_unit_and_is_made_anew(tmp_path: Path) -> None:
    folder, random = a_folder(tmp_path), torch.Generator().manual_seed(6)
    for step in range(12):
        values = {
            ("attention", 1, None, m): step + torch.rand(1, generator=random).item()
            for m in (together.ENTROPY, "query_relative_drift")
        }
        records = {
            Site("layer", 0): {Reservoir: reservoir(torch.randn(12, 3, generator=random), torch.arange(12))},
            Site("attention", 1): {Clouds: clouds(random)},
        }
        keep_sample(folder, f"{step:02d}", seen(records, step))  # type: ignore[arg-type]
        facts = {"fingerprint": a_print([float(step), 1.0]), "findings": []}
        folder.write(f"{step:02d}", rows(step, values), facts)  # type: ignore[arg-type]
    summarise(folder)
    once = folder.frame(BETWEEN)
    away = once[once["measure"] == "distance_to_last"].set_index("step")["value"]
    assert away[0] == pytest.approx(11 / math.hypot(11, 1)) and away[11] == 0.0
    near = once[once["measure"] == "distance_from_previous"].set_index("step")["value"]
    assert near[1] == pytest.approx(1.0) and len(near) == 11
    names = {name.split("_in_")[0] for name in once["measure"]}
    assert names <= set(EXPLANATIONS) and {"cka_between", "entropy_with_query_drift"} <= names
    assert all(
        {"family", "title", "formula", "says", "misleads"} <= set(told) for told in EXPLANATIONS.values()
    )
    assert folder.known(BETWEEN)["series looked at for changes"] == 5
    summarise(folder)
    pd.testing.assert_frame_equal(folder.frame(BETWEEN), once)
    assert len(folder.points(BETWEEN)) and folder.units().count(BETWEEN) == 1


def test_one_checkpoint_has_nothing_beside_it(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    summarise(folder)
    folder.write("0", rows(0), {})
    summarise(folder)
    assert not folder.has(BETWEEN)


def test_weights_are_compared_where_they_are_of_the_same_coordinates(tmp_path: Path) -> None:
    """Step 2 is not finite, 4 has another layout of the same length, 5 another length, 6 no sketch."""
    folder = a_folder(tmp_path)
    sketches = {
        0: ([3.0, 4.0], "a"), 1: ([0.0, 0.0], "a"), 2: ([math.nan, 1.0], "a"), 3: ([1.0, 1.0], "a"),
        4: ([1.0, 2.0], "b"), 5: ([1.0], "a"), 6: ([], "a"), 7: ([0.0, 5.0], "a"),
    }  # fmt: skip
    for step, (sketch, layout) in sketches.items():
        told = Fingerprint("d", "c", tuple(sketch), layout=layout).to_json()
        folder.write(str(step), rows(step), {"fingerprint": told})
    summarise(folder)
    own = folder.frame(BETWEEN).set_index(["measure", "step"])[["value", "note"]]
    found = {key: (value, note) for key, value, note in own.itertuples()}
    other, wild = "the weights of {} and {} have other names or shapes", "the weights of 2 are not finite"
    away = {step: found["distance_to_last", step] for step in (0, 1, 2, 3, 4, 5, 7)}
    assert [away[step][0] for step in (0, 1, 3, 7)] == pytest.approx(
        [math.hypot(3, 1) / 5, 1, math.hypot(1, 4) / 5, 0]
    )
    near = {step: found["distance_from_previous", step] for step in (1, 2, 3, 4, 5, 7)}
    assert near[1] == (1.0, "") and ("distance_to_last", 6) not in found
    assert all(math.isnan(each[0]) for each in [away[2], away[4], away[5], *list(near.values())[1:]])
    assert [away[step][1] for step in (2, 4, 5)] == [wild, other.format(4, 7), other.format(5, 7)]
    assert [near[step][1] for step in (2, 3)] == [wild, wild]
    assert [near[step][1] for step in (4, 5, 7)] == [other.format(a, b) for a, b in ((4, 3), (5, 4), (7, 5))]


def test_weights_that_are_all_zero_are_told(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    for step, value in enumerate((0.0, 1.0)):
        folder.write(str(step), rows(step), {"fingerprint": a_print([value, value])})
    summarise(folder)
    own = folder.frame(BETWEEN)
    assert own[own["measure"] == "distance_from_previous"]["note"].tolist() == [
        "all weights of the sample of 0 are zero"
    ]


DOUBTFUL = {4: "twin", 7: "config", 11: "not finite", 12: "out of order", 15: "broken"}


def test_checkpoints_that_are_not_what_they_claim_are_left_out(tmp_path: Path) -> None:
    folder, random = a_folder(tmp_path), np.random.default_rng(8)
    drift = random.standard_normal(20).cumsum()
    for step in range(20):
        found = [{"kind": DOUBTFUL[step], "words": "…", "step": step}] if step in DOUBTFUL else []
        entropy = 1e3 * random.standard_normal() if found and step != 15 else -drift[step]
        values: dict[tuple[str, int, int | None, str], float] = {
            ("attention", 1, None, "normalised_entropy"): entropy,
            ("attention", 1, None, "query_relative_drift"): drift[step],
        }
        folder.write(f"{step:02d}", rows(step, values), {"findings": found})
    assert doubted_steps(trajectory(folder)) == [4, 7, 11, 12]
    summarise(folder)
    known = folder.known(BETWEEN)
    assert known["left out of changes"] == [4, 7, 11, 12]
    assert known["notes"] == [
        "change points and correlations are without 4 checkpoints that may not be what is claimed, "
        "by step: 4, 7, 11, 12"
    ]
    own = folder.frame(BETWEEN).set_index("measure")
    for changes, n in ((False, 16), (True, 15)):
        row = own.loc[together.name("query", changes=changes)]
        assert row["value"] == pytest.approx(-1.0) and row["n"] == n
        assert row["note"].startswith("p = ") and row["note"].endswith("; 4 doubtful checkpoints left out")


def test_what_curves_make_of_a_correlation_is_told() -> None:
    """The rates that the explanation names, of two relaxations that have nothing to do with each other."""
    random = np.random.default_rng(9)

    def told(steps: int, size: float) -> list[float]:
        decay = np.exp(-np.linspace(0, 1, steps) * random.uniform(2, 8, (2, 400, 1)))
        signs = random.choice([-1.0, 1.0], (2, 400, 1))
        x, y = signs * decay + size * random.standard_normal((2, 400, steps))
        found = [together.correlate(*(np.diff(each, n=n) for each in (x, y))) for n in (0, 1)]
        return [
            float(np.mean([together.chance(v, a) < 0.05 for v, a in zip(value, alone, strict=True)]))
            for value, _, alone in found
        ]

    level, changes = told(32, 0.05)
    assert 0.24 < level < 0.38 and 0.1 < changes < 0.25
    level, changes = told(32, 0.005)
    assert level > 0.85 and 0.3 < changes < 0.55
    words = str(EXPLANATIONS[together.name("query", changes=True)]["misleads"])
    assert "no straight trend" in words and "in 31 %" in words and "38 to 53 %" in words


def test_fewer_pairs_make_a_larger_p() -> None:
    assert [round(together.chance(0.8, pairs), 3) for pairs in (10, 4)] == [0.005, 0.2]

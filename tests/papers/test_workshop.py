"""Models are trained once and shared, go on where they were stopped, and what cannot be had is told."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from operator import neg
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isoscope.errors import IsoscopeError
from isoscope.lab.train.training import Training
from isoscope.papers import workshop as room
from isoscope.papers.claims import Verdict, all_of, is_above, is_below, lacking, measured
from isoscope.papers.intervals import apart, correlation, over, paired
from isoscope.papers.lines import along
from isoscope.papers.scales import SCALES, scale_of
from isoscope.papers.workshop import LONGEST, Workshop, parse_data
from isoscope.results.reading import Reading
from isoscope.results.trajectory import FAILED
from tests.papers.cases import row, tiny_workshop
from tests.typed import frame


def test_a_model_is_trained_once_and_read_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = tiny_workshop(tmp_path)
    asked = workshop.experiment("characters", seed=3)
    (one, two), lost = workshop.train([workshop.training("mine", asked), workshop.training("also", asked)])
    assert one.folder == two.folder
    assert (one.name, two.name, len(lost)) == ("mine", "also", 0)
    rows = one.read(["mean_cosine", "loss"], steps="all")
    assert set(rows["step"]) == {0, 1, 2, 4}
    assert set(rows["model"]) == {"mine"}
    assert set(rows["revision"]) == {"seed 3"}
    assert set(one.read(["loss"])["step"]) == {4}
    heads = one.read(["query_key_cosine"], heads=True)
    assert heads["head"].notna().all()
    losses = one.read(["loss"], steps="all").set_index("step")["value"]
    for step in (0, 4):
        loss = Training(one.at(step, "cpu").module, asked.lesson(), asked.recipe).held_loss()
        assert loss == pytest.approx(losses[step], rel=1e-5)

    def untouched(_: object) -> None:
        raise AssertionError("it is there already")

    monkeypatch.setattr(room, "_train", untouched)
    replace(workshop, seeds=9).train([one])  # another paper that asks for the same
    with pytest.raises(AssertionError):
        workshop.train([workshop.training("other", workshop.experiment("characters", seed=4))])


def test_a_training_that_goes_wrong_costs_no_other(tmp_path: Path) -> None:
    workshop = tiny_workshop(tmp_path)
    sound, wrong = (workshop.experiment("characters", seed=seed) for seed in (0, 1))
    wrong = replace(wrong, recipe=replace(wrong.recipe, rate=1e30, steps=20, warmup=0))
    for room_ in (workshop, replace(workshop, parallel=2)):
        ended, lost = room_.train(room_.training("mine", each) for each in (wrong, sound))
        assert [(each.name, each.seed) for each in ended] == [("mine", 0)]
        assert lost["measure"].tolist() == [FAILED]
        assert lost[["model", "revision"]].to_numpy().tolist() == [["mine", "seed 1"]]
        assert "at step" in lost["note"].item()
    assert "Not measured: mine (seed 1)" in lacking(lost)


def test_sequences_of_sound_are_no_longer_than_recordings(tmp_path: Path) -> None:
    for scale in SCALES:
        asked = Workshop(scale, tmp_path, 3).experiment("frames")
        assert asked.length <= LONGEST["frames"]
        assert asked.lesson().length == asked.length, "the embedded tones are long enough"
        assert Workshop(scale, tmp_path, 3).experiment("characters").length == scale.arm.length


def test_transformers_of_patches_learn_slowly_where_they_are_wide(tmp_path: Path) -> None:
    for scale in SCALES:
        workshop = Workshop(scale, tmp_path, 3)
        rates = {task: workshop.experiment(task).recipe.rate for task in ("characters", "images", "frames")}
        assert rates == {
            "characters": scale.arm.rate,
            "images": min(scale.arm.rate, scale.image_rate),
            "frames": scale.arm.rate,
        }
        assert workshop.experiment("images", model="cnn").recipe.rate == scale.arm.rate
    assert any(scale.image_rate < scale.arm.rate for scale in SCALES)


def test_one_of_many_looks_does_not_turn_a_verdict() -> None:
    random = np.random.default_rng(2)
    turned = {"one look": 0, "eight": 0}
    for _ in range(600):  # nothing is there: each number is above or below 0 by chance
        parts = [is_above(over(random.normal(0, 1, 5).tolist()), 0, "") for _ in range(8)]
        turned["one look"] += any(part.held is False for part in parts)
        turned["eight"] += all_of(parts).held is False
    assert turned["one look"] > 0.12 * 600
    assert turned["eight"] < 0.05 * 600
    alone = is_below(Reading(1.0, 5, low=0.5, high=1.5), 0, "")
    assert all_of([alone]).held is False
    sure = is_below(Reading(1.0, 5, low=0.99, high=1.01), 0, "")
    assert all_of([sure, *[is_below(Reading(-1.0, 5, low=-1.1, high=-0.9), 0, "")] * 7]).held is False
    told = all_of([is_below(Reading(1.0, 5, low=0.1, high=1.9), 0, ""), Verdict(True, "")])
    assert told.held is None
    assert "1 is the other way, but not by an interval for 2 looks" in told.said


@pytest.mark.nightly
def test_answers_come_in_order_also_from_processes(tmp_path: Path) -> None:
    told: list[tuple[int, int | None]] = []
    workshop = replace(tiny_workshop(tmp_path), progress=lambda done, total: told.append((done, total)))
    assert workshop.side_by_side(neg, range(3)) == [0, -1, -2]
    assert replace(workshop, parallel=2).side_by_side(neg, range(3)) == [0, -1, -2]
    assert told[-1] == (3, 3)


@pytest.mark.nightly
def test_processes_end_with_a_run_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(
        "from dataclasses import replace\nfrom pathlib import Path\n"
        "from tests.papers.cases import linger, tiny_workshop\n"
        "if __name__ == '__main__':\n"
        f"    here = Path({str(tmp_path)!r})\n"
        "    room = replace(tiny_workshop(here), parallel=2)\n"
        "    room.side_by_side(linger, [here / 'a.pid', here / 'b.pid'])\n"
    )
    root = Path(__file__).parents[2]
    settings = {**os.environ, "PYTHONPATH": str(root)}
    run = subprocess.Popen([sys.executable, str(script)], cwd=root, env=settings)
    try:
        files = wait_for(lambda: len(found := list(tmp_path.glob("*.pid"))) == 2 and found)
    finally:
        run.kill()
        run.wait()
    numbers = [int(file.read_text()) for file in files]
    assert wait_for(lambda: not any(map(is_alive, numbers)))


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)  # no signal: only asks
    except ProcessLookupError:
        return False
    return True


def wait_for(what: Callable[[], Any]) -> Any:
    for _ in range(900):
        if found := what():
            return found
        time.sleep(0.1)
    raise AssertionError("it did not come about in a minute and a half")


def test_a_public_model_that_is_not_here_is_a_row_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(address: str, **_: object) -> None:
        raise IsoscopeError(f"{address} is not here.")

    monkeypatch.setattr(room, "load", absent)
    rows = tiny_workshop(tmp_path, public=True).observed("bert", ["mean_cosine"])
    assert rows["measure"].tolist() == [FAILED]
    assert rows["note"].tolist() == ["bert is not here."]
    assert measured(rows).empty


def test_data_and_scales_are_read_from_words() -> None:
    assert parse_data("") == {}
    for wrong in ("text", "texts=a", "text="):
        with pytest.raises(IsoscopeError, match="--data is text=FILE"):
            parse_data(wrong)
    with pytest.raises(IsoscopeError, match="by kind"):
        Workshop(SCALES[0], Path(), 1, data={"texts": "a"})
    with pytest.raises(IsoscopeError, match="did you mean 'laptop'"):
        scale_of("labtop")
    workshop = Workshop(scale_of("laptop"), Path(), 3, data={"text": "a.txt"})
    assert workshop.experiment("characters").data == "a.txt"
    assert workshop.experiment("images").data == workshop.experiment("frames").data == "embedded"


def test_intervals_cover_as_often_as_they_say() -> None:
    random = np.random.default_rng(1)
    covered = {"over": 0, "paired": 0, "apart": 0, "pearson": 0}
    for _ in range(400):
        x, y = random.normal(2, 1, 5), random.normal(5, 3, 7)
        found = over(x.tolist())
        covered["over"] += found.low < 2 < found.high
        pairs = [dict(enumerate(x)), dict(enumerate(x + random.normal(1, 1, 5)))]
        found = paired(*pairs)
        covered["paired"] += found.low < 1 < found.high
        found = apart(x.tolist(), y.tolist())
        covered["apart"] += found.low < 3 < found.high
        a = random.normal(size=30)
        found = correlation(a.tolist(), (a + random.normal(size=30)).tolist(), "pearson")
        covered["pearson"] += found.low < 2**-0.5 < found.high
    for name, count in covered.items():
        assert 0.92 < count / 400 < 0.98, name


def test_correlations_of_nothing_have_no_interval() -> None:
    assert not correlation([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).bounded
    assert not correlation([1.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]).bounded
    assert correlation([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 4.0, 9.0, 16.0, 25.0]).value == pytest.approx(1)


def test_a_line_is_the_mean_over_seeds_or_the_rows_own() -> None:
    rows = frame(
        [row("m", "x", seed + layer, seed=seed, layer=layer) for seed in range(3) for layer in (0, 1)]
    )
    line = along(rows, "layer", "m")
    assert list(line.x) == [0.0, 1.0]
    assert list(line.y) == [1.0, 2.0]
    assert line.low[0] == over([0.0, 1.0, 2.0]).low
    alone = along(frame([row("m", "x", 1.0, low=0.5, high=1.5)]), "layer", "m")
    assert (alone.low[0], alone.high[0]) == (0.5, 1.5)

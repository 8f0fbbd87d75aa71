"""What a Monitor keeps beside its looks: the loop's own numbers, points of pictures; and sinks that fail."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

import isoscope
from isoscope.errors import IsoscopeError
from isoscope.run.monitor.monitor import Monitor
from isoscope.run.monitor.own import explained
from tests.run.training import language, probe


def test_own_numbers_are_rows_of_no_site(tmp_path: Path) -> None:
    told: list[Mapping[str, float]] = []
    with Monitor(
        language(),
        probe(),
        every=2,
        budget=None,
        out=tmp_path / "run",
        sinks=[lambda _, summary: told.append(summary)],
    ) as monitor:
        for step in range(3):
            monitor.step(step, values={"loss": 2.0 - step, "learning_rate": 0.1})
    rows = isoscope.read_run(tmp_path / "run").frame()
    own = rows[rows.kind == "training"]
    assert dict(zip(own[own.measure == "loss"].step, own[own.measure == "loss"].value, strict=True)) == {
        0: 2.0,
        2: 0.0,
    }
    assert own.layer.isna().all() and own["head"].isna().all()
    explained = isoscope.read_run(tmp_path / "run").facts()["step 000000"]["explained"]
    assert explained["learning_rate"]["family"] == "training"  # type: ignore[index]
    assert told and not any("loss" in name for summary in told for name in summary)


def test_a_function_of_values_is_called_on_looks_only() -> None:
    called: list[int] = []

    def values() -> dict[str, float]:
        called.append(1)
        return {"loss": torch.tensor(1.5)}  # type: ignore[dict-item]

    monitor = Monitor(language(), probe(), every=3, budget=None)
    for step in range(7):
        monitor.step(step, values)
    assert len(called) == 3
    assert set(monitor.latest().query("measure == 'loss'").value) == {1.5}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mean_cosine": 1.0}, "'mean_cosine' is a measure of isoscope's own; give the number another name"),
        ({"loss": "low"}, "values are numbers by name; 'loss' is str"),
        ({"loss": torch.zeros(2)}, "values are numbers by name; 'loss' is Tensor"),
    ],
)
def test_values_that_cannot_be(values: dict[str, float], message: str) -> None:
    monitor = Monitor(language(), probe(), budget=None)
    with pytest.raises(IsoscopeError, match=message):
        monitor.step(0, values)


def test_points_are_kept_where_asked(tmp_path: Path) -> None:
    for name, most in (("none", 0), ("some", 400)):
        with Monitor(language(), probe(), every=1, budget=None, out=tmp_path / name, points=most) as monitor:
            monitor.step(0)
            monitor.step(1)
    assert isoscope.read_run(tmp_path / "none").points().empty
    points = isoscope.read_run(tmp_path / "some").points()
    assert set(points.unit) == {"step 000000", "step 000001"}
    assert points.groupby("unit").size().max() <= 2 * 400  # LEAST points a cloud come first
    assert {"query", "key"} <= set(points.series)


def test_a_folder_of_another_recipe_is_refused(tmp_path: Path) -> None:
    for rate in (1, 1):
        Monitor(language(), probe(), out=tmp_path / "run", about={"rate": rate}).close()
    with pytest.raises(IsoscopeError, match=r"asked with other settings \(rate\)"):
        Monitor(language(), probe(), out=tmp_path / "run", about={"rate": 2})


class Broken:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, step: int, summary: Mapping[str, float]) -> None:
        self.calls += 1
        raise ConnectionError("the server is gone")

    def close(self) -> None:
        raise ConnectionError("still gone")


def test_a_sink_that_raises_is_dropped_and_the_others_go_on() -> None:
    broken, told = Broken(), []
    monitor = Monitor(
        language(), probe(), every=1, budget=None, sinks=[broken, lambda step, _: told.append(step)]
    )
    with pytest.warns(
        UserWarning, match=r"the sink Broken failed at step 0 and is told no more: ConnectionError: the serv"
    ):
        monitor.step(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monitor.step(1)
        monitor.close()  # it is not even closed: it is gone
    assert (broken.calls, told) == (1, [0, 1])
    assert set(monitor.frame().step) == {0, 1}


def test_a_sink_that_cannot_be_closed_and_one_that_is_interrupted() -> None:
    class Stuck(Broken):
        def __call__(self, step: int, summary: Mapping[str, float]) -> None:
            self.calls += 1

    with pytest.warns(
        UserWarning, match=r"the sink Stuck failed while it was closed: ConnectionError: still"
    ):
        Monitor(language(), probe(), sinks=[Stuck()]).close()

    def interrupted(step: int, summary: Mapping[str, float]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Monitor(language(), probe(), sinks=[interrupted]).step(0)


def test_what_is_there_and_what_it_took(tmp_path: Path) -> None:
    monitor = Monitor(language(), probe(), every=2, budget=None, out=tmp_path / "run")
    assert monitor.latest().empty
    for step in range(3):
        monitor.step(step)
    assert [monitor.has(step) for step in range(4)] == [True, False, True, False]
    assert set(monitor.latest().step) == {2}
    assert float(str(monitor.budget["share spent"])) > 0
    watched = isoscope.read_run(tmp_path / "run").facts()["step 000000"]["watched"]
    assert watched["score_growth"] == "The largest attention score of a layer passed 100."  # type: ignore[index]


def test_the_public_names() -> None:
    assert isoscope.Monitor is Monitor
    assert isoscope.Alarm("a", 1, "layer.0", "words").step == 1


def test_a_number_is_explained_by_its_name() -> None:
    assert explained({"loss": 1.2})["loss"]["title"] == "loss"

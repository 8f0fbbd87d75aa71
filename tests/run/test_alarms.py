"""Every alarm fires on a training that really does it, once, and is silent on a healthy one."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import isoscope
from isoscope.results.reading import Reading
from isoscope.results.row import Row
from isoscope.run.monitor import alarms
from isoscope.run.monitor.alarms import Alarm, AlarmRaised
from isoscope.run.monitor.kept import RECENT
from isoscope.run.monitor.monitor import Monitor
from tests.run.training import WIDTH, Language, ids, language, loss_of, probe
from tests.typed import frame


def run(
    model: nn.Module,
    rate: float,
    steps: int = 12,
    every: int = 1,
    happens: Callable[[int], None] = lambda step: None,
    **options: object,
) -> tuple[list[Alarm], Monitor]:
    """Train on three batches again and again, and gather what is told."""
    told: list[Alarm] = []
    monitor = Monitor(
        model,
        probe(),
        every=every,
        budget=None,
        heads=False,
        **{"on_alarm": told.append, "counterfactual": True} | options,  # type: ignore[arg-type]
    )
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    for step in range(steps):
        monitor.step(step)
        happens(step)
        optimiser.zero_grad()
        loss_of(model, ids(16, step % 3)).backward()
        optimiser.step()
    return told, monitor


def test_a_healthy_training_is_silent() -> None:
    model = language()
    told, monitor = run(model, rate=0.003, steps=60, every=6)
    assert told == []
    losses = float(loss_of(model, ids(16, 0)).detach()), math.log(40)
    assert losses[0] < losses[1] - 0.3  # it does learn
    assert set(monitor.frame().measure) >= {
        "normalised_entropy",
        "rank_residual",
        "largest_score",
        "drift_share",
    }


def test_a_learning_rate_that_collapses_entropy() -> None:
    told, monitor = run(language(), rate=1.0, steps=8, counterfactual=False)
    alarm = next(each for each in told if each.name == "entropy_collapse")
    rows = monitor.frame()
    there = rows[
        (rows.measure == "normalised_entropy") & (rows.kind + "." + rows.layer.astype(str) == alarm.site)
    ]
    at = there[there.step == alarm.step].value.item()
    assert at < alarms.LEAST_ENTROPY <= there[there.step == 0].value.item()
    assert alarm.words.startswith(
        f"entropy collapse at step {alarm.step}: attention at {alarm.site} has {at:.3f}"
    )


def test_scores_that_grow() -> None:
    told, monitor = run(language(), rate=0.5, steps=8, counterfactual=False)
    alarm = next(each for each in told if each.name == "score_growth")
    rows = monitor.frame()
    largest = rows[(rows.measure == "largest_score")].groupby("step").value.max()
    assert largest[0] < 10 and largest[alarm.step] > alarms.LARGEST_SCORE
    assert (largest[largest.index < alarm.step] <= alarms.LARGEST_SCORE).all()


class Mixing(nn.Module):
    """Attention without a way around it, and without a mask: positions become one vector."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            part(x).view(*x.shape[:2], 2, -1).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        return functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


def test_an_initialisation_that_collapses_rank() -> None:
    model = language()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model.blocks = nn.ModuleList(Mixing() for _ in range(3))
        told, monitor = run(model, rate=0.001, steps=2)
    alarm = next(each for each in told if each.name == "rank_collapse")
    assert alarm.step == 0
    rows = monitor.frame()
    residuals = rows[(rows.measure == "rank_residual") & (rows.step == 0) & (rows.kind == "layer")].value
    assert residuals.iloc[0] > 0.5 and residuals.iloc[-1] < alarms.LEAST_RESIDUAL


def test_drift_that_takes_over() -> None:
    model = language()

    def push(step: int) -> None:
        with torch.no_grad():
            model.blocks[0].query.bias.add_(3.0)

    told, monitor = run(model, rate=0.001, steps=8, happens=push)
    alarm = next(each for each in told if each.name == "drift_share")
    assert alarm.site == "attention.1" and alarm.step > 0
    rows = monitor.frame()
    shares = rows[(rows.measure == "drift_share") & (rows.layer == 1)].set_index("step").value
    assert shares[0] < 0.5 < alarms.LARGEST_SHARE < shares[alarm.step]


def test_nan_is_said_with_its_step_and_site_and_what_was_before_is_kept(tmp_path: Path) -> None:
    model = language()

    def break_it(step: int) -> None:
        if step == 3:
            with torch.no_grad():
                model.blocks[1].down.bias[2] = torch.nan

    told, monitor = run(model, 0.001, steps=8, every=2, happens=break_it, out=tmp_path / "run")
    # the optimiser has spread it to every weight by then
    assert [(alarm.name, alarm.step, alarm.site) for alarm in told] == [("not_finite", 4, "layer.0")]
    assert told[0].words.startswith(f"NaN or Inf first at step 4, first at {told[0].site}: ")
    rows = monitor.frame()
    assert set(rows.step) == {0, 2, 4, 6}
    assert rows[(rows.step < 4) & (rows.measure == "mean_norm")].value.notna().all()
    written = isoscope.read_run(tmp_path / "run").facts()
    assert [len(written[f"step {step:06d}"]["alarms"]) > 0 for step in (0, 2, 4, 6)] == [
        False,
        False,
        True,
        True,
    ]


def test_nan_in_one_block_is_traced_to_it() -> None:
    model = language()
    told: list[Alarm] = []
    monitor = Monitor(model, probe(), budget=None, on_alarm=told.append)
    with torch.no_grad():
        model.blocks[1].query.bias.fill_(torch.inf)
    monitor.step(0)
    assert [(alarm.name, alarm.site) for alarm in told] == [("not_finite", "attention.2")]


@pytest.mark.parametrize("kind", [float("nan"), float("inf")])
def test_raise(kind: float) -> None:
    model = language()
    monitor = Monitor(model, probe(), every=1, budget=None, on_alarm="raise")
    monitor.step(0)
    with torch.no_grad():
        model.tokens.weight.fill_(kind)
    with pytest.raises(AlarmRaised, match=r"NaN or Inf first at step 1, first at layer\.0") as caught:
        monitor.step(1)
    assert caught.value.alarm.site == "layer.0"
    assert set(monitor.frame().step) == {0, 1}


def test_warn_once_for_a_site() -> None:
    model = language()
    monitor = Monitor(model, probe(), every=1, budget=None)
    with torch.no_grad():
        model.tokens.weight.fill_(torch.nan)
    with pytest.warns(UserWarning, match="NaN or Inf at step 0, beginning at layer.0") as said:
        for step in range(3):
            monitor.step(step)
    assert len(said) == 1


def test_nan_that_lasts_is_told_once_and_its_first_step_stays_the_first(tmp_path: Path) -> None:
    model = language()

    def break_it(step: int) -> None:
        if step == 2:
            with torch.no_grad():
                model.blocks[1].up.weight.fill_(torch.nan)

    # the update of step 2 spreads it to every weight; an alarm looks back on 16 of the 24 looks
    told, _ = run(model, 0.001, steps=24, happens=break_it, out=tmp_path / "run", measures=["not_finite"])
    assert [(alarm.step, alarm.site) for alarm in told] == [(3, "layer.0")]
    written = isoscope.read_run(tmp_path / "run").facts()
    recorded = [each for known in written.values() for each in known["alarms"]]  # type: ignore[attr-defined]
    assert {each["words"] for each in recorded} == {told[0].words} and len(recorded) == 15


@pytest.mark.parametrize(
    ("counts", "step", "begins"),
    [
        ([0, 0, 5, 3], 2, "NaN or Inf first at step 2, first at layer.1: 5 of 10"),
        ([5], 0, "NaN or Inf at step 0, beginning at layer.1: 5 of 10"),
        ([0, 5, 0, 7, 7], 3, "NaN or Inf again at step 3, beginning at layer.1: 7 of 10"),
        ([5, 0, 7], 2, "NaN or Inf again at step 2, "),
        ([5, 5], None, ""),  # where it began is out of sight, and was told
        ([0, 5, 0], None, ""),  # it has passed, and was told
    ],
)
def test_nan_names_a_first_step_only_where_it_can_be_known(
    counts: list[float], step: int | None, begins: str
) -> None:
    found = alarms.not_a_number(rows_of("not_finite", counts))
    assert (None if found is None else found.step) == step
    assert found is None or found.words.startswith(begins)


def rows_of(measure: str, values: list[float], kind: str = "layer") -> pd.DataFrame:
    return frame(
        Row.at("", "", "", step, kind, 1, None, measure, Reading(value, 10))
        for step, value in enumerate(values)
    )


@pytest.mark.parametrize(
    ("alarm", "measure", "values", "fires"),
    [
        (alarms.entropy_collapse, "normalised_entropy", [0.5, 0.3, 0.09], True),
        (alarms.entropy_collapse, "normalised_entropy", [0.5, 0.3, 0.11], False),
        (alarms.entropy_collapse, "normalised_entropy", [0.05, 0.04], False),  # it came like this
        (alarms.entropy_collapse, "normalised_entropy", [0.5, math.nan], False),
        (alarms.score_growth, "largest_score", [3.0, 101.0], True),
        (alarms.score_growth, "largest_score", [3.0, 99.0], False),
        (alarms.score_growth, "largest_score", [300.0, 301.0], False),
        (alarms.rank_collapse, "rank_residual", [0.09], True),
        (alarms.rank_collapse, "rank_residual", [0.09, 0.5], False),  # it has recovered
        (alarms.drift_takes_over, "drift_share", [0.5, 0.91], True),
        (alarms.not_a_number, "not_finite", [0.0, 0.0], False),
        (alarms.not_a_number, "not_finite", [0.0, 2.0], True),
        (alarms.not_a_number, "mean_norm", [0.0, math.nan], False),
    ],
)
def test_on_either_side_of_each_threshold(
    alarm: alarms.AlarmFunction, measure: str, values: list[float], fires: bool
) -> None:
    found = alarm(rows_of(measure, values))
    assert (found is not None) == fires
    assert found is None or (found.site, found.step) == ("layer.1", len(values) - 1)
    assert alarm(frame([])) is None


def test_single_heads_set_off_nothing() -> None:
    rows = rows_of("normalised_entropy", [0.5, 0.01])
    rows["head"] = pd.array([0, 0], dtype="Int64")
    assert alarms.entropy_collapse(rows) is None


def test_an_alarm_of_ones_own() -> None:
    def too_long(rows: pd.DataFrame) -> Alarm | None:
        last = rows[(rows.step == rows.step.max()) & (rows.measure == "mean_norm")]
        worst = last.loc[last.value.idxmax()]
        return Alarm("too_long", int(worst.step), f"{worst.kind}", "too long") if worst.value > 1 else None

    told: list[Alarm] = []
    monitor = Monitor(Language(), probe(), alarms=[too_long], on_alarm=told.append)
    monitor.step(0)
    assert [alarm.name for alarm in told] == ["too_long"]


def test_recent_rows_are_those_of_the_last_steps_and_their_own() -> None:
    _, monitor = run(language(), rate=0.003, steps=RECENT + 4)
    rows = monitor.latest()
    for _ in range(2):  # the second time they are joined to those of the first
        recent = monitor._kept.recent(RECENT + 3, rows)
        recent["value"] = math.nan  # an alarm that writes into what it is given
    recent = monitor._kept.recent(RECENT + 3, rows)
    every = monitor.frame()
    pd.testing.assert_frame_equal(recent, every[every.step >= 4].reset_index(drop=True))

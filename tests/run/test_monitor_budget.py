"""Which steps are looked at, and that looking stays inside its share of the time."""

from __future__ import annotations

import math
import time
from itertools import pairwise
from pathlib import Path

import pytest

import isoscope
from isoscope.run import monitor as watching
from isoscope.run.monitor import Monitor
from isoscope.run.schedule import Budget, as_schedule, dense_then_even, every_nth
from tests.run.training import language, probe

FEW = ["mean_norm"]


class Clock:
    """Stands still unless it is told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_default_is_dense_then_even() -> None:
    chosen = [step for step in range(5001) if dense_then_even(step)]
    assert chosen[:2] == [0, 1]
    early = [step for step in chosen if 4 <= step <= 512]
    assert all(1.2 < two / one < 1.6 for one, two in pairwise(early))
    assert {two - one for one, two in pairwise(step for step in chosen if step >= 512)} == {256}
    assert len([step for step in chosen if step < 2000]) >= 20
    assert not dense_then_even(-1)


def test_schedules_as_given() -> None:
    assert as_schedule(None) is dense_then_even
    assert [step for step in range(7) if as_schedule(3)(step)] == [0, 3, 6]
    odd = lambda step: step % 2 == 1  # noqa: E731
    assert as_schedule(odd) is odd


@pytest.mark.parametrize("cost", [0.01, 3.0, 17.0])
@pytest.mark.parametrize("share", [0.02, 0.1])
def test_the_share_is_kept_by_the_clock(cost: float, share: float) -> None:
    """A step takes 1 s, a look `cost`; from 1,000 steps on the share holds at every moment."""
    clock = Clock()
    budget = Budget(share, clock)
    looks = []
    for step in range(4000):
        clock.now += 1.0
        budget.called()
        if not every_nth(7)(step):
            continue
        budget.reached()
        if not budget.affords():
            budget.passes_over()
            continue
        with budget.spending():
            clock.now += cost
        looks.append(step)
        if step >= 1000:
            assert budget.spent <= share * budget.training + cost  # the look at hand is paid for in advance
    assert budget.spent <= share * 4000
    assert len(looks) == min(math.ceil(4000 / 7), len(looks))
    wanted = math.ceil(4000 / 7)
    assert len(looks) + budget.passed_over == wanted
    if cost * wanted <= share * 4000 and cost < 0.1:
        assert budget.passed_over == 0 and budget.note() == ""
    else:
        assert len(looks) >= int(share * 4000 / cost) - 8  # and it is used
        assert f"passed over {budget.passed_over} of the steps" in budget.note()


def test_a_slow_beginning_does_not_count_for_more() -> None:
    """The first step compiles for a minute: the looks after it are not allowed on its account."""
    clock = Clock()
    budget = Budget(0.02, clock)
    taken = 0
    for step in range(100):
        clock.now += 60.0 if step == 1 else 0.1
        budget.called()
        budget.reached()
        if budget.affords():
            taken += 1
            with budget.spending():
                clock.now += 1.0
    assert taken <= 1 + (0.02 * 1000 * 0.1) / 1.0 + 1


def slow(monkeypatch: pytest.MonkeyPatch, wait: object) -> None:
    whole = watching.observed

    def observed(*given: object) -> object:
        wait()  # type: ignore[operator]
        return whole(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(watching, "observed", observed)


def test_a_slow_look_stretches_the_schedule_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()

    def wait() -> None:
        clock.now += 5.0

    slow(monkeypatch, wait)
    monitor = Monitor(language(), probe(1), every=50, out=tmp_path / "run", measures=FEW, clock=clock)
    for step in range(2001):
        monitor.step(step)
        clock.now += 1.0
    seen = sorted(set(monitor.frame().step))
    assert 5.0 * len(seen) <= 0.02 * 2000
    assert len(seen) >= 6
    assert seen[:3] == [0, 50, 100]  # the beginning of a run of 1,000 steps is paid for in advance
    facts = isoscope.read_run(tmp_path / "run").facts()[f"step {seen[-1]:06d}"]
    assert facts["budget"]["share allowed"] == 0.02  # type: ignore[index]
    assert facts["budget"]["steps passed over"] > 0  # type: ignore[index]
    assert any("a budget of 2 % passed over" in note for note in facts["notes"])  # type: ignore[attr-defined]
    assert monitor.notes()[0].endswith("a look takes 5 s, a step of training 1 s")


def test_the_share_is_kept_by_a_real_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch, lambda: time.sleep(0.03))
    start = time.perf_counter()
    monitor = Monitor(language(), probe(1), every=1, budget=0.2, measures=FEW)
    for step in range(1200):
        monitor.step(step)
        time.sleep(0.002)
    whole = time.perf_counter() - start
    looks, own = monitor.frame().step.nunique(), monitor._budget.spent
    assert own >= 0.03 * looks
    assert own <= 0.2 * (whole - own) + own / looks  # the first is always taken, and no look foreseen exactly
    assert looks < 20


def test_a_step_that_is_not_chosen_runs_nothing() -> None:
    model, calls = language(), []
    monitor = Monitor(model, probe(1), every=5, budget=None, measures=FEW)
    with model.register_forward_hook(lambda *given: calls.append(1)):
        for step in range(1, 5):
            monitor.step(step)
        assert not calls
        monitor.step(5)
    assert calls

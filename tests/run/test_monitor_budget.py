"""Which steps are looked at, and that looking stays inside its share of the time."""

from __future__ import annotations

import math
import time
from itertools import pairwise
from pathlib import Path

import pytest

import isoscope
from isoscope.run.monitor import monitor as watching
from isoscope.run.monitor.alarms import Alarm
from isoscope.run.monitor.monitor import Monitor
from isoscope.run.monitor.schedule import Budget, Schedule, as_schedule, dense_then_even, every_nth
from isoscope.show.page import page as report
from tests.run.training import language, probe

FEW = ["mean_norm"]
STRETCHED = pytest.mark.filterwarnings("ignore:step .* is not looked at")  # once a run; tested below


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
            budget.passed_over += 1
            continue
        with budget.spending():
            clock.now += cost
        looks.append(step)
        if step >= 1000:
            assert budget.spent <= share * budget.training + cost  # the look at hand is paid for in advance
    assert budget.spent <= share * 4000 + cost / 2
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


def test_half_of_a_run_of_known_length_is_paid_in_advance_and_what_is_behind_is_not_counted() -> None:
    def early(first: int) -> int:
        clock = Clock()
        budget = Budget(0.02, clock, 2000)
        looks = 0
        for step in range(first, first + 40):
            clock.now += 1.0
            budget.called(step)
            budget.reached()
            if budget.affords():
                looks += 1
                with budget.spending():
                    clock.now += 1.0
        return looks

    assert early(0) == 20  # 2 % of half of 2,000 s; the 21st comes at 50
    assert early(1800) == 2


def test_training_that_grows_slower_is_looked_at_to_its_end() -> None:
    """The quickest step says too little of the rest; what has been trained is counted as it was."""
    clock = Clock()
    budget = Budget(0.02, clock, 2000)
    looks = []
    for step in range(2000):
        budget.called(step)
        budget.reached()
        if budget.affords():
            looks.append(step)
            with budget.spending():
                clock.now += 4.0
        clock.now += 1.0 if step < 100 else 2.0
    assert max(after - before for before, after in pairwise([*looks, 2000])) <= 150
    assert budget.spent <= 0.02 * budget.training + 2.0


def slow_looks(
    monkeypatch: pytest.MonkeyPatch, cost: float, length: int, every: int | Schedule | None, steps: int | None
) -> tuple[list[int], Monitor]:
    """The steps that are looked at where a step takes 1 s and a look `cost`, getting ready nothing."""
    clock = Clock()

    def wait() -> None:
        clock.now += cost

    slow(monkeypatch, wait)
    monitor = Monitor(language(), probe(1), every=every, steps=steps, measures=FEW, heads=False, clock=clock)
    for step in range(length):
        monitor.step(step)
        clock.now += 1.0
    return sorted(set(monitor.frame().step)), monitor


@STRETCHED
@pytest.mark.parametrize("steps", [2000, None])
@pytest.mark.parametrize("every", [None, 10])
@pytest.mark.parametrize("cost", [2.0, 4.0])
def test_a_run_is_looked_at_to_its_end(
    cost: float, every: int | None, steps: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, monitor = slow_looks(monkeypatch, cost, 2000, every, steps)
    assert len(seen) >= 40 / cost
    assert cost * len(seen) <= 0.02 * 2000 + cost
    blind = max(after - before for before, after in pairwise([*seen, 2000]))
    assert blind <= (250 if cost == 2 else 450)
    if steps == 2000:
        assert seen[: 20 // int(cost)] == [s for s in range(99) if as_schedule(every)(s)][: 20 // int(cost)]
    if cost == 2:
        assert seen[-1] >= 1800
    if every is None:
        late = [step for step in seen if not dense_then_even(step)]
        assert late and all(step % 32 == 0 for step in late)
        assert f"looked at {len(late)} later ones in their place" in monitor.notes()[0]
    else:
        assert all(step % every == 0 for step in seen)


def test_what_can_be_paid_is_not_put_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """No warning, which would be an error here, and the very steps of the schedule."""
    seen, monitor = slow_looks(monkeypatch, 0.5, 700, None, 2000)
    assert seen == [step for step in range(700) if dense_then_even(step)]
    assert monitor.notes() == []


def test_nothing_waits_for_the_device_unless_a_step_is_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[int] = []
    monkeypatch.setattr(watching.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(watching.torch.cuda, "synchronize", lambda: waits.append(1))
    seen, _ = slow_looks(monkeypatch, 0.5, 300, None, 2000)
    assert len(waits) == len(seen) == len([step for step in range(300) if dense_then_even(step)])


@STRETCHED
def test_all_ranks_ask_at_the_same_steps_whatever_is_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only rank 0 knows what is owed; one that asked at another step would wait for ever."""
    asked: list[int] = []
    wants = Monitor._wants

    def noted(self: Monitor, at: int, *, chosen: bool) -> bool:
        asked.append(at)
        return wants(self, at, chosen=chosen)

    monkeypatch.setattr(Monitor, "_wants", noted)
    seen, _ = slow_looks(monkeypatch, 4.0, 700, None, 2000)
    first = list(asked)
    asked.clear()
    monkeypatch.setattr(watching.Ranks, "now", lambda: watching.Ranks(1, 1))  # not the first
    assert slow_looks(monkeypatch, 4.0, 700, None, 2000)[0] == []
    assert asked == first and set(seen) < set(first) and any(not dense_then_even(step) for step in seen)


def test_the_first_step_passed_over_is_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(UserWarning) as told:
        slow_looks(monkeypatch, 4.0, 300, None, None)
    assert [str(each.message) for each in told] == [
        "step 3 is not looked at, nor will all others be that the schedule chooses: a look takes 4 s and a "
        "step of training 1 s, too much for budget=0.02; give a larger budget= (None: no limit) or fewer "
        "measures=, or say in steps= how long the run is."
    ]
    assert told[0].filename == __file__
    with pytest.warns(UserWarning, match=r"fewer measures=\.$"):
        slow_looks(monkeypatch, 4.0, 300, 10, 300)


@STRETCHED
@pytest.mark.parametrize(("budget", "looks"), [(0.02, 1), (None, 10)])
def test_what_was_passed_over_after_the_last_look_is_in_the_folder(
    budget: float | None, looks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()

    def wait() -> None:
        clock.now += 50.0

    slow(monkeypatch, wait)
    out = tmp_path / "run"
    with Monitor(
        language(), probe(1), every=10, out=out, budget=budget, steps=100, measures=FEW, clock=clock
    ) as monitor:
        for step in range(100):
            monitor.step(step)
            clock.now += 1.0
    kept = isoscope.read_run(out)
    assert kept.frame().step.nunique() == looks
    assert len([unit for unit in kept.units() if unit.startswith("step")]) == looks
    if budget is None:
        assert "end" not in kept.units()  # nothing to note
        return
    end = kept.facts()["end"]
    assert "passed over 9 of the steps" in end["notes"][0]  # type: ignore[index]
    assert end["budget"]["share spent"] == round(50 / 100, 5)  # type: ignore[index]
    assert kept.frame("end").empty
    again = Monitor(language(), probe(1), out=out, budget=None, measures=FEW)
    assert again.has(0) and again.frame().equals(kept.frame())
    page = report.page(kept.run, kept.frame(), kept.facts(), kept.points())
    assert "passed over 9 of the steps" in page


@STRETCHED
@pytest.mark.parametrize("teller", ["sink", "alarm"])
def test_what_sinks_and_alarm_callbacks_take_is_looking(teller: str) -> None:
    clock = Clock()

    def wait(*given: object) -> None:
        clock.now += 5.0

    def ring(rows: object) -> Alarm:
        return Alarm("ring", int(rows.step.max()), f"layer.{rows.step.max()}", "it rings")  # type: ignore[attr-defined]

    monitor = Monitor(
        language(),
        probe(1),
        every=1,
        budget=0.1,
        steps=200,
        measures=FEW,
        alarms=[ring] if teller == "alarm" else [],
        on_alarm=wait,
        sinks=[wait] if teller == "sink" else [],
        clock=clock,
    )
    for step in range(200):
        monitor.step(step)
        clock.now += 1.0
    looks = monitor.frame().step.nunique()
    assert monitor.budget["seconds a look"] == 5.0 and monitor.budget["seconds a step"] == 1.0
    assert 2 <= looks <= 4 + 1  # 10 % of 200 s
    assert monitor._budget.spent == 5.0 * looks


def slow(monkeypatch: pytest.MonkeyPatch, wait: object) -> None:
    whole = watching.observed

    def observed(*given: object) -> object:
        wait()  # type: ignore[operator]
        return whole(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(watching, "observed", observed)


@STRETCHED
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
    assert 5.0 * len(seen) <= 0.02 * 2000 + 2.5
    assert len(seen) >= 6
    assert seen[:2] == [0, 50]  # half of the beginning of a run of 1,000 steps is paid for in advance
    assert seen[-1] >= 1750
    facts = isoscope.read_run(tmp_path / "run").facts()[f"step {seen[-1]:06d}"]
    assert facts["budget"]["share allowed"] == 0.02  # type: ignore[index]
    assert facts["budget"]["steps passed over"] > 0  # type: ignore[index]
    assert any("a budget of 2 % passed over" in note for note in facts["notes"])  # type: ignore[attr-defined]
    assert monitor.notes()[0].endswith("a look takes 5 s, a step of training 1 s")


@STRETCHED
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
    # the first is always taken; a machine may stutter: simulated clocks hold it to .2, and unkept it is 15
    assert own - monitor._budget._first_look <= 0.4 * (whole - own)
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

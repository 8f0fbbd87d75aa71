"""The live view: what is drawn, how often, and what stays when it is over."""

from __future__ import annotations

import io
import math

import pandas as pd
import pytest
from rich.console import Console

from isoscope.cli.screen.live import LENGTH, Line, LiveView, add_look, layers_table, sparkline
from isoscope.results.reading import Reading
from isoscope.results.row import Row
from isoscope.run.monitor.alarms import Alarm
from isoscope.run.monitor.monitor import Monitor
from tests.run.training import language, probe
from tests.typed import frame


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def console(terminal: bool, width: int = 110, height: int = 40) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=width, height=height, color_system=None)


def written(view: LiveView) -> str:
    assert isinstance(view.console.file, io.StringIO)
    return view.console.file.getvalue()


def shown(view: LiveView, width: int = 110) -> str:
    sheet = Console(file=io.StringIO(), width=width, color_system=None)
    sheet.print(view.drawn())
    assert isinstance(sheet.file, io.StringIO)
    return sheet.file.getvalue()


ALARM = Alarm("score_growth", 2, "attention.1", "scores grow: at step 2 [bold] the largest is 113.")


def rows(step: int, layers: int, value: float) -> pd.DataFrame:
    made = [
        Row.at("r", "m", "", step, kind, layer, None, measure, Reading(value + 0.01 * layer, 8))
        for layer in range(layers)
        for kind, measure in (("layer", "mean_cosine_between"), ("attention", "largest_score"))
    ]
    loss = Row.at("r", "m", "", step, "training", None, None, "loss", Reading(4.0 - step, 1))
    return frame([*made, loss])


def series(*looks: pd.DataFrame) -> dict[str, dict[Line, list[float]]]:
    kept: dict[str, dict[Line, list[float]]] = {}
    for look in looks:
        add_look(kept, look)
    return kept


def test_plain_lines_where_there_is_no_terminal() -> None:
    with LiveView("training", steps=3, console=console(False)) as view:
        monitor = Monitor(
            language(),
            probe(),
            every=2,
            budget=None,
            sinks=[view],
            on_alarm=view.alarm,
            alarms=[lambda _: ALARM],
        )
        view.watch(monitor)
        for step in range(4):
            monitor.step(step, {"loss": 1.25})
            view.progress(step)
    lines = written(view).splitlines()
    assert [line.split(":")[0] for line in lines] == ["step 0 of 3", "alarm", "step 2 of 3"]
    assert "loss 1.250, cosine between" in lines[0]
    assert lines[1] == f"alarm: {ALARM.words}"  # brackets are words, not styles
    assert "\x1b" not in written(view)


def test_it_draws_at_most_four_times_a_second_and_only_when_told() -> None:
    clock = Clock()
    view = LiveView("training", steps=1000, console=console(True), clock=clock)
    drawn = 0
    original = view.drawn

    def counting() -> object:
        nonlocal drawn
        drawn += 1
        return original()

    view.drawn = counting  # type: ignore[assignment, method-assign]
    with view:
        for step in range(1000):
            clock.now = step / 100  # ten seconds of quick steps
            view.progress(step)
        assert 30 <= drawn <= 41
        clock.now += 100
        assert drawn <= 41  # time alone draws nothing


def test_the_panel_says_where_training_is() -> None:
    clock = Clock()
    view = LiveView("my run", steps=200, console=console(True), clock=clock)
    view.progress(10)
    clock.now = 10.0
    view.progress(60)
    text = shown(view)
    assert "my run" in text and "step 60 of 200" in text
    assert "5.000 steps/s" in text and "0:00:28" in text


def test_slow_steps_and_no_end() -> None:
    clock = Clock()
    view = LiveView("run", console=console(True), clock=clock)
    view.progress(1)
    clock.now = 20.0
    view.progress(3)
    assert "step 3 " in shown(view) and "10.0 s a step" in shown(view)


def test_layers_numbers_and_cost_of_a_real_monitor() -> None:
    view = LiveView("run", steps=4, console=console(True))
    monitor = Monitor(language(), probe(), every=1, budget=None, sinks=[view], on_alarm=view.alarm)
    view.watch(monitor)
    for step in range(4):
        monitor.step(step, {"loss": 4.0 - step})
    text = shown(view)
    entropy = (
        monitor.latest().query("measure == 'normalised_entropy' and layer == 2 and head.isna()").value.item()
    )
    assert f"{entropy:.3f}" in text
    assert "loss 1.000 █▆▃▁" in text
    assert "to the time of training" in text
    assert all(name in text for name in ("cosine", "drift", "entropy", "score", "output"))


def test_alarms_are_on_the_panel_and_stay_when_it_is_gone() -> None:
    view = LiveView("run", console=console(True))
    with view:
        for number in range(5):
            view.alarm(Alarm("a", number, "layer.0", f"trouble {number}"))
        assert "trouble 4" in shown(view) and "trouble 1" not in shown(view)
    end = written(view).rsplit("alarm: trouble 0", 1)[1]
    assert [f"alarm: trouble {number}" in end for number in range(1, 5)] == [True] * 4


def test_an_error_ends_the_view_and_is_not_hidden() -> None:
    view = LiveView("run", console=console(True))
    with pytest.raises(ZeroDivisionError), view:
        view.progress(1)
        raise ZeroDivisionError
    assert written(view).endswith("\x1b[?25h") or "\x1b[?25h" in written(view)  # the cursor is back


def test_history_keeps_the_last_looks() -> None:
    kept = series(*(rows(step, 3, step / 10) for step in range(LENGTH + 3)))
    lines = kept["mean_cosine_between"]
    assert list(lines) == [("layer", 0), ("layer", 1), ("layer", 2)]
    assert lines["layer", 1] == pytest.approx([step / 10 + 0.01 for step in range(3, LENGTH + 3)])
    assert kept["loss"]["training", None][0] == 4.0


@pytest.mark.parametrize(
    ("width", "most", "columns", "lines"), [(110, 40, 2, 30), (22, 40, 1, 30), (110, 7, 2, 7)]
)
def test_the_table_fits(width: int, most: int, columns: int, lines: int) -> None:
    table = layers_table(series(rows(0, 30, 0.5)), width, most)
    assert (len(table.columns) - 1, len(table.lines)) == (columns, lines)
    assert table.caption == (f"{lines} of 30 layers" if lines < 30 else "")


def test_a_value_that_is_gone_is_said() -> None:
    table = layers_table(series(rows(0, 2, 0.5), rows(1, 2, math.nan)), 80, 10)
    assert str(table.lines[0][1]).startswith("NaN")


def test_sparklines_share_a_scale() -> None:
    assert sparkline([0.0, 1.0], (0.0, 2.0)) == "▁▅"
    assert sparkline([3.0, 3.0]) == "▁▁"
    assert sparkline([]) == ""

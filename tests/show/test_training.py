"""The page of a training run: axis, lines and maps, heads, alarms, words."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise

import pandas as pd
import pytest

from isoscope.run.monitor.schedule import dense_then_even
from isoscope.show.charts import Alarm, Chart
from isoscope.show.draw.plotly.charts import carried
from isoscope.show.figures.maps import MOST_HEADS, heads_over_steps
from isoscope.show.figures.panels import Panel
from isoscope.show.figures.step_axis import MOST_STEPS, step_axis
from isoscope.show.figures.trajectories import MOST_LINES, depths, trajectory
from isoscope.show.page.page import page
from isoscope.show.page.section import trained_section
from isoscope.show.page.training import is_training, marked, training, watch
from isoscope.show.readings import read
from isoscope.show.say.course import changed, cost, first_not_finite, rows_while_whole, told_once, while_whole
from isoscope.show.say.words import headline
from tests.show.drawn import figure_of
from tests.show.made import a_run, row
from tests.show.made_training import a_training, alarm, facts, watched
from tests.typed import frame

STEPS = [0, 1, 4, 25, 100, 200, 400]
DENSE = [step for step in range(4000) if dense_then_even(step)]


def text_of(steps: list[int] = STEPS, **given: object) -> str:
    alarms = given.pop("alarms", None)
    rows = watched(steps, **given)  # type: ignore[arg-type]
    return page(a_training(), rows, facts(steps, alarms)).replace(carried(), "")  # type: ignore[arg-type]


# The axis


def test_a_dense_beginning_has_a_logarithmic_axis_and_an_even_run_has_not() -> None:
    assert step_axis(DENSE).log
    assert not step_axis(range(0, 1000, 50)).log
    assert not step_axis([0, 100]).log


@pytest.mark.parametrize("steps", [STEPS, DENSE, list(range(0, 5000, 7)), [3, 10, 4000], [0, 1]])
def test_places_ascend_and_ticks_stand_apart(steps: list[int]) -> None:
    axis = step_axis(steps)
    places = [axis.at(step) for step in axis.steps]
    assert places == sorted(set(places))
    low, high = axis.range
    assert low < places[0] and places[-1] < high
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 12
    at = [(axis.at(tick) - low) / (high - low) for tick in ticks]
    assert all(b - a > 0.05 for a, b in pairwise(at))
    assert at[0] >= 0 and at[-1] <= 1


def test_many_steps_are_thinned_but_for_ends_and_alarms_and_that_is_said() -> None:
    steps = list(range(0, 3000, 10))
    axis = step_axis(steps, keep=[1240, 17])
    assert len(axis.steps) <= MOST_STEPS and axis.measured == 300
    assert {0, 2990, 1240} <= set(axis.steps) <= set(steps)
    assert "of the 300 steps that were measured" in axis.said()
    assert "steps that were measured" not in step_axis(steps[:MOST_STEPS]).said()


def test_alarms_at_every_step_do_not_fill_the_page() -> None:
    steps = list(range(500))
    assert len(step_axis(steps, keep=steps).steps) <= MOST_STEPS


# Lines and maps


def test_a_line_a_layer_in_order_of_depth_and_a_map_of_all() -> None:
    of = training(watched(STEPS, layers=3), facts(STEPS), {})
    own = [r for r in of.readings if r.measure == "mean_cosine_between"]
    figure = figure_of(trajectory(own, of.axis, of.places, mapped=True))
    lines = [trace for trace in figure.data if trace.type == "scatter" and trace.line.dash is None]
    assert [re.search(r"</b>  (.*?)<br>", trace.hovertemplate)[1] for trace in lines] == [  # type: ignore[index]
        "layer 0", "layer 1", "layer 2", "layer 3", "output",
    ]  # fmt: skip
    assert [trace.line.color for trace in lines] == [pair[0] for pair in of.places.colours.values()]
    assert [point[0] for point in lines[2].customdata] == STEPS
    (heat,) = [trace for trace in figure.data if trace.type == "heatmap"]
    assert list(heat.y) == ["0", "1", "2", "3", "output"]
    expected = {(r.place, r.step): r.value for r in own}
    assert heat.z[2][3] == pytest.approx(expected[2, 25], rel=1e-3)
    assert list(heat.x) == list(lines[0].x)  # one axis


def test_many_layers_are_thinned_to_lines_on_a_band() -> None:
    of = training(watched(STEPS, layers=40, heads=0), facts(STEPS), {})
    own = [r for r in of.readings if r.measure == "mean_cosine_between"]
    chart = trajectory(own, of.axis, of.places, mapped=True)
    figure, remark = figure_of(chart), chart.remark
    lines = [t for t in figure.data if t.type == "scatter" and t.line.dash is None and t.line.width]
    assert len(lines) == MOST_LINES and remark == f"{MOST_LINES} of 42 layers as lines"
    low, high = [t for t in figure.data if t.type == "scatter" and t.line.width == 0]
    at = [r.value for r in own if r.step == 25]
    assert (low.y[3], high.y[3]) == (pytest.approx(min(at), rel=1e-3), pytest.approx(max(at), rel=1e-3))
    (heat,) = [trace for trace in figure.data if trace.type == "heatmap"]
    assert len(heat.z) == 42
    assert len(of.places.key) <= 7


def test_a_value_that_is_not_there_is_a_gap() -> None:
    of = training(watched(STEPS, broken_from=200), facts(STEPS), {})
    own = [r for r in of.readings if r.measure == "mean_cosine_between"]
    figure = figure_of(trajectory(own, of.axis, of.places, mapped=True))
    lines = [t for t in figure.data if t.type == "scatter" and t.line.dash is None]
    assert lines[0].y[-1] is not None and lines[1].y[-2:] == (None, None)
    (heat,) = [trace for trace in figure.data if trace.type == "heatmap"]
    assert heat.z[1][-1] is None and heat.z[0][-1] is not None


def test_values_of_many_sizes_are_coloured_by_their_logarithm() -> None:
    of = training(watched(STEPS), facts(STEPS), {})
    own = [r for r in of.readings if r.measure == "mean_norm"]
    chart = trajectory(own, of.axis, of.places, mapped=True)
    figure, remark = figure_of(chart), chart.remark
    (heat,) = [trace for trace in figure.data if trace.type == "heatmap"]
    assert remark == "log scale"
    assert heat.z[0][-1] == pytest.approx(math.log10(410), rel=1e-3)
    assert heat.text[0][-1] == "410"


# Heads


def test_heads_stand_layer_under_layer() -> None:
    of = training(watched(STEPS, layers=3, heads=2), facts(STEPS), {})
    found = heads_over_steps(of.rows, "attention", of.axis, {})
    assert found is not None and len(found.groups) == 1
    heat = figure_of(found.panels[0]).data[0]
    assert list(heat.y[:3]) == ["layer 1 head 0", "layer 1 head 1", "layer 2 head 0"]
    assert heat.z[3][-1] == pytest.approx(1 - 0.4 - 0.01)
    assert list(heat.meta["steps"]) == STEPS
    assert heads_over_steps(of.site_rows(), "attention", of.axis, {}) is None


def test_more_heads_than_fit_are_in_groups_that_a_list_picks() -> None:
    steps = [0, 1]
    of = training(watched(steps, layers=9, heads=64), facts(steps), {})
    found = heads_over_steps(of.rows, "attention", of.axis, {})
    assert found is not None
    assert [name for name, _ in found.groups] == ["1–3", "4–6", "7–9"]
    assert all(len(figure_of(panel).data[0].y) <= MOST_HEADS for panel in found.panels)
    text = page(a_training(), watched(steps, layers=9, heads=64), facts(steps))
    assert "<option>4–6</option>" in text and text.count('class="group" hidden') == 2


# Alarms


def test_an_alarm_that_stays_on_is_told_once_with_how_often() -> None:
    rows = watched(STEPS)
    given = {25: [alarm(25)], 100: [alarm(100), alarm(100, site="layer.3")], 200: [alarm(200)]}
    found = watch(rows, facts(STEPS, given))
    assert found is not None
    assert [(a.step, a.site, a.times) for a in found.told] == [(25, "layer.2", 3), (100, "layer.3", 1)]
    assert [(m.x, m.line) for m in found.marks] == [(25, True), (100, False)]


def test_no_alarm_is_said_with_what_was_on_watch_and_what_was_not() -> None:
    found = watch(watched(STEPS), facts(STEPS))
    assert found is not None and not found.told
    assert found.on == ("NaN or Inf was seen.",)  # neither rank_residual nor drift_share was measured
    assert [words.split(" (")[1] for words in found.off] == [
        "rank_residual was not measured)", "drift_share was not measured)",
    ]  # fmt: skip
    text = text_of()
    assert "No alarm went off at any of the 7 looks." in text
    assert "1 alarm on watch, 2 not" in text
    assert '<details class="watched"><summary>' in text and '<a href="#alarms">No alarm</a>' in text
    assert watch(watched(STEPS), {}) is None  # nothing is known of alarms, so nothing is said


def test_where_no_alarm_could_go_off_that_is_said_and_why() -> None:
    rows = watched(STEPS)
    text = page(a_training(), rows[rows.measure == "mean_norm"], facts(STEPS)).replace(carried(), "")
    assert "No alarm could go off: nothing that they read was measured." in text
    assert "No alarm went off" not in text and '<a href="#alarms">Alarms</a>' in text
    assert '<details class="watched" open><summary>No alarms on watch, 3 not</summary>' in text
    assert text.count("Not on watch: ") == 3 and "(not_finite was not measured)" in text
    attended = rows[rows.measure == "mean_norm"].assign(measure="not_finite_rows", value=0.0)
    assert watch(attended, facts(STEPS)).on == ("NaN or Inf was seen.",)  # type: ignore[union-attr]


@pytest.mark.parametrize("broken", [None, 3])
def test_one_look_has_its_alarms(broken: int | None) -> None:
    given = {3: [alarm(3)]} if broken else {}
    text = page(a_training(), watched([3], broken_from=broken), facts([3], given)).replace(carried(), "")
    assert ("rank_collapse at step 3 at layer.2" in text) == (broken is not None)
    assert ("No alarm went off at the one look." in text) == (broken is None)
    assert text.count('id="alarms"') == 1 and "1 alarm on watch, 2 not" in text


def test_nan_is_on_at_as_many_looks_as_saw_it() -> None:
    nan = alarm(25, "not_finite", "layer.1")  # recorded twice, since alarms see recent steps only
    found = watch(watched(STEPS, broken_from=25), facts(STEPS, {25: [nan], 100: [nan]}))
    assert found is not None
    assert [(told.step, told.times) for told in found.told] == [(25, 4)]


def test_the_first_nan_is_told_even_where_no_alarm_was() -> None:
    rows = watched(STEPS, broken_from=200)
    found = watch(rows, {})
    assert found is not None
    (told,) = found.told
    assert (told.step, told.site) == (200, "layer 1")
    assert told.words.startswith("NaN or Inf was first seen at step 200, in layer 1 (64 of 64 vectors)")
    nan = alarm(200, "not_finite", "layer.1")
    assert len(watch(rows, facts(STEPS, {200: [nan]})).told) == 1  # type: ignore[union-attr]


def test_every_figure_along_the_steps_has_the_marks() -> None:
    of = training(watched(STEPS), facts(STEPS, {25: [alarm(25)]}), a_training().measures)
    for family in ("directions", "drift", "attention", "training"):
        made = trained_section(of, None, family)
        assert made is not None
        heads = made.heads.panels if made.heads else []
        for panel in (*made.large, *made.small, *heads):
            (note,) = figure_of(panel).layout.annotations
            assert note.x == of.axis.at(25) and note.hovertext == "rank_collapse at step 25 at layer.2"


def test_words_of_alarms_are_escaped() -> None:
    panel = marked(
        Panel((), "", "", Chart("", "", "")), step_axis(STEPS), [Alarm(1, ("<b>bad</b> & worse",))]
    )
    figure = figure_of(panel)
    assert figure.layout.annotations[0].hovertext == "&lt;b&gt;bad&lt;/b&gt; &amp; worse"
    bad = alarm(25) | {"words": "<script>alert(1)</script>", "site": "<i>"}
    text = text_of(alarms={25: [bad]})
    assert "<script>alert(1)" not in text and "<i>" not in text


@pytest.mark.parametrize("alarms", ["much", [1], [{"name": "x"}], None, [None]])
def test_facts_that_are_no_alarms_are_passed_over(alarms: object) -> None:
    assert watch(watched(STEPS), {"step 000000": {"alarms": alarms, "watched": "all"}}) is None


# Words


def test_changes_and_turns_are_told() -> None:
    readings = [r for r in read(watched(STEPS)) if r.measure == "mean_cosine_between"]
    said = changed(readings, "mean cosine")
    assert said == (
        "From step 0 to step 400 the mean cosine shows no change distinguishable from chance: 0.1–0.3, then "
        "0.1–0.3 (intervals not paired); on the way it had a peak of 0.4 in layer 3 at step 25."
    )
    assert changed([r for r in readings if r.step == 0], "mean cosine") == ""


def test_sentences_speak_of_all_steps_though_figures_leave_some_out() -> None:
    steps = list(range(200))
    left_out = next(step for step in range(90, 200) if step not in step_axis(steps).steps)
    rows = watched(steps, layers=1, heads=0)
    there = rows.step == left_out
    rows.loc[there & (rows.measure == "loss"), "value"] = 0.0001
    peak = there & (rows.measure == "mean_cosine_between") & (rows.layer == 1)
    rows.loc[peak, ["value", "low", "high"]] = 0.9, 0.89, 0.91
    of = training(rows, facts(steps), {})
    assert len(of.axis.steps) == MOST_STEPS and left_out not in of.axis.steps
    text = page(a_training(), rows, facts(steps)).replace(carried(), "")
    assert f"the lowest is 0.0001 at step {left_out}" in text
    assert f"a peak of 0.9 in layer 1 at step {left_out}" in text
    assert text.count(f"a peak of 0.9 in layer 1 at step {left_out}") == 3  # the headline's as well
    assert set(of.rows.step) == set(of.axis.steps) == {r.step for r in of.readings}


@pytest.mark.parametrize("broken_from", [None, 200, 0])
def test_rows_and_readings_are_whole_alike(broken_from: int | None) -> None:
    rows = watched(STEPS, broken_from=broken_from)
    assert set(rows_while_whole(rows).step) == {r.step for r in while_whole(read(rows))}
    assert rows_while_whole(rows[rows.measure == "loss"]).step.tolist() == STEPS
    assert rows_while_whole(frame([])).empty


def test_what_has_no_interval_is_told_without_a_claim() -> None:
    places = [(step, layer) for step in (0, 3) for layer in (1, 2)]
    shares = [
        row("drift_share", 0.1 * step + 0.01 * layer * (step + 1), step=step, layer=layer, kind="attention")
        for step, layer in places
    ]
    assert changed(read(frame(shares)), "drift share", spanned=False) == (
        "The drift share went from 0.01–0.02 to 0.34–0.38 (without intervals)."
    )


def test_rises_and_falls_are_told_apart() -> None:
    rows = frame(
        [
            row("x", value, half=0.01, step=step, layer=layer)
            for step, layer, value in (
                (0, 0, 0.1),
                (9, 0, 0.5),
                (0, 1, 0.5),
                (9, 1, 0.2),
                (0, 2, 0.3),
                (9, 2, 0.301),
            )
        ]
    )
    assert changed(read(rows), "x") == (
        "From step 0 to step 9 the x rose in layer 0 (from 0.10 to 0.50) and fell in layer 1 "
        "(from 0.50 to 0.20); in layer 2 no change is distinguishable from chance (intervals not "
        "paired)."
    )


def test_a_run_that_broke_is_told_by_what_it_was_before() -> None:
    rows = watched(STEPS, broken_from=200)
    said = headline(rows)
    assert said.startswith(
        "NaN or Inf was first seen at step 200, in layer 1 (64 of 64 vectors). From step 0 to"
    )
    assert "step 100 of small" in said and "step 400" not in said
    readings = read(rows)
    assert max(r.step for r in while_whole(readings) if r.step is not None) == 100
    assert first_not_finite(read(watched(STEPS))) is None
    assert headline(watched(STEPS)).startswith("From step 0 to step 400 of small")


def test_a_nan_that_passes_does_not_end_the_story() -> None:
    rows = watched(STEPS)
    once = (rows.measure == "not_finite") & (rows.step == 25) & (rows.layer == 1)
    rows.loc[once, "value"] = 1.0
    said = headline(rows)
    assert "first seen at step 25, in layer 1 (1 of 64 vectors)" in said and "step 400" in said


# The page


def test_only_training_runs_of_one_model_have_this_page() -> None:
    rows = watched(STEPS)
    assert is_training(a_training(), rows)
    assert not is_training(a_run(), rows)
    assert not is_training(a_training(), watched([3]))
    assert "What went wrong" not in page(a_run(), rows, facts(STEPS)).replace(carried(), "")
    assert page(a_training(), watched([3]), facts([3]))


def test_the_page_has_alarms_first_then_what_the_headline_speaks_of_then_the_loss() -> None:
    text = text_of(alarms={25: [alarm(25)]})
    order = [
        text.index(f'id="{name}"') for name in ("alarms", "directions", "training", "drift", "attention")
    ]
    assert order == sorted(order)
    assert "rank_collapse at step 25 at layer.2" in text and '<a href="#alarms">Alarms</a>' in text
    assert "What is <q>Loss</q>?" in text and "Told by the loop." in text
    assert "The rows of sites at the last step, 400, are here" in text
    assert "on a logarithmic scale" in text


def test_batches_that_trained_have_a_section_of_their_own() -> None:
    rows = watched(STEPS)
    live = [
        row(measure, 0.1 * step, model="small", revision="live", step=step, kind="attention", layer=layer)
        for step in (1, 4)
        for layer in (1, 2)
        for measure in ("query_gradient_share", "normalised_entropy")
    ]
    whole = pd.concat([rows, frame(live)], ignore_index=True)
    text = page(a_training(), whole, facts(STEPS)).replace(carried(), "")
    assert "Batches that trained" in text and "@live" not in text
    assert headline(whole) == headline(rows)
    assert "Batches that trained" not in text_of()


def test_a_long_run_stays_light() -> None:
    steps = list(range(0, 2400, 20))
    text = text_of(steps, layers=12, heads=12)
    assert "of the 120 steps that were measured" in text
    assert len(text.encode()) < 1_000_000  # 24 measures in place of these 6 give 1.4 MB
    figures = [
        json.loads(found) for found in re.findall(r'<script type="application/json">(.*?)</script>', text)
    ]
    assert max(len(trace.get("x", ())) for f in figures for trace in f["data"]) <= MOST_STEPS


def test_colours_of_depth_are_the_same_in_every_figure() -> None:
    places = depths(read(watched(STEPS)))
    assert list(places.names.values()) == ["layer 0", "layer 1", "layer 2", "layer 3", "output"]
    assert len(set(places.colours.values())) == 5


def test_what_looking_took_is_said_once() -> None:
    known = facts(STEPS)
    for number, unit in enumerate(known):
        note = f"a budget of 2 % passed over {number} of the steps"
        known[unit] |= {"notes": [note, "heed this"]}
        known[unit] |= {"budget": {"share spent": 0.01 * number}, "budget note": note}
    text = page(a_training(), watched(STEPS), known).replace(carried(), "").replace("\u00a0", " ")
    assert "Looking added 6.0 % to the time of training up to step 400, the last look." in text
    assert text.count("a budget of 2 % passed over") == 1 and "passed over 6 of" in text
    assert "heed this" in text
    assert "Looking added" not in text_of()


def test_the_last_unit_is_that_of_the_last_step_and_the_end_comes_after_all() -> None:
    def spent(share: float) -> dict[str, object]:
        note = f"a budget of 2 %, {share}"
        return {"budget": {"share spent": share}, "budget note": note, "notes": [note]}

    # as text "step 1000000" stands before "step 999999"; a batch that trained has no budget
    known = {"live 2000000": {}, "step 1000000": spent(0.02), "step 999999": spent(0.5)}
    assert cost(known) == "Looking added 2.0 % to the time of training up to step 1,000,000, the last look."
    assert {unit for unit, kept in told_once(known).items() if kept["notes"]} == {"step 1000000"}
    known["end"] = spent(0.01)
    assert cost(known) == "Looking added 1.0 % to the time of training."
    assert {unit for unit, kept in told_once(known).items() if kept["notes"]} == {"end"}

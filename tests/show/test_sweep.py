"""The page of a sweep: what is wrong on top, trajectories with changes, checkpoints against each other."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isoscope.kinds.report import write
from isoscope.kinds.sweep.page import MOST_UNITS, _sections, content_of, switchable
from isoscope.kinds.sweep.rows import by_step, changes_of, read_sweep
from isoscope.kinds.sweep.sentences import opening
from isoscope.results.points import points_frame
from isoscope.results.store import RunFolder
from isoscope.show.charts import Chart
from isoscope.show.draw.plotly.charts import carried
from isoscope.show.figures.clouds import album as album_of
from isoscope.show.figures.panels import Panel
from isoscope.show.figures.step_axis import MOST_STEPS, step_axis
from isoscope.show.page.section import Section
from isoscope.show.page.training import training
from tests.show.drawn import figure_of
from tests.show.made_sweep import JUMP, STEPS, a_sweep, finding, moving, named


def text_of(folder: RunFolder) -> str:
    return content_of(folder).page().replace(carried(), "")


def sections_of(folder: RunFolder) -> dict[str, Section]:
    read = read_sweep(folder)
    along = training(read.rows, read.facts, folder.run.measures, read.axis)
    return {section.family: section for section in _sections(along, read)}


def test_what_is_wrong_stands_on_top_and_is_marked(tmp_path: Path) -> None:
    words = "holds the same weights as <step1>"
    folder = a_sweep(
        tmp_path,
        findings={8: [finding(8, words=words)], 128: [finding(128, "broken", "the file is cut off")]},
        failed={128: "cannot read it"},
    )
    text = text_of(folder)
    assert "holds the same weights as &lt;step1&gt; <small>twin</small>" in text and "<step1>" not in text
    assert "1 checkpoint could not be measured" in text and "cannot read it" in text
    assert text.index('id="integrity"') < text.index('id="directions"') < text.index('id="changes"')
    assert (
        "Checkpoints measured: 11 from step 0 to step 1,000; failed: 1; possibly not what they claim to be: 2"
        in text
    )
    sections = sections_of(folder)
    for panel in sections["directions"].large:
        (mark,) = [one for one in figure_of(panel).layout.annotations if "same weights" in str(one.hovertext)]
        assert mark.x == pytest.approx(step_axis([s for s in STEPS if s != 128]).at(8))


def test_no_headline_hangs_on_a_checkpoint_that_may_be_of_another_step(tmp_path: Path) -> None:
    steps = [0, 1, 2, 4, 1000]
    said = "From step 0 to step {} of small "
    assert said.format("1,000") in text_of(a_sweep(tmp_path / "a", steps))
    twin = a_sweep(tmp_path / "b", steps, findings={1000: [finding(1000)]})
    assert said.format("1,000") not in text_of(twin) and said.format(4) in text_of(twin)


def test_marks_do_not_fill_the_notes(tmp_path: Path) -> None:
    folder = a_sweep(tmp_path, findings={8: [finding(8)]})
    assert text_of(folder).count("holds the same weights as step1") < 20  # the table, and figures' marks
    assert 'id="notes"' not in text_of(folder)
    assert set(read_sweep(folder).rows["note"]) == {""}


def test_nothing_wrong_is_said_too(tmp_path: Path) -> None:
    text = text_of(a_sweep(tmp_path))
    assert "Nothing was found wrong with the files of 12 checkpoints" in text
    assert (
        "Checkpoints measured: 12 from step 0 to step 1,000; nothing wrong was found in their files." in text
    )
    assert "could not be measured" not in text and '<a href="#integrity">Checkpoints</a>' in text


def test_changes_are_marked_on_the_line_of_their_layer(tmp_path: Path) -> None:
    folder = a_sweep(tmp_path)
    panel = sections_of(folder)["directions"].large[0]
    axis = step_axis(STEPS)
    marks = [t for t in figure_of(panel).data if t.type == "scatter" and t.mode == "markers"]
    assert len(marks) == 4 and {x for trace in marks for x in trace.x} == {axis.at(JUMP)}
    assert all(trace.marker.symbol == "diamond" for trace in marks)
    values = sorted(y for trace in marks for y in trace.y)
    assert values == pytest.approx([0.4, 0.45, 0.5, 0.55])  # on the lines
    drawn = [trace for trace in figure_of(panel).data if trace.type == "scatter"]
    lines = {trace.line.color for trace in drawn if trace.mode == "lines+markers"}
    assert {trace.marker.color for trace in marks} <= lines
    (bars,) = [t for t in figure_of(panel).data if t.type == "scatter" and t.line.width == 5]
    assert list(bars.x[:3]) == [axis.at(32), axis.at(64), None]
    assert "after step 32, by step 64 (95 %)" in marks[0].hovertext[0]
    drift = sections_of(folder)["drift"].large[0]
    turned = [t for t in figure_of(drift).data if t.type == "scatter" and t.mode == "markers"]
    assert {trace.marker.symbol for trace in turned} == {"triangle-up"}


def test_changes_are_told_by_where_they_fall(tmp_path: Path) -> None:
    text = text_of(a_sweep(tmp_path))
    assert "8 of 40 series jump or turn; chance alone marks about 1, more where shocks differ much" in text
    assert "The largest group (4) changes between step 32 and step 64: " in text
    found = changes_of(read_sweep(a_sweep(tmp_path / "again")).between, ("stray",))
    assert [(change.about, change.value) for change in found] == [("relative_drift", 8)]


def test_the_matrix_is_symmetric_and_lacks_what_lacks(tmp_path: Path) -> None:
    section = sections_of(a_sweep(tmp_path))["checkpoints"]
    first, last = section.maps
    assert [panel.heading for panel in (first, last)] == [
        "CKA of two checkpoints · layer 0", "CKA of two checkpoints · layer 3",
    ]  # fmt: skip
    heat = figure_of(first).data[0]
    z = np.array(heat.z, float)
    assert list(heat.x) == list(heat.y) == [f"{step:,}" for step in STEPS]
    assert np.allclose(z, z.T, equal_nan=True)
    assert z[0, 3] == pytest.approx(0.25) and math.isnan(z[1, 5]) and not math.isnan(z[0, 1])
    assert np.diag(z) == pytest.approx(np.ones(12))
    assert "CKA with the last checkpoint is above 0.9 in layer 0 from step 512 on" in section.words


def test_entropy_with_drift_by_layer_and_by_head(tmp_path: Path) -> None:
    section = sections_of(a_sweep(tmp_path))["entropy-and-drift"]
    assert len(section.small) == 2 and len(section.maps) == 4
    assert np.array(figure_of(section.maps[0]).data[0].z).shape == (3, 2)
    words = section.words
    assert (
        "the drift of queries correlate with a median r of −0.90 (p < 0.01 and r < 0 in 6, r > 0 in 0 of 6"
        in words
    )
    assert "r of −0.20 (p < 0.01 and r < 0 in 0, r > 0 in 0 of 6 heads)" in words
    assert "No straight trend makes" in words


def test_heads_are_drawn_over_steps_with_their_drift(tmp_path: Path) -> None:
    section = sections_of(a_sweep(tmp_path))["queries"]
    drawn = [panel.measures[0] for panel in section.heads.panels]
    assert drawn == ["query_key_cosine", "query_relative_drift", "key_relative_drift"]


def test_weights_run_along_the_steps(tmp_path: Path) -> None:
    sections = sections_of(a_sweep(tmp_path, weights=True))
    assert [p.measures[0] for p in sections["query_key"].large] == ["trace", "frobenius"]
    (vocabulary,) = sections["vocabulary"].small
    assert len([t for t in figure_of(vocabulary).data if t.mode == "lines+markers"]) == 2
    assert list(sections["vocabulary"].key) == [
        "input vocabulary", "output vocabulary centred",
    ]  # fmt: skip
    assert "norm" in sections
    text = text_of(a_sweep(tmp_path / "again", weights=True))
    assert text.count('id="vocabulary"') == 1 and text.count('id="query_key"') == 1


def test_the_steps_of_a_head_can_be_played(tmp_path: Path) -> None:
    folder = a_sweep(tmp_path)
    album = album_of(by_step(folder.points("between")), folder.frame())
    assert album is not None and album.units == tuple(map(str, STEPS)) and album.along == "step"
    assert len(album.heads) == 2 * len(STEPS)
    text = text_of(folder)
    assert f'<input type="range" min="0" max="{len(STEPS) - 1}"' in text and "<button" in text
    whole = by_step(points_frame(moving([3, 20])))
    assert list(dict.fromkeys(whole["unit"])) == ["step 000003", "step 000020"]


def test_every_figure_along_the_steps_can_be_put_on_the_other_axis(tmp_path: Path) -> None:
    for section in sections_of(a_sweep(tmp_path)).values():
        heads = section.heads.panels if section.heads else []
        for panel in [*section.large, *section.small, *heads] if section.places else []:
            meta = figure_of(panel).layout.meta
            assert meta["log"] is True and meta["first"] == 1
            assert meta["other"]["range"][1] > 1000 and "1,000" in meta["other"]["ticktext"]


@pytest.mark.parametrize("steps", [STEPS, list(range(0, 500, 50))])
def test_places_on_one_axis_tell_those_on_the_other(steps: list[int]) -> None:
    """What the page's script does: log10(1 + x/first), and back."""

    from isoscope.show.figures.step_axis import StepAxis

    axis = step_axis(steps)
    meta: Any = switchable(Panel((), "", "", Chart("", "", "")), axis).chart.meta
    other = StepAxis(axis.steps, axis.measured, not axis.log)
    for step in steps:
        x = axis.at(step)
        moved = meta["first"] * (10**x - 1) if meta["log"] else math.log10(1 + x / meta["first"])
        assert moved == pytest.approx(other.at(step), rel=1e-3, abs=1e-3)


def test_many_checkpoints_are_thinned_and_that_is_said(tmp_path: Path) -> None:
    steps = list(range(0, 300))
    folder = a_sweep(tmp_path, steps, findings={137: [finding(137)]}, together=False, layers=1)
    read = read_sweep(folder)
    assert len(read.axis.steps) <= MOST_STEPS and 137 in read.axis.steps and read.axis.measured == 300
    heads = read.rows[read.rows["head"].notna()]
    assert set(heads["step"]) == set(read.axis.steps)
    assert read.rows.loc[read.rows["head"].isna(), "step"].nunique() == 300
    text = text_of(folder)
    assert f"Figures show {len(read.axis.steps)} of the 300 checkpoints" in text
    assert text.count("<details><summary>step") <= MOST_UNITS + 1
    assert re.search(r"3,\d00 rows|[0-9,]+ rows; click", text)
    drawn = [
        json.loads(body)
        for body in re.findall(r'<script type="application/json">(\{"data".*?)</script>', text)
    ]
    longest = max(len(trace.get("x", [])) for one in drawn for trace in one["data"])
    assert longest <= MOST_STEPS


@pytest.mark.parametrize("steps", [[], [5]])
def test_fewer_than_two_checkpoints_have_a_page(tmp_path: Path, steps: list[int]) -> None:
    folder = a_sweep(tmp_path, [*steps, 7], failed={7: "it is <b>gone</b>"}, together=False)
    text = text_of(folder)
    assert "it is &lt;b&gt;gone&lt;/b&gt;" in text and 'class="axis"' not in text
    assert f"Checkpoints measured: {len(steps)}; failed: 1" in text


def test_without_what_is_read_together_there_is_a_page(tmp_path: Path) -> None:
    text = text_of(a_sweep(tmp_path, together=False))
    assert 'id="changes"' not in text and 'id="directions"' in text and 'class="player"' not in text


def test_names_are_escaped(tmp_path: Path) -> None:
    folder = a_sweep(tmp_path, title="</script><b>x", findings={8: [finding(8, "<i>", "<img src=x>")]})
    text = text_of(folder)
    assert "<b>x" not in text and "<img" not in text and "<i>" not in text


def test_what_is_said_first() -> None:
    from isoscope.results.trajectory import Trajectory

    of = Trajectory(None, ("a",), (3,), {}, {})  # type: ignore[arg-type]
    assert opening(of, (), examined=False) == "Checkpoints measured: 1."


def test_page_and_figures_for_print_are_written_the_same_each_time(tmp_path: Path) -> None:
    folder = a_sweep(tmp_path)
    written = write(folder)
    page, figures = written.page, written.figures
    assert page == folder.path / "report.html"
    assert sorted(file.name for file in figures) == [
        "clouds.pdf", "clouds.svg", "steps.pdf", "steps.svg",
    ]  # fmt: skip
    svg = (folder.path / "figures" / "steps.svg").read_text()
    assert "Mean cosine between" in svg and "jump" in svg and "layer 3" in svg
    assert ">step 1,000<" in (folder.path / "figures" / "clouds.svg").read_text()
    before = {file: file.read_bytes() for file in (page, *figures)}
    write(folder)
    assert {file: file.read_bytes() for file in before} == before


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from isoscope.cli.screen.finish import finish

    folder = a_sweep(tmp_path, failed={16: "gone"})
    finish(folder, json=False)
    assert "Are these the checkpoints they claim to be?" in (folder.path / "report.html").read_text()
    assert named(16) not in capsys.readouterr().out

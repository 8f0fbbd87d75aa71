"""Runs that would break a page: names that are scripts, numbers that are none, no rows, and too many."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from isoscope.errors import IsoscopeError
from isoscope.kinds.report import page_of
from isoscope.kinds.sweep.page import content_of
from isoscope.results.points import points_frame
from isoscope.results.row import COLUMNS
from isoscope.results.run import Run
from isoscope.results.store import RunFolder, open_run
from isoscope.results.trajectory import BETWEEN
from isoscope.show.figures.step_axis import step_axis
from isoscope.show.page.page import page
from tests.show import made, made_training
from tests.show.browser import Opened
from tests.show.made_sweep import TOLD, between, moving
from tests.show.test_clouds import pictures
from tests.show.test_every_kind import DRAWN, KINDS, folder_once, seen
from tests.tiers import nightly
from tests.typed import frame

NAME = """<script>window.bad = 1</script><img src=x onerror="window.bad = 2">'"&amp;`%{x}"""
FIXED = ("as it is", "before")  # what the rows of an impact and of advice are told by
OF_LAYERS = ("mean_cosine_between", "relative_drift", "mean_norm", "effective_rank")
SOME = ("measure", "sweep", "advise")  # the others are opened at night
OF_HEADS = ("normalised_entropy", "query_relative_drift", "key_relative_drift", "query_key_cosine")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], RunFolder]:
    """A folder of each kind, made once."""
    return lambda kind: folder_once(tmp_path_factory, kind)


def written(path: Path, text: str) -> Path:
    file = path / "report.html"
    file.write_text(text, encoding="utf-8")
    return file


def judged(opened: Opened, least: int = 1) -> None:
    """All is drawn, nothing is run that is not ours, nothing is asked for, and a phone shows it."""
    opened.unfold()
    hidden = opened.count(".group[hidden] .plot:not(.js-plotly-plot)")  # layers that a list has not picked
    drawn = opened.page.locator(".plot.js-plotly-plot").evaluate_all(f"all => all.map({DRAWN})")
    assert len(drawn) == opened.count(".plot") - hidden
    for figure in drawn:
        assert figure["dots"] == figure["planned"] and figure["images"] == figure["maps"], figure
        assert figure["dots"] + figure["lines"] + figure["images"] > 0, figure
    assert len(drawn) >= least
    assert opened.page.evaluate("window.bad ?? null") is None
    assert opened.count("img[src=x]") == 0
    assert opened.count("script:not([type])") == 2  # plotly, and our own
    seen(opened, 360, "light")
    assert opened.page.evaluate("document.documentElement.scrollWidth") == 360
    assert opened.complaints == []
    assert len(opened.asked) == 1
    opened.context.close()


def copied(
    folder: RunFolder,
    path: Path,
    rows: Callable[[pd.DataFrame], pd.DataFrame],
    points: Callable[[pd.DataFrame], pd.DataFrame] = lambda points: points,
    run: Run | None = None,
) -> RunFolder:
    """The folder once more, its rows and points changed."""
    copy = open_run(path / "run", run or folder.run)
    for unit in folder.units():
        known = {name: fact for name, fact in folder.known(unit).items() if name not in ("unit", "schema")}
        own = folder.points(unit).drop(columns="unit")
        copy.write(unit, rows(folder.frame(unit)), known, points(own) if len(own) else None)
    return copy


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """Models, arms and repairs whose names are scripts, and notes with HTML."""
    fixed = rows["model"].isin(FIXED) | rows["model"].str.contains("bias")
    return rows.assign(
        model=rows["model"].where(fixed, rows["model"] + NAME), note=rows["note"].fillna("") + NAME
    )


def not_numbers(rows: pd.DataFrame) -> pd.DataFrame:
    """Of five values one is NaN, one is Inf and one is −Inf; of the others some have ends or nulls of Inf."""
    given = {}
    for column, spoilt in {
        "value": {0: math.nan, 1: math.inf, 2: -math.inf},
        "low": {3: -math.inf},
        "high": {3: math.inf},
        "null": {4: math.inf},
    }.items():
        given[column] = rows[column].to_numpy(copy=True)
        for start, number in spoilt.items():
            given[column][start::5] = number
    return rows.assign(**given)


def holes(points: pd.DataFrame) -> pd.DataFrame:
    x = points["x"].to_numpy(copy=True)
    x[::7], x[3::7] = math.nan, math.inf
    return points.assign(x=x)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # fits of values that are Inf
@pytest.mark.parametrize("kind", [*SOME, *nightly(*(kind for kind in KINDS if kind not in SOME))])
def test_names_are_shown_as_they_are_and_what_is_no_number_is_not(
    folders: Callable[[str], RunFolder], browser: Any, tmp_path: Path, kind: str
) -> None:
    folder = folders(kind)
    asked = {**folder.run.question, "sample": NAME, NAME: 'layer "0"'}
    run = replace(folder.run, title=NAME, question=asked)
    spoilt = copied(folder, tmp_path, lambda rows: not_numbers(named(rows)), holes, run)
    opened = Opened(browser, written(tmp_path, page_of(spoilt)))
    assert NAME in opened.page.locator("h1").inner_text()
    assert opened.page.locator("#provenance").inner_text().count(NAME) >= 2
    assert opened.page.title().startswith(NAME)
    judged(opened)


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows_make_a_page_that_says_so_or_one_sentence(
    folders: Callable[[str], RunFolder], browser: Any, tmp_path: Path, kind: str
) -> None:
    folder = copied(folders(kind), tmp_path, lambda rows: rows.iloc[:0], lambda points: points.iloc[:0])
    if kind == "advise":
        with pytest.raises(IsoscopeError, match="none is of the vectors as they are"):
            page_of(folder)
        return
    text = page_of(folder)
    assert re.search(r'<p class="headline">[^<]+[.]</p>', text)
    if kind in ("measure", "sweep", "train", "reproduce"):  # which have parts of their own
        judged(Opened(browser, written(tmp_path, text)), least=0)


@pytest.mark.nightly
def test_points_that_are_no_numbers_do_not_move_the_mean(browser: Any, tmp_path: Path) -> None:
    points = pictures("m", layers=1, heads=1)
    third = points.groupby(["picture", "series"]).cumcount() == 2
    points = points.assign(x=points["x"].where(~third, math.nan))
    rows = made.attended(heads=1, depth=1)
    file = written(tmp_path, page(made.a_run(), frame(rows), {"m": {}}, points))
    opened = Opened(browser, file)
    opened.unfold()
    own = points[(points["picture"] == "shared") & (points["series"] == "query")].dropna(subset=["x"])
    shown = opened.page.evaluate("() => document.querySelector('.clouds .plot').data.map((one) => one.x)")
    assert len(shown[0]) == len(own) == 11
    assert shown[2][0] == pytest.approx(own["x"].mean(), rel=1e-2)
    assert "11 queries and 11 keys" in opened.page.locator(".clouds [role=status]").inner_text()
    judged(opened)


@pytest.mark.nightly
def test_one_layer(browser: Any, tmp_path: Path) -> None:
    rows = [*made.layered(depth=1), *made.attended(heads=1, depth=1)]
    judged(Opened(browser, written(tmp_path, page(made.a_run(), frame(rows), {"m": {}}))), least=10)


def table(layers: int, heads: int, of_heads: tuple[str, ...] = OF_HEADS) -> pd.DataFrame:
    """Rows of so many layers and heads, of which value, ends and step are still to be filled in."""
    places = [("layer", layer, None, measure) for layer in range(layers + 1) for measure in OF_LAYERS]
    for layer in range(1, layers + 1):
        places += [
            ("attention", layer, head, measure) for measure in of_heads for head in (None, *range(heads))
        ]
    kind, layer_, head_, measure_ = zip(*places, strict=True)
    found = pd.DataFrame({"kind": kind, "layer": layer_, "head": head_, "measure": measure_})
    beside = {"run": "r", "model": "m", "revision": "", "step": None, "n": 4096, "null": 0.0, "note": ""}
    numbers = {"value": 0.0, "low": 0.0, "high": 0.0, "p": math.nan, "setting": math.nan, "seed": pd.NA}
    texts = {"tag": "", "arm": "", "about": ""}
    return found.assign(**beside, **numbers, **texts)[list(COLUMNS)].astype(COLUMNS)


def filled(rows: pd.DataFrame, random: np.random.Generator, level: float = 0.5) -> pd.DataFrame:
    value = level + 0.01 * random.standard_normal(len(rows))
    return rows.assign(value=value, low=value - 0.02, high=value + 0.02)


@pytest.mark.nightly
def test_200_layers_of_128_heads(browser: Any, tmp_path: Path) -> None:
    rows = filled(table(200, 128, OF_HEADS[:1]), np.random.default_rng(0))
    text = page(made.a_run(), rows, {"m": {}})
    assert len(text) < 5e6  # of which plotly is 1.9
    opened = Opened(browser, written(tmp_path, text))
    opened.unfold()
    cells = "(node) => node.data[0].z?.flat().length ?? 0"
    shown = opened.page.locator(".maps .plot").evaluate_all(f"all => all.map({cells})")
    assert shown and set(shown) == {200 * 128}
    cell = opened.page.evaluate("document.querySelector('.maps .plot').data[0].z[199][127]")
    assert cell == pytest.approx(rows["value"].iloc[-1], abs=1e-4)  # it came as two letters
    opened.page.evaluate("Plotly.Fx.hover(document.querySelector('.maps .plot'), {xval: 127, yval: 200})")
    assert "layer 200 head 127" in opened.page.locator(".hovertext").first.text_content()
    judged(opened)


@pytest.mark.nightly
def test_a_thousand_steps_of_training(browser: Any, tmp_path: Path) -> None:
    steps = list(range(0, 10_000, 10))
    rows, facts = made_training.watched(steps, layers=2, heads=1), made_training.facts(steps)
    judged(Opened(browser, written(tmp_path, page(made_training.a_training(), rows, facts))), least=6)


def a_thousand(path: Path) -> RunFolder:
    """A sweep of 1,000 checkpoints of 48 layers; of the steps that are drawn also 32 heads, and `between`."""
    steps = list(range(0, 1_000_000, 1000))
    drawn = set(step_axis(steps).steps)
    folder = open_run(path / "run", Run("sweep", "m", {"model": "m"}, TOLD))
    random, sites, heads = np.random.default_rng(0), table(48, 0), table(48, 32)
    for step in steps:
        own = filled((heads if step in drawn else sites).assign(step=step), random, math.sqrt(step) / 1000)
        folder.write(f"step{step}", own, {"findings": []})
    few = steps[::45]
    known = {"series looked at for changes": 40, "explained": {}, "notes": []}
    points = points_frame(moving(few, heads=16, points=64))
    folder.write(BETWEEN, between(few, layers=48, heads=32), known, points)
    return folder


@pytest.mark.nightly
def test_a_sweep_of_a_thousand_checkpoints_opens_in_under_three_seconds(browser: Any, tmp_path: Path) -> None:
    """2.3 s until all is drawn, of the browser's own time: others may want the processor."""
    text = content_of(a_thousand(tmp_path)).page()
    assert len(text) < 7e6  # of which plotly is 1.9
    (tmp_path / "empty.html").write_text("")
    opened = Opened(browser, tmp_path / "empty.html")
    meter = opened.context.new_cdp_session(opened.page)
    meter.send("Performance.enable", {"timeDomain": "threadTicks"})
    opened.asked.clear()
    opened.page.goto(written(tmp_path, text).as_uri())
    opened.settle()
    told = {one["name"]: one["value"] for one in meter.send("Performance.getMetrics")["metrics"]}
    assert 0.2 < told["TaskDuration"] < 3
    lists = opened.page.locator(".groups select:visible")
    assert lists.count() == 1  # that of attention; that of queries is folded
    shown = "all => all.filter((one) => one.checkVisibility()).map((one) => one.data[0].y[0])"
    assert "layer 1 head 0" in opened.page.locator(".groups .plot").evaluate_all(shown)
    lists.first.select_option("43–48")
    assert "layer 43 head 0" in opened.page.locator(".groups .plot").evaluate_all(shown)
    judged(opened, least=20)

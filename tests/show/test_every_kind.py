"""A page of every kind of run, made from its folder and opened in a browser from disk."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from isoscope.kinds.report import page_of
from isoscope.lab.block import block
from isoscope.measures.table import MEASURES, choose
from isoscope.papers.table import paper_of
from isoscope.repair.advise.advise import GEOMETRY, advise
from isoscope.repair.advise.pairs import EXPLAINED as OF_ADVICE
from isoscope.repair.advise.sample import halves
from isoscope.repair.impact.words import explanations
from isoscope.results.row import Row
from isoscope.results.run import Run
from isoscope.results.store import RunFolder, open_run
from isoscope.run.provenance import new_run
from tests.papers.cases_godey2024 import CASES
from tests.plot.made import BERT
from tests.plot.made import folder as planted
from tests.show import made, made_sweep
from tests.show.browser import Opened, brightness, violations
from tests.show.test_clouds import pictures
from tests.tiers import nightly
from tests.typed import frame

KINDS = (
    "measure", "compare", "weights", "sweep", "train", "contrast", "block", "reproduce", "impact", "advise",
)  # fmt: skip


def impact_rows(layers: tuple[int, ...] = (0, 2)) -> Iterator[Row]:
    """Two repairs of two layers by two tasks: one helps, one cannot matter or makes no difference."""
    scores = {"spearman.pairs": 0.6, "accuracy.labels": 0.8, "recall_1.seek": 0.4, "hub_skewness": 2.0}
    for layer, (repair, up) in product(layers, {"as it is": 0.0, "centre": 0.1, "whiten:4": 0.0}.items()):
        at = {"model": repair, "layer": layer, "n": 400}
        cosine = 0.4 if repair == "as it is" else 0.01 * (layer - 1)
        yield made.row("mean_cosine_between", cosine, half=0.02, **at)
        yield made.row("relative_drift", math.sqrt(abs(cosine)), half=0.02, **at)
        yield made.row("effective_rank", 40.0, **at | {"null": 60.0})
        for measure, before in scores.items():
            yield made.row(measure, before + up, half=0.05, **at)
            if repair != "as it is":
                same = "cannot matter: a line reads the same" if measure.startswith("accuracy") else ""
                note = "helped at n = 400" if up else same or "no difference at n = 400"
                yield made.row(f"{measure}.change", up, half=0.03, **at | {"note": note})


def made_impact(path: Path) -> RunFolder:
    told = {
        **made.EXPLAINED,
        **explanations([("spearman", "pairs"), ("accuracy", "labels"), ("recall_1", "seek")]),
    }
    asked = {"model": "m", "repairs": ["centre", "whiten:4"]}
    folder = open_run(path, Run("impact", "m", asked, told))
    rows = frame(impact_rows())
    for layer in (0, 2):
        folder.write(f"layer.{layer}", rows[rows["layer"] == layer], {"notes": ["a remark"]})
    return folder


def made_advice(path: Path) -> RunFolder:
    random = torch.Generator().manual_seed(0)
    points = torch.randn(300, 16, generator=random) + 1
    points[:, 3] *= 4
    run = new_run("advise", "vectors.npy", {"file": "vectors.npy"}, choose([*GEOMETRY, "mean_norm"]))
    told = {**run.measures, **OF_ADVICE}
    folder = open_run(path, Run("advise", run.title, run.question, told, run.versions))
    found = advise(halves([(points, None)]))
    folder.write("advice", found.rows, {"notes": list(found.notes)})
    return folder


def made_block(path: Path) -> RunFolder:
    setting = block.Setting(width=32, heads=2, length=16, sequences=8, passes=2)
    folder = open_run(path, block.run_of(setting))
    list(block.make(setting, block.units(["post", "pre"], (0.0, 20.0, 200.0), 3), folder))
    return folder


def made_paper(path: Path) -> RunFolder:
    """Claims that agree, that contradict and that leave it open, in turn."""
    paper = paper_of("godey2024")
    run = new_run("reproduce", paper.title, {"paper": paper.name, "scale": "laptop"}, MEASURES)
    folder = open_run(path, run)
    for at, (name, case) in enumerate(CASES.items()):
        rows = (case.agree, case.contradict, case.undecided)[at % 3]
        folder.write(name, rows, {"title": name, "notes": ["a remark with `code`"]})
    return folder


def made_measure(path: Path) -> RunFolder:
    folder = open_run(path, new_run("measure", BERT, {"model": BERT}, MEASURES))
    rows = [*made.layered(BERT, depth=7), *made.attended(BERT, heads=2, depth=2)]
    folder.write(BERT, rows, {"notes": ["a note"]}, pictures().drop(columns="unit"))
    return folder


def folder_of(path: Path, kind: str) -> RunFolder:
    """A run folder of this kind, of planted numbers, or of a real run where that takes a second."""
    match kind:
        case "measure":
            return made_measure(path / kind)
        case "train":
            return planted(path, "training")
        case "sweep":
            twin = {8: [made_sweep.finding(8)]}
            return made_sweep.a_sweep(path, findings=twin, failed={128: "gone"}, weights=True)
        case "block":
            return made_block(path / kind)
        case "reproduce":
            return made_paper(path / kind)
        case "impact":
            return made_impact(path / kind)
        case "advise":
            return made_advice(path / kind)
        case _:
            return planted(path, kind)


_KEPT: dict[str, RunFolder] = {}


def folder_once(factory: pytest.TempPathFactory, kind: str) -> RunFolder:
    """The same, made once for all tests: nobody writes to it but its page."""
    if kind not in _KEPT:
        _KEPT[kind] = folder_of(factory.mktemp(kind), kind)
    return _KEPT[kind]


FIRST = {  # dots and curves of the first figure, by what was planted
    "measure": (7 + 1, 3),  # seven layers and the output; beside them the papers' number, and the null
    "compare": (2 * 8, 3),
    "weights": (6 * 12 + 1, 0),  # every head, and the ring of the one that is picked
    "sweep": (4 * 11 + 4, 4 + 1 + 4),  # four layers and the jump of each; lines, null, intervals of the jumps
    "train": (5 * 7, 5 + 1),
    "contrast": (1, 0),
    "block": (2 * 3, 2),  # two norms of three biases
    "reproduce": (7 * 5, 7),
    "impact": (2 * 2 + 1, 2),  # two arrows, and what they leave from
    "advise": (7, 7 * 3),  # medians, and bars of three widths
}
DRAWN = """(node) => {
    const held = (name, value) => {
        const axis = node._fullLayout[name.replace(/^[xy]/, "$&axis")];
        return axis.type === "category" ? value !== null : Number.isFinite(axis.d2l(value ?? undefined));
    };
    const there = node._fullData.filter((one) => one.visible === true);
    const dots = there.filter((one) => one.mode?.includes("markers"));
    const lines = [...node.querySelectorAll(".scatterlayer .js-line")];
    return {
        label: node.ariaLabel ?? "",
        planned: dots.flatMap((one) =>
            [...one.x].filter((x, i) => held(one.xaxis, x) && held(one.yaxis, one.y[i]))).length,
        dots: node.querySelectorAll(".scatterlayer .points path.point").length,
        lines: lines.filter((one) => one.getAttribute("d")).length,
        maps: there.filter((one) => one.type === "heatmap").length,
        images: node.querySelectorAll(".heatmaplayer image").length,
    };
}"""

FOCUSABLE = """() => [...document.querySelectorAll(
    "a[href], button, input, select, summary, [tabindex='0']")].filter(
    (one) => one.checkVisibility() && !one.closest("details:not([open]) > :not(summary)"))"""
KEYS = "(at) => [...document.querySelectorAll('.rows tbody tr')].map((row) => row.cells[at].dataset.key)"


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def file(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = folder_once(tmp_path_factory, kind)
    return folder.write_page(page_of(folder))


@pytest.fixture(scope="module")
def opened(file: Path, browser: Any) -> Iterator[Opened]:
    """One page for all that is asked of its kind: a page takes two seconds to open."""
    page = Opened(browser, file)
    page.unfold()
    yield page
    page.context.close()


@pytest.fixture(autouse=True)
def silent_and_alone(opened: Opened, file: Path) -> Iterator[None]:
    """Whatever a test does to the page, the page complains of nothing and asks for nothing."""
    yield
    assert opened.complaints == []
    assert {url.partition("#")[0] for url in opened.asked} == {file.as_uri()}


def seen(opened: Opened, width: int, scheme: str) -> None:
    """Show it on such a screen."""
    opened.page.set_viewport_size({"width": width, "height": 800})
    opened.page.emulate_media(color_scheme=scheme)
    opened.page.wait_for_function(
        "() => [...document.querySelectorAll('.plot')].every((one) => one.closest('[hidden]') || "
        "Math.abs(one._fullLayout.width - one.clientWidth) < 1)"
    )


def test_every_mark_of_every_figure_is_drawn(opened: Opened, kind: str) -> None:
    drawn = opened.page.locator(".plot").evaluate_all(f"all => all.map({DRAWN})")
    assert (drawn[0]["dots"], drawn[0]["lines"]) == FIRST[kind]
    for figure in drawn:
        assert figure["dots"] == figure["planned"], figure
        assert figure["images"] == figure["maps"], figure
        assert figure["dots"] + figure["lines"] + figure["images"] > 0, figure
        assert figure["label"], figure


def test_all_that_can_be_used_is_reached_by_tabs_and_by_enter(opened: Opened) -> None:
    page = opened.page
    wanted = page.evaluate(f"({FOCUSABLE})().length")
    groups = opened.count("fieldset")  # of radio buttons one is reached, the others by arrows
    page.evaluate("() => { scrollTo(0, 0); window.reached = new Set(); }")
    page.evaluate(  # Tab starts from the top, wherever another test has clicked
        "() => { const b = document.body; b.tabIndex = -1; b.focus(); b.removeAttribute('tabindex'); }"
    )
    page.evaluate("document.addEventListener('focusin', ({ target }) => reached.add(target))")
    for _ in range(wanted - groups):
        page.keyboard.press("Tab")
    assert page.evaluate("reached.size") == wanted - groups
    summary = page.locator(".explained summary").first
    summary.focus()
    page.keyboard.press("Enter")
    assert page.locator(".explained dl").first.is_visible()
    page.keyboard.press("Enter")
    link = page.locator("nav a, .claims a").last
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{link.get_attribute('href')}")  # the address follows the key with a delay


def test_the_table_sorts_and_filters(opened: Opened, kind: str) -> None:
    page = opened.page
    if kind == "reproduce":
        assert opened.count("table.rows") == 0  # its rows are left in their files
        return
    heading = page.locator("th", has=page.get_by_role("button", name="value", exact=True))
    column = heading.evaluate("(one) => one.cellIndex")
    for sign in (1, -1):
        heading.get_by_role("button").click()
        keys = [float(key) for key in page.evaluate(KEYS, column) if key]
        assert keys == sorted(keys, key=lambda key: sign * key) and len(set(keys)) > 1
    shown = page.locator("table.rows tbody tr:visible")
    every = shown.count()
    word = re.split(r"\W+", page.locator("table.rows tbody tr").first.inner_text())[0]
    page.get_by_label("Filter").fill(f"{word} zzz")
    assert shown.count() == 0
    page.get_by_label("Filter").fill(word)
    assert 0 < shown.count() <= every
    assert page.locator(".tools output").inner_text() == f"{shown.count()} of {every} rows"
    page.get_by_label("Filter").fill("")
    assert shown.count() == every


@pytest.mark.parametrize(
    ("width", "scheme"), [(360, "dark"), *nightly((1280, "light"), (1280, "dark"), (360, "light"))]
)
def test_it_fits_the_screen_in_its_colours(opened: Opened, width: int, scheme: str) -> None:
    seen(opened, width, scheme)
    page = opened.page
    assert page.evaluate("document.documentElement.scrollWidth") == width
    paper = brightness(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    ticks = page.locator(".plot .xtick text").evaluate_all(
        "all => all.map((one) => getComputedStyle(one).fill)"
    )
    assert ticks and all((brightness(each) > 120) == (scheme == "dark") for each in ticks)
    assert (paper < 40) if scheme == "dark" else (paper > 240)


@pytest.mark.parametrize(
    ("width", "scheme"), [(360, "dark"), *nightly((1280, "light"), (360, "light"), (1280, "dark"))]
)
def test_axe_finds_nothing_serious(opened: Opened, width: int, scheme: str) -> None:
    seen(opened, width, scheme)
    # plotly draws .main-svg; of a table of a thousand lines six will do, in a tenth of the time
    assert violations(opened.page, ".main-svg, tbody tr:nth-child(n+7)") == []

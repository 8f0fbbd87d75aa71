"""Every kind of run is in one table: its page, terminal output, figures and explanations."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import isoscope
from isoscope.cli.main import main
from isoscope.errors import IsoscopeError
from isoscope.kinds import table
from isoscope.kinds.report import figures, page_of, screen_of
from isoscope.kinds.screen import Table
from isoscope.kinds.table import KINDS, Kind, kind_of, named
from isoscope.measures.table import MEASURES
from isoscope.results.reading import Reading
from isoscope.results.row import Row
from isoscope.results.run import Run
from isoscope.results.store import RunFolder, open_run
from isoscope.run.monitor.own import OWN
from isoscope.run.weigh.weighed import weight_measures
from tests.golden import runs
from tests.golden.keep import unpacked
from tests.test_layers import imported_names

TOY = {
    "shown.py": "from isoscope.show.charts import Chart, Series\n"
    "from isoscope.show.figures.panels import Panel\n"
    "from isoscope.show.measures import Family\n"
    "from isoscope.show.page.content import Content\n"
    "from isoscope.show.page.section import Section\n"
    "CHART = Chart('toys', 'toy', 'number', [Series('toy', [1.0, 2.0], [1.0, 2.0])])\n"
    "def content_of(folder):\n"
    "    sections = [Section('toys', Family('Toys', 'How many?', ()), [Panel((), 'toys', '', CHART)])]\n"
    "    return Content(sections, lambda: f'<p>{folder.frame().value.sum():g} toys</p>')\n"
    "from isoscope.kinds.screen import Screen, Table, headed\n"
    "def screen_of(folder, width):\n"
    "    table = Table(headed(('toy',), ('value',)), (('ball', '3'),))\n"
    "    return Screen((table, 'Toys are counted.'))\n",
    "explained.py": "EXPLANATIONS = {'toys': {'title': 'number of toys'}}\n",
    "__init__.py": "",
}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """A run of a kind that one folder and one line of the table add."""
    for name, text in TOY.items():
        (tmp_path / "toys").mkdir(exist_ok=True)
        (tmp_path / "toys" / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    line = Kind("toy", "toys.shown", "toys.explained:EXPLANATIONS")
    monkeypatch.setattr(table, "KINDS", (*KINDS, line))
    folder = open_run(tmp_path / "run", Run("toy", "toys", {}, {}))
    folder.write("one", [Row.at("", "m", "", None, "cloud", None, None, "toys", Reading(3.0, 1))], {})
    return folder


def test_a_line_of_the_table_adds_a_kind(
    toy: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert page_of(toy) == "<p>3 toys</p>"
    assert isinstance(screen_of(toy).shown[0], Table)
    assert kind_of("toy").explains()["toys"]["title"] == "number of toys"
    assert figures(toy)["toys"].bytes("svg").startswith(b"<?xml")
    monkeypatch.setattr(sys, "argv", ["isoscope", "report", str(toy.path)])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    told = capsys.readouterr().out
    assert "ball" in told and "Toys are counted." in told and "page: " in told
    assert (toy.path / "report.html").read_text() == "<p>3 toys</p>"


def test_a_kind_that_is_not_in_the_table_is_shown_as_any_measured_run(toy: RunFolder) -> None:
    other = replace(toy, run=replace(toy.run, kind="of another day"))
    assert kind_of("of another day") == Kind("of another day")
    assert "3.000" in str(screen_of(other).shown[0])
    assert "<!doctype html>" in page_of(other)[:40].lower()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_name_of_the_table_is_there(kind: Kind) -> None:
    assert all(callable(named(f"{kind.home}:{each}")) for each in ("content_of", "screen_of"))
    assert all(told["title"] for told in kind.explains().values())


@pytest.mark.parametrize("home", sorted({kind.home for kind in KINDS}))
def test_what_shows_a_kind_does_not_ask_the_table_which_names_it(home: str) -> None:
    file = Path(str(importlib.import_module(home).__file__))
    files = [file] if file.parent.name == "kinds" else file.parent.glob("*.py")
    names = {name for each in files for name in imported_names(each.read_text())}
    asked = ("isoscope.kinds.table", "isoscope.kinds.report")
    assert names and not [name for name in names if name.startswith(asked)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("kind", runs.COMMANDS)
def test_report_writes_what_the_command_writes(kind: str) -> None:
    folder = unpacked(kind)
    runs.call("report", str(folder.path))
    files = [file for file in folder.path.rglob("*") if file.suffix in (".html", ".svg", ".pdf")]
    written = {file: file.read_bytes() for file in files}
    assert folder.path / "report.html" in written
    for file in written:
        file.unlink()
    assert isoscope.report(folder.path) == folder.path / "report.html"
    assert {file: file.read_bytes() for file in written} == written
    apart = isoscope.report(folder, Path("other") / "page.html")
    assert apart.read_bytes() == written[folder.path / "report.html"]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("kind", runs.COMMANDS)
def test_every_number_is_explained_by_a_measure_or_by_its_kind(kind: str) -> None:
    folder = unpacked(kind)
    rows: pd.DataFrame = folder.frame()
    told = {measure.name for measure in (*MEASURES, *weight_measures())}
    told |= set(kind_of(folder.run.kind).explains())
    own = set(rows[rows["kind"] == OWN]["measure"])  # numbers of the loop, explained in each unit
    found = {name for name in rows["measure"] if name not in told | own}
    tasks = {name for name in found if kind == "impact" and name.split(".")[0] in told}
    assert found - tasks <= {"changes"}  # a row that says why no change was looked for


def test_a_report_of_nothing_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(IsoscopeError, match="is no run folder"):
        isoscope.report(tmp_path)


def test_an_observation_has_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    seen = isoscope.describe(torch.randn(64, 8), name="<cloud>")
    page = seen.report(tmp_path / "deep" / "page.html")
    text = page.read_text()
    assert "&lt;cloud&gt;" in text and "Mean cosine" in text
    assert isoscope.report(seen, tmp_path) == tmp_path / "report.html"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "report.html").unlink()
    assert isoscope.report(seen).resolve() == tmp_path / "report.html"
    (tmp_path / "file").write_text("")
    with pytest.raises(IsoscopeError, match="cannot write to"):
        seen.report(tmp_path / "file" / "page.html")


def test_public_names_are_few_and_there() -> None:
    assert len(isoscope.__all__) <= 25
    assert all(getattr(isoscope, name) is not None for name in isoscope.__all__)

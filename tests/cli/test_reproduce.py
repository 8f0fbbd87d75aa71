"""`isoscope reproduce`: claims are tried, judged and shown, made once, and the page can be made again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from isoscope.cli.main import app
from isoscope.errors import IsoscopeError
from isoscope.papers import scales
from isoscope.results.store import read_run
from tests.papers.cases import tiny_workshop

CLAIMS = "untrained-block,scores-and-entropy"


def run(*words: str) -> str:
    told = CliRunner().invoke(app, list(words), catch_exceptions=True)
    if told.exception is not None and not isinstance(told.exception, SystemExit):
        raise told.exception
    return told.output


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reproduce")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scales, "SCALES", (tiny_workshop(folder).scale,))
        told = run(
            *("reproduce", "godey2024", "--scale", "tiny", "--claims", CLAIMS, "--seeds", "3"),
            *("--device", "cpu", "--out", str(folder / "run")),
        )
    assert "as expected" in told or "undecided" in told
    assert "page: " in told
    return folder


def test_a_folder_has_a_unit_a_claim_the_page_figures_and_the_models(made: Path) -> None:
    folder = read_run(made / "run")
    assert folder.run.kind == "reproduce"
    assert sorted(folder.units()) == sorted(CLAIMS.split(","))
    assert (made / "run" / "figures" / "untrained-block.svg").stat().st_size > 1000
    assert len(list((made / "models").iterdir())) == 3
    page = (made / "run" / "report.html").read_text()
    for words in (
        "A common bias sharpens an untrained block",
        "Expected.",
        "How it was done.",
        "Not reproduced",
    ):
        assert words in page
    assert page.count('class="plot"') > 6


def test_the_page_is_made_again_from_rows_alone(made: Path) -> None:
    page = made / "run" / "report.html"
    before = page.read_text()
    page.unlink()
    assert "page: " in run("report", str(made / "run"))
    assert page.read_text() == before


def test_json_has_verdicts_and_rows(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scales, "SCALES", (tiny_workshop(made).scale,))
    told = json.loads(
        run(
            *("reproduce", "godey2024", "--scale", "tiny", "--claims", CLAIMS, "--seeds", "3", "--json"),
            *("--device", "cpu", "--out", str(made / "run")),
        )
    )
    assert {each["claim"] for each in told["verdicts"]} == set(CLAIMS.split(","))
    assert len(told["rows"]) == len(read_run(made / "run").frame())


def test_names_that_do_not_exist_are_told(tmp_path: Path) -> None:
    with pytest.raises(IsoscopeError, match="no paper is called 'godey'; did you mean 'godey2024'"):
        run("reproduce", "godey")
    with pytest.raises(IsoscopeError, match="no scale is called 'big'"):
        run("reproduce", "godey2024", "--scale", "big")
    with pytest.raises(IsoscopeError, match="did you mean 'untrained-block'"):
        run("reproduce", "godey2024", "--claims", "untrained-blok", "--out", str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_where_nothing_can_be_drawn_verdicts_are_told_all_the_same(made: Path) -> None:
    code = (
        "import sys; sys.modules['plotly'] = sys.modules['matplotlib'] = None; "
        f"sys.argv = ['isoscope', 'report', {str(made / 'run')!r}]; "
        "from isoscope.cli.main import main; main()"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "2 claims" in told.stdout
    assert "page: " not in told.stdout
    assert "no page was written: plotly" in told.stderr
    assert "no figure was written: matplotlib" in told.stderr

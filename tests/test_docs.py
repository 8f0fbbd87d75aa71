"""Documentation runs: every Python block and every command in README and docs.

Models of the hub are asked of a hub on loopback, which has a tiny one under each of their names.
"""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from isoscope.cli.main import app
from isoscope.sweeps.find.patterns import PYTHIA_SCHEDULE, expand
from tests.documented import LESS, PAGES, ROOT, blocks, lines
from tests.sweeps.pointed import COMMANDS, Pointed, pointed
from tests.sweeps.trajectory import walk

RUN = """
import os, sys
from pathlib import Path
from tests.documented import run_page
os.chdir(sys.argv[2])
run_page(Path(sys.argv[1]))
"""
HUB_ID = re.compile(r"\b(?:sentence-transformers|google-bert|EleutherAI|allenai)/[\w.-]+")
LANGUAGES = ("python", "sh", "text", "{toctree}")
RESULTS = sorted((ROOT / "docs" / "results").glob("*.md"))


@pytest.fixture(scope="module")
def there(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pointed]:
    """A hub with a tiny model for every hub id in the documentation, and a process that is pointed at it."""
    place = tmp_path_factory.mktemp("hub")
    few = walk(place, [0, 1000, 2000, 3000])
    steps = {name: few[at % len(few)] for at, name in enumerate(expand(PYTHIA_SCHEDULE))}
    with pointed(place, "tests.documented", *COMMANDS) as found:
        found.hub.models |= {
            "sentence-transformers/all-MiniLM-L6-v2": {"main": tiny_bert},
            "google-bert/bert-base-uncased": {"main": tiny_bert},
            "EleutherAI/pythia-70m": {**steps, "main": few[-1]},
            "EleutherAI/pythia-160m": {**steps, "main": few[-1]},
            "allenai/OLMo-1B-hf": {path.name: path for path in few},
        }
        yield found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_runs(page: Path, there: Pointed, tmp_path: Path) -> None:
    code = "".join(code for language, code in blocks(page) if language in ("python", "sh"))
    if not code:
        return
    (tmp_path / "here").mkdir()
    before = len(there.hub.asked)
    running = there.run(tmp_path, RUN, page, tmp_path / "here")
    ended = running.ended()
    assert ended == 0, (tmp_path / "err").read_text()[-3000:]
    asked = " ".join(path for _, path in there.hub.asked[before:])
    assert {name for name in HUB_ID.findall(code) if name not in asked} == set()


@pytest.mark.parametrize("page", [*PAGES, *RESULTS], ids=lambda page: page.name)
def test_what_is_only_shown_is_no_command_or_is_understood(page: Path) -> None:
    verbs = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for language, code in blocks(page):
        assert language in LANGUAGES, f"a block of {page.name} is '{language}', which is not run and no text"
        shown = [line for line in lines(code) if line.startswith("isoscope ")] if language == "text" else []
        assert not shown or page in RESULTS, f"{page.name} shows '{shown[0]}' and does not run it"
        for line in shown:  # how a result was made, with its data and hours of a GPU
            verb, *words = shlex.split(line)[1:]
            verbs[verb].make_context(verb, words)  # an option that is not there is an error


def test_what_is_run_with_less_is_in_a_page() -> None:
    run = [code for page in PAGES for language, code in blocks(page) if language == "sh"]
    every = [line for code in run for line in lines(code)]
    assert [start for start in LESS if not any(line.startswith(start) for line in every)] == []


def test_a_block_that_fails_fails(there: Pointed, tmp_path: Path) -> None:
    for name, block in (("verb", "sh\nisoscope mesure"), ("code", "python\n1 / 0"), ("other", "sh\nls")):
        page = tmp_path / f"{name}.md"
        page.write_text(f"```{block}\n```\n")
        assert there.run(tmp_path / name, RUN, page, tmp_path).ended() != 0


def test_the_map_of_packages_is_that_of_the_source() -> None:
    written = runpy.run_path(str(ROOT / "docs" / "packages.py"))["page"]()
    assert (ROOT / "docs" / "design.md").read_text() == written, "run `make docs`"


def test_the_page_of_measures_is_that_of_the_table() -> None:
    written = runpy.run_path(str(ROOT / "docs" / "measures.py"))["measures"]()
    assert (ROOT / "docs" / "measures.md").read_text() == written, "run `make docs`"


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    for needed in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(needed, reason=f"needs {needed}")
    asked = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "docs", str(tmp_path / "site")]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "results" / "sharpness-without-drift.html").exists()


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"

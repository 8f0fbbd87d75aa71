"""Documentation runs: every Python block and every command in README and docs, and the tree is the tree.

Hub ids in the documentation are found in a cache that holds a tiny model of that name.
"""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from isoscope.cli.main import main
from isoscope.measures.table import MEASURES

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted(page for page in (ROOT / "docs").glob("*.md") if page.name != "training.md"),
]  # docs/training.md is run by tests/integrations/test_docs_training.py
COMMIT = "0" * 40


def blocks(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"^```([\w{}]*)\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def hub(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache as the hub's client keeps it, with a tiny model for every hub id in the documentation."""
    cache = tmp_path_factory.mktemp("hub")
    names = {
        name for page in PAGES for name in re.findall(r"sentence-transformers/[\w.-]+", page.read_text())
    }
    for name in names:
        home = cache / f"models--{name.replace('/', '--')}"
        (home / "refs").mkdir(parents=True)
        (home / "refs" / "main").write_text(COMMIT)
        (home / "snapshots").mkdir()
        (home / "snapshots" / COMMIT).symlink_to(tiny_bert)
    return cache


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_runs(page: Path, hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(hub))
    monkeypatch.setattr("huggingface_hub.file_download.HF_HUB_CACHE", str(hub), raising=False)
    for language, code in blocks(page):
        match language:
            case "python":
                # the tiny model of the tests takes 64 tokens
                exec(compile(code.replace("max_length=256", "max_length=64"), str(page), "exec"), {})
            case "sh":
                for line in code.strip().splitlines():
                    run(line.replace("--max-length 128", "--max-length 64"), monkeypatch)
            case "text" | "{toctree}":
                continue
            case _:
                pytest.fail(f"a block of {page.name} says no language that is run or is text: '{language}'")


def run(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(line)
    if words[0] == "make":  # that the target is there; running it here would never end
        subprocess.run(["make", "--dry-run", *words[1:]], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return
    assert words[0] == "isoscope", f"'{line}' is no command of this project"
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code, line


def test_the_tree_in_the_readme_is_the_tree() -> None:
    tree = (ROOT / "README.md").read_text().split("## The tree")[1]
    told = set(re.findall(r"[\w]+\.py\b", tree))
    there = {file.name for file in (ROOT / "src" / "isoscope").rglob("*.py")}
    assert told == there


def test_the_page_of_measures_is_that_of_the_table() -> None:
    written = runpy.run_path(str(ROOT / "docs" / "measures.py"))["measures"]()
    assert (ROOT / "docs" / "measures.md").read_text() == written, "run `make docs`"


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    asked = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "docs", str(tmp_path / "site")]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "results" / "sharpness-without-drift.html").exists()


def test_the_changelog_counts_the_measures() -> None:
    assert len(MEASURES) == 90
    assert "Ninety measures" in (ROOT / "CHANGELOG.md").read_text()


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"

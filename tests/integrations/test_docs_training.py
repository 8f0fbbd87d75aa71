"""Every block of docs/training.md runs, each alone, and the runs that it keeps hold rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from isoscope.results.store import read_run

PAGE = Path(__file__).parents[2] / "docs" / "training.md"
BLOCKS = dict(
    re.findall(
        r"^## (.*)\n(?:(?!^##|^```).*\n)*```python\n((?:(?!^```).*\n)*)", PAGE.read_text(), re.MULTILINE
    )
)
NEEDS = {
    "The Trainer of transformers": ("accelerate",),
    "Lightning": ("lightning",),
    "Dashboards": ("tensorboard",),
}


@pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.* is deprecated")  # inside Lightning
@pytest.mark.filterwarnings("ignore:.*does not have many workers")
@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true but no accelerator")
@pytest.mark.parametrize("title", BLOCKS)
def test_the_block_runs(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for needed in NEEDS.get(title, ()):
        pytest.importorskip(needed, reason=f"needs {needed}")
    monkeypatch.chdir(tmp_path)
    exec(compile(BLOCKS[title], str(PAGE), "exec"), {"__name__": "training"})
    named = re.findall(r'out="(.*?)"', BLOCKS[title])
    for out in named:
        rows = read_run(out).frame()
        assert rows.step.min() == 0
        assert rows.step.nunique() > 5  # a run that was seen once shows nothing of its training
        assert rows.value.notna().any()
    assert named or title == "Dashboards"


def test_every_block_is_found() -> None:
    assert list(BLOCKS) == ["A plain loop", "The Trainer of transformers", "Lightning", "Dashboards"]
    assert len(BLOCKS) == PAGE.read_text().count("```python")


@pytest.mark.parametrize("title", [title for title in BLOCKS if title != "Dashboards"])
def test_it_is_three_lines(title: str) -> None:
    ours = [
        line for line in BLOCKS[title].splitlines() if re.search(r"isoscope|Isoscope|[Mm]onitor|watch", line)
    ]
    assert len([line for line in ours if not line.startswith("print")]) == 3

"""`isoscope sweep` over planted faults, and over a hub on loopback within a budget."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from isoscope.results.store import read_run
from tests.conftest import Answer
from tests.sweeps.pointed import Pointed, Running, pointed
from tests.sweeps.test_shelf import on_disk
from tests.sweeps.trajectory import copied, walk

Call = Callable[..., Answer]
FEW = ("--measures", "mean_norm", "--limit", "8", "--max-length", "16", "--no-counterfactual", "--workers=0")
STEPS = [*range(0, 120, 10)]
USED = (
    "isoscope.cli.sweep",
    "isoscope.kinds.sweep.make",
    "isoscope.cli.screen.finish",
    "isoscope.sweeps.verify.verify",
    "isoscope.show.page.page",
)
SWEEP = """
import sys
from isoscope.cli.main import main
main()
"""


def marked(out: Path, unit: str) -> str:
    """The findings that are kept with a unit, and the reason of one that failed."""
    folder = read_run(out)
    rows, facts = folder.frame(unit), folder.known(unit)
    assert len(rows)
    assert not any(one["words"] in note for one in facts["findings"] for note in rows.note)
    words = [one["words"] for one in facts["findings"]]
    return " | ".join(filter(None, [*words, str(facts.get("failed", ""))]))


def planted(folder: Path) -> dict[str, str]:
    """Sharded checkpoints, six of them with a fault; and the words by which each is to be told."""
    paths = {step: path for step, path in zip(STEPS, walk(folder, STEPS, shards="20KB"), strict=True)}
    copied(paths[90], paths[20])  # a late one under an early name, and so identical under two steps
    shards = sorted(paths[30].glob("*.safetensors"))
    shards[0].write_bytes(shards[0].read_bytes()[:-10])
    lost = sorted(paths[40].glob("*.safetensors"))[1]
    lost.unlink()
    said = json.loads((paths[50] / "config.json").read_text())
    (paths[50] / "config.json").write_text(json.dumps(said | {"layer_norm_eps": 0.5}))
    (where,) = (f for f in paths[70].glob("*.safetensors") if "pooler.dense.bias" in load_file(f))
    weights = load_file(where)
    weights["pooler.dense.bias"][3] = torch.nan
    save_file(weights, where, metadata={"format": "pt"})
    return {
        "step20": "as those of step90",
        "step30": f"{shards[0].name} is cut short",
        "step40": f"the shard {lost.name} of 'step40' is missing",
        "step50": "layer_norm_eps 0.5 instead of 1e-12",
        "step90": "as those of step20",
        "step70": "pooler.dense.bias has 1 NaN",
    }


def test_planted_faults_are_in_the_table_and_in_the_rows(isoscope: Call, tmp_path: Path) -> None:
    told = planted(tmp_path / "models")
    out = tmp_path / "run"
    answer = isoscope("sweep", tmp_path / "models", *FEW, "--out", out)
    assert answer.code == 0, answer.err
    table = " ".join(answer.err.split())
    assert "6 of 12 checkpoints are not what they should be" in table
    for unit, words in told.items():
        assert unit in table
        assert words in marked(out, unit), unit
    assert "out of order" in table and "far from those of step10" in marked(out, "step20")
    assert not marked(out, "step0") and not marked(out, "step10")
    rows = read_run(out).frame()
    failed = set(rows[rows.measure == "failed"].step)
    assert failed == {30, 40}  # the rest can be measured, and says what is wrong
    assert set(rows[rows.measure == "mean_norm"].step) == {*STEPS} - {30, 40}


def test_strict_stops_before_anything_is_measured(isoscope: Call, tmp_path: Path) -> None:
    planted(tmp_path / "models")
    answer = isoscope("sweep", tmp_path / "models", *FEW, "--strict", "--out", tmp_path / "run")
    assert answer.code == 2 and "6 of 12 checkpoints are not what they should be" in " ".join(
        answer.err.split()
    )
    assert not list((tmp_path / "run" / "rows").glob("*.parquet"))


def swept(isoscope: Call, models: Path, out: Path, *more: str) -> str:
    """What a sweep says, on one line."""
    answer = isoscope("sweep", models, *FEW, *more, "--out", out)
    assert answer.code == 0, answer.err
    return " ".join(answer.err.split())


def test_a_config_that_changes_after_measuring_is_found(isoscope: Call, tmp_path: Path) -> None:
    models, out = tmp_path / "models", tmp_path / "run"
    path = walk(models, [0, 10, 20, 30])[2]
    assert "not what they should be" not in swept(isoscope, models, out)
    said = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(said | {"layer_norm_eps": 0.5}))
    before = read_run(out).frame("step20").value.tolist()
    told = swept(isoscope, models, out)
    assert "layer_norm_eps 0.5 instead of 1e-12" in told
    assert "1 of 4 checkpoints measured" in told and "3 were there already" in told
    assert read_run(out).frame("step20").value.tolist() != before
    assert "layer_norm_eps 0.5 instead of 1e-12" in marked(out, "step20")
    (path / "config.json").write_text(json.dumps(said))
    assert "not what they should be" not in swept(isoscope, models, out) and not marked(out, "step20")


def test_a_fault_is_todays(isoscope: Call, tmp_path: Path) -> None:
    """Cut short, then gone: neither has a digest, and each is told while it lasts."""
    models, out = tmp_path / "models", tmp_path / "run"
    file = walk(models, [0, 10, 20, 30])[2] / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-100])
    assert "is cut short" in swept(isoscope, models, out)
    file.unlink()
    told = swept(isoscope, models, out)
    assert "holds no weights: looked for" in told and "cut short" not in told
    assert "cut short" not in marked(out, "step20")
    file.write_bytes(whole)
    assert "all are in order" in swept(isoscope, models, out) and not marked(out, "step20")


@pytest.mark.parametrize(
    ("names", "line", "page"),
    [
        (
            ["step0"],
            "1 checkpoint: it is not broken",
            "Checkpoints measured: 1; nothing wrong was found in their files",
        ),
        (
            ["step0", "step10", "step20"],
            "3 checkpoints: no two are the same, none is broken",
            "3 checkpoints: ",
        ),
        (["a", "b", "c", "d"], "4 checkpoints: no two are the same, none is broken", "4 checkpoints: "),
        (["0", "1", "2", "3"], "4 checkpoints: no two are the same, none is broken, all are in order", "4 "),
    ],
    ids=["one", "few", "no steps", "enough"],
)
def test_order_is_claimed_where_it_can_be_known(
    isoscope: Call, tmp_path: Path, names: list[str], line: str, page: str
) -> None:
    models, out = tmp_path / "models", tmp_path / "run"
    for name, path in zip(names, walk(tmp_path / "made", [0, 10, 20, 30]), strict=False):
        copied(path, models / name)
    answer = isoscope("sweep", models, *FEW, "--out", out)
    assert answer.code == 0, answer.err
    assert line in [each.strip() for each in answer.err.splitlines()]
    text = " ".join((out / "report.html").read_text().split())
    assert page in text and ("none is out of order" in text) == ("in order" in line)
    assert ("no two are the same" in text) == (len(names) > 1)


def test_an_adapter_is_told_from_a_model(isoscope: Call, tmp_path: Path) -> None:
    models, out = tmp_path / "models", tmp_path / "run"
    walk(models, [0, 10])
    (models / "step20").mkdir()
    (models / "step20" / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    save_file({"lora_A.weight": torch.ones(4, 8)}, models / "step20" / "adapter_model.safetensors")
    assert "merge it into its model first" in swept(isoscope, models, out)
    assert "step20 holds an adapter (adapter_config.json) and no model" in marked(out, "step20")


def ended(running: Running, look: Callable[[], None] = lambda: None, *, code: int = 0) -> None:
    while not running.is_dead():
        look()
        time.sleep(0.002)
    assert running.ended() == code, (running.folder / "err").read_text()


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pointed]:
    with pointed(tmp_path_factory.mktemp("hub"), *USED) as found:
        yield found


@pytest.mark.nightly
def test_a_hub_within_a_disk_budget(there: Pointed, tmp_path: Path) -> None:
    """Twelve checkpoints of .8 MB through 2 MB; a late one under an early name is found."""
    paths = walk(tmp_path / "models", STEPS, width=128)
    copied(paths[9], paths[2])
    there.hub.models["owner/tiny"] = {path.name: path for path in paths}
    there.hub.seconds, there.hub.piece = 0.002, 65_536
    out, budget = tmp_path / "run", 2_000_000
    which = ("--revisions", "step{0..110:10}", "--disk-budget", "2MB")
    words = ("sweep", "owner/tiny", *which, *FEW, "--out", out)
    running = there.run(tmp_path / "said", SWEEP, *words)
    sizes = [0]
    ended(running, lambda: sizes.append(on_disk(out / "shelf")))
    assert sum(on_disk(path) for path in paths) > 2 * budget
    assert 1_000_000 < max(sizes) <= budget
    assert not (out / "shelf").exists()
    rows = read_run(out).frame()
    assert set(rows[rows.measure == "mean_norm"].step) == {*STEPS}
    assert not len(rows[rows.measure == "failed"])
    assert "as those of step90" in marked(out, "step20") and "as those of step20" in marked(out, "step90")
    assert "far from those of step10" in marked(out, "step20")  # once the files were there
    assert not marked(out, "step30")
    fetched = [name.split("/")[1] for name in there.hub.files()]
    assert fetched.count("model.safetensors") == 12 and "pytorch_model.bin" not in fetched
    again = len(there.hub.files())
    running = there.run(tmp_path / "said", SWEEP, *words)
    ended(running)
    assert len(there.hub.files()) == again  # nothing is fetched twice


@pytest.mark.nightly
def test_a_config_that_changes_on_the_hub_is_found(there: Pointed, tmp_path: Path) -> None:
    """The weights are the same, and what was found in the files is not taken for what is there now."""
    paths = walk(tmp_path / "models", [0, 10, 20, 30])
    there.hub.models["owner/changing"] = {path.name: path for path in paths}
    there.hub.seconds = 0.0
    out = tmp_path / "run"
    words = ("sweep", "owner/changing", "--all-revisions", *FEW, "--out", out)
    ended(there.run(tmp_path / "said", SWEEP, *words))
    assert not marked(out, "step20")
    said = json.loads((paths[2] / "config.json").read_text())
    (paths[2] / "config.json").write_text(json.dumps(said | {"layer_norm_eps": 0.5}))
    ended(there.run(tmp_path / "said", SWEEP, *words))
    assert "layer_norm_eps 0.5 instead of 1e-12" in marked(out, "step20")


@pytest.mark.nightly
def test_a_checkpoint_that_never_fits_is_a_row_with_its_reason(there: Pointed, tmp_path: Path) -> None:
    paths = walk(tmp_path / "models", [0, 10])
    (paths[1] / "vocab.txt").write_bytes(b"0" * 3_000_000)
    there.hub.models["owner/uneven"] = {path.name: path for path in paths}
    there.hub.seconds = 0.0
    out = tmp_path / "run"
    words = ("sweep", "owner/uneven", "--all-revisions", *FEW, "--disk-budget", "1MB", "--out", out)
    running = there.run(tmp_path / "said", SWEEP, *words)
    ended(running)
    rows = read_run(out).frame()
    assert set(rows[rows.measure == "mean_norm"].step) == {0}
    (note,) = set(rows[rows.measure == "failed"].note)
    assert "'step10' takes 3.1" in note and "of the disk and the budget is 1 MB; give a larger" in note


def test_revisions_that_are_not_there(there: Pointed, tmp_path: Path) -> None:
    there.hub.models["owner/two"] = {path.name: path for path in walk(tmp_path / "models", [0, 10])}
    running = there.run(
        tmp_path / "said", SWEEP, "sweep", "owner/two", "--revisions", "step{0,11}", "--out", tmp_path / "run"
    )
    ended(running, code=2)
    told = " ".join((tmp_path / "said" / "err").read_text().split())
    assert "the model 'owner/two' lacks the revision 'step11'; did you mean 'step10'?" in told
    assert "Traceback" not in told and not (tmp_path / "run").exists()

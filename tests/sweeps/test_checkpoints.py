"""Which checkpoints a folder holds, and the order of their steps."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from isoscope.errors import IsoscopeError
from isoscope.results.trajectory import BETWEEN
from isoscope.sweeps.find.checkpoints import Checkpoint, in_folder, in_order, step_in


def touch(*files: Path) -> None:
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


def found(folder: Path) -> list[tuple[str, int | None]]:
    return [(each.name, each.step) for each in in_folder(folder)]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("checkpoint-500", 500),
        ("step_1000", 1000),
        ("step-000064", 64),
        ("step0", 0),
        ("global_step500", 500),
        ("iter_0001000", 1000),
        ("epoch=3-step=1200", 1200),
        ("seed_0-step_1000k", 1_000_000),
        ("step1000-tokens4B", 1000),
        ("stage1-step1000-tokens3B", 1000),
        ("pythia-70m-step1000", 1000),
        ("Steps 12", 12),
        ("model_0500", 500),
        ("1k", 1000),
        ("model_10k", 10_000),
        ("step_1.5k", 1500),
        ("step-1_000", 1000),
        ("step 143,000", 143_000),
        ("1B_tokens", 10**9),
        ("500steps", None),
        ("mp_rank_00_model_states", None),
        ("final", None),
        ("v2-600", None),
    ],
)
def test_the_step_in_a_name(name: str, step: int | None) -> None:
    assert step_in(name) == step


def test_a_checkpoint_is_never_called_as_the_summary() -> None:
    assert Checkpoint("between", 1, "").unit != BETWEEN


def test_folders_are_ordered_by_number_not_by_letter(tmp_path: Path) -> None:
    steps = [5, 50, 500, 1000, 20, 0]
    for step in steps:
        touch(tmp_path / f"checkpoint-{step}" / "config.json")
    assert found(tmp_path) == [(f"checkpoint-{step}", step) for step in sorted(steps)]
    assert in_folder(tmp_path)[0].address == str(tmp_path / "checkpoint-0")


def test_a_trainers_folder(tmp_path: Path) -> None:
    """Its final model, the optimiser and a folder of logs are no checkpoints; a sharded folder is one."""
    touch(tmp_path / "config.json", tmp_path / "model.safetensors", tmp_path / "training_args.bin")
    touch(tmp_path / "model-00001-of-00002.safetensors", tmp_path / "pytorch_model.bin")
    touch(tmp_path / "runs" / "events.out", tmp_path / ".cache" / "model.safetensors")
    for step in (8, 16):
        touch(tmp_path / f"checkpoint-{step}" / "model.safetensors.index.json")
        touch(
            tmp_path / f"checkpoint-{step}" / "optimizer.pt",
            tmp_path / f"checkpoint-{step}" / "rng_state.pth",
        )
    assert found(tmp_path) == [("checkpoint-8", 8), ("checkpoint-16", 16)]


def test_the_state_of_a_trainer_tells_what_the_name_does_not(tmp_path: Path) -> None:
    for name, step in (("late", 900), ("early", 3)):
        touch(tmp_path / name / "config.json")
        (tmp_path / name / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    touch(tmp_path / "broken" / "config.json", tmp_path / "step7" / "pytorch_model.bin")
    (tmp_path / "broken" / "trainer_state.json").write_text("{")
    assert found(tmp_path) == [("early", 3), ("step7", 7), ("late", 900), ("broken", None)]


def test_single_files(tmp_path: Path) -> None:
    touch(tmp_path / "step_9.pt", tmp_path / "step_10.pt", tmp_path / "step_10.safetensors")
    touch(
        tmp_path / "optimizer_9.pt",
        tmp_path / ".step_11.pt.123",
        tmp_path / "notes.txt",
        tmp_path / "state.pt",
    )
    assert found(tmp_path) == [("step_9", 9), ("step_10", 10)]
    assert in_folder(tmp_path)[1].address.endswith("step_10.safetensors")
    assert in_folder(tmp_path, config="there.json")[0].config == "there.json"


def test_a_folder_and_a_file_of_one_name_stay_two(tmp_path: Path) -> None:
    touch(tmp_path / "step5" / "config.json", tmp_path / "step5.pt")
    assert found(tmp_path) == [("step5", 5), ("step5.pt", 5)]
    assert len({each.unit for each in in_folder(tmp_path)}) == 2


def test_an_empty_checkpoint_is_one_and_an_empty_folder_is_none(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-3").mkdir()
    (tmp_path / "figures").mkdir()
    assert found(tmp_path) == [("checkpoint-3", 3)]


def test_a_run_of_the_lab(tmp_path: Path) -> None:
    touch(tmp_path / "run.json", tmp_path / "state.pt", tmp_path / "rows" / "a.parquet")
    touch(
        tmp_path / "checkpoints" / "step-000002.safetensors",
        tmp_path / "checkpoints" / "step-000010.safetensors",
    )
    assert found(tmp_path) == [("step-000002", 2), ("step-000010", 10)]


def test_what_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(IsoscopeError, match=r"no folder .*: give a folder of checkpoints, or a hub id"):
        in_folder(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        IsoscopeError, match=r"holds no checkpoints: looked for folders .*\*\.safetensors.*checkpoints/"
    ):
        in_folder(tmp_path / "empty")
    touch(tmp_path / "one" / "config.json", tmp_path / "one" / "model.safetensors")
    with pytest.raises(IsoscopeError, match="holds one model and no checkpoints of its training"):
        in_folder(tmp_path / "one")


def test_the_order_does_not_depend_on_what_came_first() -> None:
    steps: list[int | None] = [0, 1, 2, 9, 10, 100, None, None]
    right = [Checkpoint(f"c{i}", step, "") for i, step in enumerate(steps)]
    for seed in range(5):
        mixed = right.copy()
        random.Random(seed).shuffle(mixed)
        assert in_order(mixed) == right

"""Through the real Trainer, with and without the callback: the same losses, the same weights, and rows."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from isoscope.errors import IsoscopeError
from isoscope.integrations.huggingface import IsoscopeCallback
from isoscope.results.store import read_run
from isoscope.run.monitor.alarms import AlarmRaised
from isoscope.run.monitor.monitor import Monitor
from isoscope.run.observe.observe import observe
from tests.integrations.small import (
    MEASURES,
    Sink,
    assert_rows_of_bfloat16,
    assert_same_rows,
    assert_same_weights,
    fourth,
    language_model,
    probe,
    sentences,
)
from tests.tiers import nightly

STEPS = 6
WAYS: dict[str, dict[str, Any]] = {
    "plainly": {},
    "accumulating": {"gradient_accumulation_steps": 3},
    "in bf16": {"bf16": True},
    "with checkpointed activations": {"gradient_checkpointing": True},
    "compiled": {"torch_compile": True, "torch_compile_backend": "eager"},
}


def trained(
    folder: Path,
    callback: transformers.TrainerCallback | None = None,
    steps: int = STEPS,
    begin: str | None = None,
    **way: Any,
) -> transformers.Trainer:
    """A Trainer that has trained; it sets the random states when it is made."""
    options = {
        "output_dir": str(folder),
        "max_steps": steps,
        "per_device_train_batch_size": 4,
        "learning_rate": 1e-2,
        "lr_scheduler_type": "constant",
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "dataloader_pin_memory": False,
        "seed": 3,
        **way,
    }
    pytest.importorskip("accelerate", reason="needs accelerate")
    made = transformers.Trainer(
        language_model(),
        transformers.TrainingArguments(**options),
        train_dataset=sentences(30, seed=1),
        callbacks=[] if callback is None else [callback],
    )
    made.train(resume_from_checkpoint=begin)
    return made


def losses(of: transformers.Trainer) -> list[float]:
    return [told["loss"] for told in of.state.log_history if "loss" in told]


def watching(**options: Any) -> IsoscopeCallback:
    return IsoscopeCallback(probe(), **{"every": 2, "measures": MEASURES, "budget": None, **options})


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # of torch's compiler, of its own doing
@pytest.mark.parametrize("way", [*(way for way in WAYS if way != "compiled"), *nightly("compiled")])
def test_training_is_the_same_with_and_without(way: str, tmp_path: Path) -> None:
    callback = watching(out=tmp_path / "run")
    alone, watched = trained(tmp_path / "a", **WAYS[way]), trained(tmp_path / "b", callback, **WAYS[way])
    assert len(losses(alone)) == STEPS
    assert losses(alone) == losses(watched)
    assert_same_weights(alone.model, watched.model)
    rows = read_run(tmp_path / "run").frame()
    assert sorted(set(rows.step)) == [0, 2, 4, 6]
    assert set(rows.measure) == set(MEASURES)
    assert set(rows[rows.kind == "attention"]["head"].dropna()) == {0, 1}
    assert rows.value.notna().all()


def test_a_training_that_is_touched_is_seen(tmp_path: Path) -> None:
    class Touching(transformers.TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            torch.rand(1)

    alone, touched = trained(tmp_path / "a"), trained(tmp_path / "b", Touching())
    assert losses(alone) != losses(touched)


def test_rows_are_those_of_observe(tmp_path: Path) -> None:
    callback = watching()
    of = trained(tmp_path, callback)
    rows = callback.frame()
    for step, model in ((0, language_model()), (STEPS, of.model)):
        direct = observe(model, probe(), measures=MEASURES, heads=True).frame()
        assert_same_rows(rows[rows.step == step], direct)


def test_looks_in_the_precision_that_it_trains_in(tmp_path: Path) -> None:
    callback = watching()
    trained(tmp_path, callback, steps=1, bf16=True)
    assert_rows_of_bfloat16(callback.frame())


def test_training_that_is_taken_up_takes_up_the_rows(tmp_path: Path) -> None:
    saving = {"save_strategy": "steps", "save_steps": 3}
    through = watching(every=1)
    trained(tmp_path / "through", through)
    first = watching(every=1, out=tmp_path / "run")
    trained(tmp_path / "model", first, steps=5, **saving)
    files = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "run" / "rows").iterdir()}
    again = watching(every=1, out=tmp_path / "run")
    trained(tmp_path / "model", again, begin=str(tmp_path / "model" / "checkpoint-3"), **saving)
    after = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "run" / "rows").iterdir()}
    assert len(after) == STEPS + 1
    assert files.items() <= after.items()  # steps 4 and 5 are trained again and not measured again
    for step in range(STEPS + 1):
        assert_same_rows(*(rows[rows.step == step] for rows in (through.frame(), again.frame())))


def test_sinks_are_told_and_closed(tmp_path: Path) -> None:
    sink = Sink()
    trained(tmp_path, watching(sinks=[sink]))
    assert sink.told == [0, 2, 4, 6, "closed"]


def test_an_alarm_ends_training_with_everything_closed(tmp_path: Path) -> None:
    sink = Sink()
    callback = watching(alarms=[fourth], on_alarm="raise", sinks=[sink], out=tmp_path / "run")
    with pytest.raises(AlarmRaised, match="the fourth step"):
        trained(tmp_path / "model", callback)
    callback.close()
    assert sink.told == [0, 2, 4, "closed"]
    assert sorted(set(read_run(tmp_path / "run").frame().step)) == [0, 2, 4]


def test_a_part_of_the_model_is_watched(tmp_path: Path) -> None:
    callback = watching(part="transformer")
    trained(tmp_path, callback, steps=1)
    assert_same_rows(
        callback.frame()[lambda rows: rows.step == 0],
        observe(language_model(), probe(), measures=MEASURES, heads=True).frame(),
    )
    with pytest.raises(IsoscopeError, match="no module of GPT2LMHeadModel is called 'transfomer'"):
        trained(tmp_path, watching(part="transfomer"), steps=1)


def test_before_training_there_are_no_rows() -> None:
    assert watching().frame().empty


def test_takes_what_the_monitor_takes() -> None:
    mine, monitors = (inspect.signature(kind).parameters for kind in (IsoscopeCallback, Monitor))
    assert {n: p.default for n, p in mine.items() if n != "part"} == {
        n: p.default for n, p in monitors.items() if n not in ("model", "clock", "steps")
    }

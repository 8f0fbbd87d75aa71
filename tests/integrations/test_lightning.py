"""Through the real Lightning Trainer, with and without the callback: the same losses, weights, and rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from isoscope.errors import IsoscopeError
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

pl = pytest.importorskip("lightning.pytorch", reason="needs lightning")
from isoscope.integrations.lightning import IsoscopeCallback  # noqa: E402

STEPS = 6
WAYS: dict[str, dict[str, Any]] = {
    "plainly": {},
    "accumulating": {"accumulate_grad_batches": 3},
    "in bf16": {"precision": "bf16-mixed"},
    "clipping": {"gradient_clip_val": 0.5},
}
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.* is deprecated"),
]


class Bare(pl.LightningModule):
    """A model in a LightningModule that has no forward of its own, and keeps its losses."""

    def __init__(self) -> None:
        super().__init__()
        self.model = language_model()
        self.losses: list[float] = []

    def training_step(self, batch: dict[str, Tensor], number: int) -> Tensor:
        loss = self.model(**batch).loss
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


class Whole(Bare):
    def forward(self, input_ids: Tensor) -> Tensor:
        return self.model(input_ids).logits


def trained(
    folder: Path,
    callback: pl.Callback | None = None,
    module: type[Bare] = Whole,
    steps: int = STEPS,
    begin: Path | None = None,
    **way: Any,
) -> tuple[pl.Trainer, Bare]:
    torch.manual_seed(3)
    options = {
        "max_steps": steps,
        "accelerator": "cpu",
        "default_root_dir": folder,
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "callbacks": [] if callback is None else [callback],
        **way,
    }
    trainer, made = pl.Trainer(**options), module()
    loader = DataLoader(sentences(30, seed=1), batch_size=4, shuffle=True)
    trainer.fit(made, loader, ckpt_path=begin, weights_only=None if begin is None else True)
    return trainer, made


def watching(**options: Any) -> IsoscopeCallback:
    return IsoscopeCallback(probe(), **{"every": 2, "measures": MEASURES, "budget": None, **options})


@pytest.mark.parametrize("way", WAYS)
def test_training_is_the_same_with_and_without(way: str, tmp_path: Path) -> None:
    _, alone = trained(tmp_path, **WAYS[way])
    _, watched = trained(tmp_path, watching(out=tmp_path / "run"), **WAYS[way])
    assert len(alone.losses) >= STEPS
    assert alone.losses == watched.losses
    assert_same_weights(alone, watched)
    rows = read_run(tmp_path / "run").frame()
    assert sorted(set(rows.step)) == [0, 2, 4, 6]
    assert set(rows.measure) == set(MEASURES)
    assert set(rows[rows.kind == "attention"]["head"].dropna()) == {0, 1}
    assert rows.value.notna().all()


def test_a_training_that_is_touched_is_seen(tmp_path: Path) -> None:
    class Touching(pl.Callback):
        def on_train_batch_end(self, *_: Any) -> None:
            torch.rand(1)

    assert trained(tmp_path)[1].losses != trained(tmp_path, Touching())[1].losses


@pytest.mark.parametrize(("module", "part"), [(Whole, ""), (Bare, "model")])
def test_rows_are_those_of_observe(module: type[Bare], part: str, tmp_path: Path) -> None:
    callback = watching(part=part)
    _, after = trained(tmp_path, callback, module)
    rows = callback.frame()
    for step, model in ((0, language_model()), (STEPS, after.model)):
        direct = observe(model, probe(), measures=MEASURES, heads=True).frame()
        assert_same_rows(rows[rows.step == step], direct)


def test_looks_in_the_precision_that_it_trains_in(tmp_path: Path) -> None:
    callback = watching()
    trained(tmp_path, callback, steps=1, precision="bf16-mixed")
    assert_rows_of_bfloat16(callback.frame())


def test_a_step_of_several_batches_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    step = Monitor.step
    monkeypatch.setattr(Monitor, "step", lambda self, number: (told.append(number), step(self, number)))
    trained(tmp_path, watching(), accumulate_grad_batches=3)
    assert told == list(range(STEPS + 1))


@pytest.mark.filterwarnings("ignore:You.re resuming from a checkpoint that ended before")  # so it is
def test_training_that_is_taken_up_takes_up_the_rows(tmp_path: Path) -> None:
    run, kept = tmp_path / "run", tmp_path / "checkpoint"
    trainer, _ = trained(tmp_path, watching(every=1, out=run), steps=4)
    trainer.save_checkpoint(kept)
    before = {file.name: file.stat().st_mtime_ns for file in (run / "rows").iterdir()}
    again = watching(every=1, out=run)
    trained(tmp_path, again, begin=kept)
    after = {file.name: file.stat().st_mtime_ns for file in (run / "rows").iterdir()}
    assert before.items() <= after.items()
    assert sorted(set(again.frame().step)) == list(range(STEPS + 1))
    assert not again.frame().duplicated(["step", "kind", "layer", "head", "measure"]).any()


def test_an_alarm_ends_training_with_everything_closed(tmp_path: Path) -> None:
    sink = Sink()
    with pytest.raises(AlarmRaised, match="the fourth step"):
        trained(tmp_path, watching(alarms=[fourth], on_alarm="raise", sinks=[sink]))
    assert sink.told == [0, 2, 4, "closed"]


@pytest.mark.parametrize(
    ("module", "part", "said"),
    [
        (Bare, "", "Bare has no forward, .* name the module to watch: part='model'"),
        (Whole, "modle", "no module of Whole is called 'modle'; did you mean 'model'"),
    ],
)
def test_a_module_that_cannot_be_watched_is_told(
    module: type[Bare], part: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(IsoscopeError, match=said):
        trained(tmp_path, watching(part=part), module)


def test_without_lightning_the_extra_is_named() -> None:
    code = "import sys; sys.modules['lightning.pytorch'] = None; import isoscope.integrations.lightning"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.returncode == 1
    assert "IsoscopeError: the callback for Lightning needs lightning" in told.stderr
    assert "isoscope[lightning]" in told.stderr

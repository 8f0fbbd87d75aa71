"""The monitor's rows are those of a direct look; its sinks, its refusals, and what it does with trouble."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import isoscope
from isoscope.data.batch import Batch
from isoscope.errors import IsoscopeError
from isoscope.models.source import Model
from isoscope.results import store
from isoscope.run.monitor.monitor import Monitor
from isoscope.run.monitor.sinks import summaries
from tests.run.training import LENGTH, VOCABULARY, forever, ids, language, loss_of, probe, trained


def direct(model: nn.Module, step: int, monitor: Monitor, **options: object) -> pd.DataFrame:
    """The same rows by `observe`, with everything it makes anew."""
    names = list(dict.fromkeys(monitor.frame().measure))
    table = isoscope.observe(
        Model(model, "model", step=step),
        probe(),
        measures=names,
        heads=True,
        **options,  # type: ignore[arg-type]
    ).frame()
    return table.drop(columns="run")


@pytest.mark.parametrize("counterfactual", [False, True])
@pytest.mark.parametrize("make", [language, lambda: torch.compile(language(), backend="eager")])
def test_rows_are_those_of_a_direct_look(make: type, counterfactual: bool) -> None:
    model = make()
    monitor = Monitor(model, probe(), every=2, budget=None, counterfactual=counterfactual)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
    expected = []
    for step in range(5):
        monitor.step(step)
        if step % 2 == 0:
            expected.append(direct(model, step, monitor))
        optimiser.zero_grad()
        loss_of(model, ids(4, step)).backward()
        optimiser.step()
    rows = monitor.frame()
    assert ("drift_share" in set(rows.measure)) == counterfactual
    pd.testing.assert_frame_equal(rows.drop(columns="run"), pd.concat(expected, ignore_index=True))
    assert not expected[0].value.equals(expected[-1].value)


def test_recomputed_activations_are_counted_once() -> None:
    plain, again = (
        Monitor(language(recompute=recompute), probe(), budget=None) for recompute in (False, True)
    )
    for monitor in (plain, again):
        monitor.step(0)
    pd.testing.assert_frame_equal(plain.frame(), again.frame())


def test_the_run_on_disk_is_the_run_in_memory(tmp_path: Path) -> None:
    tables = []
    for out in (None, tmp_path / "run"):
        with Monitor(language(), probe(1), every=2, budget=None, out=out, name="tiny") as monitor:
            for step in range(5):
                monitor.step(step)
        tables.append(monitor.frame())
    pd.testing.assert_frame_equal(*tables)
    kept = isoscope.read_run(tmp_path / "run")
    assert kept.run.kind == "training"
    assert kept.units() == ["step 000000", "step 000002", "step 000004"]
    assert kept.facts()["step 000002"]["budget"]["steps passed over"] == 0  # type: ignore[index]
    assert set(kept.run.measures) >= set(tables[0].measure)
    assert tables[0]["head"].notna().any()


def test_sinks_are_told_a_handful_and_closed(tmp_path: Path) -> None:
    class Tracker:
        def __init__(self) -> None:
            self.told: dict[int, dict[str, float]] = {}
            self.closed = 0

        def __call__(self, step: int, summary: Mapping[str, float]) -> None:
            assert isoscope.read_run(tmp_path / "run").has(f"step {step:06d}")  # on disk before it is told
            self.told[step] = dict(summary)

        def close(self) -> None:
            self.closed += 1

    tracker = Tracker()
    with Monitor(language(), probe(), budget=None, out=tmp_path / "run", sinks=[tracker]) as monitor:
        monitor.step(0)
        monitor.step(1)
    monitor.close()
    assert list(tracker.told) == [0, 1]
    assert 4 <= len(tracker.told[0]) <= 20
    assert tracker.closed == 1
    rows = monitor.frame()
    layers = rows[(rows.step == 1) & (rows.measure == "normalised_entropy") & rows["head"].isna()].value
    assert tracker.told[1]["isoscope/normalised_entropy/min"] == layers.min()
    assert tracker.told[1]["isoscope/normalised_entropy/mean"] == pytest.approx(layers.mean())


def test_summaries_stay_few_whatever_is_measured() -> None:
    every = isoscope.observe(language(), probe(), heads=True).frame()
    assert len(set(every.measure)) > 40
    assert len(summaries(every)) == 18


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "the probe holds no batch; give at least one"),
        ([torch.randn(2, LENGTH, 3)], "Language cannot be run on this data: "),
        ([torch.full((2, LENGTH), VOCABULARY)], "Language cannot be run on this data: "),
        ([torch.zeros(2, LENGTH + 1, dtype=torch.int64)], "Language cannot be run on this data: "),
        ([(ids(), ids())], "a batch is a tensor, a mapping of names to tensors, or a Batch; got tuple"),
    ],
)
def test_a_probe_that_does_not_fit(given: list[object], message: str) -> None:
    with pytest.raises(IsoscopeError, match=message):
        Monitor(language(), given)


def test_a_probe_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isoscope.run.monitor.probe.LARGEST", 1 << 20)
    with pytest.raises(IsoscopeError, match=r"the probe is larger than .*; give fewer batches"):
        Monitor(language(), forever())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 0}, "every is a number of steps from 1 on"),
        ({"every": "often"}, "every is a number of steps from 1 on"),
        ({"budget": 2.0}, "budget is a share of training time, above 0 and at most 1, or None; got 2.0"),
        ({"measures": ["mean_cosin"]}, "did you mean 'mean_cosine'"),
        ({"layers": "9"}, "'9' selects no site; there are: layer.0"),
        ({"on_alarm": "shout"}, "on_alarm is 'warn', 'raise' or a function of an Alarm; got 'shout'"),
    ],
)
def test_options_that_cannot_be(options: dict[str, object], message: str) -> None:
    with pytest.raises(IsoscopeError, match=message):
        Monitor(language(), probe(), **options)  # type: ignore[arg-type]


def test_the_probe_is_a_copy() -> None:
    batch, model = ids(8), language()
    monitor = Monitor(model, [batch], budget=None, every=1)
    monitor.step(0)
    batch.zero_()
    monitor.step(1)
    rows = monitor.frame()
    one, two = (rows[rows.step == step].value.reset_index(drop=True) for step in (0, 1))
    assert one.equals(two)


def test_batches_with_masks_and_by_hand() -> None:
    counts = torch.ones(4, LENGTH, dtype=torch.bool)
    counts[:, 0] = False
    monitor = Monitor(language(), [Batch(ids(), counts, torch.arange(4))], budget=None)
    monitor.step(0)
    rows = monitor.frame()
    assert set(rows[rows.measure == "mean_norm"].n) == {4 * (LENGTH - 1)}


def test_a_model_that_changes_shape_is_left_alone() -> None:
    model = language()
    monitor = Monitor(model, probe(), every=1, budget=None)
    monitor.step(0)
    model.tokens = nn.Embedding(VOCABULARY + 1, 16)
    with pytest.warns(
        UserWarning, match=r"at step 1: tokens.weight was \[40, 16\] and is \[41, 16\]\. Train"
    ):
        monitor.step(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monitor.step(2)
    assert set(monitor.frame().step) == {0}
    assert "Training goes on without measuring" in monitor.notes()[0]


def test_a_block_that_is_replaced_and_a_forward_that_fails() -> None:
    model = language()
    monitor = Monitor(model, probe(), every=1, budget=None)
    model.blocks[1] = language(3).blocks[1]
    with pytest.warns(UserWarning, match=r"at step 0: the block blocks.1 is another module\."):
        monitor.step(0)

    class Moody(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.well = language(), True

        def forward(self, idx: Tensor) -> Tensor:
            if not self.well:
                raise RuntimeError("no more")
            return self.inner(idx)

    moody = Moody()
    monitor = Monitor(moody, probe(), every=1, budget=None)
    moody.well = False
    with pytest.warns(UserWarning, match=r"can no longer be measured at step 0: no more\."):
        monitor.step(0)
    assert moody.training and not any(part._forward_hooks for part in moody.modules())


class Disk:
    """A disk that refuses some of the writes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full, whole = False, store.write_whole

        def write(file: Path, content: bytes) -> None:
            if self.full:
                raise IsoscopeError(f"cannot write {file}: No space left on device.")
            whole(file, content)

        monkeypatch.setattr(store, "write_whole", write)


def test_a_full_disk_that_is_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, told = Disk(monkeypatch), []
    monitor = Monitor(
        language(),
        probe(),
        every=1,
        budget=None,
        out=tmp_path / "run",
        sinks=[lambda step, _: told.append(step)],
    )
    monitor.step(0)
    disk.full = True
    with pytest.warns(
        UserWarning, match=r"the rows of step 1 could not be written: .*No space left.*goes on"
    ):
        monitor.step(1)
    monitor.step(2)  # said once
    assert told == [0]
    assert set(monitor.frame().step) == {0, 1, 2}
    disk.full = False
    monitor.step(3)
    assert told == [0, 1, 2, 3]
    monitor.close()
    assert set(isoscope.read_run(tmp_path / "run").frame().step) == {0, 1, 2, 3}


def test_a_full_disk_that_stays_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, told = Disk(monkeypatch), []
    model = language()
    alone = trained(language(), steps=4)

    def watch(model: nn.Module) -> Monitor:
        out = tmp_path / "run"
        return Monitor(
            model, probe(), every=1, budget=None, out=out, sinks=[lambda step, _: told.append(step)]
        )

    class Filling(Monitor):
        def step(self, step: int) -> None:
            disk.full = step >= 2
            super().step(step)

    monkeypatch.setattr("tests.run.test_monitor.Monitor", Filling)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        losses, _ = trained(model, watch, steps=4)
    assert losses == alone[0]
    words = [str(each.message) for each in said]
    assert [word.startswith("the rows of step 2 could not be written") for word in words] == [True, False]
    assert words[1].startswith("the rows of 2 steps could not be written and are lost (2, 3): cannot write")
    assert told == [0, 1]
    assert set(isoscope.read_run(tmp_path / "run").frame().step) == {0, 1}


def test_a_summary_is_the_mean_and_the_worst_over_layers() -> None:
    rows = pd.DataFrame({"head": [None, None, 0], "measure": "sink_mass", "value": [0.2, 0.4, 0.9]})
    found = {name: round(value, 6) for name, value in summaries(rows).items()}
    assert found == {"isoscope/sink_mass/mean": 0.3, "isoscope/sink_mass/max": 0.4}

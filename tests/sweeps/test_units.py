"""One unit: a checkpoint is measured as it would be by hand, and what goes wrong is a row."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pytest
import torch
import transformers
from torch import Tensor, nn

from isoscope.errors import IsoscopeError
from isoscope.kinds.sweep.page import content_of, screen_of
from isoscope.lab.train.reopen import Reopen, experiment_of, training_of
from isoscope.models.inputs import open_data
from isoscope.models.source import Model, load
from isoscope.results.row import COLUMNS
from isoscope.results.store import read_run
from isoscope.run.observe.observe import observe
from isoscope.run.weigh.weigh import weigh
from isoscope.sweeps.find.checkpoints import Checkpoint, in_folder
from isoscope.sweeps.work.job import Asked, Job, Opened
from isoscope.sweeps.work.threads import so_many_threads
from isoscope.sweeps.work.unit import measure_one, out_of_memory
from tests.models.tiny import VOCABULARY, tokenizer
from tests.sweeps.swept import ask, jobs_of, opened, some, swept


def rows_of(job: Job) -> pd.DataFrame:
    outcome = measure_one(job)
    assert not outcome.failed, outcome.failed
    table = read_run(job.folder).frame(job.checkpoint.unit)
    assert outcome.rows == len(table)
    return table


def test_a_lab_checkpoint_is_what_its_training_saw(trained: Path, tmp_path: Path) -> None:
    """The rows of the Monitor at that step, number by number; and the loss that was told."""
    asked = ask(trained, heads=True)
    folder = opened(asked, tmp_path / "run")
    then = read_run(trained).frame()
    for job in jobs_of(asked, folder, in_folder(trained))[::11]:
        mine = rows_of(job)
        both = mine.merge(then, on=["step", "kind", "layer", "head", "measure"], suffixes=("", "_then"))
        assert set(both.measure) >= {"mean_cosine", "mean_norm", "normalised_entropy", "loss"}
        pd.testing.assert_series_equal(both.value, both.value_then, check_names=False, rtol=1e-5, atol=1e-6)
        assert set(mine.model) == {"small"}
        assert set(mine.revision) == {job.checkpoint.name}
        assert set(mine.run) == {folder.run.id}


def test_what_a_training_was_is_read_back(trained: Path, tmp_path: Path) -> None:
    experiment, _ = experiment_of(trained)
    assert (experiment.layers, experiment.width, experiment.recipe.steps) == (1, 8, 40)
    assert experiment.checkpoints == "log:32"
    assert training_of(trained) == training_of(trained / "checkpoints") == trained
    assert training_of(tmp_path) is None
    with pytest.raises(IsoscopeError, match="knows the tokens of its own data"):
        Reopen(str(trained), "other.txt")(in_folder(trained)[0], None)


def test_data_that_changed_is_refused(trained: Path, tmp_path: Path) -> None:
    asked = ask(trained)
    text = (trained / "run.json").read_text()
    other = tmp_path / "trained"
    other.mkdir()
    (other / "checkpoints").symlink_to(trained / "checkpoints")
    digest = read_run(trained).run.question["data_hash"]
    (other / "run.json").write_text(text.replace(str(digest), "0" * 16))
    folder = opened(asked, tmp_path / "run")
    outcome = measure_one(jobs_of(ask(other), folder, some(other, 1))[0])
    assert "is not what it was in training (data_hash)" in outcome.failed


@pytest.fixture(scope="module")
def gpts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints as a trainer saves them: folders, one of them in shards."""
    place = tmp_path_factory.mktemp("gpts")
    config = transformers.GPT2Config(vocab_size=VOCABULARY, n_positions=32, n_embd=16, n_layer=2, n_head=2)
    for step in (1, 2, 10):
        torch.manual_seed(step)
        model = transformers.GPT2Model(config)
        shards = {"max_shard_size": "8KB"} if step == 10 else {}
        model.save_pretrained(place / f"checkpoint-{step}", **shards)
        tokenizer("both").save_pretrained(place / f"checkpoint-{step}")
    assert list((place / "checkpoint-10").glob("*.index.json"))
    return place


@pytest.mark.parametrize("what", ["measure", "weights", "both"])
def test_folders_are_measured_as_by_hand(gpts: Path, tmp_path: Path, what: str) -> None:
    asked = Asked("gpt", what=what, limit=4, measures=("mean_norm",), heads=True)
    folder = opened(asked, tmp_path / "run")
    for checkpoint in in_folder(gpts):
        table = rows_of(Job(str(folder.path), asked, checkpoint))
        with so_many_threads(1):
            parts = []
            if what != "weights":
                model = load(checkpoint.address)
                data = open_data("embedded", model, limit=4)
                parts.append(observe(model, data, measures=["mean_norm"], heads=True).frame())
            if what != "measure":
                parts.append(weigh(checkpoint.address).frame())
        by_hand = pd.concat(parts, ignore_index=True)
        names = ["kind", "layer", "head", "measure", "value", "n", "null", "low", "high", "note"]
        pd.testing.assert_frame_equal(table[names], by_hand[names], check_exact=True)
        assert set(table.step) == {checkpoint.step}
        assert set(table.revision) == {checkpoint.name}


def test_a_single_file_takes_the_config_that_is_named(gpts: Path, tmp_path: Path) -> None:
    lone = tmp_path / "files"
    lone.mkdir()
    (lone / "step_1.safetensors").write_bytes((gpts / "checkpoint-1" / "model.safetensors").read_bytes())
    asked = Asked("gpt", measures=("mean_norm",), limit=2, tokens="bytes")
    folder = opened(asked, tmp_path / "run")
    without = measure_one(Job(str(folder.path), asked, *in_folder(lone)))
    assert "name its config.json with --config" in without.failed
    config = str(gpts / "checkpoint-1" / "config.json")
    asked = replace(asked, what="weights")
    assert not measure_one(Job(str(folder.path), asked, *in_folder(lone, config=config))).failed


def test_a_checkpoint_that_cannot_be_read_is_a_row_with_its_reason(trained: Path, tmp_path: Path) -> None:
    asked = ask(trained)
    folder = opened(asked, tmp_path / "run")
    good = some(trained, 1)[0]
    cut = tmp_path / "step-000003.safetensors"
    cut.write_bytes(Path(good.address).read_bytes()[:500])
    bad = Checkpoint("step-000003", 3, str(cut))
    outcome = measure_one(Job(str(folder.path), asked, bad))
    assert outcome.failed.startswith(f"cannot read {cut}")
    (row,) = folder.frame("step-000003").to_dict("records")
    assert (row["measure"], row["step"], row["note"]) == ("failed", 3, outcome.failed)
    assert pd.isna(row["value"])
    assert folder.known("step-000003")["failed"] == outcome.failed
    cut.write_bytes(Path(good.address).read_bytes())
    assert not measure_one(Job(str(folder.path), asked, bad)).failed
    assert "failed" not in set(folder.frame("step-000003").measure)


def test_a_defect_anywhere_is_a_row_and_no_traceback(trained: Path, tmp_path: Path) -> None:
    def broken(checkpoint: Checkpoint, device: str | None) -> Opened:
        raise ZeroDivisionError("by zero\nand more")

    asked = ask(trained, opener=broken)
    folder = opened(asked, tmp_path / "run")
    assert measure_one(jobs_of(asked, folder, some(trained, 1))[0]).failed == "ZeroDivisionError: by zero"


@dataclass(frozen=True)
class Greedy:
    """Opens a model that runs out of memory with more than so many sequences at once."""

    training: str
    most: int
    seen: list[int]

    def __call__(self, checkpoint: Checkpoint, device: str | None) -> Opened:
        found = Reopen(self.training)(checkpoint, device)

        def refuse(module: nn.Module, given: tuple[Tensor, ...]) -> None:
            self.seen.append(len(given[0]))
            if len(given[0]) > self.most:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate")

        found.model.module.register_forward_pre_hook(refuse)
        return found


def test_memory_that_does_not_suffice_is_tried_with_less(trained: Path, tmp_path: Path) -> None:
    plain = rows_of(jobs_of(ask(trained), opened(ask(trained), tmp_path / "plain"), some(trained, 1))[0])
    seen: list[int] = []
    asked = ask(trained, opener=Greedy(str(trained), 3, seen))
    folder = opened(asked, tmp_path / "run")
    job = jobs_of(asked, folder, some(trained, 1))[0]
    small = rows_of(job)
    assert max(seen) == 16
    assert seen[-1] <= 2
    pd.testing.assert_series_equal(small.value, plain.value, rtol=1e-5, atol=1e-6)
    told = folder.known(job.checkpoint.unit)["notes"]
    assert "memory did not suffice for larger batches: it was measured with batches of 2" in told


def test_memory_that_never_suffices_is_a_row(trained: Path, tmp_path: Path) -> None:
    seen: list[int] = []
    asked = ask(trained, opener=Greedy(str(trained), 0, seen))
    folder = opened(asked, tmp_path / "run")
    outcome = measure_one(jobs_of(asked, folder, some(trained, 1))[0])
    assert outcome.failed.startswith("out of memory, even with the smallest batches: ")
    assert outcome.failed.endswith("CUDA out of memory. Tried to allocate")
    assert len(seen) == 5  # a look at one sequence comes first, of batches of 16, 8, 4, 2 and 1


def test_what_is_given_to_a_worker_goes_by_pickle(trained: Path, tmp_path: Path) -> None:
    job = jobs_of(ask(trained), opened(ask(trained), tmp_path / "run"), some(trained, 1))[0]
    assert pickle.loads(pickle.dumps(job)) == job


def test_a_run_folder_that_cannot_be_written_to_is_an_error(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from isoscope.results import store

    asked = ask(trained)
    job = jobs_of(asked, opened(asked, tmp_path / "run"), some(trained, 1))[0]

    def full(file: Path, content: bytes) -> None:
        raise IsoscopeError(f"cannot write {file}: No space left on device; nothing was left half-written.")

    monkeypatch.setattr(store, "write_whole", full)
    with pytest.raises(IsoscopeError, match="No space left"):
        measure_one(job)


def test_threads_are_settled_and_given_back() -> None:
    before = torch.get_num_threads()
    with so_many_threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_models_of_a_name_are_one_model(trained: Path) -> None:
    found = Reopen(str(trained))(some(trained, 1)[0], "cpu")
    assert isinstance(found.model, Model)
    assert set(found.told) == {"loss"}


def test_want_of_memory_is_known_by_its_words() -> None:
    assert out_of_memory(RuntimeError("CUDA out of memory"))
    assert not out_of_memory(OSError("no such file"))


def test_checkpoints_are_paired_on_the_page_and_in_the_terminal(trained: Path, tmp_path: Path) -> None:
    names = ("mean_cosine_between", "relative_drift", "normalised_entropy")
    folder = swept(trained, tmp_path / "run", some(trained, 4), measures=names)
    said = [content_of(folder).page(), *map(str, screen_of(folder).shown)]
    assert all("mean cosine between sequences" in " ".join(text.split()) for text in (said[0], said[-1]))
    assert not any("not paired)" in text for text in said)
    for file in folder.files():  # as an older isoscope wrote them
        rows, facts = folder.read(file, COLUMNS)
        folder.write(str(facts["unit"]), rows, facts)
    assert all(
        "(intervals not paired)" in text for text in (content_of(folder).page(), screen_of(folder).shown[-1])
    )

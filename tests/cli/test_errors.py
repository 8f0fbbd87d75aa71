"""Bad input gets one clear sentence and exit 2, never a traceback, and leaves nothing half-written."""

from __future__ import annotations

import json
import os
import pickle
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from isoscope.errors import IsoscopeError
from isoscope.results import store
from tests.conftest import Answer
from tests.models import modal
from tests.tiers import nightly

Isoscope = Callable[..., Answer]


def sentence(answer: Answer) -> str:
    """What the user reads: a single line on stderr."""
    assert answer.code == 2
    assert answer.err.startswith("isoscope: ")
    assert answer.err.count("\n") == 1, answer.err
    assert "Traceback" not in answer.err
    return answer.err.removeprefix("isoscope: ").strip()


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.mark.usefixtures("offline")
def test_no_such_model(isoscope: Isoscope) -> None:
    assert sentence(isoscope("measure", "nobody/nothing")) == (
        "no model 'nobody/nothing': there is no such folder here, and the hub cannot be reached. "
        "Give a folder, or come back online."
    )


def test_neither_a_folder_nor_a_hub_id(isoscope: Isoscope) -> None:
    assert sentence(isoscope("measure", "./no/such/folder")) == (
        "no model './no/such/folder': there is no such folder here, and it is no hub id (owner/name). "
        "Give a folder or a hub id."
    )


def test_a_folder_without_a_model(isoscope: Isoscope, tmp_path: Path) -> None:
    assert (
        sentence(isoscope("measure", tmp_path))
        == f"'{tmp_path}' holds no model: there is no config.json in it."
    )


def test_a_config_of_no_known_architecture(isoscope: Isoscope, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "perpetuum-mobile"}')
    assert sentence(isoscope("measure", tmp_path)).startswith(f"cannot load the model '{tmp_path}': ")


def test_no_such_data(isoscope: Isoscope, tiny_bert: Path) -> None:
    assert sentence(isoscope("measure", tiny_bert, "--data", "absent.txt")) == (
        "no data at 'absent.txt': give 'embedded', a text file or a JSONL file."
    )


def test_empty_data(isoscope: Isoscope, tiny_bert: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n \n")
    assert sentence(isoscope("measure", tiny_bert, "--data", tmp_path / "empty.txt")) == (
        f"data '{tmp_path / 'empty.txt'}' holds no text; there is nothing to measure."
    )


def test_a_model_with_nothing_to_see(isoscope: Isoscope, tiny_bert: Path, tmp_path: Path) -> None:
    config = transformers.BertConfig.from_pretrained(tiny_bert, num_hidden_layers=0)
    transformers.BertModel(config).save_pretrained(tmp_path / "hollow")
    transformers.AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path / "hollow")
    told = sentence(isoscope("measure", tmp_path / "hollow", "--out", tmp_path / "run"))
    assert told.startswith("BertModel shows nothing to measure: looked for a ModuleList or Sequential of ")


def test_an_unknown_measure_before_anything_is_loaded(isoscope: Isoscope) -> None:
    told = sentence(isoscope("measure", "nobody/nothing", "--measures", "mean_cosin"))
    assert told.startswith(
        "no measure is called 'mean_cosin'; did you mean 'mean_cosine'? There are: anatomy_cross_term, "
    )


def test_layers_that_select_nothing(isoscope: Isoscope, tiny_bert: Path, tmp_path: Path) -> None:
    told = sentence(isoscope("measure", tiny_bert, "--layers", "layer.9", "--out", tmp_path / "run"))
    assert (
        told == "'layer.9' selects no site; there are: layer.0, layer.1, layer.2, attention.1, attention.2."
    )


def test_more_positions_than_the_model_takes(isoscope: Isoscope, tiny_bert: Path) -> None:
    told = sentence(isoscope("measure", tiny_bert, "--max-length", 100))
    assert told == f"max_length 100 is more than the 64 tokens '{tiny_bert}' takes."


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--dtype", "float8", "no dtype is called 'float8'; did you mean"),
        ("--device", "abacus", "device 'abacus' cannot be used here: "),
        ("--memory", "plenty", "'plenty' is no size of memory; write for example 500MB or 2GB."),
        ("--limit", "-1", "limit is -1; it must be at least 1."),
        ("--batch-size", "0", "batch_size is 0; it must be at least 1."),
        ("--max-length", "2", "max_length 2 has no room for text beside the special tokens."),
    ],
)
def test_a_setting_that_cannot_be(
    isoscope: Isoscope, tiny_bert: Path, option: str, value: str, told: str
) -> None:
    assert sentence(isoscope("measure", tiny_bert, option, value)).startswith(told)


def test_one_vector(isoscope: Isoscope, tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.ones((1, 4)))
    assert sentence(isoscope("cloud", tmp_path / "one.npy")) == (
        "a cloud needs at least 2 vectors of at least 1 dimension; got 1 of 4."
    )


def test_a_suspected_wrong_order_of_axes_is_said_and_measured(isoscope: Isoscope, tmp_path: Path) -> None:
    np.save(tmp_path / "wide.npy", np.random.default_rng(0).normal(size=(5, 40)))
    answer = isoscope("cloud", tmp_path / "wide.npy")
    assert answer.code == 0
    assert "5 vectors of 40 dimensions: are rows and columns swapped?" in answer.err


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (
            "absent.npy",
            None,
            "no file at '{file}'; give vectors as .npy, .npz, .parquet, .safetensors, .csv.",
        ),
        ("vectors.pkl", b"x", "'{file}' has no format that is read here; give vectors as .npy,"),
        ("broken.npy", b"\x93NUMPY", "cannot read {file}: "),
        ("broken.parquet", b"PAR1", "cannot read {file}: "),
        ("broken.safetensors", b"12345678", "cannot read {file}: "),
        ("words.csv", b"name,colour\nx,red\n", "{file} has no column of numbers; there are: name, colour."),
        ("empty.csv", b"", "cannot read {file}: "),
    ],
)
def test_a_file_that_holds_no_vectors(
    isoscope: Isoscope, tmp_path: Path, name: str, content: bytes | None, told: str
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    assert sentence(isoscope("cloud", file)).startswith(told.format(file=file))


def test_several_arrays_want_a_name(isoscope: Isoscope, tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", left=np.ones((3, 2)), right=np.ones((3, 2)))
    assert sentence(isoscope("cloud", tmp_path / "two.npz")) == (
        f"{tmp_path / 'two.npz'} holds 2 arrays; name one with --array: left, right."
    )
    assert "did you mean 'left'?" in sentence(isoscope("cloud", tmp_path / "two.npz", "--array", "leff"))


class Trap:
    """Unpickled, it would make a folder."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.mark),)


def test_a_pickle_in_an_array_is_refused(isoscope: Isoscope, tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    np.save(tmp_path / "trap.npy", np.array([Trap(mark)], dtype=object), allow_pickle=True)
    assert sentence(isoscope("cloud", tmp_path / "trap.npy")) == (
        f"refused to read {tmp_path / 'trap.npy'}: "
        "it holds pickled objects, which could run code, and none was run."
    )
    assert not mark.exists()


def test_a_pickle_among_weights_is_refused(isoscope: Isoscope, tiny_bert: Path, tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text((tiny_bert / "config.json").read_text())
    torch.save({"embeddings.word_embeddings.weight": Trap(mark)}, folder / "pytorch_model.bin")
    told = sentence(isoscope("measure", folder))
    assert told.startswith(
        f"refused to load '{folder}': its weights are a pickle that asks for more than tensors"
    )
    assert not mark.exists()
    with pytest.raises(FileNotFoundError):  # the trap itself works: its parent is gone by then
        pickle.loads(pickle.dumps(Trap(tmp_path / "absent" / "executed")))


def test_a_run_of_another_schema(isoscope: Isoscope, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"schema": 99, "kind": "measure"}))
    assert sentence(isoscope("report", tmp_path)) == (
        f"{tmp_path / 'run.json'} has schema version 99; this isoscope reads versions 1 and 2. "
        "Measure again into another folder, or use the isoscope that wrote it."
    )


def test_no_run(isoscope: Isoscope, tmp_path: Path) -> None:
    assert sentence(isoscope("report", tmp_path)).startswith(f"{tmp_path} is no run folder: there is no ")


def test_a_folder_with_other_files_is_not_written_into(
    isoscope: Isoscope, tiny_bert: Path, tmp_path: Path
) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    told = sentence(isoscope("measure", tiny_bert, "--limit", 8, "--out", tmp_path))
    assert told == f"cannot write a run to {tmp_path}: it holds other files; give another --out."
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_out_under_a_regular_file(isoscope: Isoscope, tiny_bert: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    told = sentence(isoscope("measure", tiny_bert, "--limit", 8, "--out", tmp_path / "file" / "run"))
    assert told.startswith(f"cannot write to {tmp_path / 'file' / 'run'}: ")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_rows_that_cannot_be_kept_are_printed(
    isoscope: Isoscope, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = store.write_whole

    def full(file: Path, content: bytes) -> None:
        if file.suffix == ".parquet":
            raise IsoscopeError(f"cannot write {file}: no space.")
        real(file, content)

    monkeypatch.setattr(store, "write_whole", full)
    answer = isoscope("measure", tiny_bert, "--limit", 8, "--out", tmp_path / "run")
    assert answer.code == 2
    assert "layer.2" in answer.out
    assert "no space" in answer.err


@pytest.mark.parametrize("allowed", nightly(100, 9000))
def test_a_file_size_limit_leaves_nothing_half_written(tiny_bert: Path, tmp_path: Path, allowed: int) -> None:
    command = Path(sys.executable).with_name("isoscope")
    told = subprocess.run(
        [command, "measure", tiny_bert, "--limit", "8", "--out", tmp_path / "run"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (allowed, allowed)),
        capture_output=True,
        text=True,
    )
    assert told.returncode == 2
    assert "isoscope: cannot write " in told.stderr
    assert "Traceback" not in told.stderr
    left = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {file.name for file in left} <= {"run.json"}
    assert all(json.loads(file.read_text()) for file in left)
    if left:
        assert "layer.0" in told.stdout  # the numbers are shown before they are written


def test_data_of_another_kind_than_the_model_takes(
    isoscope: Isoscope, tiny_bert: Path, tmp_path: Path
) -> None:
    sound, picture = (modal.save(family, tmp_path / family) for family in ("wav2vec2", "vit"))
    (tmp_path / "text.txt").write_text("words")
    assert sentence(isoscope("measure", sound, "--data", tmp_path / "text.txt")) == (
        f"'{tmp_path / 'text.txt'}' holds no recordings (.wav, .flac, .ogg, .mp3, .aiff, .aif); "
        "this model takes recordings."
    )
    assert "this model takes pictures" in sentence(
        isoscope("measure", picture, "--data", tmp_path / "text.txt")
    )
    assert "this model takes text" in sentence(isoscope("measure", tiny_bert, "--data", tmp_path))


def test_a_model_of_sound_without_its_extractor(isoscope: Isoscope, tmp_path: Path) -> None:
    modal.build("hubert").save_pretrained(tmp_path)
    assert sentence(isoscope("measure", tmp_path)).startswith(
        f"the model '{tmp_path}' comes without feature extractor, so sound cannot be read for it; "
    )


def test_a_mistyped_layer_leaves_no_folder(isoscope: Isoscope, tiny_bert: Path, tmp_path: Path) -> None:
    assert isoscope("measure", tiny_bert, "--layers", "layr.*", "--out", tmp_path / "run").code == 2
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "told", ["[]", '{"schema": 1}', '{"schema": 1, "kind": "measure", "question": "x"}', "{"]
)
def test_a_broken_run(isoscope: Isoscope, tmp_path: Path, told: str) -> None:
    (tmp_path / "run.json").write_text(told)
    assert str(tmp_path / "run.json") in sentence(isoscope("report", tmp_path))


def test_broken_rows(isoscope: Isoscope, tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", np.random.default_rng(0).normal(size=(20, 3)))
    isoscope("cloud", tmp_path / "vectors.npy", "--out", tmp_path / "run")
    (rows,) = (tmp_path / "run" / "rows").iterdir()
    whole = rows.read_bytes()
    rows.write_bytes(whole[: len(whole) // 2])
    assert sentence(isoscope("report", tmp_path / "run")).startswith(f"cannot read {rows}: ")
    rows.unlink()
    said = f"{tmp_path / 'run'} holds no rows yet; go on with the command that began it."
    assert sentence(isoscope("report", tmp_path / "run")) == said


def test_numbers_with_a_slip(isoscope: Isoscope, tmp_path: Path) -> None:
    (tmp_path / "slip.csv").write_text("a,b\n1.5,2\n2.5,x\n3.5,4\n")
    told = sentence(isoscope("cloud", tmp_path / "slip.csv"))
    assert told == f"column 'b' of {tmp_path / 'slip.csv'} holds numbers but for some cells; mend those."


def test_nothing_in_the_file(isoscope: Isoscope, tmp_path: Path) -> None:
    np.savez(tmp_path / "none.npz")
    assert sentence(isoscope("cloud", tmp_path / "none.npz")) == f"{tmp_path / 'none.npz'} holds no array."
    (tmp_path / "folder.parquet").mkdir()
    assert "has no format that is read here" in sentence(isoscope("cloud", tmp_path / "folder.parquet"))


def test_weights_that_do_not_fit(isoscope: Isoscope, tiny_bert: Path, tmp_path: Path) -> None:
    shutil.copy(tiny_bert / "config.json", tmp_path)
    torch.save({"model": {"embeddings.word_embeddings.weight": torch.zeros(3, 4)}}, tmp_path / "weights.pt")
    told = sentence(isoscope("measure", tmp_path / "weights.pt"))
    assert told.startswith(f"the weights in '{tmp_path / 'weights.pt'}' do not fit the config: ")
    assert "missing, first embeddings." in told
    assert "1 of another shape, first embeddings.word_embeddings.weight: (3, 4) where the config says" in told
    (tmp_path / "config.json").unlink()
    assert "name its config.json with --config" in sentence(isoscope("measure", tmp_path / "weights.pt"))

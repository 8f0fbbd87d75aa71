"""Datasets and bare tokens on the command line: measured, or one clear sentence and exit 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers

from tests.cli.test_errors import Isoscope, sentence
from tests.models import modal, tiny


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset of text."""
    datasets = pytest.importorskip("datasets", reason="needs datasets")
    (tmp_path / "words").mkdir()
    datasets.Dataset.from_dict({"text": ["some words"] * 40}).to_parquet(tmp_path / "words" / "test.parquet")
    return tmp_path / "words"


def bare(folder: Path, vocabulary: int) -> Path:
    """A BERT without a tokenizer: a config and a state dict."""
    torch.manual_seed(0)
    config = tiny.CONFIGS["bert"]()
    config.vocab_size = vocabulary
    folder.mkdir()
    config.save_pretrained(folder)
    torch.save(transformers.BertModel(config).state_dict(), folder / "weights.pt")
    return folder / "weights.pt"


def question(run: Path) -> dict[str, object]:
    return json.loads((run / "run.json").read_text())["question"]


def test_a_dataset_is_measured(isoscope: Isoscope, tiny_bert: Path, folder: Path, tmp_path: Path) -> None:
    answer = isoscope("measure", tiny_bert, "--data", f"{folder}:test:text", "--out", tmp_path / "run")
    assert answer.code == 0, answer.err
    asked = question(tmp_path / "run")
    assert asked["data"] == f"{folder}:test:text"
    assert len(str(asked["data_hash"])) == 16
    assert "Resolving" not in answer.err
    assert "Generating" not in answer.err


def test_a_dataset_that_cannot_be_had(
    isoscope: Isoscope, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("datasets", reason="needs datasets")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert sentence(isoscope("measure", tiny_bert, "--data", "nobody/nothing:test:text")) == (
        "no dataset 'nobody/nothing': there is no such folder here, and the hub cannot be reached. "
        "Give a folder, or come back online."
    )


def test_a_split_a_column_and_a_model_that_do_not_fit(
    isoscope: Isoscope, tiny_bert: Path, folder: Path, tmp_path: Path
) -> None:
    assert sentence(isoscope("measure", tiny_bert, "--data", f"{folder}:train:text")) == (
        f"no split of '{folder}' is called 'train'. There are: test."
    )
    assert sentence(isoscope("measure", tiny_bert, "--data", f"{folder}:test:body")) == (
        f"no column of '{folder}' is called 'body'. There are: text."
    )
    sound = modal.save("wav2vec2", tmp_path / "wav2vec2")
    assert sentence(isoscope("measure", sound, "--data", f"{folder}:test:text")) == (
        f"column 'text' of '{folder}' holds text, and this model takes recordings; "
        "columns of recordings there: none."
    )
    assert sentence(isoscope("measure", sound, "--tokens", "bytes")) == (
        f"'{sound}' takes sound, which has no bytes; leave out --tokens."
    )


def test_listed(isoscope: Isoscope) -> None:
    told = isoscope("list", "data").out
    assert "ID:SPLIT:COLUMN" in told and "handwritten digits" in told


@pytest.mark.parametrize("tokens", ["bytes", "characters"])
def test_a_model_without_a_tokenizer(isoscope: Isoscope, folder: Path, tmp_path: Path, tokens: str) -> None:
    model, data = bare(tmp_path / "model", 256), f"{folder}:test:text"
    told = sentence(isoscope("measure", model, "--data", data))
    assert told.endswith("a folder that holds the tokenizer's files, or --tokens bytes or characters.")
    answer = isoscope("measure", model, "--data", data, "--tokens", tokens, "--out", tmp_path / "run")
    assert answer.code == 0, answer.err
    asked = question(tmp_path / "run")
    assert asked["alphabet"] == tokens
    assert asked["tokens"] == 40 * len("some words")
    assert answer.out.count("layer.") >= 1 + tiny.LAYERS


def test_tokens_that_do_not_fit(isoscope: Isoscope, tiny_bert: Path, tmp_path: Path) -> None:
    model = bare(tmp_path / "model", 120)
    assert sentence(isoscope("measure", model, "--tokens", "bytes")) == (
        "bytes need a vocabulary of 256, and this model knows 120 tokens; "
        "give plain text with --tokens characters, or batches of tensors."
    )
    (tmp_path / "a.txt").write_text("fine till the é\n")
    assert sentence(isoscope("measure", model, "--tokens", "characters", "--data", tmp_path / "a.txt")) == (
        "the character 'é' (U+00E9, 233) is beyond the 120 tokens this model knows; "
        "give text without it, or feed bytes."
    )
    assert sentence(isoscope("measure", tiny_bert, "--tokens", "byte")) == (
        "no kind of tokens is called 'byte'; did you mean 'bytes'? There are: auto, bytes, characters."
    )

"""A command line to type at, and a tiny model to point it at."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest


class Answer(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def isoscope(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Call the command with these words; gives its exit code and what it wrote."""
    from isoscope.cli.main import main

    def call(*words: str | Path) -> Answer:
        monkeypatch.setattr(sys, "argv", ["isoscope", *map(str, words)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        return Answer(code, *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two layers with random weights, saved with its tokenizer."""
    import torch
    import transformers

    from tests.models.tiny import VOCABULARY, tokenizer

    folder = tmp_path_factory.mktemp("models") / "tiny-bert"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.BertModel(
            transformers.BertConfig(
                vocab_size=VOCABULARY,
                hidden_size=24,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=32,
                max_position_embeddings=64,
            )
        )
    model.save_pretrained(folder)
    tokenizer("both").save_pretrained(folder)
    return folder

"""A small run of every kind, made by the command line from inputs that are the same everywhere."""

from __future__ import annotations

import contextlib
import io
import os
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

import numpy as np
import torch
import transformers

from tests.documented import tiny
from tests.models.tiny import CONFIGS, tokenizer
from tests.sweeps.trajectory import walk

_WORDS = (
    "the", "old", "river", "runs", "past", "a", "quiet", "town", "and", "every", "night", "some", "ships",
    "wait", "for", "rain", "while", "no", "one", "sleeps",
)  # fmt: skip
_TINY = "--layers 2 --width 16 --heads 2 --length 16 --batch-size 4 --device cpu --data corpus.txt"

COMMANDS: Mapping[str, str] = {
    "measure": "measure gpt2 --data corpus.txt --limit 24 --max-length 32 --heads --measures all",
    "cloud": "cloud vectors.npy --measures all",
    "weights": "weights gpt2 --length 32 --data corpus.txt --limit 12 --max-length 32",
    "compare": "compare runs/measure bert",
    "train": f"train characters {_TINY} --steps 16",
    "sweep": "sweep checkpoints --data corpus.txt --limit 12 --max-length 24 --heads --workers 0 "
    "--measures all",
    "contrast": f"contrast characters {_TINY} --attention softmax,qk-norm --entropies 2 --seeds 3 --steps 6 "
    "--parallel 1",
    "block": "block --norm post,pre --bias-norms 0,20,200 --width 32 --heads 2 --length 16 --sequences 8 "
    "--seeds 3 --passes 2",
    "reproduce": "reproduce godey2024 --claims pre-norm-reversal,untrained-block --seeds 3 --parallel 1 "
    "--device cpu --offline --data text=corpus.txt",
    "advise": "advise vectors.npy --with centre;abtt;whiten:8",
    "impact": "impact bert --pairs pairs.tsv --labels labels.tsv --retrieve seek.tsv --fit fit.txt "
    "--with centre;abtt,whiten:4 --max-length 32",
}
"""The command of each kind of run."""
_AFTER = {"compare": "measure"}
"""The run that a command reads."""


def give_inputs() -> None:
    """Write text, vectors, tasks and models into the working directory."""
    draw = random.Random(0)
    sentences = [" ".join(draw.choices(_WORDS, k=draw.randint(4, 9))) + f" {i}" for i in range(300)]
    Path("corpus.txt").write_text("\n".join(sentences * 2))
    Path("fit.txt").write_text("\n".join(f"again {line}" for line in sentences[230:]))
    pairs = [
        f"{a}\t{b}\t{draw.uniform(0, 5):.2f}" for a, b in zip(sentences[:40], sentences[40:80], strict=True)
    ]
    Path("pairs.tsv").write_text("sentence1\tsentence2\tscore\n" + "\n".join(pairs))
    labels = [f"{'river' if 'river' in line else 'none'}\t{line}" for line in sentences[80:200]]
    Path("labels.tsv").write_text("\n".join(labels))
    Path("seek.tsv").write_text(
        "\n".join(f"{line.split()[0]} {i}\t{line}" for i, line in enumerate(sentences[200:230]))
    )
    points = np.random.default_rng(0).standard_normal((300, 16)) + 1
    points[:, 3] *= 4
    np.save("vectors.npy", points.astype(np.float32))
    walk(Path("checkpoints"), [0, 1000, 2000, 4000, 8000])
    for seed, name in enumerate(("gpt2", "bert")):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            transformers.AutoModel.from_config(CONFIGS[name]()).save_pretrained(name)
        tokenizer("both", 64).save_pretrained(name)


def make(kind: str) -> None:
    """Run the command of a kind into `runs/KIND`; a paper is tried at the sizes of tests."""
    from isoscope.papers import scales

    if kind in _AFTER and not Path("runs", _AFTER[kind]).exists():
        make(_AFTER[kind])
    kept = scales.SCALES
    scales.SCALES = tuple(map(tiny, kept))
    try:
        call(*COMMANDS[kind].split(), "--out", f"runs/{kind}")
    finally:
        scales.SCALES = kept


def call(*words: str) -> list[str]:
    """What a command prints, line by line, on a terminal of 120 columns."""
    from isoscope.cli.main import main

    printed = io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(sys, "argv", ["isoscope", *words]))
        # `--offline` writes into the environment, which later tests must not see
        stack.enter_context(mock.patch.dict(os.environ, COLUMNS="120"))
        stack.enter_context(contextlib.redirect_stdout(printed))
        stack.enter_context(contextlib.redirect_stderr(printed))
        try:
            main()
        except SystemExit as end:
            assert not end.code, printed.getvalue()
    return printed.getvalue().splitlines()

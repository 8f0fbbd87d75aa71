"""Checkpoints of small models to find fault with."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch
import transformers

from isoscope.sweeps.find.checkpoints import Checkpoint, step_in
from tests.models.tiny import VOCABULARY, tokenizer


def tiny(seed: int = 0, *, kind: str = "bert", width: int = 16) -> transformers.PreTrainedModel:
    """A model of two layers with random weights."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if kind == "gpt2":
            return transformers.GPT2Model(
                transformers.GPT2Config(
                    vocab_size=VOCABULARY, n_embd=width, n_layer=2, n_head=2, n_positions=64
                )
            )
        return transformers.BertModel(
            transformers.BertConfig(
                vocab_size=VOCABULARY,
                hidden_size=width,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=32,
                max_position_embeddings=64,
            )
        )


def walk(
    folder: Path,
    steps: list[int],
    *,
    kind: str = "bert",
    width: int = 16,
    seed: int = 0,
    shards: str | None = None,
) -> list[Path]:
    """Folders of checkpoints whose weights drift and wander from step to step, with config and tokenizer."""
    model, generator = tiny(seed, kind=kind, width=width), torch.Generator().manual_seed(seed)
    drift = [torch.randn(weight.shape, generator=generator) for weight in model.parameters()]
    made, before = [], 0
    for step in steps:
        span = step - before
        with torch.no_grad():
            for weight, towards in zip(model.parameters(), drift, strict=True):
                noise = torch.randn(weight.shape, generator=generator)
                weight += 1e-4 * span * towards + 3e-3 * span**0.5 * noise
        before = step
        path = folder / f"step{step}"
        model.save_pretrained(path, **({"max_shard_size": shards} if shards else {}))
        tokenizer("both").save_pretrained(path)
        made.append(path)
    return made


def at(path: Path, step: int | None = None) -> Checkpoint:
    """The checkpoint at a path."""
    return Checkpoint(path.name, step_in(path.name) if step is None else step, str(path))


def copied(path: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(path, to)
    return to

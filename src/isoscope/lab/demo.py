"""The demonstration: a character-level Transformer learns the embedded text while its geometry is watched.

Measured untrained and at several points of training, on text that it is not trained on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import torch

from isoscope.data.documents import embedded
from isoscope.data.text import Text, text
from isoscope.lab.characters import Characters
from isoscope.lab.train import Recipe, next_token_loss, train
from isoscope.lab.transformer import Shape, Transformer, build
from isoscope.measures.table import choose
from isoscope.models.source import Model, fingerprint
from isoscope.results.schema import Row, Run
from isoscope.results.store import RunFolder
from isoscope.run.observe import observe
from isoscope.run.pictures import MOST
from isoscope.run.provenance import new_run

NAME = "character Transformer"
PROBES = 64  # sequences of the text that are measured on and not trained on
LOSS = {
    "family": "training",
    "title": "loss",
    "formula": "mean of −log p(next character), in nats",
    "says": "How well the model predicts the next character of text it was not trained on.",
    "null": "log of the size of the alphabet: every character equally likely",
    "interval": "none",
    "range": "0 to any size",
}


@dataclass(frozen=True)
class Demo:
    """What is trained, on what, and when it is looked at."""

    shape: Shape
    recipe: Recipe
    corpus: torch.Tensor
    probe: Text
    steps: tuple[int, ...]


def prepare(steps: int, seed: int) -> Demo:
    """Set the text apart into what is measured on (its beginning) and what is trained on (the rest)."""
    characters = Characters.of(embedded())
    shape = Shape(vocabulary=len(characters.alphabet))
    probe = text("embedded", characters, limit=PROBES, max_length=shape.length, batch_size=32, seed=seed)
    everything = torch.tensor(characters("".join(embedded()))["input_ids"])
    moments = sorted({0, *(round(steps * share) for share in (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1))})
    recipe = Recipe(steps=steps, seed=seed)
    return Demo(shape, recipe, everything[PROBES * shape.length :], probe, tuple(moments))


def question(demo: Demo) -> Run:
    """The run that this demonstration is."""
    asked: dict[str, object] = {
        **demo.probe.facts(),
        "shape": asdict(demo.shape),
        "recipe": asdict(demo.recipe),
    }
    run = new_run("demo", f"{NAME} in training", {**asked, "steps": list(demo.steps)}, choose())
    return replace(run, measures={**run.measures, "loss": LOSS})


def perform(demo: Demo, folder: RunFolder, progress: Callable[[int, int], None]) -> None:
    """Train and measure; what the folder has already is not measured again."""
    if all(folder.has(_unit(step)) for step in demo.steps):
        return
    model = build(demo.shape, demo.recipe.seed)
    for step in train(model, demo.corpus, demo.recipe):
        if step in demo.steps and not folder.has(_unit(step)):
            seen = observe(Model(model, NAME, step=step), demo.probe)
            rows = [*seen.rows(folder.run.id), _loss(model, demo, folder.run.id, step)]
            points = seen.points(MOST // len(demo.steps))
            folder.write(_unit(step), rows, {**seen.known(), "weights": fingerprint(model)}, points)
        progress(step, demo.recipe.steps)


def _unit(step: int) -> str:
    return f"step {step:06d}"


def _loss(model: Transformer, demo: Demo, run: str, step: int) -> Row:
    """The loss on the text that is measured on."""
    ids = torch.stack([row for row in demo.probe.sequences if len(row) == demo.shape.length])
    model.eval()
    with torch.no_grad():
        loss = float(next_token_loss(model, ids))
    null = math.log(demo.shape.vocabulary)
    return Row(run, NAME, "", step, "training", None, None, "loss", loss, ids[:, 1:].numel(), null)

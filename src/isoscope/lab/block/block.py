"""The untrained block: what a bias common to all inputs does to a fresh Transformer block.

Table and block start as BERT does. Sequences are drawn evenly from the table; a bias of norm N in one random
direction is added to every vector, and N is swept. A unit is one norm, one N and one seed, which fixes all
else, so that norms can be compared in pairs. A folder grows by more of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import cast

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.lab.block.parts import EXPLANATIONS, look_inside, read_scores
from isoscope.lab.model.transformer import Block, Shape, build
from isoscope.measures.table import choose
from isoscope.models.source import Model
from isoscope.models.tap import at_rest
from isoscope.results.points import points_frame
from isoscope.results.reading import Reading
from isoscope.results.row import Row
from isoscope.results.run import Run
from isoscope.results.store import RunFolder
from isoscope.run.observe.observe import describe, observe
from isoscope.run.provenance import new_run

INPUTS = ("normalised", "raw")
OF_VECTORS = ("mean_cosine", "mean_cosine_between", "drift", "relative_drift", "mean_norm")
OF_ATTENTION = (
    "entropy", "normalised_entropy", "largest_weight", "effective_keys", "largest_score", "score_std",
    "drift_share", "cross_term", "normalised_entropy_without_drift", "query_relative_drift",
    "key_relative_drift", "query_key_cosine",
)  # fmt: skip
OF_PASSES = ("mean_cosine", "mean_norm")
ITERATED = "iterated"
VOCABULARY = 5000  # rows of the table
AGAIN = 2  # sequences that are passed again and again: norms hardly differ between sequences

Answer = tuple[list[Row], dict[str, object], pd.DataFrame]


@dataclass(frozen=True)
class Setting:
    """What is the same for every unit; inputs are `raw` vectors of the table, or `normalised` to √d each."""

    width: int = 768
    heads: int = 12
    length: int = 512
    sequences: int = 16
    inputs: str = "normalised"
    passes: int = 12

    def __post_init__(self) -> None:
        if self.inputs not in INPUTS:
            raise unknown_name("kind of inputs", self.inputs, INPUTS)
        if min(self.length, self.sequences) < 2:
            raise IsoscopeError(
                f"a block is read on two sequences or more of two vectors or more; got {self.sequences} of "
                f"{self.length}."
            )
        self.shape("post")

    def shape(self, norm: str) -> Shape:
        """The shape of the model that table and block are taken from."""
        return Shape(VOCABULARY, self.width, 1, self.heads, self.length, norm=norm, causal=False)


@dataclass(frozen=True)
class Unit:
    """One norm, one norm of the bias, one seed; `model` and `revision` are columns of its rows."""

    norm: str
    bias: float
    seed: int

    @property
    def model(self) -> str:
        """The norm and the norm of the bias."""
        return f"{self.norm}, bias {self.bias:g}"

    @property
    def revision(self) -> str:
        """The seed."""
        return f"seed {self.seed}"

    @property
    def name(self) -> str:
        """The name of the unit in its run folder."""
        return f"{self.model}, {self.revision}"


def fresh(setting: Setting, unit: Unit) -> tuple[Block, Tensor]:
    """A fresh block, and inputs [b, t, d] with the bias in them: x + N·g/‖g‖, g Gaussian."""
    model = build(setting.shape(unit.norm), unit.seed)
    source = torch.Generator().manual_seed(unit.seed)
    drawn = torch.randint(VOCABULARY, (setting.sequences, setting.length), generator=source)
    direction = torch.randn(setting.width, generator=source, dtype=torch.float64)
    x = model.tokens.weight.detach()[drawn]
    if setting.inputs == "normalised":
        x = F.layer_norm(x, (setting.width,))
    return cast("Block", model.blocks[0]), x + (unit.bias * direction / direction.norm()).float()


def read_unit(setting: Setting, unit: Unit, run: str = "") -> Answer:
    """All that is read of one unit: rows, what is known of it, and histograms as points."""
    block, x = fresh(setting, unit)
    source = Model(nn.Sequential(block), unit.model, unit.revision)
    seen = observe(source, [x], measures=(*OF_VECTORS, *OF_ATTENTION))
    inside = look_inside(block, x)
    scores = read_scores(inside.query, inside.key)
    rows = seen.rows(run)
    for kind, stage in inside.stages.items():
        rows += _cloud_rows(stage, OF_VECTORS, unit, run, kind, 1)
    count = setting.sequences * setting.heads * setting.length
    at = (run, unit.model, unit.revision, None, "attention", 1, None)
    read = (scores.mean, scores.pooled_std, scores.smallest_weight)
    rows += [Row.at(*at, name, Reading(value, count)) for name, value in zip(EXPLANATIONS, read, strict=True)]
    rows += _passes(block, x[:AGAIN], setting.passes, unit, run)
    about = {"norm": unit.norm, "bias norm": unit.bias, "seed": unit.seed}
    rows = [replace(row, arm=unit.norm, setting=unit.bias, seed=unit.seed) for row in rows]
    return rows, {**seen.known(), **about}, points_frame(scores.points())


def _passes(block: Block, x: Tensor, passes: int, unit: Unit, run: str) -> Iterator[Row]:
    """Norms and cosines before the first pass through the block and after each: the layer is the pass."""
    for number in range(passes + 1 if passes else 0):
        yield from _cloud_rows(x, OF_PASSES, unit, run, ITERATED, number)
        if number < passes:
            with at_rest(block):
                x = block(x)


def _cloud_rows(
    cloud: Tensor, measures: tuple[str, ...], unit: Unit, run: str, kind: str, layer: int
) -> list[Row]:
    """Rows of vectors [b, t, d], at a site of this kind."""
    numbers = torch.arange(len(cloud)).repeat_interleave(cloud.shape[1])
    found = describe(cloud.flatten(0, 1), sequence=numbers, measures=measures).rows(run)
    return [replace(row, model=unit.model, revision=unit.revision, kind=kind, layer=layer) for row in found]


def run_of(setting: Setting) -> Run:
    """What is asked of every unit alike."""
    question = {**asdict(setting), "vocabulary": VOCABULARY, "initialisation": "N(0, .02²), norms 1 and 0"}
    chosen = choose((*OF_VECTORS, *OF_ATTENTION))
    run = new_run("block", "an untrained block under a common bias", question, chosen)
    return replace(run, measures={**run.measures, **EXPLANATIONS})


def units(norms: list[str], biases: tuple[float, ...], seeds: int) -> list[Unit]:
    """Every norm, bias and seed: seed by seed, so that a sweep is whole as soon as it can be."""
    return [Unit(norm, bias, seed) for seed, norm, bias in product(range(seeds), norms, biases)]


def make(setting: Setting, asked: list[Unit], folder: RunFolder) -> Iterator[tuple[int, int]]:
    """Read the units that the folder has not; gives how many are done, and of how many."""
    left = [unit for unit in asked if not folder.has(unit.name)]
    yield len(asked) - len(left), len(asked)
    for done, unit in enumerate(left, start=len(asked) - len(left) + 1):
        folder.write(unit.name, *read_unit(setting, unit, folder.run.id))
        yield done, len(asked)


def parse_bias_norms(written: str) -> tuple[float, ...]:
    """A list of norms, none negative, in order and each once.

    >>> parse_bias_norms("0, 50,20,50")
    (0.0, 20.0, 50.0)
    """
    try:
        found = {float(word) for word in written.split(",") if word.strip()}
    except ValueError:
        found = set()
    if not found or not all(0 <= each < float("inf") for each in found):
        raise IsoscopeError(f"--bias-norms is a list of norms from 0 on, such as 0,20,50; got '{written}'.")
    return tuple(sorted(found))

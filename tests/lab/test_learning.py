"""Each variant learns what needs sharp attention: to find the one place that matches, wherever it is."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from isoscope.lab.model.transformer import Shape, Transformer, build
from isoscope.lab.variants.convolution import REACH
from isoscope.lab.variants.table import VARIANTS, Variant
from tests.tiers import nightly

KEYS, VALUES = 12, 4  # as many places as keys, each with one of the values
CHANCE = 1 / VALUES
ALWAYS = ("softmax", "convolution", "differential")  # the other variants train in `make nightly`
STEPS = {"sigma": 400}  # its γ grows by no more than the rate a step


def recall(size: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Places of a key and a value each, vectors [b, t, c]; then a key alone, and the value that it had [b].

    The place that is asked for lies farther back than the convolution reaches.
    """
    keys = torch.stack([torch.randperm(KEYS, generator=random) for _ in range(size)])
    values = torch.randint(VALUES, (size, KEYS), generator=random)
    asked = torch.randint(KEYS - REACH + 1, (size,), generator=random)
    one = torch.arange(size)
    places = torch.cat([F.one_hot(keys, KEYS), F.one_hot(values, VALUES)], -1)
    question = torch.cat([F.one_hot(keys[one, asked], KEYS), torch.zeros(size, VALUES, dtype=torch.long)], -1)
    return torch.cat([places, question[:, None]], 1).float(), values[one, asked]


def learn(variant: Variant, steps: int) -> Transformer:
    shape = Shape(
        KEYS + VALUES, width=24, layers=1, heads=2, length=KEYS + 1, vectors=True, outputs=VALUES,
        attention=variant.name,
    )  # fmt: skip
    model, random = build(shape, seed=0), torch.Generator().manual_seed(0)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = 1e-2 * min(1, (step + 1) / 20, (steps - step) / 50)
        given, answer = recall(64, random)
        loss = F.cross_entropy(model(given)[:, -1], answer)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    return model.eval()


def accuracy(model: Transformer) -> float:
    given, answer = recall(400, torch.Generator().manual_seed(1))
    return float((model(given)[:, -1].argmax(-1) == answer).float().mean())


@pytest.mark.parametrize(
    "variant",
    [variant if variant.name in ALWAYS else nightly(variant)[0] for variant in VARIANTS],
    ids=lambda variant: variant.name,
)
def test_it_learns_to_find_the_one_place_that_matches(variant: Variant):
    found = accuracy(learn(variant, STEPS.get(variant.name, 250)))
    if variant.name == "convolution":
        assert abs(found - CHANCE) < 0.1  # it does not reach so far
    else:
        assert found > 0.9

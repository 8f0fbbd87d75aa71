"""The small CNN: it takes patches as a square, and BatchNorm goes on with training that was stopped."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from isoscope.errors import IsoscopeError
from isoscope.lab.model.cnn import Cnn, Grid, build
from isoscope.lab.train.experiment import Experiment
from isoscope.lab.train.training import Recipe, Training


@pytest.mark.parametrize("norm", ["batch", "none"])
def test_forward_is_its_definition(norm: str) -> None:
    grid = Grid(channels=3, patches=9, outputs=4, width=5, layers=2, norm=norm)
    model = build(grid, 0).double().eval()
    if norm == "batch":
        for block in model.blocks:  # as training leaves them
            for each in (block.norm_first, block.norm_second):
                torch.nn.init.uniform_(each.running_mean)
                torch.nn.init.uniform_(each.running_var, 0.5, 2)
    patches = torch.randn(2, 9, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    square = torch.zeros(2, 3, 3, 3, dtype=torch.float64)
    for place in range(9):
        square[:, :, place // 3, place % 3] = patches[:, place]

    def normed(x: torch.Tensor, each: torch.nn.Module) -> torch.Tensor:
        if norm == "none":
            return x
        mean, spread = each.running_mean[:, None, None], (each.running_var + each.eps).sqrt()[:, None, None]
        return (x - mean) / spread * each.weight[:, None, None] + each.bias[:, None, None]

    x = F.conv2d(square, model.enter.weight, model.enter.bias, padding=1).clamp_min(0)
    for block in model.blocks:
        first, second = block.first, block.second
        inner = normed(F.conv2d(x, first.weight, first.bias, padding=1), block.norm_first).clamp_min(0)
        x = (x + normed(F.conv2d(inner, second.weight, second.bias, padding=1), block.norm_second)).clamp_min(
            0
        )
    torch.testing.assert_close(model(patches), x.mean((2, 3)) @ model.head.weight.T + model.head.bias)


def test_what_is_no_square_is_refused() -> None:
    with pytest.raises(IsoscopeError, match="a CNN takes squares, and 12 patches are none"):
        Grid(1, 12, 2)
    with pytest.raises(IsoscopeError, match=r"no norm of a CNN is called 'layer'\. There are: batch, none"):
        Grid(1, 9, 2, norm="layer")


def test_the_same_seed_is_the_same_network() -> None:
    state = torch.get_rng_state()
    one, two, other = (build(Grid(1, 4, 2), seed).state_dict() for seed in (0, 0, 1))
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not torch.equal(one["enter.weight"], other["enter.weight"])


def test_it_goes_on_to_the_same_weights() -> None:
    experiment = Experiment(
        "images", "cnn", norm="batch", layers=1, width=4, recipe=Recipe(steps=4, batch_size=8)
    )
    lesson = experiment.lesson()

    def begin() -> Training:
        return Training(experiment.build(lesson), lesson, experiment.recipe)

    whole, first, second = begin(), begin(), begin()
    assert isinstance(whole.model, Cnn)
    list(whole.steps())
    next(step for step in first.steps() if step == 2)
    second.restore(first.state())
    assert list(second.steps()) == [2, 3, 4]
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, second.model.state_dict()[name]), name
    assert int(whole.model.state_dict()["blocks.0.norm_first.num_batches_tracked"]) == 4

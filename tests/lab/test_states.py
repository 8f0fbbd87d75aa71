"""What is kept from step to step: the singular vectors of σReparam, the mean of earlier queries."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from isoscope.lab.model.transformer import Shape, build
from isoscope.lab.variants.centred import KEPT, CentredQueries
from isoscope.lab.variants.sigma import SigmaLinear
from isoscope.models.weights import open_weights
from tests.lab import naive


def vectors(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def spectral(matrix: torch.Tensor) -> float:
    return float(torch.linalg.svdvals(matrix.detach())[0])


def test_sigma_starts_as_the_plain_projection():
    linear = SigmaLinear(5, 3).double()
    torch.testing.assert_close(linear.weight, linear.direction, rtol=1e-5, atol=1e-6)
    x = vectors(2, 5)
    torch.testing.assert_close(linear.eval()(x), x @ linear.weight.T + linear.bias)


def test_sigma_has_the_spectral_norm_gamma_after_some_steps():
    linear = SigmaLinear(7, 5).double()
    optimiser = torch.optim.SGD(linear.parameters(), lr=0.05)
    x, aim = vectors(64, 7), vectors(64, 5, seed=1)
    for _ in range(40):
        optimiser.zero_grad()
        (linear(x) - aim).square().mean().backward()
        optimiser.step()
    gain = float(linear.gain.detach())
    assert abs(spectral(linear.direction) - gain) > 0.01  # it is the division that does it
    for _ in range(3):
        linear(x)  # the last step moved W after its vectors
    assert spectral(linear.weight) == pytest.approx(gain, rel=1e-3)


def test_the_power_iteration_moves_once_a_training_forward_and_never_in_eval():
    linear = SigmaLinear(7, 5).double()
    with torch.no_grad():
        linear.direction.copy_(vectors(5, 7, seed=3))
    left = linear.left.clone()
    right = torch.nn.functional.normalize(linear.direction.mT @ left, dim=0)
    linear(vectors(2, 7))
    torch.testing.assert_close(linear.right, right)
    torch.testing.assert_close(linear.left, torch.nn.functional.normalize(linear.direction @ right, dim=0))
    kept = linear.left.clone(), linear.right.clone()
    linear.eval()
    linear(vectors(2, 7))
    assert torch.equal(linear.left, kept[0]) and torch.equal(linear.right, kept[1])


def test_sigma_s_gradient_holds_its_vectors_still():
    linear = SigmaLinear(4, 3).double().eval()
    with torch.no_grad():
        linear.direction.copy_(vectors(3, 4, seed=3))
    x = vectors(2, 4)

    def of(direction: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(linear, {"direction": direction, "gain": gain}, (x,))

    given = [part.detach().clone().requires_grad_() for part in (linear.direction, linear.gain)]
    assert torch.autograd.gradcheck(of, given)


def test_two_training_forwards_before_one_backward_are_allowed():
    linear = SigmaLinear(4, 3)
    (linear(torch.ones(1, 4)) + linear(torch.ones(2, 4)).sum()).sum().backward()
    assert linear.direction.grad is not None


def test_sigma_is_read_as_what_it_does_and_comes_back_from_what_is_saved():
    model = build(Shape(7, width=8, layers=2, heads=2, length=6, attention="sigma"), seed=0)
    ids = torch.randint(7, (2, 6), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for part in model.modules():
            if isinstance(part, SigmaLinear):
                part.gain.mul_(3)
    read = next(iter(open_weights(model, living=True).projections()))
    query = model.blocks[0].attention.query
    torch.testing.assert_close(read.query[1], query.weight[4:].T)
    assert spectral(query.weight) == pytest.approx(3 * spectral(query.direction), rel=1e-5)
    read.query.sum().backward()
    assert query.gain.grad is not None
    again = build(Shape(7, width=8, layers=2, heads=2, length=6, attention="sigma"), seed=1)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again.eval()(ids), model.eval()(ids))


@pytest.mark.parametrize("counts", [None, torch.tensor([[1, 1, 0], [1, 0, 0]])], ids=["whole", "padded"])
def test_the_mean_is_that_of_earlier_steps_alone(counts: torch.Tensor | None):
    module = CentredQueries(naive.PLACE).double().train()
    steps = [naive.given(length=3, counts=counts, seed=seed) for seed in range(4)]
    mean = torch.zeros(naive.HEADS, naive.WIDTH // naive.HEADS, dtype=torch.float64)
    for given in steps:
        plain = replace(given, query=given.query - mean[None, :, None])
        torch.testing.assert_close(module(given), plain.softmax(plain.query, plain.key))
        there = torch.ones(2, 3) if counts is None else counts
        own = torch.stack([given.query[:, head][there.bool()].mean(0) for head in range(naive.HEADS)])
        mean = KEPT * mean + (1 - KEPT) * own
        torch.testing.assert_close(module.mean[:, 0], mean)


def test_the_mean_stands_still_in_eval_and_has_no_gradient():
    module = CentredQueries(naive.PLACE).double().eval()
    given = naive.given()
    module(given)
    assert not module.mean.any()
    module.train()
    query = given.query.clone().requires_grad_()
    module(replace(given, query=query)).sum().backward()
    assert module.mean.any() and not module.mean.requires_grad

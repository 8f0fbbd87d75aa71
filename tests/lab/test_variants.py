"""Laws of every line of VARIANTS: a new variant is picked up by itself, once naive.py has its formula."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from scipy import optimize
from torch import Tensor

from isoscope.lab.model.transformer import Shape, build
from isoscope.lab.variants.maps import entmax, sparsemax
from isoscope.lab.variants.table import VARIANTS, Variant
from tests.lab import naive

RIGHT = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
LEFT = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 1, 1]])  # the first queries see no key where causal
CASES = {
    "causal": {},
    "both ways": {"causal": False},
    "padded": {"counts": RIGHT},
    "padded in front": {"counts": LEFT},
    "padded, both ways": {"causal": False, "counts": RIGHT == 1},
    "one position": {"length": 1},
    "longer than any reach": {"length": 13, "size": 1},
    "longer, both ways": {"length": 13, "size": 1, "causal": False},
}
every = pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)


def test_every_variant_has_a_naive_definition():
    assert {*naive.MAPS, "convolution"} == {variant.name for variant in VARIANTS}
    assert len({variant.name for variant in VARIANTS}) == len(VARIANTS)


@every
@pytest.mark.parametrize("case", CASES)
def test_forward_equals_the_formula(variant: Variant, case: str):
    given = naive.given(**CASES[case])
    module = naive.made(variant)
    expected = naive.forward(variant.name, module, given)
    assert expected.abs().max() > 0.01
    torch.testing.assert_close(module(given), expected, rtol=0, atol=1e-12)


def test_a_wrong_formula_would_be_seen():
    given = naive.given()
    one, other = (v for v in VARIANTS if v.name in ("softmax", "log-length"))
    assert not torch.allclose(naive.made(one)(given), naive.forward(other.name, naive.made(other), given))


@every
@pytest.mark.parametrize("counts", [None, LEFT[:1, 1:]], ids=["whole", "padded in front"])
def test_gradients_equal_finite_differences(variant: Variant, counts: Tensor | None):
    module = naive.made(variant)
    given = naive.given(length=4, size=1, counts=counts)
    names = [name for name, _ in module.named_parameters()]
    inputs = [x.requires_grad_() for x in (given.hidden, given.query, given.key, given.value)]

    def of(hidden: Tensor, query: Tensor, key: Tensor, value: Tensor, *parameters: Tensor) -> Tensor:
        changed = replace(given, hidden=hidden, query=query, key=key, value=value)
        return torch.func.functional_call(module, dict(zip(names, parameters, strict=True)), (changed,))

    parameters = [weight.detach().clone().requires_grad_() for weight in module.parameters()]
    assert torch.autograd.gradcheck(of, (*inputs, *parameters), atol=1e-6, check_undefined_grad=False)


@every
def test_nothing_leaks_from_the_future(variant: Variant):
    model = build(Shape(7, width=8, layers=2, heads=2, length=13, attention=variant.name), seed=0).eval()
    ids = torch.randint(7, (2, 13), generator=torch.Generator().manual_seed(0))
    before = model(ids)
    for at in (1, 6, 12):
        later = ids.clone()
        later[:, at:] = (later[:, at:] + 1) % 7
        after = model(later)
        assert torch.equal(before[:, :at], after[:, :at])
        assert not torch.equal(before[:, at], after[:, at])


@every
@pytest.mark.parametrize("causal", [True, False])
def test_padding_is_as_if_it_were_not_there(variant: Variant, causal: bool):
    shape = Shape(7, width=8, layers=2, heads=2, length=11, attention=variant.name, causal=causal)
    model = build(shape, seed=0).double().eval()
    ids = torch.randint(7, (3, 11), generator=torch.Generator().manual_seed(0))
    counts = (torch.arange(11) < torch.tensor([[11], [6], [1]])).long()
    padded = model(ids, counts)
    for row, length in enumerate((11, 6, 1)):
        torch.testing.assert_close(padded[row, :length], model(ids[row : row + 1, :length])[0])


@every
def test_padding_in_front_spreads_no_nan(variant: Variant):
    shape = Shape(7, width=8, layers=2, heads=2, length=5, attention=variant.name)
    model = build(shape, seed=0)
    out = model(torch.randint(7, (2, 5), generator=torch.Generator().manual_seed(0)), LEFT)
    out[LEFT.bool()].sum().backward()
    assert out.isfinite().all()
    assert all(weight.grad.isfinite().all() for weight in model.parameters() if weight.grad is not None)


@every
@pytest.mark.parametrize("autocast", [True, False], ids=["autocast", "whole"])
def test_half_precision_is_near(variant: Variant, autocast: bool):
    shape = Shape(7, width=16, layers=2, heads=2, length=33, attention=variant.name)
    model, ids = build(shape, seed=0), torch.randint(7, (2, 33), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith(("query.weight", "key.weight", "direction")):
                weight.mul_(20)
    exact = model(ids)
    if autocast:
        with torch.autocast("cpu", torch.bfloat16):
            rounded = model(ids)
        rounded.float().sum().backward()
        assert all(w.grad is None or w.grad.isfinite().all() for w in model.parameters())
    else:
        rounded = model.bfloat16()(ids)
    assert rounded.dtype == torch.bfloat16
    assert (rounded.float() - exact).norm() < 0.05 * exact.norm()


# ── sparse maps, against what they are defined as ────────────────────────────────────────────────────────


def nearest(scores: Tensor) -> Tensor:
    """argmin ‖p − s‖² over the simplex, by a solver that knows nothing of thresholds."""
    aim = scores.numpy()
    found = optimize.minimize(
        lambda p: ((p - aim) ** 2).sum(),
        x0=[1 / len(aim)] * len(aim),
        jac=lambda p: 2 * (p - aim),
        bounds=[(0, None)] * len(aim),
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1, "jac": lambda p: p * 0 + 1},
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return torch.tensor(found.x)


@pytest.mark.parametrize("seed", range(6))
def test_sparsemax_is_the_nearest_point_of_the_simplex(seed: int):
    scores = torch.randn(9, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    torch.testing.assert_close(sparsemax(scores), nearest(scores), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("weigh", "alpha"), [(sparsemax, 2.0), (entmax, 1.5)])
def test_sparse_maps_equal_bisection(weigh, alpha: float):
    random = torch.Generator().manual_seed(2)
    for length in (1, 2, 3, 17, 64):
        for size in (1e-3, 1.0, 30.0, 1e4):
            scores = size * torch.randn(length, generator=random, dtype=torch.float64)
            expected = torch.tensor(naive.bisected(scores.tolist(), alpha), dtype=torch.float64)
            hidden = torch.cat([scores, torch.full((2,), -torch.inf)])
            found = weigh(hidden)
            assert found[-2:].tolist() == [0, 0]
            torch.testing.assert_close(found[:-2], expected, rtol=0, atol=1e-9)
            torch.testing.assert_close(weigh(hidden.float()).double()[:-2], expected, rtol=0, atol=2e-5)
            assert abs(float(found.sum()) - 1) < 1e-9


@pytest.mark.parametrize("weigh", [sparsemax, entmax])
def test_sparse_maps_of_ties_and_their_gradient(weigh):
    scores = torch.tensor([[2.0, 2.0, 2.0, -9.0], [0.0, 0.0, -torch.inf, -torch.inf], [5.0, 0.0, 0.0, 0.0]])
    scores = scores.double().requires_grad_()
    found = weigh(scores)
    expected = [[1 / 3, 1 / 3, 1 / 3, 0], [0.5, 0.5, 0, 0], [1, 0, 0, 0]]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))
    (found * torch.arange(4)).sum().backward()
    assert scores.grad is not None and scores.grad.isfinite().all()
    torch.testing.assert_close(scores.grad[2], torch.zeros(4, dtype=torch.float64))

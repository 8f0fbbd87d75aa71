"""What W predicts of inputs that walk at random: exact moments, the closed form, the simulation, regimes."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import spearmanr
from torch import Tensor

from isoscope.geometry.propagation import (
    attention_profiles,
    is_gaussian,
    profile_agreement,
    propagation,
    regime,
    signal_propagation,
    simulate_propagation,
    walk_moments,
)
from isoscope.geometry.spectra import factors, qk_matrix
from isoscope.kernels.spectra import qk_spectrum

UPPER = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.2, 0.1], [0.0, 0.0, -0.1]], dtype=torch.float64)


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def basis(seed: int, width: int, rank: int) -> Tensor:
    return torch.linalg.qr(normal(seed, width, rank))[0]


def numbers(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """tr W, tr W², ‖W‖_F²."""
    return matrix.trace(), (matrix @ matrix).trace(), (matrix**2).sum()


def literal(matrix: Tensor, length: int, walks: int, seed: int = 1) -> Tensor:
    """The scores of the last of `length` inputs in d dimensions, walk by walk, [walks, T]."""
    inputs = normal(seed, walks, length, len(matrix)).cumsum(1)
    return torch.einsum("ni,ij,ntj->nt", inputs[:, -1], matrix, inputs)


def passes(scores: Tensor) -> Tensor:
    """Whether the signal of each score passes, [walks, T]."""
    apart = scores - scores.mean(1, keepdim=True)
    return ((apart >= -1) & (apart <= scores.shape[1] - 1)).double()


def assert_within(found: Tensor, error: Tensor, sample: Tensor, times: float = 4.5) -> None:
    """`found` is the mean of `sample` [n, T], as far as the standard errors of both can tell."""
    spread = (error**2 + sample.var(0) / len(sample)).sqrt() + 1e-3
    assert bool(((found - sample.mean(0)).abs() <= times * spread).all())


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_moments_are_those_of_the_quadratic_form(length: int, seed: int) -> None:
    """ω_t − ω̄ = ξᵀAξ in all increments ξ, which has mean tr A and variance 2‖sym A‖_F²."""
    matrix = normal(seed, 4, 4)
    mean, variance = walk_moments(*numbers(matrix), length)
    steps = torch.ones(length, length, dtype=torch.float64).tril()  # x = steps·ξ
    for t in range(length):
        apart = steps[t] - steps.mean(0)
        form = torch.kron(torch.outer(steps[-1], apart), matrix)
        assert float(mean[t]) == pytest.approx(float(form.trace()), abs=1e-9)
        assert float(variance[t]) == pytest.approx(float(2 * (((form + form.T) / 2) ** 2).sum()), abs=1e-9)


def test_moments_are_those_of_walks() -> None:
    matrix = normal(4, 5, 5)
    scores = literal(matrix, 6, 100_000)
    apart = scores - scores.mean(1, keepdim=True)
    mean, variance = walk_moments(*numbers(matrix), 6)
    assert_within(mean, torch.zeros(6), apart)
    torch.testing.assert_close(apart.var(0), variance, rtol=0.05, atol=0.0)
    wrong = walk_moments(*numbers(matrix.T @ matrix), 6)[1]  # the test can fail
    assert not torch.allclose(apart.var(0), wrong, rtol=0.05, atol=0.0)


def test_without_spread_signal_passes_where_the_mean_lies() -> None:
    trace, none = torch.tensor([0.0, 1.0, -2.0, math.nan]), torch.zeros(4)
    found = signal_propagation(trace, none, none, 5)  # means −2 … 2 times the trace, bounds −1 and 4
    right = [[1, 1, 1, 1, 1], [0, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    assert found[:3].tolist() == right
    assert found[3].isnan().all()
    assert signal_propagation(trace[:3], none[:3], torch.ones(3), 1).tolist() == [[1.0]] * 3


LOW = {
    "rank one": factors(normal(1, 6, 1), normal(2, 6, 1), scale=0.1),
    "rank one, symmetric": factors(normal(1, 6, 1), normal(1, 6, 1), scale=0.1),
    "rank three": factors(normal(3, 6, 3), normal(4, 6, 3), scale=0.2),
    "wider than the model": factors(normal(3, 2, 5), normal(4, 2, 5), scale=-0.2),
    "not symmetric": factors(UPPER, torch.eye(3), scale=1.0),
}


@pytest.mark.parametrize("name", LOW)
def test_the_simulation_is_that_of_literal_walks(name: str) -> None:
    parts = LOW[name]
    found = simulate_propagation(parts, 9, walks=20_000)
    assert_within(found.value[0], found.error[0], passes(literal(parts.query[0] @ parts.key[0].T, 9, 40_000)))


def test_the_comparison_with_literal_walks_can_fail() -> None:
    sample = passes(literal(UPPER, 9, 40_000))
    for wrong in (factors(UPPER, torch.eye(3), scale=1.3), factors(UPPER.abs(), torch.eye(3), scale=1.0)):
        found = simulate_propagation(wrong, 9, walks=20_000)
        with pytest.raises(AssertionError):
            assert_within(found.value[0], found.error[0], sample)


def test_the_covariance_of_increments_enters() -> None:
    wq, wk, step = normal(5, 4, 6, 2), normal(6, 2, 6, 2), normal(7, 6, 6) / 3
    gamma = normal(8, 6)
    found = simulate_propagation(factors(wq, wk, gamma=gamma, root=step), 7, walks=20_000)
    inputs = (normal(9, 40_000, 7, 6) @ step.T).cumsum(1)  # increments of covariance step·stepᵀ
    for head, matrix in enumerate(qk_matrix(wq, wk, gamma=gamma)):
        scores = torch.einsum("ni,ij,ntj->nt", inputs[:, -1], matrix, inputs)
        assert_within(found.value[head], found.error[head], passes(scores))


def test_a_seed_gives_one_result_whatever_the_other_heads() -> None:
    wq, wk = normal(1, 4, 8, 3), normal(2, 2, 8, 3)
    all_heads = simulate_propagation(factors(wq, wk), 10, walks=300, seed=5)
    alone = simulate_propagation(factors(wq[2], wk[1]), 10, walks=300, seed=5)
    assert torch.equal(all_heads.value[2], alone.value[0])
    other = simulate_propagation(factors(wq[2], wk[1]), 10, walks=300, seed=6)
    assert not torch.equal(other.value, alone.value)


def test_the_standard_error_is_that_of_many_simulations() -> None:
    parts = LOW["rank three"]
    runs = [simulate_propagation(parts, 12, walks=150, seed=seed) for seed in range(200)]
    spread = torch.stack([run.value for run in runs]).std(0)
    said = torch.stack([run.error for run in runs]).mean(0)
    assert bool(((said / spread - 1).abs() < 0.25).all())


def off(wq: Tensor, wk: Tensor, norms: tuple[float, ...], length: int = 40) -> float:
    """How far closed form and simulation are apart at most, W scaled to each of these ‖W‖_F."""
    size = float((wq @ wk.T).norm())
    worst = 0.0
    for norm in norms:
        spectrum, parts = (make(wq, wk, scale=norm / size) for make in (qk_spectrum, factors))
        drawn = simulate_propagation(parts, length, walks=6000)
        closed = signal_propagation(spectrum.trace, spectrum.trace_square, spectrum.frobenius_square, length)
        worst = max(worst, float((closed - drawn.value).abs().max()))
    return worst


SIGNS = torch.where(torch.arange(128) % 2 == 0, 1.0, -1.0).double()
LEANING = torch.where(torch.arange(40) < 25, 1.0, -1.0).double()  # a quarter of the identity's trace
NORMS = (0.01, 0.1, 0.5, 3.0)


def gaussian(wq: Tensor, wk: Tensor) -> bool:
    return bool(is_gaussian(qk_spectrum(wq, wk)))


@pytest.mark.parametrize(
    ("name", "wq", "wk"),
    [
        ("traceless, symmetric", basis(1, 70, 40), basis(1, 70, 40) * SIGNS[:40]),
        ("leaning", torch.eye(40).double(), torch.eye(40).double() * LEANING),
        ("not symmetric", basis(1, 70, 40), basis(2, 70, 40)),
        ("random factors", normal(1, 300, 100), normal(2, 300, 100)),
        ("identity", torch.eye(128).double(), torch.eye(128).double()),
    ],
)
def test_the_closed_form_is_within_two_hundredths_where_it_is_taken(
    name: str, wq: Tensor, wk: Tensor
) -> None:
    assert gaussian(wq, wk)
    assert off(wq, wk, NORMS) < 0.02 + 0.005 * (name == "identity")  # what 6,000 walks add


@pytest.mark.parametrize("rank", [40, 64])
def test_the_closed_form_is_not_taken_where_it_is_further_off(rank: int) -> None:
    identity = torch.eye(rank).double()
    assert not gaussian(identity, identity)
    assert off(identity, identity, NORMS) > 0.02
    assert gaussian(identity, identity * SIGNS[:rank])


def test_positions_can_be_chosen() -> None:
    wq, wk = normal(1, 3, 60, 40), normal(2, 3, 60, 40)
    wq[0, :, 2:] = 0
    some = torch.tensor([1, 5, 11])
    spectrum, parts = qk_spectrum(wq, wk), factors(wq, wk)
    everywhere = propagation(spectrum, parts, 11, walks=200)
    there = propagation(spectrum, parts, 11, walks=200, positions=some)
    torch.testing.assert_close(there.value, everywhere.value[:, some - 1])
    torch.testing.assert_close(there.error, everywhere.error[:, some - 1], equal_nan=True)
    assert there.way == everywhere.way


@pytest.mark.parametrize("rank", [1, 2])
def test_the_closed_form_is_off_below(rank: int) -> None:
    assert off(basis(1, 9, rank), basis(1, 9, rank), NORMS) > 0.1
    assert off(basis(1, 9, rank), basis(2, 9, rank), NORMS) > 0.05


def test_each_head_goes_the_way_its_rank_asks_for() -> None:
    wq, wk = normal(1, 5, 60, 40), normal(2, 5, 60, 40)
    wq[0, :, 2:] = 0  # rank two
    wq[1:3], wk[1:3] = basis(3, 60, 40) / 5, basis(4, 60, 40)  # rank 40
    wq[3] = 0
    wq[4, 0, 0] = math.nan
    spectrum, parts = qk_spectrum(wq, wk), factors(wq, wk)
    found = propagation(spectrum, parts, 11, walks=500, seed=3)
    assert found.way == ("simulation", "closed form", "closed form", "closed form", "closed form")
    closed = signal_propagation(spectrum.trace, spectrum.trace_square, spectrum.frobenius_square, 11)
    drawn = simulate_propagation(parts, 11, walks=500, seed=3)
    assert torch.equal(found.value[0], drawn.value[0]) and torch.equal(found.error[0], drawn.error[0])
    assert torch.equal(found.value[1:4], closed[1:4]) and found.error[1:].isnan().all()
    assert (found.value[3] == 1).all() and found.value[4].isnan().all() and drawn.value[4].isnan().all()


def test_grouped_heads_are_simulated_with_their_own_key_head() -> None:
    wq, wk = normal(1, 4, 9, 2), normal(2, 2, 9, 2)
    found = propagation(qk_spectrum(wq, wk), factors(wq, wk), 8, walks=200)
    for head, group in enumerate((0, 0, 1, 1)):
        apart = propagation(qk_spectrum(wq[head], wk[group]), factors(wq[head], wk[group]), 8, walks=200)
        torch.testing.assert_close(found.value[head], apart.value[0], rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("name", LOW)
def test_attention_profiles_are_those_of_literal_walks(name: str) -> None:
    parts = LOW[name]
    true, linear = attention_profiles(parts, 9, walks=20_000)
    scores = literal(parts.query[0] @ parts.key[0].T, 9, 40_000)
    assert_within(true.value[0], true.error[0], scores.softmax(1))
    apart = scores - scores.mean(1, keepdim=True)
    assert_within(linear.value[0], linear.error[0], ((1 + apart) / 9).clamp(0, 1))
    assert float(true.value.sum()) == pytest.approx(1)
    assert (true.value - linear.value).abs().max() > 0.01  # they are not one thing


def test_both_softmaxes_are_alike_where_scores_are_small() -> None:
    true, linear = attention_profiles(factors(normal(1, 6, 3), normal(2, 6, 3), scale=1e-4), 12, walks=500)
    torch.testing.assert_close(true.value, linear.value, rtol=0.0, atol=1e-5)


T = 1000
LARGE = 10 * math.sqrt(12)


@pytest.mark.parametrize(
    ("theta", "square", "norm", "label"),
    [
        (0.0, 0.0, 0.99e-4, "uniform"),
        (0.0, 0.0, 1.1e-4, "undecided"),  # not much less than 1/T
        (1.9e-4, 0.0, 0.99e-4, "uniform"),
        (-1.9e-4, 0.0, 0.99e-4, "uniform"),
        (2.1e-4, 0.0, 0.99e-4, "undecided"),  # the mean moves as far as the bound
        (-2.1e-4, 0.0, 0.99e-4, "undecided"),
        (0.0, 0.0, 0.99e-2, "undecided"),
        (0.0, 0.0, 1.01e-2, "uniform_half"),
        (0.0, 0.0, 0.099, "uniform_half"),
        (0.0, 0.0, 0.101, "undecided"),
        (0.011, 0.0, 0.099, "uniform_half"),  # σ = .0572, a tenth of it is θ/2 = .0057
        (0.012, 0.0, 0.099, "undecided"),
        (-0.011, 0.0, 0.099, "uniform_half"),
        (-0.012, 0.0, 0.099, "undecided"),
        (0.110, 0.0, 0.099, "undecided"),
        (0.115, 0.0, 0.099, "late"),
        (-0.110, 0.0, 0.099, "undecided"),
        (-0.115, 0.0, 0.099, "early"),
        (0.115, 0.0098, 0.099, "undecided"),  # tr W² > 0 widens σ
        (0.058, -0.0098, 0.099, "late"),  # and tr W² < 0 narrows it
        (0.0201, 0.0, 1e-3, "late"),
        (0.0199, 0.0, 1e-3, "undecided"),  # θ/2 is not much more than 1/T
        (2.0, 0.0, 1.0, "late"),
        (2.01, 0.0, 1.0, "middle"),
        (-2.0, 0.0, 1.0, "early"),
        (-2.01, 0.0, 1.0, "middle_early"),
        (500.0, 0.0, LARGE - 0.1, "middle"),
        (500.0, 0.0, LARGE + 0.1, "vanishing"),
        (0.0, 0.0, LARGE - 0.1, "undecided"),
        (-500.0, 0.0, LARGE + 0.1, "vanishing"),
        (math.nan, 0.0, 1.0, "undecided"),
        (math.nan, math.nan, math.nan, "undecided"),
    ],
)
def test_regimes_on_both_sides_of_every_inequality(
    theta: float, square: float, norm: float, label: str
) -> None:
    heads = [torch.tensor([0.0, number]).double() for number in (theta, square, norm**2)]
    assert regime(*heads, T) == ("uniform", label)


@pytest.mark.parametrize(
    ("theta", "norm", "label", "high", "low"),  # high and low: u where the signal passes, where it does not
    [
        (0.0, 1e-4, "uniform", (0.0, 0.5, 1.0), ()),
        (1.0, 0.2, "late", (0.75, 0.9), (0.1, 0.25)),
        (-1.0, 0.2, "early", (0.1, 0.25), (0.75, 0.9)),
        (6.0, 0.1, "middle", (0.55, 0.6), (0.1, 0.4, 0.75, 0.95)),
        (-6.0, 0.1, "middle_early", (0.4, 0.45), (0.05, 0.25, 0.6, 0.9)),
        (0.0, 40.0, "vanishing", (), (0.0, 0.5, 1.0)),
    ],
)
def test_a_regime_says_where_signal_passes(
    theta: float, norm: float, label: str, high: tuple[float, ...], low: tuple[float, ...]
) -> None:
    of = [torch.tensor(number).double() for number in (theta, 0.0, norm**2)]
    assert regime(*of, T) == (label,)
    found = signal_propagation(*of, T)
    assert all(float(found[round(u * (T - 1))]) > 0.85 for u in high)
    assert all(float(found[round(u * (T - 1))]) < 0.15 for u in low)


@pytest.mark.parametrize("norm", [0.0101, 0.03, 0.099])
@pytest.mark.parametrize("sign", [-1, 0, 1])
def test_half_the_signal_passes_where_the_label_says_so(norm: float, sign: int) -> None:
    theta = sign * 0.2 * norm / math.sqrt(3) * 0.99
    of = [torch.tensor(number).double() for number in (theta, 0.0, norm**2)]
    assert regime(*of, T) == ("uniform_half",)
    assert float((signal_propagation(*of, T) - 0.5).abs().max()) < 0.17


def test_agreement_is_spearmans() -> None:
    predicted, measured = normal(1, 3, 50), normal(2, 3, 50)
    measured[0] += predicted[0]
    predicted[1], measured[1] = predicted[1].round(), measured[1].round()  # ties
    predicted[2] = 0.25 + 1e-14 * normal(3, 50)  # nothing but rounding
    found = profile_agreement(predicted, measured)
    for head in range(2):
        right = float(spearmanr(predicted[head], measured[head]).statistic)
        assert float(found[head]) == pytest.approx(right)
    assert found[2].isnan()


def test_refusals_are_one_sentence() -> None:
    with pytest.raises(ValueError, match="length must be at least 1"):
        signal_propagation(torch.zeros(1), torch.zeros(1), torch.zeros(1), 0)
    with pytest.raises(ValueError, match="walks must be at least 2"):
        simulate_propagation(LOW["rank one"], 5, walks=1)
    with pytest.raises(ValueError, match=r"must be \[heads, length\]; they are \[2, 3\] and \[4, 3\]"):
        profile_agreement(torch.ones(2, 3), torch.ones(4, 3))

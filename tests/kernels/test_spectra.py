"""The spectrum through e×e matrices is that of the explicit d×d matrix, for every shape and every option."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from isoscope.geometry import spectra as definition
from isoscope.geometry.spectra import QkSpectrum, covariance_root, key_bias_norm, qk_matrix
from isoscope.kernels.spectra import qk_spectrum

SHAPES = {  # query heads, key heads, d, e
    "one head": (1, 1, 7, 3),
    "odd": (3, 3, 17, 5),
    "grouped": (6, 2, 12, 4),
    "one key head": (4, 1, 9, 2),
    "width one": (2, 1, 6, 1),
    "square": (2, 2, 5, 5),
    "wider than the model": (4, 2, 5, 8),
    "one dimension": (2, 2, 1, 3),
    "larger": (2, 2, 90, 33),
}
LOOSE = {"eigenvalues"}  # compared as sets; conjugates have no order


def normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def made(name: str) -> tuple[torch.Generator, Tensor, Tensor]:
    h, g, d, e = SHAPES[name]
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    return generator, normal(generator, h, d, e), normal(generator, g, d, e)


def assert_same(found: QkSpectrum, right: QkSpectrum, tolerance: float = 1e-10) -> None:
    for field in fields(QkSpectrum):
        mine, its = getattr(found, field.name), getattr(right, field.name)
        assert mine.shape == its.shape and mine.dtype == its.dtype, field.name
        if field.name not in LOOSE:
            scale = float(its.nan_to_num().abs().max()) if field.name == "singular_values" else 1.0
            torch.testing.assert_close(
                mine, its, rtol=tolerance, atol=tolerance * scale, equal_nan=True, msg=field.name
            )
            continue
        for one, other, size in zip(mine, its, right.spectral_norm.tolist(), strict=True):
            if math.isnan(size):
                assert one.isnan().all() and other.isnan().all()
                continue
            apart = (one[:, None] - other[None]).abs()
            assert float(apart.numpy()[linear_sum_assignment(apart.numpy())].max()) <= tolerance * max(
                size, 1
            )


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("options", ["plain", "gamma", "covariance", "both"])
def test_the_spectrum_is_that_of_the_explicit_matrix(name: str, options: str) -> None:
    generator, wq, wk = made(name)
    width = wq.shape[1]
    gamma = normal(generator, width) if options in ("gamma", "both") else None
    root = normal(generator, width, width) if options in ("covariance", "both") else None
    scale = None if options == "plain" else 0.3
    found = qk_spectrum(wq, wk, scale=scale, gamma=gamma, root=root)
    assert_same(found, definition.qk_spectrum(wq, wk, scale=scale, gamma=gamma, root=root))
    h, _, d, e = SHAPES[name]
    assert found.eigenvalues.shape == found.singular_values.shape == (h, min(d, e))
    assert (found.eigenvalues.abs().diff(dim=1) <= 1e-12).all()


def test_the_explicit_matrix_is_written_out() -> None:
    """The definition itself against loops: which key head, which side γ and the scale are on."""
    generator, wq, wk = made("grouped")
    gamma, root = normal(generator, 12), normal(generator, 12, 30)
    found = qk_matrix(wq, wk, gamma=gamma)
    for head in range(6):
        key = wk[head // 3]
        for i, j in ((0, 0), (3, 11), (11, 3)):
            one = sum(float(wq[head, i, k] * key[j, k]) for k in range(4)) / 2 * float(gamma[i] * gamma[j])
            assert float(found[head, i, j]) == pytest.approx(one)
    half = covariance_root(root @ root.T)
    torch.testing.assert_close(half @ half, root @ root.T)
    torch.testing.assert_close(qk_matrix(wq, wk, gamma=gamma, root=root), half @ found @ half)


@pytest.mark.parametrize("columns", [1, 3, 12, 40])
def test_any_root_of_the_covariance_does(columns: int) -> None:
    generator, wq, wk = made("grouped")
    root = normal(generator, 12, columns)
    found = qk_spectrum(wq, wk, root=root)
    assert_same(found, qk_spectrum(wq, wk, root=covariance_root(root @ root.T)), 1e-7)
    assert found.eigenvalues.shape == (6, 4)
    assert (found.singular_values[:, columns:] == 0).all()


def test_a_single_head_is_a_batch_of_one() -> None:
    _, wq, wk = made("one head")
    assert_same(qk_spectrum(wq[0], wk[0]), qk_spectrum(wq, wk), 0.0)
    assert qk_spectrum(wq[0], wk[0]).trace.shape == (1,)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_low_precision_weights_are_read_as_they_are(dtype: torch.dtype) -> None:
    _, wq, wk = (part.to(dtype) if isinstance(part, Tensor) else part for part in made("odd"))
    found = qk_spectrum(wq, wk)
    assert found.trace.dtype == torch.float64
    assert_same(found, qk_spectrum(wq.double(), wk.double()), 0.0)


def test_transposed_views_are_read_right() -> None:
    """As a Linear has them: [h·e, d]."""
    _, wq, wk = made("odd")
    views = [part.mT.contiguous().flatten(0, 1).view(3, 5, 17).mT for part in (wq, wk)]
    assert_same(qk_spectrum(*views), qk_spectrum(wq, wk), 1e-13)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_head_that_is_not_finite_is_nan_and_alone(bad: float) -> None:
    _, wq, wk = made("grouped")
    right = qk_spectrum(wq, wk)
    wq, wk = wq.clone(), wk.clone()
    wq[1, 3, 2], wk[1, 0, 0] = bad, bad  # query head 1, and key head 1 with its query heads 3, 4, 5
    found = qk_spectrum(wq, wk)
    for field in fields(QkSpectrum):
        mine, its = getattr(found, field.name), getattr(right, field.name)
        assert mine[[1, 3, 4, 5]].isnan().all(), field.name
        assert torch.equal(mine[[0, 2]], its[[0, 2]]), field.name
    assert_same(found, definition.qk_spectrum(wq, wk))
    for options in ({"gamma": torch.full((12,), bad)}, {"root": covariance_root(torch.full((12, 12), bad))}):
        assert qk_spectrum(*made("grouped")[1:], **options).trace.isnan().all()


def test_small_singular_values_are_kept() -> None:
    """1e-12 of the largest: the product of Gram matrices would give 1e-8 of it instead."""
    generator = torch.Generator().manual_seed(2)
    bases = [torch.linalg.qr(normal(generator, 40, 3))[0] for _ in range(2)]
    sizes = torch.tensor([1.0, 1e-3, 1e-12], dtype=torch.float64)
    found = qk_spectrum(bases[0] * sizes, bases[1], scale=1.0).singular_values[0]
    torch.testing.assert_close(found, sizes, rtol=1e-4, atol=0.0)


def test_what_is_known_of_special_matrices() -> None:
    generator, e = torch.Generator().manual_seed(3), 6
    eye, any_ = torch.eye(e).double(), normal(generator, e, e)
    same = qk_spectrum(eye, eye, scale=2.0)
    assert float(same.variance) == float(same.skew_share) == 0.0
    assert float(same.effective_rank) == pytest.approx(e) and float(same.mean) == 2.0
    skew = qk_spectrum(any_ - any_.T, eye, scale=1.0)
    assert float(skew.skew_share) == pytest.approx(1.0) and float(skew.trace_square) < 0
    assert float(skew.eigenvalues.real.abs().max()) < 1e-12
    # the pseudo-variance of a turning matrix is negative, the variance is not
    assert float(skew.trace_square / e - skew.mean**2) < 0 < float(skew.variance)
    one = qk_spectrum(any_[:, :1], any_[:, 1:2], scale=1.0)
    assert float(one.effective_rank) == pytest.approx(1.0)
    zero = qk_spectrum(torch.zeros(5, 2), torch.ones(5, 2))
    assert float(zero.spectral_norm) == float(zero.variance) == 0.0
    assert zero.symmetric_share.isnan().all() and zero.effective_rank.isnan().all()


def test_the_comparison_can_fail() -> None:
    """The wrong key head, γ on one side, the scale of another width, zeros left out of the variance."""
    generator, wq, wk = made("grouped")
    gamma = normal(generator, 12)
    right = definition.qk_spectrum(wq, wk, gamma=gamma)
    wrong = [
        qk_spectrum(wq, wk.flip(0), gamma=gamma),
        qk_spectrum(wq * gamma[:, None], wk),
        qk_spectrum(wq, wk, gamma=gamma, scale=12**-0.5),
    ]
    for found in wrong:
        with pytest.raises(AssertionError):
            assert_same(found, right)
    assert not torch.allclose(right.variance, right.variance_inside)


@pytest.mark.parametrize("name", ["one head", "grouped", "wider than the model"])
def test_the_bias_of_queries_is_that_of_the_score(name: str) -> None:
    """The score with everything in it, less x̂ᵀWx̂', is linear in the key, in the query, and constant."""
    generator, wq, wk = made(name)
    h, g, d, e = SHAPES[name]
    gamma, beta, shown = normal(generator, d), normal(generator, d), normal(generator, d, 2)
    query_bias, key_bias = normal(generator, h, e), normal(generator, g, e)
    matrix = qk_matrix(wq, wk, scale=0.7, gamma=gamma)
    found = key_bias_norm(wq, wk, scale=0.7, gamma=gamma, beta=beta, query_bias=query_bias.flatten())
    for head in range(h):
        group = head // (h // g)

        def rest(x: Tensor, y: Tensor, head: int = head, group: int = group) -> Tensor:
            q = (gamma * x + beta) @ wq[head] + query_bias[head]
            k = (gamma * y + beta) @ wk[group] + key_bias[group]
            return 0.7 * q @ k - x @ matrix[head] @ y

        none = torch.zeros(d).double()
        constant = rest(none, none)
        along_key = torch.stack([rest(none, axis) - constant for axis in torch.eye(d).double()])
        along_query = torch.stack([rest(axis, none) - constant for axis in torch.eye(d).double()])
        x, y = shown.T
        torch.testing.assert_close(rest(x, y), along_query @ x + along_key @ y + constant)
        torch.testing.assert_close(found[head], along_key.norm())


def test_without_biases_there_is_no_term_and_nan_stays_in_its_head() -> None:
    _, wq, wk = made("odd")
    assert not float(key_bias_norm(wq, wk).abs().max())
    wq[1, 0, 0] = math.inf
    assert key_bias_norm(wq, wk, beta=torch.ones(17)).isnan().tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"wk": torch.ones(2, 12, 5)}, "of one d and one e"),
        ({"wk": torch.ones(12)}, "a Linear's weight is the transpose"),
        ({"wk": torch.ones(4, 12, 4)}, "multiple of the key heads; there are 6 and 4"),
        ({"gamma": torch.ones(4)}, r"gamma must be \[12\]"),
        ({"root": torch.ones(4, 12)}, r"root must be \[12, m\]"),
    ],
)
def test_refusals_are_one_sentence(change: dict[str, Tensor], said: str) -> None:
    _, wq, wk = made("grouped")
    for work in (qk_spectrum, definition.qk_spectrum):
        with pytest.raises(ValueError, match=said):
            work(**{"wq": wq, "wk": wk, **change})


def test_biases_of_another_shape_are_refused() -> None:
    _, wq, wk = made("grouped")
    with pytest.raises(ValueError, match=r"beta must be \[12\]"):
        key_bias_norm(wq, wk, beta=torch.ones(4))
    with pytest.raises(ValueError, match=r"query_bias must be \[6, 4\] or flat; it is \[23\]"):
        key_bias_norm(wq, wk, query_bias=torch.ones(23))

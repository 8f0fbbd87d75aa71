"""Partition isotropy in blocks: against the definition, and in float32 against a literal transcription."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from isoscope.geometry import partition as definition
from isoscope.kernels import partition


def rows(seed: int, n: int, width: int, *, scale: float = 1.0, drift: float = 0.5) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    spread = torch.linspace(1.5, 0.5, width, dtype=torch.float64)
    return scale * (torch.randn(n, width, dtype=torch.float64, generator=random) * spread + drift)


def literal(matrix: Tensor) -> float:
    """The definition word for word, in the matrix's own precision, signs as they come."""
    _, vectors = torch.linalg.eigh(matrix.T @ matrix)
    sums = torch.exp(matrix @ vectors).sum(0)
    return float(sums.min() / sums.max())


@pytest.mark.parametrize(("n", "width"), [(1, 1), (1, 5), (7, 7), (3, 9), (50, 6), (5000, 5), (9001, 3)])
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_blocks_make_no_difference(n: int, width: int, scale: float) -> None:
    points = rows(n + width, n, width, scale=scale)
    assert partition.forms(points) == pytest.approx(definition.forms(points), rel=1e-9)
    assert partition.forms(points, gram=points.T @ points) == partition.forms(points)
    for signs, unit, right in (
        ("both", False, definition.partition_isotropy),
        ("one", False, definition.partition_isotropy_one_sign),
        ("both", True, definition.partition_isotropy_unit),
    ):
        assert partition.partition_isotropy(points, signs=signs, unit=unit) == pytest.approx(right(points))


@pytest.mark.parametrize(("n", "width"), [(40, 5), (300, 24), (6000, 17)])
@pytest.mark.parametrize("seed", range(3))
def test_one_sign_in_float32_is_the_literal_transcription(n: int, width: int, seed: int) -> None:
    matrix = rows(seed, n, width, scale=0.3).float()
    found = partition.partition_isotropy(matrix, signs="lapack", dtype=torch.float32)
    assert found == pytest.approx(literal(matrix), rel=1e-5)
    wrong = partition.partition_isotropy(2 * matrix, signs="lapack", dtype=torch.float32)
    assert wrong != pytest.approx(literal(matrix), rel=1e-2)  # the comparison can fail


def test_the_logarithm_does_not_overflow() -> None:
    matrix = rows(1, 200, 8, scale=200.0).float()
    assert math.isnan(literal(matrix))
    assert partition.partition_isotropy(matrix, signs="lapack", dtype=torch.float32) == pytest.approx(0.0)


def test_signs_and_scale_are_traps() -> None:
    matrix = rows(2, 400, 6, drift=0.4)
    both, one = (partition.partition_isotropy(matrix, signs=signs) for signs in ("both", "one"))
    flipped = partition.partition_isotropy(-matrix, signs="one")
    assert both < one and abs(one - flipped) > 0.05
    assert partition.partition_isotropy(-matrix) == pytest.approx(both)
    scaled = [partition.partition_isotropy(factor * matrix) for factor in (0.1, 1.0, 4.0)]
    assert scaled[0] > 0.8 and scaled[2] < 0.05
    units = [partition.partition_isotropy(factor * matrix, unit=True) for factor in (0.1, 4.0)]
    assert units[0] == pytest.approx(units[1])


def test_refusals_are_one_sentence() -> None:
    with pytest.raises(ValueError, match=r"matrix must be \[rows, dimensions\], with a row; it is \[3\]"):
        partition.partition_isotropy([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="signs must be one of both, one, lapack; it is 'any'"):
        partition.partition_isotropy([[1.0]], signs="any")
    with pytest.raises(ValueError, match="holds NaN or Inf"):
        partition.partition_isotropy([[1.0], [math.nan]])
    assert math.isnan(partition.partition_isotropy([[0.0, 0.0]], unit=True))

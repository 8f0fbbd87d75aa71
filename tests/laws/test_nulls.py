"""On isotropic Gaussian clouds, the mean of every measure is the null it reports, whatever n and d.

A root is compared by its square and a ratio by its reciprocal (see `law_measures.Kind`), because that is
where the null is exact. Where it is a formula that is not exact, the table says how far off it may be.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from isoscope import describe
from isoscope.measures.cosine import expected_largest
from isoscope.measures.null import expected, isotropic_spectra
from tests.laws.law_measures import KINDS, MEASURES
from tests.laws.law_sampling import Stream, isotropic_readings, null_holds, simulate
from tests.tiers import nightly

# (vectors, dimensions, clouds); half of them have fewer vectors than dimensions
SIZES = (
    (2, 5, 300),
    (3, 4, 300),
    (5, 20, 300),
    (12, 300, 40),
    (20, 5, 300),
    (64, 64, 120),
    (200, 3, 300),
    (40, 2, 300),
    (30, 1, 300),
)


@pytest.mark.parametrize("share", [0.25, *nightly(1)])
@pytest.mark.parametrize(("n", "width", "times"), SIZES)
def test_the_null_is_what_isotropic_clouds_show(n, width, times, share):
    for name, readings in isotropic_readings(MEASURES, n, width, max(30, int(share * times))).items():
        null_holds(name, readings, n, width)


@pytest.mark.parametrize("lengths", ["even", "ragged"])
def test_the_noise_of_the_mean_is_that_of_dependent_sequences(lengths):
    """Vectors of a sequence are alike, so the drift of noise is that of fewer, effective, vectors.

    The noise is estimated to 5 % when lengths are even; ragged, with few sequences in effect, to 15 %.
    """
    stream = Stream(0.0, (1.0,) * 8, lengths)
    chosen = [m for m in MEASURES if KINDS[m.name].null == "square" and "tokens" not in m.needs]
    for readings in simulate(chosen, stream, 40, 300).values():
        value = np.mean([reading.value**2 for reading in readings])
        null = np.mean([reading.null**2 for reading in readings])
        assert abs(value / null - 1) < (0.05 if lengths == "even" else 0.15) + 4 * 0.03
        assert null > 1.5 * np.mean([reading.value**2 / reading.n for reading in readings])


@pytest.mark.parametrize(("n", "width"), [(3, 9), (40, 6), (12, 12), (2, 2), (1, 4), (7, 1)])
def test_null_spectra_are_those_of_gaussian_clouds(n, width):
    """Dumitriu & Edelman's bidiagonal model against the eigenvalues of XᵀX themselves."""
    drawn = torch.stack(isotropic_spectra(n, width)).numpy()
    random = torch.Generator().manual_seed(n * 100 + width)
    clouds = torch.randn(600, n, width, generator=random, dtype=torch.float64)
    real = torch.linalg.eigvalsh(clouds.mT @ clouds).clamp_min(0).numpy()
    rank = min(n, width)
    assert (drawn[:, : width - rank] == 0).all()
    for k in range(width - rank, width):
        error = np.hypot(drawn[:, k].std() / np.sqrt(len(drawn)), real[:, k].std() / np.sqrt(len(real)))
        assert abs(drawn[:, k].mean() - real[:, k].mean()) < 4 * error
    assert stats.ks_2samp(drawn[:, -1], real[:, -1]).pvalue > 1e-3
    assert stats.ks_2samp(drawn.sum(1), real.sum(1)).pvalue > 1e-3


def test_null_spectra_are_the_same_in_every_process():
    one = isotropic_spectra(9, 5)
    isotropic_spectra.cache_clear()
    assert all(torch.equal(a, b) for a, b in zip(one, isotropic_spectra(9, 5), strict=True))


def test_a_null_of_many_dimensions_varies_little():
    """Four draws at d = 512 settle the effective rank to a part in a thousand."""
    assert expected(lambda values: float(values.sum()), 600, 512) == pytest.approx(600 * 512, rel=2e-3)


@pytest.mark.parametrize("width", [1, 2, 3, 64, 768, 16_384])
def test_the_expected_largest_square_is_an_integral(width):
    """E max_k z_k² = ∫ P(max z² > x) dx, by another rule and another variable."""
    value, _ = integrate.quad(lambda x: 1 - (1 - stats.chi2.sf(x, 1)) ** width, 0, 120, epsabs=0, limit=200)
    assert expected_largest(width) == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize(("n", "width"), [(3, 2), (4, 5), (9, 6), (40, 8), (6, 64)])
def test_the_null_of_outlier_dimensions_is_a_tail_of_the_beta_distribution(n, width):
    random = torch.Generator().manual_seed(n * width)
    cloud = torch.randn(n, width, generator=random)
    null = describe(cloud, measures=["outlier_dimensions"]).frame().null[0]
    tail = stats.beta.sf(5 / width, (n - 1) / 2, (width - 1) * (n - 1) / 2)
    assert null == pytest.approx(width * tail, rel=1e-10)

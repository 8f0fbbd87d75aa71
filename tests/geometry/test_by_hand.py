"""Each definition of the geometry on a cloud that is worked out by hand."""

from __future__ import annotations

import torch

from isoscope.geometry import (
    alignment,
    attention,
    clouds,
    cosine,
    dimensions,
    drift,
    health,
    neighbours,
    norms,
    partition,
    propagation,
    spectra,
    spectrum,
    types,
    within,
)

SQUARE = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
LINE = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
CORNER = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
ONE_SEQUENCE = torch.tensor([0, 0])


def test_cka() -> None:
    cloud = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    assert round(alignment.cka(cloud, 5 * cloud.flip(1) + 1), 6) == 1.0


def test_hidden_at_most() -> None:
    assert attention.hidden_at_most(torch.float16) == -32752.0


def test_visible_keys() -> None:
    assert attention.visible_keys((1, 1, 2, 3), causal=True)[0, 0].int().tolist() == [[1, 1, 0], [1, 1, 1]]


def test_row_statistics() -> None:
    rows = attention.row_statistics(torch.zeros(1, 1, 1, 4), torch.ones(1, 1, 1, 4, dtype=torch.bool))
    assert (round(float(rows.entropy), 6), float(rows.distance)) == (1.386294, 1.5)


def test_weight_rows() -> None:
    rows = attention.weight_rows(torch.tensor([[[[0.2, 0.2, 0.0]]]]), torch.zeros(1, 1, 1, 3))
    assert (round(float(rows.entropy.exp()), 6), int(rows.visible)) == (2.0, 3)


def test_attention_rows() -> None:
    q = k = torch.eye(2)[None, None]
    rows = attention.attention_rows(q, k, scale=1.0, causal=True)
    assert rows.lse.numpy().round(4).tolist() == [[[1.0, 1.3133]]]


def test_score_rows() -> None:
    assert attention.score_rows(torch.tensor([[[[0.0, 0.0, -torch.inf]]]])).visible.tolist() == [[[2]]]


def test_shared_axes() -> None:
    cone = torch.tensor([[3.0, 0.1, 0.0], [3.0, -0.1, 0.0]])
    assert clouds.shared_axes(cone, -cone, "shared").query[:, 0].tolist() == [3.0, 3.0]


def test_pull() -> None:
    assert clouds.pull(torch.tensor([[2.0, 0.0]]), torch.tensor([[-1.0, 0.0], [0.0, 1.0]])) == 0.5


def test_pair_cosines() -> None:
    assert cosine.pair_cosines(CORNER).tolist() == [0.0, 1.0, 0.0]


def test_mean_cosine() -> None:
    assert round(cosine.mean_cosine(CORNER), 6) == 0.333333


def test_mean_cosine_between() -> None:
    cloud = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert cosine.mean_cosine_between(cloud, torch.tensor([0, 0, 1])) == 0.0


def test_cosine_variance() -> None:
    assert round(cosine.cosine_variance(CORNER), 6) == 0.222222


def test_dimension_contributions() -> None:
    assert cosine.dimension_contributions(CORNER).tolist() == [1 / 3, 0.0]


def test_uniformity() -> None:
    assert round(cosine.uniformity(torch.tensor([[1.0, 0.0], [-2.0, 0.0]])), 6) == -8.0


def test_outlier_dimensions() -> None:
    assert dimensions.outlier_dimensions(torch.diag(torch.tensor([9.0, 1, 1, 1, 1, 1, 1, 1]))) == 1.0


def test_massive_activations() -> None:
    cloud = torch.tensor([[0.1, 0.1, 300.0], [0.1, 0.1, 0.1]])
    assert dimensions.massive_activations(cloud, ONE_SEQUENCE) == 1.0


def test_spread_over() -> None:
    assert dimensions.spread_over(4, 4).tolist() == [0, 1, 2, 3]
    assert dimensions.spread_over(100, 5).tolist() == [30, 92, 54, 16, 78]


def test_drift() -> None:
    assert drift.drift(torch.tensor([[3.0, 0.0], [3.0, 8.0]])) == 5.0


def test_mean_norm() -> None:
    assert drift.mean_norm(torch.tensor([[3.0, 4.0], [0.0, 1.0]])) == 3.0


def test_relative_drift() -> None:
    assert drift.relative_drift(torch.tensor([[2.0, 0.0], [2.0, 0.0]])) == 1.0


def test_not_finite() -> None:
    assert health.not_finite(torch.tensor([[1.0, float("nan")], [1.0, 2.0]])) == 1.0


def test_zero_vectors() -> None:
    assert health.zero_vectors(torch.tensor([[0.0, 0.0], [1.0, 2.0]])) == 1.0


def test_intrinsic_dimension() -> None:
    random = torch.Generator().manual_seed(0)
    flat = torch.randn(2000, 2, generator=random) @ torch.randn(2, 30, generator=random)
    assert round(neighbours.intrinsic_dimension(flat)) == 2


def test_weight_outliers() -> None:
    assert norms.weight_outliers(torch.tensor([1.0, 1.0, -1.0, 0.9, 8.0])) == 1


def test_partition_isotropy() -> None:
    assert round(partition.partition_isotropy(LINE), 6) == 0.648054  # 1/cosh(1)


def test_signal_propagation() -> None:
    """Nothing moves the scores: all signal passes."""
    zero = torch.zeros(())
    assert propagation.signal_propagation(zero, zero, zero, 3).tolist() == [1.0, 1.0, 1.0]


def test_regime() -> None:
    trace, small = torch.tensor([1.0, -1.0]), torch.tensor([0.01, 0.01])
    assert propagation.regime(trace, small, small, 512) == ("late", "early")


def test_profile_agreement() -> None:
    found = propagation.profile_agreement(torch.tensor([[1.0, 3.0, 9.0]]), torch.tensor([[2.0, 1.0, 3.0]]))
    assert round(float(found), 6) == 0.5


def test_covariance_root() -> None:
    root = spectra.covariance_root(torch.tensor([[4.0, 0.0], [0.0, 0.0]]))
    assert root.tolist() == [[2.0, 0.0], [0.0, 0.0]]


def test_qk_matrix() -> None:
    found = spectra.qk_matrix(torch.eye(2), torch.eye(2), scale=0.5, gamma=torch.tensor([1.0, 2.0]))
    assert found.tolist() == [[[0.5, 0.0], [0.0, 2.0]]]


def test_qk_spectrum() -> None:
    turned = spectra.qk_spectrum(torch.eye(2), torch.tensor([[0.0, -1.0], [1.0, 0.0]]), scale=1.0)
    assert (float(turned.trace), float(turned.trace_square), float(turned.skew_share)) == (0.0, -2.0, 1.0)


def test_key_bias_norm() -> None:
    bias = torch.tensor([3.0, 4.0])
    assert float(spectra.key_bias_norm(torch.eye(2), torch.eye(2), scale=1.0, query_bias=bias)) == 5.0


def test_participation_ratio() -> None:
    assert round(spectrum.participation_ratio(SQUARE), 6) == 2.0


def test_isoscore() -> None:
    assert round(spectrum.isoscore(SQUARE), 6) == 1.0


def test_exp_entropy() -> None:
    assert round(spectrum.exp_entropy(torch.tensor([1.0, 1.0, 1.0, 0.0])), 6) == 3.0


def test_singular_entropy() -> None:
    assert round(spectrum.singular_entropy(torch.eye(3)), 6) == 0.0


def test_isoscore_star() -> None:
    assert round(spectrum.isoscore_star(LINE), 6) == 0.219512  # on a line, IsoScore is 0


def test_self_similarity() -> None:
    cloud = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    found = types.self_similarity(cloud, torch.tensor([5, 5, 6]), torch.tensor([0, 1, 1]))
    assert round(found, 6) == 0.707107


def test_intra_similarity() -> None:
    assert round(within.intra_similarity(torch.eye(2), ONE_SEQUENCE), 6) == 0.707107


def test_rank_residual() -> None:
    assert within.rank_residual(torch.tensor([[3.0, 0.0], [3.0, 0.0]]), ONE_SEQUENCE) == 0.0

"""The jackknife is the textbook's: plain for equal groups, Busing, Meijer & van der Leeden's for unequal.

Its quantile counts groups by what they weigh, so that a group that holds most vectors is not one of 32.
"""

from __future__ import annotations

import math

import pytest
import torch
from scipy import stats

from isoscope.stats.intervals import enough, jackknife
from tests.laws.law_clouds import gaussian


def left_out(groups: list[torch.Tensor], statistic) -> tuple[float, torch.Tensor, torch.Tensor]:
    """A statistic of all the values, of all but each group, and the groups' sizes."""
    rest = [torch.cat(groups[:g] + groups[g + 1 :]) for g in range(len(groups))]
    without = torch.tensor([statistic(values) for values in rest], dtype=torch.float64)
    return statistic(torch.cat(groups)), without, torch.tensor([len(group) for group in groups]).double()


def log_mean_square(values: torch.Tensor) -> float:
    return math.log(float((values**2).mean()))


@pytest.mark.parametrize("count", [2, 5, 12])
def test_equal_groups_are_the_textbook_s(count):
    groups = list(gaussian(count * 4, 1, count).flatten().chunk(count))
    value, without, sizes = left_out(groups, log_mean_square)
    mean = sum(without.tolist()) / count
    variance = (count - 1) / count * sum((one - mean) ** 2 for one in without.tolist())
    reach = stats.t.ppf(0.975, count - 1) * math.sqrt(variance)
    low, high = jackknife(value, without, sizes)
    assert (high - low) / 2 == pytest.approx(reach, rel=1e-9)
    assert (high + low) / 2 == pytest.approx(value, rel=1e-9)


def test_unequal_groups_are_a_loop_over_pseudo_values():
    sizes = [3, 11, 1, 6, 20, 15, 14, 9]
    groups = list(gaussian(sum(sizes), 1, 70).flatten().split(sizes))
    value, without, count = left_out(groups, log_mean_square)
    n, total = sum(sizes), len(sizes)
    centre = total * value - sum((1 - m / n) * w for m, w in zip(sizes, without.tolist(), strict=True))
    variance = 0.0
    for m, w in zip(sizes, without.tolist(), strict=True):
        pseudo = n / m * value - (n / m - 1) * w
        variance += (pseudo - centre) ** 2 / (n / m - 1) / total
    weight = [m**2 for m in sizes]
    degrees = sum(weight) ** 2 / sum(w**2 for w in weight) - 1
    low, high = jackknife(value, without, count)
    assert (high - low) / 2 == pytest.approx(stats.t.ppf(0.975, degrees) * math.sqrt(variance), rel=1e-9)


def test_empty_groups_do_not_matter():
    groups = list(gaussian(24, 1, 71).flatten().chunk(6))
    value, without, sizes = left_out(groups, log_mean_square)
    spread = torch.full((32,), value, dtype=torch.float64), torch.zeros(32, dtype=torch.float64)
    for g in range(6):
        spread[0][5 * g], spread[1][5 * g] = without[g], sizes[g]
    assert jackknife(value, *spread) == pytest.approx(jackknife(value, without, sizes), rel=1e-12)


def test_one_group_has_no_spread():
    assert all(math.isnan(end) for end in jackknife(1.0, torch.tensor([math.nan]), torch.tensor([4.0])))


def test_eight_sequences_are_enough():
    assert enough(torch.tensor([2.0, 2.0, 2.0, 1.0, 1.0]))
    assert not enough(torch.tensor([2.0, 2.0, 1.0, 1.0, 1.0]))
    assert not enough(torch.tensor([5.0, 3.0, 1.0, 1.0]))  # copies of four: too few differ

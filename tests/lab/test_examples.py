"""Small functions of lab, each by an example."""

from __future__ import annotations

import math

import torch

from isoscope.lab.block.seeds import kept_norm
from isoscope.lab.penalties.cosreg import mean_of_cosines
from isoscope.lab.penalties.istar import isoscore_star
from isoscope.lab.penalties.table import PENALTIES
from isoscope.lab.train.probes import fit_reader, wilson
from isoscope.lab.train.training import Recipe
from isoscope.lab.variants.base import seeing
from isoscope.lab.variants.maps import sparsemax, with_sink


def test_a_norm_is_kept_where_what_leaves_crosses_what_enters() -> None:
    assert kept_norm([1.0, 3.0], [2.0, 2.0]) == 2.0
    assert math.isnan(kept_norm([1.0, 2.0], [2.0, 3.0]))


def test_rows_of_zeros_have_no_cosine() -> None:
    assert float(mean_of_cosines(torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 0.0]]))) == 0.5


def test_isoscore_star_of_two_points() -> None:
    assert round(float(isoscore_star(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))), 6) == 0.219512


def test_a_penalty_shows_how_it_is_written() -> None:
    assert PENALTIES[0].example == "locater=0.1,target=1"


def test_a_reader_tells_left_from_right() -> None:
    states = torch.tensor([[-1.0], [-2.0], [1.0], [2.0]], dtype=torch.float64)
    read = fit_reader(states, torch.tensor([0, 0, 1, 1]))
    assert read(torch.tensor([[-3.0], [3.0]], dtype=torch.float64)).tolist() == [0, 1]


def test_the_interval_of_five_of_ten() -> None:
    assert [round(end, 3) for end in wilson(5, 10)] == [0.237, 0.763]


def test_the_rate_warms_up_and_falls_to_a_tenth() -> None:
    recipe = Recipe(steps=100, rate=1.0, warmup=10)
    assert [round(recipe.rate_at(step), 3) for step in (0, 10, 100)] == [0.1, 1.0, 0.1]


def test_a_query_that_sees_no_key_weighs_none() -> None:
    assert seeing(lambda scores: scores.softmax(-1))(torch.full((1, 2), -torch.inf)).tolist() == [[0.0, 0.0]]


def test_a_sink_takes_its_share() -> None:
    assert with_sink(torch.zeros(1, 1, 1, 3), torch.zeros(1, 1, 1)).sum().item() == 0.75


def test_small_scores_weigh_nothing() -> None:
    assert sparsemax(torch.tensor([1.0, 0.5, -1.0])).tolist() == [0.75, 0.25, 0.0]

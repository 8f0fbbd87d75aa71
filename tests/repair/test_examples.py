"""Small functions of repair, each by an example."""

from __future__ import annotations

import numpy as np
import torch

from isoscope.repair.advise.pairs import cosines, neighbours_kept
from isoscope.repair.hubs import hub_skewness, occurrences
from isoscope.repair.impact.maps import Character, cannot_matter
from isoscope.repair.impact.outcome import SAME, Change, ends
from isoscope.repair.impact.probe import probe
from isoscope.repair.impact.scores import retrieval, similarity
from isoscope.repair.impact.words import explanations
from isoscope.repair.states import pooled
from isoscope.results.reading import Reading


def test_a_unit_is_no_pair_with_itself() -> None:
    found = cosines(torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0, 1]))
    assert str(found[0].tolist()) == "[-inf, -inf, 0.0]"


def test_three_of_four_neighbours_are_kept() -> None:
    before, after = torch.tensor([[1, 2], [0, 2]]), torch.tensor([[2, 1], [2, 3]])
    assert neighbours_kept(before, after, torch.arange(2)).value == 0.75


def test_occurrences_count_places_in_lists() -> None:
    assert occurrences(np.array([[1, 2], [2, 0], [1, 0]]), 4).tolist() == [2, 2, 2, 0]


def test_where_nothing_varies_there_are_no_hubs() -> None:
    assert hub_skewness(np.array([[2, 2, 2, 2], [0, 0, 0, 4]])).round(4).tolist() == [0.0, 1.1547]


def test_what_can_be_undone_moves_a_ridge_alone() -> None:
    whitening = Character(affine=True, injective=True)
    why = "a map that can be undone, before a linear reader without a penalty"
    assert cannot_matter(whitening, "unpenalised") == why
    assert cannot_matter(whitening, "ridge") == cannot_matter(whitening, "cosine") == ""


def test_a_draw_without_a_score_is_left_out() -> None:
    assert ends(np.array([1.0] * 50 + [3.0] * 50 + [np.nan])) == (1.0, 3.0)


def test_a_verdict_says_what_would_have_shown() -> None:
    by = Reading(0.001, 1379, 0.0, -0.002, 0.004)
    said = "no difference at n = 1,379 pairs (one of 0.003 would have shown)"
    assert Change("spearman", by, "pairs", SAME).said() == said


def test_a_probe_tells_left_from_right() -> None:
    a = np.array([[-1.0], [-2.0], [1.0], [2.0]] * 5)
    assert probe(a, np.array([0, 0, 1, 1] * 5), np.array([[-3.0], [3.0]]), np.array([0, 1])).value == 1.0


def test_cosines_in_order_have_a_spearman_of_one() -> None:
    a = np.eye(3)
    b = np.array([[1.0, 0, 0], [1, 1, 0], [1, 0, 0]])
    assert [round(found.value, 3) for found in similarity(a, b, np.array([3.0, 2, 1]))] == [1.0, 0.973]


def test_a_document_that_is_second_counts_a_half() -> None:
    found = retrieval(np.eye(2), np.array([[1.0, 0], [1, 1], [0, 1]]), [[0], [1]])
    values = {each.measure: each.value for each in found}
    assert values == {"recall_1": 0.5, "recall_10": 1.0, "reciprocal_rank": 0.75}


def test_a_score_is_called_with_its_task() -> None:
    told = explanations([("spearman", "sts")])
    assert told["spearman.sts"]["title"] == "Spearman, sts"
    assert told["spearman.sts.change"]["title"] == "change of Spearman, sts"


def test_a_sequence_is_its_mean_or_its_last() -> None:
    cloud = torch.tensor([[1.0], [3.0], [5.0]])
    assert pooled(cloud, torch.tensor([0, 0, 2])).tolist() == [[2.0], [5.0]]
    assert pooled(cloud, torch.tensor([0, 0, 2]), last=True).tolist() == [[3.0], [5.0]]

"""Small functions of papers, each by an example."""

from __future__ import annotations

from isoscope.papers.claims import Verdict, all_of, called
from isoscope.papers.intervals import apart, over, paired, widened
from isoscope.papers.machina2024.judging import told
from isoscope.papers.scales import Size
from isoscope.results.reading import Reading


def test_a_model_is_called_with_its_seed() -> None:
    assert called("characters, causal", "seed 3") == "characters, causal (seed 3)"
    assert called("bert", "") == "bert"


def test_what_is_open_leaves_the_whole_open() -> None:
    assert all_of([Verdict(True, "One."), Verdict(None, "Two.")]).word == "undecided at this scale"


def test_four_looks_widen_an_interval() -> None:
    assert widened(over([1.0, 2.0, 3.0]), 4).said == "2 [−3.12, 7.12]"


def test_an_interval_takes_three_values() -> None:
    assert over([1.0, 2.0, 3.0]).said == "2 [−0.484, 4.48]"
    assert over([1.0, 3.0]).said == "2 [no interval]"


def test_what_one_side_lacks_is_no_pair() -> None:
    assert paired({0: 1.0, 1: 2.0, 2: 3.0}, {0: 2.0, 1: 3.0, 2: 4.0, 3: 9.0}).said == "1 [1, 1]"


def test_two_means_are_compared_by_welch() -> None:
    assert apart([1.0, 2.0, 3.0], [11.0, 12.0, 13.0]).said == "10 [7.73, 12.3]"


def test_every_group_is_told_with_its_interval() -> None:
    assert told({"width 32": Reading(0.5, 3, low=0.25, high=0.75)}) == "width 32 0.5 [0.25, 0.75]"


def test_a_size_says_all_its_numbers() -> None:
    said = "6 layers, width 384, 6 heads, 1000 steps of 32 × 256 at rate 0.001, looked at 1000"
    assert Size(6, 384, 6, 256, 1000, 32, 1e-3, "1000").said == said

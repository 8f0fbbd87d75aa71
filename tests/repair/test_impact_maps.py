"""Where a repair cannot matter, and where that must not be said."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isoscope.repair.fit.transforms import fit
from isoscope.repair.impact.maps import Character, cannot_matter, cannot_matter_to_head, character
from isoscope.repair.impact.outcome import CANNOT, Change, Outcome, changed
from isoscope.repair.impact.probe import probe
from isoscope.repair.impact.scores import retrieval, similarity
from isoscope.repair.keep.maps import Clustered, Scaled, Turned
from isoscope.repair.keep.repair import Repair

WIDTH = 8


def turned(matrix: torch.Tensor, shift: float = 0.0) -> Repair:
    mean = torch.full((WIDTH,), shift, dtype=torch.float64)
    return Repair("planted", (Turned(mean, matrix.double()),), 9)


def rotation() -> torch.Tensor:
    return torch.linalg.qr(torch.randn(WIDTH, WIDTH, dtype=torch.float64))[0]


def cloud(n: int = 300) -> torch.Tensor:
    return torch.randn(n, WIDTH).double() @ torch.diag(torch.linspace(0.3, 3, WIDTH).double()) + 1.5


def fitted(recipe: str) -> Repair:
    return fit(recipe, cloud())


def planted() -> dict[str, Repair]:
    """Repairs of every kind, some of them no recipe makes."""
    swapped = torch.eye(WIDTH)[torch.randperm(WIDTH)] * torch.linspace(-2, 3, WIDTH)[:, None]
    found = {
        recipe: fitted(recipe) for recipe in ("centre", "standardise", "abtt", "whiten", "rogue", "whiten:3")
    }
    return {
        **found,
        "clusters": fitted("cluster-abtt:2"),
        "rotation": turned(rotation()),
        "rotation and scale": turned(3.7 * rotation()),
        "rotation and shift": turned(rotation(), 0.5),
        "swapped": turned(swapped),
        "shear": turned(torch.eye(WIDTH) + torch.diag(torch.full((WIDTH - 1,), 0.3), 1)),
        "nothing": turned(torch.zeros(WIDTH, WIDTH)),
    }


CANNOT_MATTER = {  # by hand: reader, the maps that cannot matter to it
    "cosine": {"rotation", "rotation and scale"},
    "unpenalised": {
        "centre", "standardise", "whiten", "rotation", "rotation and scale", "rotation and shift", "swapped",
        "shear",
    },
    "ridge": {"centre", "rotation", "rotation and scale", "rotation and shift"},
    "standardised": {"centre", "standardise", "swapped"},
    "head": set(),
}  # fmt: skip


@pytest.mark.parametrize("reader", CANNOT_MATTER)
def test_which_maps_cannot_matter_to_a_reader(reader: str) -> None:
    found = {name for name, repair in planted().items() if cannot_matter(character(repair), reader)}
    assert found == CANNOT_MATTER[reader]


def test_scales_far_apart_are_still_scales() -> None:
    scale = torch.tensor([1e-12, 1, 1e12], dtype=torch.float64)
    found = character(Repair("scaled", (Scaled(torch.zeros(3).double(), scale),), 9))
    assert found.monomial
    assert not found.injective  # numerically it cannot be undone


def test_a_shift_is_held_against_the_size_of_the_vectors() -> None:
    tiny = turned(rotation(), 1e-8)
    assert character(tiny, size=1).shifts
    assert not character(tiny, size=1e6).shifts


def test_what_depends_on_the_cluster_is_not_affine() -> None:
    repair = planted()["clusters"]
    assert isinstance(repair.steps[0], Clustered)
    assert character(repair) == Character(affine=False)


def labelled(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    points = cloud(n).numpy()
    noise = np.random.default_rng(0).standard_normal(n)
    return points, (points[:, 0] * 4 + points[:, -1] / 2 + noise > 1.5 * 4.5).astype(np.int64)


def read_by(reader: str, repair: Repair | None) -> Outcome:
    points, labels = labelled()
    moved = points if repair is None else repair.apply(points)
    if reader == "cosine":
        scores = np.random.default_rng(1).standard_normal(200)
        return similarity(moved[:200], moved[200:], scores)[0]
    return probe(moved[:250], labels[:250], moved[250:], labels[250:], reader=reader)


def verdict(reader: str, repair: Repair) -> Change:
    torch.manual_seed(0)
    before = read_by(reader, None)
    torch.manual_seed(0)
    after = read_by(reader, repair)
    return changed(before, after, cannot_matter(character(repair), reader), 0)


@pytest.mark.parametrize(
    ("reader", "name"),
    [
        (reader, name)
        for reader, names in CANNOT_MATTER.items()
        for name in sorted(names)
    ],
)  # fmt: skip
def test_it_is_shown_not_assumed(reader: str, name: str) -> None:
    """What cannot matter by its numbers is found equal."""
    found = verdict(reader, planted()[name])
    assert found.verdict == CANNOT, found
    assert found.by.value == pytest.approx(0, abs=1e-9)
    assert "found equal to" in found.why


def test_whitening_before_an_l2_probe_can_matter() -> None:
    whitening = planted()["whiten"]
    assert character(whitening).injective  # it can be undone, and yet
    for reader in ("ridge", "standardised", "cosine"):
        assert cannot_matter(character(whitening), reader) == ""
        assert verdict(reader, whitening).verdict != CANNOT
    torch.manual_seed(0)
    before = read_by("ridge", None).seen
    torch.manual_seed(0)
    assert np.abs(read_by("ridge", whitening).seen - before).max() > 0.01  # probabilities move
    assert verdict("unpenalised", whitening).verdict == CANNOT


def test_the_test_can_fail() -> None:
    """Had whitening been said not to matter to a ridge, its numbers would have told."""
    torch.manual_seed(0)
    before = read_by("ridge", None)
    torch.manual_seed(0)
    after = read_by("ridge", planted()["whiten"])
    found = changed(before, after, "a claim that is wrong", 0)
    assert found.verdict != CANNOT
    assert "a claim that is wrong should not matter, yet what the reader gives differs" in found.why


def test_retrieval_does_not_see_a_rotation() -> None:
    repair = planted()["rotation and scale"]
    points = cloud(60).numpy()
    right = [[i] for i in range(20)]
    pairs = [
        retrieval(x[:20], x[20:], right) for x in (points, repair.apply(points))
    ]  # fmt: skip
    for before, after in zip(*pairs, strict=True):
        assert changed(before, after, cannot_matter(character(repair), "cosine"), 0).verdict == CANNOT


def test_before_a_head_hardly_anything_is_invisible() -> None:
    weight = torch.randn(50, WIDTH)
    for name, repair in planted().items():
        assert cannot_matter_to_head(repair, weight) == "", name
    assert cannot_matter_to_head(turned(torch.eye(WIDTH)), weight)
    weight[:, 0] = 1.0  # every word has the same: what is added there moves no probability
    shifted = Scaled(torch.eye(WIDTH)[0].double() * 5, torch.ones(WIDTH).double())
    assert cannot_matter_to_head(Repair("along", (shifted,), 9), weight)
    states = torch.randn(7, WIDTH)
    moved = Repair("along", (shifted,), 9).apply(states)
    assert torch.allclose((states @ weight.T).softmax(1), (moved @ weight.T).softmax(1), atol=1e-6)
    assert not cannot_matter_to_head(fitted("centre"), weight)

"""What cannot be had is one clear sentence."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from isoscope.errors import IsoscopeError
from isoscope.repair.fit.kinds import KINDS, parse
from isoscope.repair.fit.transforms import fit

CLOUD = torch.randn(50, 6, generator=torch.Generator().manual_seed(0)).double()
LINE = torch.arange(50.0).double()[:, None] * torch.ones(6).double()


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ("whitn:5", "no repair is called 'whitn'; did you mean 'whiten'? There are: abtt, "),
        ("center", "no repair is called 'center'; did you mean 'centre'?"),
        ("", "the recipe names no repair; there are: centre, standardise, abtt[:DIRECTIONS], "),
        ("whiten:0", "'whiten:0' needs whole numbers from 1 on; write whiten[:DIMENSIONS]."),
        ("abtt:two", "'abtt:two' needs whole numbers from 1 on; write abtt[:DIRECTIONS]."),
        ("centre:3", "'centre:3' has more numbers than centre takes; write centre."),
        ("cluster-abtt:1:2:3", "write cluster-abtt[:CLUSTERS[:DIRECTIONS]]."),
    ],
)
def test_recipes_that_cannot_be_read(recipe: str, said: str) -> None:
    with pytest.raises(IsoscopeError, match=re.escape(said)):
        parse(recipe)


def test_every_kind_can_be_asked_for() -> None:
    for kind in KINDS:
        repair = fit(kind.name, CLOUD)
        assert repair.name.split(":")[0] == kind.name
        assert fit(repair.name, CLOUD).name == repair.name


@pytest.mark.parametrize("recipe", ["centre", "standardise", "abtt", "whiten", "cluster-abtt:2"])
def test_constant_vectors(recipe: str) -> None:
    for constant in (torch.full((40, 6), 0.1), torch.full((40, 520), 0.1), torch.zeros(40, 6)):
        with pytest.raises(IsoscopeError, match="all 40 vectors are the same; there is no spread to repair"):
            fit(recipe, constant)


def test_vectors_that_point_one_way_have_no_rogue_dimension() -> None:
    one_way = torch.arange(1.0, 41)[:, None] * torch.randn(6).double()
    for constant in (torch.full((40, 6), 0.1), one_way, torch.zeros(40, 6)):
        with pytest.raises(IsoscopeError, match="all vectors point the same way"):
            fit("rogue", constant)
    nearly = torch.full((40, 6), 0.1).double() + 1e-6 * CLOUD[:40]
    assert fit("rogue", nearly).name == "rogue:3"
    with pytest.raises(IsoscopeError, match="would leave none of 1 dimensions"):
        fit("rogue", CLOUD[:, :1])


@pytest.mark.parametrize("recipe", [kind.name for kind in KINDS])
def test_one_vector(recipe: str) -> None:
    with pytest.raises(IsoscopeError, match=re.escape("fitted on at least 2 vectors; got 1.")):
        fit(recipe, CLOUD[:1])
    lost = torch.full((7, 6), torch.nan).double()
    with pytest.raises(IsoscopeError, match=re.escape("got 1 (7 more have NaN or Inf).")):
        fit(recipe, torch.cat([lost, CLOUD[:1]]))


@pytest.mark.parametrize(
    ("recipe", "points", "said"),
    [
        ("whiten:7", CLOUD, "'whiten:7' asks for more dimensions than the 6 that vectors have."),
        (
            "abtt:2,whiten:5",
            CLOUD,
            "spread along 4 of 6 dimensions only; ask for whiten:4 or fewer.",
        ),
        (
            "abtt:6",
            CLOUD,
            "'abtt:6' would leave nothing: 50 vectors of 6 dimensions spread along 6",
        ),
        ("abtt", LINE, "'abtt' would leave nothing: 50 vectors of 6 dimensions spread along 1 directions"),
        ("rogue:6", CLOUD, "'rogue:6' would leave none of 6 dimensions; ask for fewer."),
        ("cluster-abtt:20", CLOUD, "'cluster-abtt:20' finds 20 clusters in at least 80 vectors; got 50."),
        ("cluster-abtt:2:6", CLOUD, "would leave none of 6 dimensions; ask for fewer directions."),
        ("centre", CLOUD[0], "vectors are [vectors, dimensions]; got the shape (6,)."),
        ("centre", [CLOUD, CLOUD[:, :4]], "one batch has vectors of 6 dimensions, a later one of 4"),
        ("centre", [[1.0, 2.0]], "a batch is an array or tensor [n, d]; got list."),
        ("centre", 3, "vectors are an array, a tensor or batches of them; got int."),
        ("centre", np.array([["a", "b"]] * 3), "vectors hold numbers; got an array of <U1."),
        ("centre", CLOUD.numpy().astype(object), "vectors hold numbers; got an array of object."),
        ("centre", CLOUD.to(torch.complex64), "vectors hold real numbers; got complex ones."),
    ],
)
def test_what_cannot_be_fitted(recipe: str, points: object, said: str) -> None:
    with pytest.raises(IsoscopeError, match=re.escape(said)):
        fit(recipe, points)


def test_vectors_of_another_width() -> None:
    with pytest.raises(IsoscopeError, match=re.escape("of 6 dimensions; got the shape (3, 5).")):
        fit("centre", CLOUD).apply(np.zeros((3, 5)))


def test_a_constant_dimension_is_only_centred() -> None:
    points = CLOUD.clone()
    points[:, 2] = 0.1
    repair = fit("standardise", points)
    assert repair.notes == ("standardise: 1 of 6 dimensions are constant and only centred",)
    assert float(repair.apply(points)[:, 2].abs().max()) < 1e-12


def test_clusters_with_too_few_vectors_are_only_centred() -> None:
    far = torch.cat([CLOUD, CLOUD[:2] + 1000])
    repair = fit("cluster-abtt:2:3", far)
    assert repair.notes == (
        "cluster-abtt: 1 of 2 clusters have too few different vectors and are only centred",
    )
    assert torch.allclose(repair.apply(far[-2:]), far[-2:] - far[-2:].mean(0), atol=1e-9)


def test_clusters_of_copies_are_only_centred() -> None:
    copies = torch.full((30, 6), 40.0).double()
    repair = fit("cluster-abtt:2:1", torch.cat([CLOUD, copies]))
    assert repair.notes == (
        "cluster-abtt: 1 of 2 clusters have too few different vectors and are only centred",
    )
    assert float(repair.apply(copies).abs().max()) < 1e-9
    few = fit("cluster-abtt:8:1", CLOUD[:3].repeat(20, 1))  # fewer different vectors than clusters
    assert few.name == "cluster-abtt:3:1"


def test_arrays_in_any_order_of_bytes_and_rows() -> None:
    plain = CLOUD.numpy()
    wanted = fit("whiten", plain)
    held = np.ascontiguousarray(plain[::-1])[::-1]
    assert held.strides[0] < 0
    for other in (held, plain.astype(">f8"), plain.astype(np.longdouble), np.asfortranarray(plain)):
        np.testing.assert_allclose(fit("whiten", other).apply(plain), wanted.apply(plain), atol=1e-12)
        np.testing.assert_allclose(wanted.apply(other), wanted.apply(plain), atol=1e-12)
    with pytest.raises(IsoscopeError, match="vectors hold real numbers"):
        wanted.apply(plain.astype(np.complex128))

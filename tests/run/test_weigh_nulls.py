"""What chance gives, in every form of a vocabulary; and how far ρ(t) of a head is from what it should be."""

from __future__ import annotations

import math
from statistics import fmean, stdev

import pytest
import torch

from isoscope.geometry.propagation import propagation, simulate_propagation
from isoscope.geometry.spectra import factors, qk_spectrum
from isoscope.measures import vocabulary
from isoscope.measures.table import choose
from isoscope.results.reading import Reading
from isoscope.run.weigh.heads import WALKS
from isoscope.run.weigh.vocabulary import weigh_vocabulary


def forms(seed: int, n: int, width: int) -> dict[tuple[str, str], Reading]:
    """The readings of an untrained matrix in every form, by form and measure."""
    matrix = 0.3 * torch.randn(n, width, generator=torch.Generator().manual_seed(seed))
    found = weigh_vocabulary("", lambda: matrix, seed=0, tick=lambda: None)
    return {(form.kind, name): reading for form in found for name, reading in form.readings.items()}


@pytest.mark.parametrize(("n", "width"), [(400, 40), (60, 100), (300, 160)])
def test_an_untrained_vocabulary_reads_as_its_null_in_every_form(n: int, width: int) -> None:
    """To 5 standard errors and what few draws of the null leave; neighbours and clusters vary too much."""
    each = [forms(seed, n, width) for seed in range(8)]
    for (kind, name), reading in each[0].items():
        if math.isnan(reading.null) or "dimension" in name or "cluster" in name:
            continue
        values = [found[kind, name].value for found in each]
        null = fmean(found[kind, name].null for found in each)
        error = 5 * stdev(values) / math.sqrt(len(values)) + 0.01 * abs(null) + 1.1 / (n - 1)
        assert abs(fmean(values) - null) < error, (kind, name, fmean(values), null)
    nulls = {kind: each[0][kind, "partition_isotropy_unit"].null for kind in ("", "_centred")}
    assert nulls["_centred"] - nulls[""] > 0.01  # so the test can fail
    ranks = {kind: each[0][kind, "rankme"].null for kind in ("", "_centred", "_without_top")}
    assert ranks[""] > ranks["_centred"] > ranks["_without_top"] + 0.5 * max(1, round(width / 100))


def test_every_measure_of_the_spectrum_has_its_null_in_every_form() -> None:
    """A law of chance would not see it where few directions were lost."""
    named = {measure.name for measure in choose("all", set()) if measure.family == "spectrum"}
    assert named and named <= {*vocabulary._OF_SPECTRUM, *vocabulary._BY_FORMULA}


@pytest.mark.parametrize("rank", [32, 64, 127, 128])
def test_propagation_of_a_multiple_of_the_identity_is_within_two_hundredths(rank: int) -> None:
    """Whichever way is used; against 32,768 last inputs, whose standard error is at most .003."""
    positions = torch.linspace(1, 512, 32).round().long()
    identity = torch.eye(rank, dtype=torch.float64)
    sizes = torch.tensor([0.01, 0.1, 0.5, 3.0])[:, None, None] / math.sqrt(rank)
    parts = factors(sizes * identity, identity.expand(4, -1, -1), scale=1.0)
    spectrum = qk_spectrum(parts.query, parts.key, scale=1.0)
    found = propagation(spectrum, parts, 512, walks=WALKS, seed=0, positions=positions)
    right = simulate_propagation(parts, 512, walks=2**15, seed=1, positions=positions)
    assert set(found.way) == {"closed form" if rank >= 128 else "simulation"}
    assert float((found.value - right.value).abs().max()) < 0.02

"""The nulls of what is read inside sequences, on isotropic clouds with sequences of several lengths."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isoscope.data.keys import content_keys
from isoscope.measures.within import MEASURES
from isoscope.stats.seen import Vectors
from tests.laws.law_clouds import Records
from tests.laws.law_measures import read


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
@pytest.mark.parametrize("width", [64, 300])
def test_the_null_is_what_isotropic_sequences_show(measure, width):
    """In many dimensions: the cosine to the mean is 1/√n_s but for a term of 1/width."""
    random = torch.Generator().manual_seed(width)
    lengths = torch.randint(2, 30, (200,), generator=random)
    label = torch.repeat_interleave(torch.arange(200), lengths)
    values, nulls = [], []
    for _ in range(10):
        points = torch.randn(len(label), width, generator=random)
        seen = Vectors.see(points, label, content_keys(torch.arange(200)[:, None], 0))
        found = read(measure, Records([seen]))
        values.append(found.value)
        nulls.append(found.null)
    assert abs(np.mean(values) - np.mean(nulls)) < 1 / width


def test_vectors_that_stand_alone_have_nothing_inside():
    points = torch.randn(20, 4)
    for measure in MEASURES:
        seen = Vectors.see(points, None, content_keys(points, 0))
        found = read(measure, Records([seen]))
        assert np.isnan(found.value)
        assert found.note == "needs a sequence of 2 vectors that are not zero"

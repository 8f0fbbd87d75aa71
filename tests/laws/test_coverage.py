"""95 % intervals cover the truth in simulated streams whose vectors depend on each other.

Half of the variance belongs to the sequence; lengths run from 1 to 15, or are log-normal, so that a few
sequences hold most vectors. Three clouds: round, flat (one wide dimension across the drift), and along
(one wide dimension, in which the drift lies: the hardest, because the drift is then a single number's
square and close to its noise). Seen with 300 streams: .92 to 1.00, and .99 to 1.00 where there is no drift;
lowest is the mean cosine of 40 sequences along a drift within the noise, .887 (.903 of 1,000 streams).
"""

from __future__ import annotations

import pytest

from tests.laws.law_measures import KINDS, MEASURES
from tests.laws.law_sampling import Stream, covers, simulate, width_of
from tests.tiers import nightly

ROUND, FLAT, ALONG = (1.0,) * 8, (0.1, 1.0, *(0.1,) * 6), (1.0, *(0.1,) * 7)
CLOUDS = {
    "round, no drift": (0.0, ROUND),
    "round, drift below the spread": (1.0, ROUND),
    "round, drift above the spread": (4.0, ROUND),
    "flat, no drift": (0.0, FLAT),
    "flat, drift across": (1.0, FLAT),
    "along, drift within the noise": (0.3, ALONG),
    "along, drift below the spread": (1.0, ALONG),
}
WITH_INTERVAL = [m for m in MEASURES if KINDS[m.name].interval and "tokens" not in m.needs]


@pytest.mark.parametrize("streams", [60, *nightly(300)])
@pytest.mark.parametrize("sequences", [12, 40, *nightly(200)])
@pytest.mark.parametrize("lengths", ["even", "ragged"])
@pytest.mark.parametrize("cloud", CLOUDS)
def test_intervals_cover(cloud, lengths, sequences, streams):
    drift, spread = CLOUDS[cloud]
    stream = Stream(drift, spread, lengths)
    covers(simulate(WITH_INTERVAL, stream, sequences, streams), stream.truth())


def test_intervals_are_no_wider_than_they_must_be():
    """With drift and sequences enough they miss the truth now and then, and shrink as 1/√sequences."""
    stream = Stream(4.0, ROUND, "even")
    few, many = (simulate(WITH_INTERVAL, stream, sequences, 300) for sequences in (40, 360))
    covers(many, stream.truth(), least=0.92, most=0.99)
    for measure in WITH_INTERVAL:
        assert 2.3 < width_of(few[measure.name]) / width_of(many[measure.name]) < 4.0  # √(360/40) = 3

"""Records are sums: merging is associative and commutative, nothing is neutral, batches do not matter.

Each law runs over every record on every odd cloud, and on clouds that hypothesis makes.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.laws.law_clouds import ODD, Cloud, clouds
from tests.laws.law_stats import LAWS, STATS

over_records = pytest.mark.parametrize("record", STATS, ids=lambda record: record.name)
over_laws = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
SMALL = {name: cloud for name, cloud in ODD.items() if cloud.points.numel() <= 1000}


@over_laws
@over_records
def test_law_on_odd_clouds(record, law):
    for cloud in SMALL.values():
        law(record.fold, cloud)


@over_laws
@over_records
@settings(max_examples=15, deadline=None, derandomize=True)
@given(cloud=clouds())
def test_law_on_any_cloud(record, law, cloud: Cloud):
    law(record.fold, cloud)


def test_records_in_one_and_in_two_parts_do_not_merge():
    seen = ODD["two vectors"].seen()
    moments = {record.name: record.fold(seen) for record in STATS}
    with pytest.raises(ValueError, match="records of 2 and of 1 parts do not merge"):
        moments["moments in two halves"].merge(moments["moments whole"])

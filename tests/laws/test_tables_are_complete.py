"""The laws run over tables; whatever exists in the package and is in no table fails here."""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil

import pytest

import isoscope.measures
import isoscope.stats
from isoscope.measures import table
from isoscope.measures.base import Measure
from isoscope.stats.anatomy import Anatomy, Controls
from isoscope.stats.clouds import Clouds
from isoscope.stats.counterfactual import Counterfactual
from isoscope.stats.mass import Mass
from isoscope.stats.profiles import Profiles
from isoscope.stats.queries import HeadSums, Queries, QueryProducts
from isoscope.stats.rows import Rows
from isoscope.stats.walks import Increments, WalkSpread
from tests.laws import law_stats
from tests.laws.law_measures import KINDS, MEASURES, reading

OF_HEADS = {
    Rows, Mass, HeadSums, Queries, QueryProducts, Clouds, Counterfactual, Anatomy, Controls,
}  # fmt: skip  # in tests/laws/law_heads.py
OF_WALKS = {WalkSpread, Increments, Profiles}  # in test_walks.py and tests/run/test_localisation.py
KNOWN = {record.kind for record in law_stats.STATS} | OF_HEADS | OF_WALKS


def modules_of(package):
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


def records_of(package) -> set[type]:
    """Every class of the package that folds and merges, but for Protocols."""
    return {
        kind
        for module in modules_of(package)
        for kind in vars(module).values()
        if inspect.isclass(kind)
        and kind.__module__ == module.__name__
        and hasattr(kind, "of")
        and hasattr(kind, "merge")
        and not getattr(kind, "_is_protocol", False)
    }


def test_every_record_is_in_the_table_of_records():
    assert records_of(isoscope.stats) == KNOWN


def test_every_measure_is_classified():
    assert set(KINDS) == {measure.name for measure in MEASURES}


def test_every_measure_of_a_family_is_in_the_package_s_table():
    written = {
        measure.name
        for module in modules_of(isoscope.measures)
        for measure in vars(module).get("MEASURES", ())
        if isinstance(measure, Measure)
    }
    assert written == {measure.name for measure in table.MEASURES}


def test_no_two_measures_share_a_name():
    assert len({measure.name for measure in table.MEASURES}) == len(table.MEASURES)


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
def test_a_measure_says_whether_it_has_a_null_and_an_interval(measure):
    kind = KINDS[measure.name]
    found = reading(measure, kind.typical())
    assert math.isnan(found.low) != kind.interval
    assert measure.interval.startswith("none") != kind.interval
    assert math.isnan(found.null) == (kind.null == "none") == measure.null.startswith("none")
    assert measure.unchanged_by <= {"rotation", "scale", "shift"}

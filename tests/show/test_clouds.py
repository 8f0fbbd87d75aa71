"""The album of clouds: which heads it holds, which it opens at, how much a page carries, what is escaped."""

from __future__ import annotations

import json
import math
import random
import re

import pandas as pd
import pytest

from isoscope.results.points import Points, points_frame
from isoscope.show.figures import clouds
from isoscope.show.figures.clouds import AXES, album
from isoscope.show.page.page import page
from tests.show.made import a_run, attended
from tests.typed import frame

ROWS = frame(attended())


def pictures(
    unit: str = "m",
    *,
    layers: int = 3,
    heads: int = 2,
    n: int = 12,
    kind: str = "attention",
    far: float = 1.0,
) -> pd.DataFrame:
    """Clouds that stand the further off the origin the deeper the layer; of the last head furthest."""
    made = random.Random(f"{unit} {kind}")
    series = []
    for layer in range(1, layers + 1):
        for head in range(heads):
            for how in AXES:
                off = far * layer * (1 + head)
                for name, side in (("query", 1), ("key", -1)):
                    x = [made.gauss(side * off, 1) for _ in range(n)]
                    series.append(Points(how, kind, layer, head, name, x, [made.gauss(0, 1) for _ in x]))
                series.append(Points(how, kind, layer, head, "share", [0.5], [0.25]))
    return points_frame(series).assign(unit=unit)


def test_every_head_has_three_panels_of_two_series_and_a_share() -> None:
    points = pictures()
    found = album(points, ROWS)
    assert found is not None
    assert list(found.heads) == [(0, "attention", layer, head) for layer in (1, 2, 3) for head in (0, 1)]
    headings = [panel.heading for panel in found.panels.values()]
    assert headings == ["Shared axes", "Centred axes", "Random axes"]
    for panels in found.heads.values():
        assert [[len(line) for line in panel] for panel in panels] == [[12, 12, 12, 12, 1, 1]] * 3
    first = points[points.picture == "centred"].iloc[0]
    assert found.heads[0, "attention", 1, 0][1][0][0] == pytest.approx(float(first.x), rel=5e-3)
    assert found.heads[0, "attention", 1, 0][1][4:] == [[0.5], [0.25]]


def test_numbers_have_three_digits_and_what_is_not_there_is_null() -> None:
    points = pictures()
    points.loc[points.series == "share", "x"] = math.nan
    found = album(points, ROWS)
    assert found is not None
    numbers = [x for panels in found.heads.values() for panel in panels for line in panel for x in line]
    assert all(x is None or x == float(f"{x:.3g}") for x in numbers)
    assert numbers.count(None) == 3 * 2 * 3
    json.dumps(found.data(), allow_nan=False)


def test_it_opens_at_the_head_that_rows_say_is_pulled_most_else_at_that_of_the_points() -> None:
    assert album(pictures(), ROWS).first == (0, "attention", 3, 1)  # type: ignore[union-attr]
    rows = frame(attended(heads=2))
    at = (
        (rows["head"] == 0) & (rows.layer == 2) & rows.measure.str.contains("query_key_cosine|relative_drift")
    )
    rows.loc[at, "value"] = -0.99
    assert album(pictures(), rows).first == (0, "attention", 2, 0)  # type: ignore[union-attr]


def test_steps_are_told_apart_and_the_last_is_shown() -> None:
    steps = [pictures(f"step {step:06d}", layers=2) for step in (0, 40, 400)]
    found = album(pd.concat(steps), ROWS)
    assert found is not None
    assert (found.units, found.along) == (("0", "40", "400"), "step")
    assert found.first == (2, "attention", 2, 1)
    assert len(found.heads) == 3 * 2 * 2
    named = album(pd.concat([pictures("a-007"), pictures("b")]), ROWS)
    assert (named.units, named.along) == (("a-007", "b"), "unit")  # type: ignore[union-attr]


def test_more_units_than_fit_are_thinned_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    each = pictures("step 000000")
    every = pd.concat([each.assign(unit=f"step {step:06d}") for step in range(11)])
    for most, left in ((3 * len(each) + 5, ("0", "5", "10")), (10, ("10",)), (len(every), 11)):
        monkeypatch.setattr(clouds.albums, "MOST", most)
        units = album(every, ROWS).units  # type: ignore[union-attr]
        assert units == left if isinstance(left, tuple) else len(units) == left


def test_kinds_are_named_only_where_there_are_both() -> None:
    one, both = pictures(), pd.concat([pictures(), pictures(kind="cross_attention", heads=3)])
    assert album(one, ROWS).kinds == {}  # type: ignore[union-attr]
    found = album(both, ROWS)
    assert found is not None
    assert found.kinds == {"attention": "self-attention", "cross_attention": "cross-attention"}
    assert len(found.heads) == 6 + 9


def test_there_is_no_album_without_pictures_of_queries_and_keys() -> None:
    others = pictures().assign(picture="spectrum")
    incomplete = pictures()[lambda table: table.picture != "random"]
    for points in (None, pictures().iloc[:0], others, incomplete):
        assert album(points, ROWS) is None
        assert 'class="clouds"' not in page(a_run(), ROWS, {}, points)


def test_the_page_holds_the_points_once_and_escapes_units() -> None:
    points = pd.concat([pictures("<script>alert(1)</script>"), pictures("b")])
    text = page(a_run(), ROWS, {}, points)
    (held,) = re.findall(r'class="points">(.*?)</script>', text, flags=re.DOTALL)
    assert not set("<>&") & set(held)
    told = json.loads(held)
    assert told["units"] == ["<script>alert(1)</script>", "b"]
    assert len(told["heads"]) == 12
    assert "<script>alert" not in text
    assert text == page(a_run(), ROWS, {}, points)

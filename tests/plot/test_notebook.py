"""What a notebook shows of an observation: the headline and a small table, escaped, without a script."""

from __future__ import annotations

import math
import re

import torch

import isoscope
from isoscope.results.row import frame
from isoscope.show.notebook import MOST_LINES, html_of
from tests.show import made, made_weights


def test_a_cloud_shows_its_headline_and_values() -> None:
    cloud = torch.randn(64, 6, generator=torch.Generator().manual_seed(0)) + 2
    seen = isoscope.describe(cloud, name='<script>alert("x")</script>')
    told = seen._repr_html_()
    assert "<script" not in told
    assert "&lt;script&gt;" in told
    assert "anisotropic: mean cosine between sequences" in told
    value = seen.frame().set_index("measure").value["mean_cosine_between"]
    assert f"{value:.3f}" in told
    assert "<th>cloud</th>" in told


def test_a_table_has_a_line_a_site_and_says_where_the_rest_is() -> None:
    rows = [made.row("drift", float(i), layer=i) for i in range(MOST_LINES + 5)]
    told = html_of(frame(rows), ["n < 10", *(f"note {i}" for i in range(6))])
    assert told.count("<tr>") == MOST_LINES + 1
    assert "5 sites more are in <code>.frame()</code>" in told
    assert "n &lt; 10" in told
    assert "and 3 more notes" in told


def test_what_is_not_there_says_why_and_no_rows_are_told() -> None:
    told = html_of(frame([made.row("drift", math.nan, note='"too" few')]))
    assert re.search(r'title="&quot;too&quot; few">–<', told)
    assert html_of(frame([])) == "<p>No rows: nothing was measured.</p>"


def test_models_and_weights_are_told_apart() -> None:
    assert html_of(frame(made.compared())).count("<th>a</th>") == 8
    assert "query-key 1" in html_of(frame(made_weights.weighed()))

"""What is shown of a contrast: the words, the panels of the page, and the figure for print."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from isoscope.kinds.contrast import contrast_sections, finding, findings, span
from isoscope.lab.contrast.fit import Fitted, fit
from isoscope.results.run import Run
from isoscope.show.page.page import page
from isoscope.show.page.printed import offered
from tests.lab.test_contrast_fit import LAYERS, made, planted, row
from tests.show.drawn import figure_of
from tests.typed import frame

TOLD = {"relative_drift": {"title": "relative drift", "formula": "‖x̄‖/mean‖x‖", "says": "how far"}}
RUN = Run("contrast", "arms on <b>", {"reference": "softmax"}, TOLD)


def noisy(arm: str, seed: int, layer: int, at: float) -> float:
    return planted(arm, seed, layer, at) + float(
        np.random.default_rng([seed, layer, len(arm)]).normal(0, 0.02)
    )


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """Two arms that differ, one that does not, a control, and one with no entropy in common."""
    control = [row("control", None, seed, "layer", layer, "relative_drift", 5.0 + 0.01 * seed)
               for seed in range(4) for layer in LAYERS]  # fmt: skip
    driven = made(noisy, seeds=4, arms=("softmax", "qk-norm", "<i>same</i>"))
    return pd.concat([driven, frame(control)], ignore_index=True)


@pytest.fixture(scope="module")
def fitted(rows: pd.DataFrame) -> Fitted:
    return fit(rows, "softmax", ("qk-norm", "<i>same</i>", "control"))


def whole(fitted: Fitted) -> pd.DataFrame:
    return fitted.differences[fitted.differences.layer == 0]


def test_the_headline_names_who_differs_and_how_surely(fitted: Fitted) -> None:
    told = finding(fitted.differences, fitted.arms, TOLD)
    assert re.fullmatch(
        r"At the same entropy the relative drift is higher with qk-norm \(0\.4\d* \[0\.\d+, 0\.\d+\]\) than "
        r"with softmax\.",
        told,
    )
    (drift, *_) = [each for each in findings(whole(fitted), TOLD) if each.startswith("Relative drift")]
    assert "higher with qk-norm (" in drift
    assert "control (" in drift  # in its sentence, though not in the headline
    assert "indistinguishable: <i>same</i>" in drift
    assert span(whole(fitted)).startswith("Shaded: the entropies that all arms reached, 0.3")


def test_what_cannot_be_said_is_not_said(rows: pd.DataFrame) -> None:
    few = rows[rows.revision.str.endswith(("seed 0", "seed 1"))]
    found = fit(few, "softmax")
    assert finding(found.differences, found.arms, TOLD) == (
        "Too few seeds for an interval (2): no arm can be compared with softmax."
    )
    assert all("too few seeds" in each for each in findings(whole(found), TOLD))
    apart = fit(made(planted, shift={"qk-norm": 0.6}), "softmax")
    assert finding(apart.differences, apart.arms, TOLD) == (
        "Nothing can be compared: no arm has seeds and entropies in common with softmax."
    )
    assert "no number: qk-norm (no common range of entropies)" in findings(whole(apart), TOLD)[0]
    assert span(whole(apart)) == "Not all arms have a range of entropies in common; none is shaded."
    nothing = fit(frame([]), "softmax")
    assert finding(nothing.differences, nothing.arms, TOLD).startswith("Nothing can be compared")
    same = fit(made(lambda arm, seed, layer, at: seed - at), "softmax")
    assert finding(same.differences, same.arms, TOLD).startswith(
        "At the same entropy, no arm is distinguishable from"
    )


def test_panels_show_every_trial_and_no_line_beyond_them(fitted: Fitted) -> None:
    sections = contrast_sections(fitted, TOLD)
    assert [section.family for section in sections] == ["contrast", "trials", "layer-1", "layer-2", "layer-3"]
    assert [section.shown.folded for section in sections] == [False, False, True, True, True]
    for layer, section in enumerate(sections[1:]):
        for panel in section.small:
            (measure,) = panel.measures
            own = fitted.points[(fitted.points.measure == measure) & (fitted.points.layer == layer)]
            marks = [trace for trace in figure_of(panel).data if trace.mode == "markers"]
            assert sum(len(trace.x) for trace in marks) == own.entropy.notna().sum()
            for line in (trace for trace in figure_of(panel).data if trace.mode == "lines"):
                assert own.entropy.min() <= min(line.x) < max(line.x) <= own.entropy.max()
            assert len(figure_of(panel).layout.shapes) == 1  # the common range


def test_a_dot_is_full_where_its_interval_leaves_zero_out(fitted: Fitted) -> None:
    (first, *_) = contrast_sections(fitted, TOLD)
    (panel,) = [each for each in first.small if each.measures == ("relative_drift",)]
    full = {trace.name: trace.marker.symbol for trace in figure_of(panel).data}
    assert full == {
        "qk-norm": "circle", "&lt;i&gt;same&lt;/i&gt;": "circle-open", "control": "circle",
    }  # fmt: skip


def test_the_page_escapes_and_is_whole(rows: pd.DataFrame, fitted: Fitted) -> None:
    sections, said = contrast_sections(fitted, TOLD), finding(fitted.differences, fitted.arms, TOLD)
    text = page(RUN, rows, {"unit": {"notes": ["a <note>"]}}, sections=sections, said=said)
    assert "At the same entropy the relative drift is higher" in text
    assert "a &lt;note&gt;" in text
    assert "<i>same</i>" not in text
    for layer in LAYERS:
        assert f'id="layer-{layer}"' in text


@pytest.mark.parametrize("arms", [2, 9])
def test_the_figures_for_print(arms: int) -> None:
    names = ("softmax", *(f"arm {i}" for i in range(1, arms)))
    found = fit(made(noisy, seeds=3, arms=names), "softmax")
    there = offered(contrast_sections(found, TOLD))
    drawn = {name: there[name].bytes("svg", "double").decode() for name in ("contrast", "trials")}
    for name in (*names[1:], "Relative drift", "difference"):
        assert name in drawn["contrast"]  # as text, which a reader can search
    for name in (*names, "Relative drift", "normalised entropy"):
        assert name in drawn["trials"]


def test_nothing_to_print() -> None:
    nothing = fit(frame([]), "softmax")
    assert offered(contrast_sections(nothing, TOLD)) == {}

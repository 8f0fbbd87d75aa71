"""What is shown of arms that were driven nowhere: the words, panels without lines, differences in print."""

from __future__ import annotations

import pytest

from isoscope.kinds.contrast import as_they_came, contrast_sections, finding, findings, span, telling
from isoscope.lab.contrast.fit import Fitted, fit
from tests.lab.test_contrast_as_they_come import planted
from tests.lab.test_contrast_fit import made
from tests.lab.test_contrast_fit import planted as driven_lines
from tests.show.drawn import figure_of

ARMS = ("none", "istar=1", "<b>")


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    return fit(planted(arms=ARMS)[0], "none", ARMS[1:])


def test_words_speak_of_no_common_entropy(fitted: Fitted) -> None:
    whole = fitted.differences[fitted.differences.layer == 0]
    assert as_they_came(whole)
    told = finding(fitted.differences, fitted.arms, {})
    assert told.startswith("The loss is higher with istar=1 (0.")
    assert told.endswith("than with none.")
    assert all("entropies" not in each for each in findings(whole, {}))
    assert span(whole) == "Arms were not matched, so they differ in entropy as well."
    assert telling(whole.iloc[0]).lines[-1] == "5 seeds"
    driven = fit(made(driven_lines), "softmax").differences
    assert not as_they_came(driven)


def test_what_cannot_be_said_is_not_said() -> None:
    rows, _ = planted()
    same = fit(rows[rows.measure == "trace"], "none")
    assert finding(same.differences, same.arms, {}) == (
        "No arm is distinguishable from none (loss, probe accuracy, normalised entropy, relative drift, mean "
        "cosine between)."
    )
    apart = fit(rows[(rows.model == "none") == (rows.revision == "seed 0")], "none")
    assert finding(apart.differences, apart.arms, {}) == (
        "Nothing can be compared: no arm has seeds and entropies in common with none."
    )


def test_panels_have_every_trial_and_no_line(fitted: Fitted) -> None:
    sections = contrast_sections(fitted, {})
    assert sections[0].shown.heading == "As they came"
    assert {panel.measures[0] for panel in sections[0].small} == set(fitted.points.measure)
    for section in sections[1:]:
        assert "normalised_entropy" not in {panel.measures[0] for panel in section.small}
        for panel in section.small:
            assert {trace.mode for trace in figure_of(panel).data} == {"markers"}
            assert sum(len(trace.x) for trace in figure_of(panel).data) == 5 * len(ARMS)

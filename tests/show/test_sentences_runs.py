"""Every sentence on contrasts, impacts and blocks: where it must be said, and where it must not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import pytest

from isoscope.kinds import contrast as sentences_contrast
from isoscope.kinds import impact as impact_rows
from isoscope.kinds.block import finding, finding_of_norms
from isoscope.kinds.contrast import telling
from isoscope.results.reading import Reading
from isoscope.show.draw.plotly.charts import told_html
from tests.show.made import row
from tests.show.said import Case, Line, Say
from tests.typed import frame

NAN = math.nan
CONTROL, PAIR = "without attention: the same at every entropy", "in the range of this arm and the reference"


def differing(
    arm: str, low: float, high: float, measure: str = "relative_drift", note: str = "", **given: object
) -> dict[str, object]:
    line = {"measure": measure, "layer": 0, "arm": arm, "value": (low + high) / 2, "low": low, "high": high}
    line |= {"least": low, "most": high, "n": 3, "at": 0.5, "range_low": 0.4, "range_high": 0.6, "note": note}
    line["control"] = note == CONTROL
    return line | given


COLUMNS = list(differing("", 0.0, 0.0))
LOST = {"value": NAN, "low": NAN, "high": NAN, "range_low": NAN, "at": NAN}
FEW = {"low": NAN, "high": NAN, "n": 2}


def headed(*lines: dict[str, object]) -> Say:
    return lambda: sentences_contrast.finding(pd.DataFrame(lines, columns=COLUMNS), ("softmax", "a"), {})


def each(*lines: dict[str, object]) -> Say:
    return lambda: "\n".join(sentences_contrast.findings(pd.DataFrame(lines, columns=COLUMNS), {}))


def spanned(*lines: dict[str, object]) -> Say:
    return lambda: sentences_contrast.span(pd.DataFrame(lines, columns=COLUMNS))


def pointed(**given: object) -> Say:
    return lambda: told_html(telling(pd.Series(differing("a", 0.1, 0.2) | given)))


HIGHER, SAME = differing("a", 0.001, 0.2), differing("a", 0.0, 0.2)
LOSS = differing("a", 0.1, 0.2, "loss", at=NAN)
CONTRAST: tuple[Line, ...] = (
    (
        "At the same entropy the relative drift is higher with a (0.1 [0.001, 0.2]) than with softmax.",
        headed(HIGHER),
        headed(SAME),
    ),
    ("is lower with a", headed(differing("a", -0.2, -0.001)), headed(differing("a", -0.2, 0.0))),
    (
        "lower with b (−0.1 [−0.15, −0.05]) and higher with a",
        headed(HIGHER, differing("b", -0.15, -0.05)),
        headed(HIGHER),
    ),
    ("The loss is higher with a", headed(LOSS), headed({**LOSS, "at": 0.5})),
    (
        "the relative drift is higher",
        headed(differing("a", 0.1, 0.2, note=PAIR)),
        headed({**HIGHER, "note": CONTROL, "control": True}),
    ),
    ("drift is higher", headed(HIGHER), headed({**HIGHER, "measure": "isoscore"})),
    (
        "At the same entropy, no arm is distinguishable from softmax (relative drift, "
        "mean cosine between, drift share, loss).",
        headed(SAME),
        headed(HIGHER),
    ),
    (
        "No arm is distinguishable from softmax (loss,",
        headed(differing("a", -0.1, 0.2, "loss", at=NAN)),
        headed(differing("a", -0.1, 0.2, "loss")),
    ),
    (
        "Nothing can be compared",
        headed({**HIGHER, "note": CONTROL, "control": True}),
        headed({**HIGHER, "note": CONTROL, "control": True}, SAME),
    ),
    (
        "Too few seeds for an interval (2): no arm can be compared with softmax.",
        headed({**HIGHER, **FEW}),
        headed(HIGHER),
    ),
    (
        "Nothing can be compared: no arm has seeds and entropies in common with softmax.",
        headed({**HIGHER, **LOST}),
        headed({**HIGHER, **LOST}, HIGHER),
    ),
    ("Nothing can be compared", headed(), headed(HIGHER)),
    ("Nothing can be compared", headed({**HIGHER, "layer": 1}), headed(HIGHER)),
    ("Relative drift: higher with a (0.1 [0.001, 0.2]).", each(HIGHER), each(SAME)),
    ("indistinguishable: a", each(SAME), each(HIGHER)),
    ("too few seeds: a", each({**HIGHER, **FEW}), each(SAME)),
    ("indistinguishable: a; too few seeds: b.", each(SAME, {**differing("b", 0, 1), **FEW}), each(SAME)),
    ("no number: b (no seed in common)", each(SAME, {**differing("b", 0, 1), **LOST}), each(SAME)),
    ("no number: b (why)", each(SAME, {**differing("b", 0, 1, note="why"), **LOST}), each(SAME)),
    (
        "Loss: no number",
        each({**HIGHER, **LOST, "measure": "loss"}),
        each({**HIGHER, **LOST, "measure": "loss"}, SAME),
    ),
    (
        "Arms were not matched, so they differ in entropy as well.",
        spanned(LOSS),
        spanned(HIGHER),
    ),
    (
        "Not all arms have a range of entropies in common; none is",
        spanned({**HIGHER, "note": PAIR}),
        spanned(HIGHER),
    ),
    (
        "Shaded: the entropies that all arms reached, 0.4 to 0.6; arms are compared in the middle.",
        spanned(HIGHER),
        spanned(LOSS),
    ),
    ("95 % interval 0.1 to 0.2<br>3 seeds, at an entropy of 0.500", pointed(), pointed(at=NAN)),
    ("seeds lie from 0.1 to 0.2<br>2 seeds", pointed(**FEW), pointed()),
    ("interval 0.1 to 0.2", pointed(least=0.05, most=0.3), pointed(low=0.05, high=0.3)),
    (", at an entropy", pointed(), pointed(at=NAN)),
    ("0.500<br>", pointed(note="a note"), pointed()),
    ("The loss is", headed({**HIGHER, "at": NAN}, LOSS), headed(HIGHER, {**LOSS, "at": 0.5})),
    ("the relative drift is", headed(HIGHER, {**LOSS, "at": 0.5}), headed({**HIGHER, "at": NAN}, LOSS)),
    ("<br>1 seed,", pointed(**FEW | {"n": 1}), pointed()),
    ("<br>a &lt;note&gt;", pointed(note="a <note>"), pointed()),
)

# an impact and a block


def effect(
    repair: str, note: str, value: float = 0.1, measure: str = "spearman.pairs", layer: int | None = 1
) -> impact_rows.Effect:
    by = Reading(value, 400, 0.0, value - 0.03, value + 0.03, note, note)
    main = measure != "hub_skewness"
    return impact_rows.Effect(("layer", layer), measure, repair, 0.5, 0.5 + value, by, (0.4, 0.0), main)


def judged(*found: impact_rows.Effect) -> Say:
    return lambda: impact_rows.headline(found, {})


def verdicts(*found: impact_rows.Effect) -> Say:
    return lambda: impact_rows.finding(found, {})


HELPED, HURT, NONE = (
    effect("a", "helped", 0.05),
    effect("b", "hurt", -0.2),
    effect("c", "no difference", 0.01),
)
CANNOT, OTHER = effect("d", "cannot matter"), effect("e", "helped", 0.1)
LABELS = effect("f", "helped", measure="accuracy.labels")
AT = [
    *(effect("a", "helped", layer=layer) for layer in (1, 2, 3)),
    replace(effect("o", "hurt"), place=("output", None)),
]
ALIKE = impact_rows.Effect(
    ("layer", 1), "spearman", "a", 0.5, 0.5, Reading(0.0, 9, 0.0, 0.0, 0.0, tag="no difference"), (0, 0)
)


def block(norm: str, *entropies: tuple[float, float]) -> pd.DataFrame:
    """Lines over seeds of so many biases: the normalised entropy and half of its interval."""
    return pd.DataFrame(
        {
            "norm": norm, "bias": 10.0 * at, "kind": "attention", "layer": 1, "measure": "normalised_entropy",
            "value": value, "n": 3, "low": value - half, "high": value + half,
        }
        for at, (value, half) in enumerate(entropies)
    )  # fmt: skip


def moved(*entropies: tuple[float, float]) -> Say:
    return lambda: finding(block("post", *entropies))


def passed(*seeds: Sequence[tuple[float, float]], after: Sequence[float] = ()) -> Say:
    """Norms that enter and leave by seed and bias, and the norms after each of many passes."""
    rows = []
    for seed, biases in enumerate(seeds):
        for bias, pair in enumerate(biases):
            at = {"model": f"post, bias {bias}", "revision": f"seed {seed}"}
            rows += [row("mean_norm", value, layer=layer, **at) for layer, value in enumerate(pair)]
            rows += [row("mean_norm", x, kind="iterated", layer=i, **at) for i, x in enumerate(after)]
    return lambda: finding_of_norms(frame(rows))


KEPT, GROWS = [(1.0, 2.0), (3.0, 2.0)], [(1.0, 2.0), (2.0, 3.0)]
IMPACT: tuple[Line, ...] = (
    (
        "Layer 1: spearman.pairs is 0.5; of 3 repairs, 1 certainly hurt and 2 certainly "
        "help (most e, to 0.6).",
        judged(HELPED, OTHER, HURT),
        judged(HELPED, HURT),
    ),
    ("1 certainly help (most a, to 0.55)", judged(HELPED, HURT), judged(NONE, HURT)),
    ("0 certainly hurt and 1 certainly help (most a, to 0.55).", judged(HELPED), judged(NONE)),
    ("1 certainly hurt and 0 certainly help.", judged(NONE, HURT), judged(HELPED, HURT)),
    ("2 certainly hurt", judged(HURT, effect("f", "hurt")), judged(NONE, HURT)),
    ("of 2 repairs, 0 certainly hurt and 0 certainly help.", judged(NONE, CANNOT), judged(NONE, HURT)),
    ("Layer 3: ", judged(HELPED, effect("a", "hurt", layer=2), effect("a", "hurt", layer=3)), judged(HELPED)),
    ("Layer 1: ", judged(HELPED), judged(effect("a", "helped", measure="hub_skewness"))),
    ("There is nothing to compare.", judged(effect("a", "helped", measure="hub_skewness")), judged(HELPED)),
    (
        "layer 1, spearman.pairs 0.5: helped: e +0.1 [0.07, 0.13], a +0.05 [0.02, 0.08].",
        verdicts(HELPED, OTHER),
        verdicts(HELPED),
    ),
    (
        "0 certainly hurt and 1 certainly help (most a, to 0.55).",
        judged(HELPED, LABELS),
        judged(HELPED, OTHER),
    ),  # of the first task alone
    (
        "layer 1, accuracy.labels 0.5: helped: f +0.1 [0.07, 0.13].",
        verdicts(HELPED, LABELS),
        verdicts(HELPED),
    ),
    ("Layer 2: ", judged(*AT[:2]), judged(*AT[:3])),  # the first site and the last
    ("Output: spearman.pairs is 0.5; of 1 repairs, 1 certainly hurt", judged(*AT), judged(*AT[:3])),
    (": hurt: b −0.2 [−0.23, −0.17]; helped: a", verdicts(HELPED, HURT), verdicts(HELPED, NONE)),
    ("no difference at n = 400 (one of 0.03 would have shown): c.", verdicts(NONE), verdicts(HELPED)),
    ("no difference at n = 9: a", verdicts(ALIKE), verdicts(NONE)),
    ("cannot matter: d.", verdicts(CANNOT), verdicts(NONE)),
    ("undefined: a", verdicts(effect("a", "")), verdicts(NONE)),
    (
        "There is nothing to compare.",
        verdicts(effect("a", "helped", measure="hub_skewness")),
        verdicts(HELPED),
    ),
)
BLOCK: tuple[Line, ...] = (
    (
        "post: attention sharpens as the bias grows from 0 to 10 (normalised entropy 0.9000 to 0.8850).",
        moved((0.9, 0.01), (0.885, 0.01)),
        moved((0.9, 0.01), (0.8865, 0.01)),
    ),
    ("attention evens out as", moved((0.9, 0.01), (0.915, 0.01)), moved((0.9, 0.01), (0.9135, 0.01))),
    (
        "attention shows no clear change as",
        moved((0.9, 0.01), (0.9135, 0.01)),
        moved((0.9, 0.01), (0.915, 0.01)),
    ),
    (
        "sharpens",
        moved((0.9, NAN), (0.8895, NAN)),
        moved((0.9, NAN), (0.8905, NAN)),
    ),
    ("evens out", moved((0.25, 0.2), (0.75, 0.2)), moved((0.25, 0.36), (0.75, 0.36))),
    ("sharpens", moved((0.75, 0.2), (0.25, 0.2)), moved((0.75, 0.36), (0.25, 0.36))),
    ("; too few seeds for an interval)", moved((0.9, NAN), (0.5, NAN)), moved((0.9, 0.01), (0.5, 0.01))),
    ("One bias norm: nothing to compare; give several", moved((0.9, NAN)), moved((0.9, NAN), (0.9, NAN))),
    ("post: one pass keeps a norm of 2 (1 of 1 seeds).", passed(KEPT), passed(GROWS)),
    ("keeps a norm of 2 (1 of 2 seeds)", passed(KEPT, GROWS), passed(KEPT, KEPT)),
    ("one pass keeps no norm among these", passed(GROWS), passed(GROWS, KEPT)),
    ("; 3 passes lead to 2.", passed(KEPT, after=(1, 2, 2, 2)), passed(KEPT)),
    (
        "; 2 passes leave norms that still change per pass by a factor of 1.5.",
        passed(KEPT, after=(1, 2, 3)),
        passed(KEPT, after=(1, 2, 2)),
    ),
)

CASES = [Case(line[0], *line) for line in (*CONTRAST, *IMPACT, *BLOCK)]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_sentence_is_said_where_it_holds_and_only_there(case: Case) -> None:
    assert case.words in case.there()
    assert case.words not in case.elsewhere()

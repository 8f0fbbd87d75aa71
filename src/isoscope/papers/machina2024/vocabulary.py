"""Claims on vocabulary matrices: I(W) along training, input against output, and without the mean."""

from __future__ import annotations

import pandas as pd

from isoscope.papers.claims import Claim, Found, Verdict, is_above, is_below, kept
from isoscope.papers.lines import dots
from isoscope.papers.machina2024.along import along_training
from isoscope.papers.machina2024.drawing import drawn, over_steps, side_by_side, with_null
from isoscope.papers.machina2024.frequency import OF_FREQUENCY
from isoscope.papers.machina2024.judging import brief, changes, concluded, every, levels, pick
from isoscope.papers.machina2024.weighing import (
    I_OWN,
    I_UNIT,
    INPUT,
    OUTPUT,
    OUTPUTS,
    TIED,
)
from isoscope.papers.workshop import Workshop
from isoscope.show.charts import Chart
from isoscope.sites import CENTRED, WITHOUT_TOP, of_form

SIDES = (INPUT, OUTPUT, TIED)
NEAR_ONE = 0.9  # an I(W) above it is called near 1 here
SHOWN = 400  # rows of a matrix in a scatter
FORMS = {
    "partition_isotropy_float32": "published", "partition_isotropy_one_sign": "+ only", I_OWN: "±",
    I_UNIT: "± unit", "partition_isotropy_first": "1st order", "partition_isotropy_second": "2nd order",
}  # fmt: skip
WEIGHED = (
    "Models of three widths learn the next sub-word, one width also with tied matrices; at checkpoints along "
    "training every row of the matrix counts. At the scale full: Pythia at 21 checkpoints and the contrast "
    "models; intervals are over seeds, of public models over models. "
)


def experiment(workshop: Workshop) -> Found:
    """Vocabulary matrices of every model along training, in all their forms."""
    rows, points = along_training(workshop)
    kinds = [of_form(side, form) for side in SIDES for form in ("", CENTRED, WITHOUT_TOP)]
    return Found(kept(rows, rows["kind"].isin(kinds) & ~rows["measure"].isin(OF_FREQUENCY)), points)


def judge_fall(rows: pd.DataFrame) -> Verdict:
    """I(W) of the output must fall from first to last checkpoint, at its own scale and at unit norm."""
    own, unit = (
        changes(pick(rows, OUTPUTS, measure, "first"), pick(rows, OUTPUTS, measure, "last"))
        for measure in (I_OWN, I_UNIT)
    )
    said = (
        f"From the first checkpoint to the last I(W) of the output matrix changes by {brief(own)}; with rows "
        f"in units of their mean norm by {brief(unit)}."
    )
    more = {"Own scale": own, "Unit norm": unit}
    return concluded(every((own, unit), is_below, 0), said, rows, more)


def judge_sides(rows: pd.DataFrame) -> Verdict:
    """The input must be more isotropic than the output, at its own scale and at unit norm."""
    own, unit = (changes(pick(rows, OUTPUT, each), pick(rows, INPUT, each)) for each in (I_OWN, I_UNIT))
    entering, leaving = (levels(pick(rows, side, I_OWN)) for side in (INPUT, OUTPUT))
    said = (
        f"At the end I(W) of the input is {brief(entering)}, of the output {brief(leaving)}; the input's is "
        f"larger by {brief(own)}, at unit norm by {brief(unit)}."
    )
    more = {"Input": entering, "Output": leaving, "Input less output": own, "The same at unit norm": unit}
    return concluded(every((own, unit), is_above, 0), said, rows, more)


def judge_centring(rows: pd.DataFrame) -> Verdict:
    """Without its mean every matrix must be near 1."""
    found = {side: levels(pick(rows, of_form(side, CENTRED), I_OWN)) for side in SIDES}
    names = {INPUT: "input", OUTPUT: "output", TIED: "tied matrix"}
    parts = [f"of the {names[side]} {brief(own)}" for side, own in found.items() if own]
    top = levels(pick(rows, [of_form(side, WITHOUT_TOP) for side in OUTPUTS], I_OWN))
    said = (
        f"Without the mean I(W) is {', '.join(parts)}, to be above {NEAR_ONE:g}"
        f"{f'; without the top directions of the output too it is {brief(top)}' if top else ''}."
    )
    more = {f"Centred {names[side]}": own for side, own in found.items()}
    more["Output without the top"] = top
    return concluded(every(found.values(), is_above, NEAR_ONE), said, rows, more)


def draw_fall(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """Output and input along training, at their own scale and at unit norm; what the form makes of it."""
    forms = {name: pick(rows, OUTPUTS, measure) for measure, name in FORMS.items()}
    return drawn(
        with_null(over_steps(rows, OUTPUTS, I_OWN, "I(W) of the output"), rows, OUTPUTS, I_OWN),
        with_null(over_steps(rows, OUTPUTS, I_UNIT, "The same at unit norm"), rows, OUTPUTS, I_UNIT),
        over_steps(rows, OUTPUTS, "mean_norm", "Mean norm of its rows"),
        over_steps(rows, INPUT, I_OWN, "I(W) of the input"),
        side_by_side("What the form makes of the output's I(W)", forms),
    )


def draw_sides(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """Both sides at the end."""
    untied = [str(name) for name in pick(rows, OUTPUT, I_OWN)["model"].unique()]
    charts = []
    for measure, title in (
        (I_OWN, "I(W)"), (I_UNIT, "I(W) at unit norm"), ("mean_cosine", "Mean cosine of rows"),
        ("isoscore", "IsoScore of rows"),
    ):  # fmt: skip
        sides = {name: pick(rows, side, measure) for name, side in (("input", INPUT), ("output", OUTPUT))}
        charts.append(side_by_side(title, sides, untied))
    return drawn(*charts)


def draw_centring(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """Raw, centred and all-but-the-top; and the rows of the largest model on their first two directions."""
    forms = {"raw": "", "centred": CENTRED, "all but the top": WITHOUT_TOP}
    places = {
        title: {
            name: pick(rows, [of_form(side, form) for side in sides], I_OWN) for name, form in forms.items()
        }
        for title, sides in (("the output", OUTPUTS), ("the input", (INPUT,)))
    }
    level = ((NEAR_ONE, "near 1"),)
    charts = [side_by_side(f"I(W) of {title}", found, at=level) for title, found in places.items()]
    return drawn(*charts, *_scatters(points))


def _scatters(points: pd.DataFrame) -> list[Chart]:
    """Rows of the output and the input on the first two singular vectors, raw and centred, one seed."""
    charts = []
    for side, end in ((OUTPUT, "output"), (INPUT, "input")):
        clouds = []
        for form in ("raw", "centred"):
            mine = points[(points["kind"] == side) & (points["series"] == form)]
            if len(mine):
                own = mine[mine["picture"] == mine["picture"].iloc[-1]]
                clouds.append(dots(form, own.iloc[:: max(1, len(own) // SHOWN)], "x", "y"))
        title = f"Rows of the {end} on two directions"
        remark = "largest model, one seed, each form on its own directions"
        axes = ("1st singular vector", "2nd")
        charts.append(Chart(title, *axes, clouds, levels=((0.0, ""),), remark=remark, centred=True))
    return charts


_MEASURES = (I_OWN, I_UNIT, "partition_isotropy_float32")
FALL = Claim(
    "vocabulary-along-training", "I(W) of the output falls along training", experiment=experiment,
    judge=judge_fall, draw=draw_fall,
    expected="Vocabulary matrices start isotropic, and training makes that of the output anisotropic in most "
    "models (Pythia-70m ends at .08).",
    method=WEIGHED + "I(W) = min Z/max Z over both signs of every eigenvector, in float64; because it hangs "
    "on the scale of the rows it must also fall with rows in units of their mean norm.",
    reconstructed="The published form takes one sign of each eigenvector, as the linear algebra library "
    "gives it, in float32; it is drawn beside ours and decides nothing.",
    measures=_MEASURES,
)  # fmt: skip
SIDES_CLAIM = Claim(
    "input-against-output", "The input is more isotropic than the output", experiment=experiment,
    judge=judge_sides, draw=draw_sides,
    expected="The matrix that tokens enter by stays nearly isotropic, the one they leave by does not: "
    "Pythia-70m has .96 against .08.",
    method=WEIGHED + "At the last checkpoint, paired by seed; tied models have one matrix and are left out.",
    measures=(*_MEASURES, "mean_cosine", "isoscore"),
)  # fmt: skip
CENTRING = Claim(
    "centring", "Without its mean a vocabulary is isotropic", experiment=experiment, judge=judge_centring,
    draw=draw_centring,
    expected="Taking the mean off the rows is enough to make both matrices nearly isotropic: .997 and .97 in "
    "Pythia-70m.",
    method=WEIGHED + "At the last checkpoint, raw, centred, and centred without the max(1, d/100) top "
    "directions.",
    reconstructed=f"Nearly isotropic is an I(W) above {NEAR_ONE:g} here; the paper names no level.",
    measures=(I_OWN,),
)  # fmt: skip

"""Claims on the theory of token frequency: whether rare tokens make anisotropy, in the matrix and beyond."""

from __future__ import annotations

import pandas as pd

from isoscope.papers.claims import Claim, Found, Verdict, is_below, kept
from isoscope.papers.intervals import widened
from isoscope.papers.machina2024.along import along_training
from isoscope.papers.machina2024.drawing import drawn, over_steps, side_by_side
from isoscope.papers.machina2024.frequency import BANDS, OF_FREQUENCY
from isoscope.papers.machina2024.judging import brief, changes, concluded, every, levels, pick
from isoscope.papers.machina2024.weighing import ALONG, GRADIENT, OUTPUTS
from isoscope.papers.workshop import Workshop
from isoscope.results.reading import Reading
from isoscope.show.charts import Chart

CORRELATION = "frequency_drift_correlation"
BAND = "mean_cosine_{}"
ALIKE = 0.05  # a mean cosine that is larger by less is called no larger here


def experiment(workshop: Workshop) -> Found:
    """Rows of the output, their gradients and hidden states, by token frequency."""
    rows, _ = along_training(workshop)
    kinds = rows["kind"].isin((*OUTPUTS, GRADIENT, "output", "input_vocabulary"))
    return Found(kept(rows, rows["measure"].isin((*OF_FREQUENCY, ALONG)) & kinds))


def judge_matrix(rows: pd.DataFrame) -> Verdict:
    """The theory fails where one of what it foretells is surely the other way; it stands where all is so."""
    correlated = pick(rows, OUTPUTS, CORRELATION)
    leaning = levels(correlated.assign(value=-correlated["value"]))
    matrix, gradient = (_rare_less_frequent(rows, kinds) for kinds in (OUTPUTS, (GRADIENT,)))
    groups = list(dict.fromkeys([*leaning, *matrix, *gradient]))
    parts = [_fails([one[group] for one in (leaning, matrix, gradient) if group in one]) for group in groups]
    said = (
        "The theory foretells three numbers above 0. Minus the rank correlation of frequency with the place "
        f"along the mean: {brief(leaning)}. Mean cosine of rare rows less frequent ones: {brief(matrix)}. "
        f"The same of their gradients: {brief(gradient)}."
    )
    more = {"Correlation, turned": leaning, "Rows": matrix, "Gradients": gradient}
    return concluded(parts, said, rows, more)


def _fails(found: list[Reading]) -> Verdict:
    """Held (as this paper has it) where one of all is surely below 0, not where three are surely above."""
    if any(widened(each, len(found)).below(0) for each in found):
        return Verdict(True, "")
    return Verdict(False if len(found) == 3 and all(each.above(0) for each in found) else None, "")


def _rare_less_frequent(rows: pd.DataFrame, kinds: tuple[str, ...]) -> dict[str, Reading]:
    frequent, rare = (pick(rows, kinds, BAND.format(band)) for band in ("frequent", "rare"))
    return changes(frequent, rare)


def judge_states(rows: pd.DataFrame) -> Verdict:
    """Rare tokens must be no more alike than frequent ones, but for a margin."""
    found = _rare_less_frequent(rows, ("output",))
    parts = every((found,), is_below, ALIKE)
    leaning = levels(pick(rows, "output", "frequency_correlation"))
    said = (
        "Among the last hidden states the mean cosine of rare tokens less that of frequent ones is "
        f"{brief(found)}, to be below {ALIKE:g}; the correlation of log frequency with the place along "
        f"the mean is {brief(leaning)}."
    )
    return concluded(parts, said, rows, {"Rare less frequent": found, "Correlation": leaning})


def draw_matrix(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """The correlation along training, and A by band of rows and gradients."""
    return drawn(
        over_steps(rows, OUTPUTS, CORRELATION, "Frequency against place along the mean"),
        _by_band(rows, OUTPUTS, "Mean cosine of output rows"),
        _by_band(rows, OUTPUTS, "Relative drift of output rows", "relative_drift_{}"),
        _by_band(rows, (GRADIENT,), "Mean cosine of their gradients"),
        over_steps(rows, GRADIENT, BAND.format("rare"), "Shared direction of rare rows' gradients"),
        over_steps(rows, GRADIENT, ALONG, "Next step against the mean row: cos(−Σg, Σw)"),
    )


def draw_states(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """A and drift of hidden states by band, beside those of the output rows."""
    return drawn(
        _by_band(rows, ("output",), "Mean cosine of last hidden states"),
        _by_band(rows, ("output",), "Relative drift of last hidden states", "relative_drift_{}"),
        _by_band(rows, OUTPUTS, "Mean cosine of output rows"),
    )


def _by_band(rows: pd.DataFrame, kinds: tuple[str, ...], title: str, measure: str = BAND) -> Chart:
    names = {"rare": "rare", "middle": "in between", "frequent": "frequent"}
    places = {names[band]: pick(rows, kinds, measure.format(band)) for band in BANDS}
    return side_by_side(title, places)


_METHOD = (
    "Tokens are told apart by how often they were an answer in training (public models: in the data): rare "
    "below one in 10,000, frequent from one in 1,000 on. "
)
MATRIX = Claim(
    "frequency-theory", "The output does not drift as the theory of rare tokens says", experiment=experiment,
    judge=judge_matrix, draw=draw_matrix,
    expected="Anisotropic models do not develop as theorised. The theory says: rare tokens are pushed the "
    "same way, away from the hidden states, so they lie further along the mean, are more alike, and share "
    "the direction of their gradient.",
    method=_METHOD + "Each of the three is measured on the rows of the output matrix; the gradient is that "
    "of the loss on held-out text. Not as expected is where all three are surely as the theory says.",
    reconstructed="The paper argues from its curves; the three tests are ours, after Gao et al. 2019 and Biś "
    "et al. 2021.",
    measures=(CORRELATION, "mean_cosine_rare", "mean_cosine_frequent", "relative_drift_rare"),
)  # fmt: skip
STATES = Claim(
    "frequency-hidden-states", "Hidden states are not anisotropic by token frequency", experiment=experiment,
    judge=judge_states, draw=draw_states,
    expected="If anisotropy does not come from rare tokens, hidden states of rare tokens are no more alike "
    "than those of frequent ones.",
    method=_METHOD + "Last hidden states of text that was trained on, each token type one vector against "
    "every other type; intervals over seeds.",
    reconstructed=f"All of it. No more alike is a mean cosine that is larger by less than {ALIKE:g}.",
    measures=("mean_cosine_rare", "mean_cosine_frequent", "frequency_correlation"),
)  # fmt: skip

"""Charts of experiments: an untrained block, by means over seeds, and what a contrast found.

The means of a block have their t interval from three seeds on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.formatting import short
from isoscope.kinds.block import figures as block
from isoscope.kinds.block.figures import ENDS, PASSED
from isoscope.kinds.contrast import figures as contrast
from isoscope.plot.select import names_in, titled
from isoscope.show.charts import Chart
from isoscope.show.measures import Told

if TYPE_CHECKING:
    from isoscope.lab.contrast.fit import Fitted


def summed(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of a block as means over seeds, with intervals."""
    from isoscope.lab.block.seeds import over_seeds

    if frame.empty or not frame["value"].notna().any():
        raise IsoscopeError("there is nothing to draw: these rows hold no value of a block.")
    return over_seeds(frame)


def along_bias(lines: pd.DataFrame, measure: str, told: Told | None, layer: int = 1) -> Chart:
    """A quantity along the norm of the bias, one curve per norm of the block."""
    own = lines[lines["kind"].isin(["layer", "attention"])]
    if measure not in set(own["measure"]):
        raise unknown_name("quantity of this block", measure, set(own["measure"]))
    own = own[(own["measure"] == measure) & (own["layer"] == layer)]
    chart = block.along_bias(own, "norm", contrast.colours_of(names_in(lines, "norm")))
    of = f": what {ENDS[layer]}" if set(own["kind"]) == {"layer"} else ""
    return chart.named(y=f"{titled(measure, told)}{of}")


def stages(lines: pd.DataFrame, norm: str | None, measure: str, told: Told | None) -> Chart:
    """A quantity at every stage of the block along the norm of the bias."""
    norm = _norm(lines, norm)
    if not ((lines["measure"] == measure) & ~lines["kind"].isin((PASSED, "attention"))).any():
        raise unknown_name("quantity of the stages of this block", measure, set(lines["measure"]))
    return block.stages(lines, norm, measure, shared=True).named(f"norm: {norm}", titled(measure, told))


def passes(lines: pd.DataFrame, norm: str | None = None) -> Chart:
    """Mean norms pass by pass through the block, one curve per bias."""
    own = lines[(lines["kind"] == PASSED) & (lines["measure"] == "mean_norm")]
    if own.empty:
        raise IsoscopeError("there is nothing to draw: nothing passed through this block more than once.")
    norm = _norm(own, norm)
    return block.passes(lines, norm).named(f"norm: {norm}", "Mean norm")


def _norm(lines: pd.DataFrame, norm: str | None) -> str:
    there = names_in(lines, "norm")
    if norm is not None and norm not in there:
        raise unknown_name("norm in these rows", norm, there)
    return norm or there[0]


def scores(points: pd.DataFrame, units: dict[str, str], series: str, title: str = "") -> Chart:
    """Histograms of the scores of a block, one line per unit."""
    if not (points["unit"].isin(list(units)) & (points["series"] == series)).any():
        raise IsoscopeError("there is nothing to draw: these points hold no histogram of scores.")
    name = "score" if series == "score" else "score less its row’s mean"
    return block.histograms(points, units, series).named(title, x=name)


def fitted(frame: pd.DataFrame, reference: str | None, arms: Sequence[str] = ()) -> Fitted:
    """What the trials of a contrast show, relative to the reference or else the first arm."""
    from isoscope.lab.contrast.fit import fit

    named = names_in(frame, "model")
    if not named:
        raise IsoscopeError("there is nothing to draw: these rows hold no trial.")
    if reference is not None and reference not in named:
        raise unknown_name("arm in these rows", reference, named)
    return fit(frame, reference or named[0], arms)


def differences(fit: Fitted, measure: str | None, told: Told | None, layer: int = 0) -> Chart:
    """How every arm differs from the reference, a dot with its interval."""
    measure = _quantity(fit, measure, layer)
    own, points = _at(fit.differences, measure, layer), _at(fit.points, measure, layer)
    mean = float(points.loc[points["arm"] == fit.arms[0], "value"].mean())
    of = contrast.difference_from(fit.arms[0], None)
    chart = contrast.differences_chart(own, fit.arms[1:], contrast.colours_of(fit.arms))
    return chart.named(titled(measure, told), x=of if is_driven(fit) else f"{of} ({short(mean)})")


def against_entropy(fit: Fitted, measure: str | None, told: Told | None, layer: int = 0) -> Chart:
    """Every trial against the entropy of its attention, with the line of each arm."""
    measure = _quantity(fit, measure, layer)
    points, lines = _at(fit.points, measure, layer), _at(fit.lines, measure, layer)
    if points["entropy"].isna().all():
        raise IsoscopeError("there is nothing to draw: no trial has an entropy of attention.")
    chart = contrast.trials_chart(points, lines if is_driven(fit) else lines.iloc[:0], fit.arms)
    return replace(chart, x="normalised entropy", y=titled(measure, told))


def is_driven(fit: Fitted) -> bool:
    """Whether arms were driven to entropies, and not compared as they came."""
    return contrast.is_driven(fit.lines)


def quantities(fit: Fitted) -> list[str]:
    """The quantities that a figure shows first, then all others that have a value."""
    whole = fit.points[fit.points["layer"] == 0]
    first = contrast.printable(whole, is_driven(fit))
    return list(dict.fromkeys([*first, *names_in(whole[whole["value"].notna()], "measure")]))


def _at(table: pd.DataFrame, measure: str, layer: int) -> pd.DataFrame:
    return table[(table["layer"] == layer) & (table["measure"] == measure)]


def _quantity(fit: Fitted, measure: str | None, layer: int) -> str:
    there = quantities(fit)
    if not there:
        raise IsoscopeError("there is nothing to draw: no quantity of these trials has a value.")
    if measure is not None and measure not in there:
        raise unknown_name("quantity of these trials", measure, there)
    layers = sorted(set(fit.points["layer"]))
    if layer not in layers:
        raise IsoscopeError(
            f"no layer {layer} is among these trials; there are: {', '.join(map(str, layers))}."
        )
    return measure or there[0]

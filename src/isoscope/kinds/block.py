"""An untrained block on the terminal and on its page: quantities along the norm of the bias, under each norm.

Decided here: a bias N stands at log(1 + N), so that 0 has a place; a norm keeps its colour on the whole page,
and what a panel of one norm shows has shades and a key of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import pandas as pd

from isoscope.formatting import ABSENT, short, spread
from isoscope.kinds.screen import WIDTH, Screen, Table, headed
from isoscope.lab.block.seeds import LEAST, curve, fixed_points, over_seeds
from isoscope.results.paired import paired
from isoscope.results.reading import Reading
from isoscope.results.store import RunFolder
from isoscope.show.charts import Axis, Chart, Hover, Series
from isoscope.show.colours import MODELS, Pair, sequence
from isoscope.show.figures.panels import Panel
from isoscope.show.measures import title_of
from isoscope.show.page.content import Content, content
from isoscope.show.page.section import panel_of, section

_SAME = 0.1  # of 1 − entropy: without an interval, a smaller change is called none
_COLUMNS = (  # heading, kind, layer, measure
    ("A in", "layer", 0, "mean_cosine"), ("A out", "layer", 1, "mean_cosine"),
    ("norm in", "layer", 0, "mean_norm"), ("norm out", "layer", 1, "mean_norm"),
    ("normalised\nentropy", "attention", 1, "normalised_entropy"),
    ("score std\nin rows", "attention", 1, "score_std"),
    ("score std\npooled", "attention", 1, "score_std_pooled"),
    ("largest\nweight", "attention", 1, "largest_weight"),
    ("smallest\nweight", "attention", 1, "smallest_weight"),
    ("drift\nshare", "attention", 1, "drift_share"),
)  # fmt: skip
_PASSED = "iterated"
_ENDS = {0: "enters", 1: "leaves"}
_SCORES = {"score": "Scores", "within row": "Scores less the mean of their row"}
_VECTORS = ("mean_cosine", "mean_norm", "relative_drift")
_ATTENTION = (
    "normalised_entropy", "score_std", "score_std_pooled", "largest_weight", "smallest_weight", "drift_share",
    "normalised_entropy_without_drift", "score_mean",
)  # fmt: skip
_HOW = (
    "One block with random weights. To every vector that enters the same bias is added, whose norm stands "
    "below each figure; at 0 there is none. A dot is the mean over seeds, its bar the 95 % interval."
)


def screen_of(folder: RunFolder, width: int = WIDTH) -> Screen:
    """A table per norm and the sentences."""
    rows = folder.frame()
    lines = over_seeds(rows)
    tables = [_table(lines, str(norm)) for norm in lines["norm"].drop_duplicates()]
    said = (finding(lines), f"norms of vectors\n{finding_of_norms(rows)}")
    return Screen((*tables, *said), json={"summary": lines})


def _table(lines: pd.DataFrame, norm: str) -> Table:
    seeds = int(lines[lines["norm"] == norm]["n"].max())
    spread = "mean ± half of the 95 % interval over seeds" if seeds >= LEAST else "an interval takes three"
    caption = f"norm: {norm}, {seeds} seed{'' if seeds == 1 else 's'}: {spread}; A is the mean cosine"
    found = [curve(lines, norm, kind, layer, measure) for _, kind, layer, measure in _COLUMNS]
    shown = [
        (f"{bias:g}", *(_cell(own[own["bias"] == bias]) for own in found))
        for bias in sorted(lines[lines["norm"] == norm]["bias"].unique())
    ]
    heads = ("bias norm", *(heading for heading, *_ in _COLUMNS))
    return Table(headed((), heads, folds=True), tuple(shown), caption=caption)


def _cell(own: pd.DataFrame) -> str:
    if own.empty:
        return ABSENT
    value, high = float(own["value"].iloc[0]), float(own["high"].iloc[0])
    fine = own["measure"].iloc[0] == "normalised_entropy"  # what matters of it is how far it is from 1
    told = f"{value:.4f}" if fine else short(value)
    return told if math.isnan(high) else f"{told}\n±{short(high - value, 1)}"


def finding(lines: pd.DataFrame) -> str:
    """What the bias does to attention, under each norm."""
    told = []
    for norm in lines["norm"].drop_duplicates():
        entropy = curve(lines, norm, "attention", 1, "normalised_entropy")
        if len(entropy) > 1:
            first, last = (entropy.iloc[end] for end in (0, -1))
            biases = f"as the bias grows from {first['bias']:g} to {last['bias']:g}"
            values = f"normalised entropy {first['value']:.4f} to {last['value']:.4f}"
            values += "; too few seeds for an interval" if math.isnan(first["high"] + last["high"]) else ""
            told.append(f"{norm}: attention {_moves(first, last)} {biases} ({values}).")
    return "\n".join(told) or "One bias norm: nothing to compare; give several to --bias-norms."


def _moves(first: pd.Series, last: pd.Series) -> str:
    """Sharpens, evens out or neither; where there are intervals, that of the change must not contain 0."""
    before, after = Reading.of(first), Reading.of(last)
    change, apart = after.value - before.value, paired(before, after).excludes(0)
    if not (before.bounded and after.bounded):
        apart = abs(change) > _SAME * (1 - before.value)
    return "shows no clear change" if not apart else "sharpens" if change < 0 else "evens out"


def finding_of_norms(rows: pd.DataFrame) -> str:
    """What becomes of the norms of vectors, under each norm: which one pass keeps, and where many lead."""
    told = []
    for norm, points in fixed_points(rows).groupby("norm", sort=False):
        keeping, seeds = int(points["keeping"].iloc[0]), int(points["seeds"].iloc[0])
        kept = f"a norm of {short(float(points['kept'].iloc[0]))}" if keeping else "no norm among these"
        text = f"{norm}: one pass keeps {kept} ({keeping} of {seeds} seeds)"
        passed = points[points["last"].notna()]
        if len(passed):
            settled = passed["settles"].astype(bool).all()
            name, digits = ("last", 3) if settled else ("growth", 5)
            values = spread(list(map(float, passed[name])), partial(short, digits=digits))
            leads = "lead to" if settled else "leave norms that still change per pass by a factor of"
            text += f"; {int(passed['passes'].max())} passes {leads} {values}"
        told.append(f"{text}.")
    return "\n".join(told)


def content_of(folder: RunFolder) -> Content:
    """What enters and leaves, attention, sub-layers, norms under many passes, histograms of the scores."""
    rows, points, facts, told = folder.frame(), folder.points(), folder.facts(), folder.run.measures
    lines, of_norms = over_seeds(rows), finding_of_norms(rows)
    norms = [str(norm) for norm in lines["norm"].drop_duplicates()]
    colours = {norm: MODELS[i % len(MODELS)] for i, norm in enumerate(norms)}
    key = colours if len(colours) > 1 else {}
    attention = [
        panel_of(m, told, along_bias(_at(lines, "attention", 1, m), "norm", colours)) for m in _ATTENTION
    ]
    ends = [
        Panel((m,), f"{title_of(m, told)}: what {word}", "",
              along_bias(_at(lines, "layer", layer, m), "norm", colours))
        for m in _VECTORS
        for layer, word in _ENDS.items()
    ]  # fmt: skip
    staged = [
        _keyed(m, f"{title_of(m, told)} · {norm}", stages(lines, norm, m))
        for norm in norms
        for m in ("mean_cosine", "mean_norm")
    ]
    passed = lines[(lines["kind"] == _PASSED) & (lines["measure"] == "mean_norm")]
    again = [
        _keyed("mean_norm", f"Mean norm · {norm}", passes(passed[passed["norm"] == norm]))
        for norm in map(str, passed["norm"].drop_duplicates())
    ]
    scores = [
        _keyed("score_std", f"{title} · {norm}", histograms(points, units_of(facts, norm), series))
        for norm in norms
        for series, title in _SCORES.items()
    ]
    sections = [
        *section("attention", "Attention", "What does a common bias of its inputs make of it?", attention,
                 told, words=_HOW, key=key, explained=_ATTENTION),
        *section("ends", "In and out", "What does it make of the vectors?", ends, told,
                 words="" if again else of_norms, key=key, explained=_VECTORS),
        *section("stages", "Sub-layers", "Where in the block does it happen?", staged, told,
                 explained=()),
        *section("passes", "Passes", "Where do norms lead when a block is fed what it gave?", again, told,
                 words=of_norms, explained=()),
        *section("scores", "Scores", "How are they spread, in one sequence?", scores, told, explained=()),
    ]  # fmt: skip
    return content(folder, sections, finding(lines))


def _at(lines: pd.DataFrame, kind: str, layer: int, measure: str) -> pd.DataFrame:
    return lines[(lines["kind"] == kind) & (lines["layer"] == layer) & (lines["measure"] == measure)]


def _keyed(measure: str, heading: str, chart: Chart) -> Panel:
    """A panel with its own key."""
    key = {one.name: one.colour for one in chart.series if one.colour and one.keyed}
    return Panel((measure,), heading, chart.remark, chart, tuple(key.items()))


def along_bias(own: pd.DataFrame, by: str, colours: Mapping[str, Pair]) -> Chart:
    """Curves along the bias, one for each value of the column `by`, with their intervals over seeds."""
    series = []
    for name, pair in colours.items():
        mine = own[own[by] == name].sort_values("bias")
        if len(mine):
            names = [f"{name}, bias norm {bias:g}" for bias in mine["bias"]]
            series.append(_curve(name, [math.log1p(bias) for bias in mine["bias"]], mine, pair, names))
    ticks = [(math.log1p(bias), f"{bias:g}") for bias in sorted(own["bias"].unique())]
    return Chart("", Axis("norm of the bias", ticks=ticks), Axis(floor=True), series)  # rounding is no curve


def _curve(name: str, x: list[float], own: pd.DataFrame, pair: Pair, names: list[str]) -> Series:
    values, lows, highs, counts = (own[column].tolist() for column in ("value", "low", "high", "n"))
    told = []
    for label, value, low, high, n in zip(names, values, lows, highs, counts, strict=True):
        ends = f"95 % interval {low:.6g} to {high:.6g}, " if not math.isnan(low) else "no interval, "
        told.append(Hover(f"{value:.6g}", f"  {label}", [f"{ends}{n} seed{'' if n == 1 else 's'}"]))
    return Series(name, x, values, lows, highs, "curve", told, colour=pair, width=1.8, bar=1.4)


def stages(lines: pd.DataFrame, norm: str, measure: str) -> Chart:
    """One quantity at every stage of the block along the bias; a stage has one colour under every norm."""
    own = lines[(lines["measure"] == measure) & ~lines["kind"].isin((_PASSED, "attention"))]
    named = own["kind"].where(own["kind"] != "layer", own["layer"].map(_ENDS)).str.replace("_", " ")
    own = own.assign(stage=named)
    inner = [str(stage) for stage in named.drop_duplicates() if stage not in _ENDS.values()]
    names = ["enters", *inner, "leaves"]
    colours = dict(zip(names, sequence(len(names)), strict=True))
    return along_bias(own[own["norm"] == norm], "stage", colours)


def passes(own: pd.DataFrame) -> Chart:
    """Mean norms pass by pass, a curve for each bias."""
    biases = sorted(own["bias"].unique())
    series = []
    for bias, pair in zip(biases, sequence(len(biases)), strict=True):
        mine, name = own[own["bias"] == bias].sort_values("layer"), f"bias {bias:g}"
        series.append(_curve(name, [float(at) for at in mine["layer"]], mine, pair, [name] * len(mine)))
    there = [float(value) for value in own["value"] if math.isfinite(value)]
    if not there or min(there) <= 0:
        return Chart("", Axis("passes"), Axis(), series)
    ends = math.log10(min(there)) - 0.1, math.log10(max(there)) + 0.1
    return Chart("", Axis("passes"), Axis(range=ends, log=True), series, remark="log scale")


def units_of(facts: Mapping[str, Mapping[str, object]], norm: str) -> dict[str, str]:
    """The units of the first seed under a norm, in order of their bias, and what each is called."""
    own = sorted(
        (float(str(known["bias norm"])), unit)
        for unit, known in facts.items()
        if known.get("norm") == norm and known.get("seed") == 0 and "bias norm" in known
    )
    return {unit: f"bias {bias:g}" for bias, unit in own}


def histograms(points: pd.DataFrame, units: Mapping[str, str], series: str) -> Chart:
    """The histograms of the scores, one per unit: as they are, or less the mean of their row."""
    drawn = []
    for (unit, name), pair in zip(units.items(), sequence(len(units)), strict=True):
        own = points[(points["unit"] == unit) & (points["series"] == series)]
        x, y = own["x"].tolist(), own["y"].tolist()
        drawn.append(Series(name, x, y, style="steps", colour=pair, pattern=Hover("", name)))
    axes = Axis("score"), Axis("density", log=True)
    return Chart("", *axes, drawn, uprights=((0.0, ""),), remark="log scale")

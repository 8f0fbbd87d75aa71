"""A contrast on the terminal and on its page: how arms differ at the same entropy or as they came.

Layer 0 is the mean over layers. Decided here: an arm keeps its colour on the whole page, and nothing is drawn
beyond what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from isoscope.formatting import ABSENT, short
from isoscope.kinds.screen import WIDTH, Column, Screen, Table, notes_of
from isoscope.lab.contrast.fit import Fitted, common, fit
from isoscope.results.reading import Reading
from isoscope.results.store import RunFolder
from isoscope.show.charts import Chart, Ground, Hover, Series, turned
from isoscope.show.colours import GRID, Pair
from isoscope.show.figures.curves import Dot, rows_of_changes
from isoscope.show.measures import Told, name_of, title_of
from isoscope.show.page.content import Content, content
from isoscope.show.page.section import Section, panel_of, section

LAYER = "Mean over layers"
CHANCE = "Intervals are not corrected for their number: of twenty arms that do not differ, one seems to."
_FIRST = {
    "At the same entropy": ("relative_drift", "mean_cosine_between", "drift_share", "loss"),
    "": ("loss", "probe_accuracy", "normalised_entropy", "relative_drift", "mean_cosine_between"),
}
"""The quantities of the headline, in order: at matched entropy, and of arms as they came."""
_MOST = 6  # quantities in the table; the page has all
_INTERVAL = 17  # columns of "[−0.058, −0.0094]"
_DOTS = (
    "A dot is how far an arm lies from {0}, the mean over seeds, and its bar the 95 % interval: full where "
    "that leaves 0 out, else hollow."
)
_SPOKEN_OF = ("relative_drift", "mean_cosine_between", "drift_share")  # by the headline, so they stand first


def screen_of(folder: RunFolder, width: int = WIDTH) -> Screen:
    """The table of differences from the reference, and the sentence on them."""
    found, told = fitted(folder), folder.run.measures
    tables = (_table(found, told),) if len(found.differences) else ()
    shown = (*tables, finding(found.differences, found.arms, told))
    return Screen(shown, notes_of(folder.facts()), {"differences": found.differences})


def _table(found: Fitted, told: Told) -> Table:
    """A line per arm, a column per quantity: the difference from the reference, mean over layers."""
    whole = found.differences[found.differences["layer"] == 0]
    at = whole["at"].dropna()
    where = f" at an entropy of {short(at.iloc[0], 2)}" if len(at) and at.max() - at.min() < 0.02 else ""
    seeds = int(whole["n"].max())
    kind = "95 % interval; * it excludes 0" if whole["low"].notna().any() else "least, most of the seeds"
    caption = f"difference from {found.arms[0]}{where}, mean over layers [{kind}], {seeds} seeds"
    measures = [str(m) for m in whole["measure"].drop_duplicates()][:_MOST]
    lines = []
    if as_they_came(found.differences):
        own = found.points[(found.points["layer"] == 0) & (found.points["arm"] == found.arms[0])]
        means = own.groupby("measure")["value"].mean()
        lines.append((f"{found.arms[0]}: its own", *(short(means.get(name, math.nan)) for name in measures)))
    for arm in found.arms[1:]:
        cells = {line["measure"]: _cell(line) for _, line in whole[whole["arm"] == arm].iterrows()}
        lines.append((arm, *(cells.get(measure, "") for measure in measures)))
    columns = [Column(title_of(measure, told), folds=True, least=_INTERVAL) for measure in measures]
    return Table((Column("arm", right=False), *columns), tuple(lines), caption=caption)


def _cell(line: pd.Series) -> str:
    """Value and interval, marked where that excludes 0; the spread of the seeds where there is none."""
    if pd.isna(line["value"]):
        return ABSENT
    low, high = reach(line)
    mark = "*" if Reading.of(line).excludes(0) else ""
    return f"{short(line['value'], 2)}{mark}\n[{short(low, 2)}, {short(high, 2)}]"


def fitted(folder: RunFolder) -> Fitted:
    """Points, lines and differences of the trials in a folder, its arms in the order they were asked for."""
    facts = folder.facts().values()
    places = {(int(str(known["place"])), str(known["arm"])) for known in facts if "place" in known}
    arms = [arm for _, arm in sorted(places)]
    return fit(folder.frame(), str(folder.run.question["reference"]), arms)


def reach(line: pd.Series) -> tuple[float, float]:
    """The interval of a difference, or where it has none how far its seeds reach."""
    return (line["low"], line["high"]) if Reading.of(line).bounded else (line["least"], line["most"])


def as_they_came(differences: pd.DataFrame) -> bool:
    """Whether arms were driven to no entropy, and are compared at none."""
    return bool(differences["at"].isna().all() and differences["value"].notna().any())


def finding(differences: pd.DataFrame, arms: Sequence[str], told: Told) -> str:
    """The headline: the first quantity in which an arm differs from the reference, else that none does."""
    whole = differences[(differences["layer"] == 0) & differences["value"].notna()]
    asked = whole[~whole["control"].astype(bool)]  # controls are not what is asked about
    if asked.empty:
        reference = arms[0] if arms else "another"
        return f"Nothing can be compared: no arm has seeds and entropies in common with {reference}."
    if asked["low"].isna().all():
        few = f"Too few seeds for an interval ({int(asked['n'].max())})"
        return f"{few}: no arm can be compared with {arms[0]}."
    where = "" if as_they_came(differences) else "At the same entropy"
    for measure in _FIRST[where]:
        own = asked[asked["measure"] == measure]
        if _sure(own).any():
            the = f"{where} the" if where else "The"
            return f"{the} {name_of(measure, told)} is {_sides(own[_sure(own)])} than with {arms[0]}."
    no = f"{where}, no" if where else "No"
    names = ", ".join(name_of(measure, told) for measure in _FIRST[where])
    return f"{no} arm is distinguishable from {arms[0]} ({names})."


def findings(differences: pd.DataFrame, told: Told) -> list[str]:
    """A sentence per quantity that an arm shares with the reference: who differs, and who does not."""
    found = []
    somewhere = differences.groupby("measure")["value"].transform("count") > 0
    shown = differences[somewhere] if somewhere.any() else differences
    for measure, own in shown.groupby("measure", sort=False):
        sure, known, bounded = _sure(own), own["value"].notna(), own["low"].notna()
        parts = [_sides(own[sure])] if sure.any() else []
        unsure = {"indistinguishable": own[~sure & known & bounded], "too few seeds": own[known & ~bounded]}
        parts += [f"{why}: {', '.join(part['arm'])}" for why, part in unsure.items() if len(part)]
        for note, lost in own[~known].groupby("note", sort=False):
            parts.append(f"no number: {', '.join(lost['arm'])} ({str(note) or 'no seed in common'})")
        found.append(f"{title_of(str(measure), told)}: {'; '.join(parts)}.")
    return found


def span(differences: pd.DataFrame) -> str:
    """Where the arms are compared."""
    if as_they_came(differences):
        return "Arms were not matched, so they differ in entropy as well."
    ranges = differences[differences["range_low"].notna() & (differences["note"] == "")]
    if ranges.empty:
        return "Not all arms have a range of entropies in common; none is shaded."
    low, high = short(float(ranges["range_low"].min())), short(float(ranges["range_high"].max()))
    return f"Shaded: the entropies that all arms reached, {low} to {high}; arms are compared in the middle."


def _sure(differences: pd.DataFrame) -> pd.Series:
    sure = [Reading.of(line).excludes(0) for _, line in differences.iterrows()]
    return pd.Series(sure, differences.index, dtype=bool)


def _sides(own: pd.DataFrame) -> str:
    """Who lies lower and who higher, each with its interval."""
    sides = []
    for word, part in (("lower", own[own["value"] < 0]), ("higher", own[own["value"] > 0])):
        each = [
            f"{arm} ({short(value, 2)} [{short(low, 2)}, {short(high, 2)}])"
            for arm, value, low, high in part[["arm", "value", "low", "high"]].itertuples(index=False)
        ]
        sides += [f"{word} with {', '.join(each)}"] if each else []
    return " and ".join(sides)


def content_of(folder: RunFolder) -> Content:
    """The sections, and their page without rows of weights: there are many models'."""
    rows, found, told = folder.frame(), fitted(folder), folder.run.measures
    said = finding(found.differences, found.arms, told)
    return content(folder, contrast_sections(found, told), said, rows[rows["kind"] != "query_key"])


def contrast_sections(found: Fitted, told: Told) -> list[Section]:
    """Differences, then the trials of the mean over layers, then those of every layer, folded."""
    points, lines, differences, arms = found.points, found.lines, found.differences, found.arms
    reference = arms[0] if arms else ""
    free, colours = as_they_came(differences), {arm: turned(at)[0] for at, arm in enumerate(arms)}
    measures = [str(m) for m in points["measure"].drop_duplicates()]
    if not free:
        measures.sort(key=lambda m: _SPOKEN_OF.index(m) if m in _SPOKEN_OF else len(_SPOKEN_OF))
    beside = [arm for arm in arms[1:] if (differences["arm"] == arm).any()]
    whole = differences[differences["layer"] == 0]
    apart = {m: differences_chart(whole[whole["measure"] == m], beside, colours) for m in measures}
    made = section(
        "contrast", "As they came" if free else "At the same entropy",
        f"How does each arm differ from {reference}?",
        [panel_of(m, told, chart) for m, chart in apart.items()], told,
        words="\n".join([_DOTS.format(reference), *findings(whole, told), CHANCE]),
        key={arm: colours[arm] for arm in beside}, explained=measures,
    )  # fmt: skip
    for layer in sorted(points["layer"].unique()):
        here, drawn = points[points["layer"] == layer], lines[lines["layer"] == layer]
        trials = {
            m: trials_chart(here[here["measure"] == m], drawn[drawn["measure"] == m], arms)
            for m in measures
            if m != "normalised_entropy"
        }
        made += section(
            f"layer-{layer}" if layer else "trials", f"Layer {layer}" if layer else LAYER,
            "Every trial against the entropy of its attention",
            [panel_of(m, told, chart) for m, chart in trials.items()], told,
            words=span(differences[differences["layer"] == layer]), key=colours, explained=(),
            folded=bool(layer),
        )  # fmt: skip
    return made


def differences_chart(own: pd.DataFrame, arms: Sequence[str], colours: Mapping[str, Pair]) -> Chart:
    """One quantity: a dot per arm, hollow where its interval holds 0; else with the spread of its seeds."""
    dots = []
    for _, line in own[own["value"].notna() & own["arm"].isin(list(arms))].iterrows():
        low, high = reach(line)
        by, arm = Reading.of(line), str(line["arm"])
        drawn, bar = replace(by, low=low, high=high), 1.6 if by.bounded else 0.8
        hollow = not by.excludes(0)
        dots.append(Dot(arms.index(arm), arm, drawn, colours[arm], telling(line), hollow=hollow, bar=bar))
    return rows_of_changes(arms, dots, "difference")


def telling(line: pd.Series) -> Hover:
    """The hover text of a difference."""
    low, high = reach(line)
    seeds = f"{line['n']} seed{'' if line['n'] == 1 else 's'}"
    lines = [
        f"{'95 % interval' if Reading.of(line).bounded else 'seeds lie from'} {low:.6g} to {high:.6g}",
        seeds if pd.isna(line["at"]) else f"{seeds}, at an entropy of {line['at']:.3f}",
    ]
    return Hover(f"{line['value']:.6g}", f"  {line['arm']}", list(filter(None, [*lines, line["note"]])))


def trials_chart(points: pd.DataFrame, lines: pd.DataFrame, arms: Sequence[str]) -> Chart:
    """One quantity of one layer: points are trials, a line is the mean over the seeds of an arm."""
    x = points["entropy"].dropna()
    least, most = (float(x.min()), float(x.max())) if len(x) else (0.0, 1.0)
    shared = lines[lines["until"] < math.inf]
    within = common(shared)
    grounds = [Ground(within, (), GRID, 0.45)] if within else []
    series = []
    for at, arm in enumerate(arms):
        own, (pair, mark, dash) = lines[lines["arm"] == arm], turned(at)
        if len(own) and len(shared):
            ends = [max(least, own["since"].min()), min(most, own["until"].max())]
            y = [float((own["intercept"] + own["slope"] * end).mean()) for end in ends]
            series.append(Series(arm, ends, y, colour=pair, dash=dash, width=1.8))
        mine = points[(points["arm"] == arm) & points["entropy"].notna() & points["value"].notna()]
        told = [
            Hover(f"{value:.6g}", f" at an entropy of {entropy:.3f}", [f"{arm}, seed {seed}"])
            for value, entropy, seed in zip(mine["value"], mine["entropy"], mine["seed"], strict=True)
        ]
        at_entropy = mine["entropy"].tolist(), mine["value"].tolist()
        series.append(Series(arm, *at_entropy, style="dots", told=told, colour=pair, mark=mark, size=5))
    return Chart("", "normalised entropy, measured", "", series, grounds=grounds)

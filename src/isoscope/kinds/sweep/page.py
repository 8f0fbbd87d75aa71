"""A sweep on the terminal and on its page: are these its checkpoints, and what happens along their steps.

It is the page of a training run, read off checkpoints, with what is wrong with them on top, change points on
the lines, and a switch between a logarithmic and a linear axis of steps. Figures draw at most as many steps
as a training run's do; sentences, change points and CKA are of more, and each says of how many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from isoscope.kinds.measure import shown as measure
from isoscope.kinds.screen import WIDTH, Screen, notes_of
from isoscope.kinds.sweep.between import between_sections
from isoscope.kinds.sweep.rows import SweepRows, by_step, changes_of, read_sweep
from isoscope.kinds.sweep.sentences import opening
from isoscope.results.store import RunFolder
from isoscope.results.trajectory import BETWEEN, thinned, trajectory
from isoscope.show.charts import Alarm, Hover, Series
from isoscope.show.colours import INK, Pair
from isoscope.show.figures.clouds import album
from isoscope.show.figures.maps import heads_over_steps
from isoscope.show.figures.panels import Panel
from isoscope.show.figures.step_axis import StepAxis, spaced
from isoscope.show.figures.trajectories import MOST_LINES, OWN, Depths
from isoscope.show.measures import FAMILIES, Family, family_of, how_shown, in_order, name_of
from isoscope.show.page.content import Content
from isoscope.show.page.section import WEIGHED, Section, explanations, is_weighed, trained_section
from isoscope.show.page.training import Swept, Training, marked, step_panel, training
from isoscope.show.readings import QUERY_KEY, SiteReading, unique
from isoscope.show.say.course import changed
from isoscope.show.say.words import headline

MOST_UNITS = 40  # units whose facts the page carries; all are in the files
_ANOTHERS = ("twin", "out of order")  # numbers that may be another step's: no headline hangs on them
_LONG = ("fingerprint", "findings", "explained", "blocks")
_ENOUGH = 4  # checkpoints with steps: of fewer it is not known whether they are in order
_MOST_NOTES = 6  # the notes of hundreds of checkpoints would bury the table
_MOST_STEPS = 24  # the page has more, and the folder has all
SYMBOLS = {"jump": "diamond", "turn": "triangle-up"}
SIGNS = {"jump": "M5 0l5 5l-5 5l-5-5z", "turn": "M5 0l5 9h-10z"}
"""The same marks as paths in a square of ten, for the key."""


def screen_of(folder: RunFolder, width: int = WIDTH) -> Screen:
    """Tables of some steps and the headline; `--json` prints all notes."""
    of = trajectory(folder)
    if not of.units:
        return measure.screen_of(folder, width)
    notes = notes_of(of.facts)
    more = len(notes) - _MOST_NOTES
    few = (*notes[:_MOST_NOTES], f"and {more} more notes, which the page has") if more > 0 else notes
    steps = thinned(of.steps, _MOST_STEPS)
    shown = measure.measured(of.rows(heads=False, only=steps, influence=steps), (), width).shown
    return Screen(shown, few, {"notes": notes})


def content_of(folder: RunFolder) -> Content:
    """The sections along the steps, or where there is only one those of any measured run, and their page."""
    from isoscope.show.page.page import page, sections_of  # the terminal needs no templates

    read = read_sweep(folder)
    run, of = folder.run, read.of
    swept = Swept(
        None, read.findings, tuple(sorted(of.failed.items())), read.examined, len(of.units), of.total, "",
        ordered=len(of.steps) >= _ENOUGH and not of.numbered, signs=tuple(SIGNS.items()),
    )  # fmt: skip
    spoken = read.rows
    if len(of.steps) < 2:
        sections = sections_of(run, read.rows, None, None)
    else:
        along = training(read.rows, read.facts, run.measures, read.axis)
        sections = list(_sections(along, read))
        spoken = along.spoken[~along.spoken["kind"].map(is_weighed).astype(bool)]
        doubted = [f.step for f in read.findings if f.kind in _ANOTHERS and f.step is not None]
        trusted = spoken[~spoken["step"].isin(doubted)]
        spoken = trusted if trusted["step"].nunique() > 1 else spoken
        swept = replace(swept, training=along, about=_about(along.axis, read))
    said = opening(of, read.findings, read.examined) + (f" {headline(spoken)}" if len(spoken) else "")
    text = partial(page, run, read.rows, _few(read))
    return Content(sections, partial(text, sections=sections, said=said, swept=swept))


def _sections(of: Training, read: SweepRows) -> Iterator[Section]:
    """What the headline speaks of, changes, other families, weights, and what checkpoints show together."""
    together = between_sections(read, of.axis, of.places, of.told)
    rows = of.site_rows()
    named = rows["measure"][~rows["kind"].map(is_weighed).astype(bool)].drop_duplicates()
    families = unique(["training", *FAMILIES, *(family_of(str(m), of.told) for m in named)])
    families = [family for family in families if family not in ("directions", "health", *WEIGHED)]
    lead, *others = (trained_section(of, None, family) for family in ("directions", *families))
    clouds = album(by_step(read.points), of.last_rows())
    others = [replace(s, clouds=clouds) if s and s.family == "queries" else s for s in others]
    first, last = ([s for s in together if (s.family == "changes") == here] for here in (True, False))
    readings = [r for r in of.readings if not is_weighed(r.kind)]
    shown = [(section, readings) for section in (lead, *first, *others) if section]
    shown += [made for family in WEIGHED if (made := _of_weights(of, family))]
    shown += [(section, readings) for section in last]
    changes, doubted = changes_of(read.between), sorted({f.step for f in read.findings if f.step is not None})
    marks = [Alarm(at, tuple(f.words for f in read.findings if f.step == at)) for at in doubted]
    for section, lines in shown:
        if section.places is None and section.family not in ("changes", "checkpoints"):
            yield section
            continue
        places = section.places or of.places

        def mark(panel: Panel, lines: list[SiteReading] = lines, places: Depths = places) -> Panel:
            """The panel with changes and findings marked, and with what the switch of its axis needs."""
            changed = mark_changes(panel, changes, lines, of.axis, places)
            return switchable(marked(changed, of.axis, marks), of.axis)

        heads = section.heads.each(mark) if section.heads else None
        large, small = list(map(mark, section.large)), list(map(mark, section.small))
        yield replace(section, large=large, small=small, heads=heads)


def _of_weights(of: Training, family: str) -> tuple[Section, list[SiteReading]] | None:
    """A section of weights along the steps, with the readings of its lines; None of fewer than two steps.

    A line is a layer or a matrix. Plane and spectra of a checkpoint are on the page of `isoscope weights`.
    """
    own = [r for r in of.readings if WEIGHED[family](r.kind)]
    named = in_order((r.measure for r in own if r.known), family)
    shown = (*FAMILIES[family].along, *FAMILIES[family].measures)
    named = sorted((m for m in named if m in shown and how_shown(m).instead not in named), key=shown.index)
    if not named or len({r.step for r in own}) < 2:
        return None
    own, places = _placed(own, family, of.places)
    wide = FAMILIES[family].wide
    panels = [
        step_panel([r for r in own if r.measure == measure], of.axis, places, of.told, mapped=at < wide)
        for at, measure in enumerate(named)
    ]
    heads = heads_over_steps(of.rows, family, of.axis, of.told) if family == "query_key" else None
    first = [changed([r for r in own if r.measure == m], name_of(m, of.told)) for m in named[:2]]
    asks = FAMILIES[family]
    section = Section(
        family, Family(asks.heading, asks.asks, ()), small=panels[wide:], key=dict(places.key),
        explained=explanations(named, of.told), large=panels[:wide], places=places,
        changes="\n".join(filter(None, first)), heads=heads,
    )  # fmt: skip
    return section, own


def _placed(own: list[SiteReading], family: str, places: Depths) -> tuple[list[SiteReading], Depths]:
    """Layers by number; matrices and norms, which have none, in the order of their names."""
    if family == "query_key":
        names = {r.place: f"layer {r.layer}" for r in own if r.kind in QUERY_KEY}
        return own, Depths(dict(sorted((places.names | names).items())))
    kinds = sorted({r.kind for r in own})
    at = {kind: i for i, kind in enumerate(kinds)}
    names = {i: kind.replace("_", " ") for kind, i in at.items()}
    return [replace(r, place=at[r.kind]) for r in own], Depths(names)


def _few(read: SweepRows) -> dict[str, dict[str, object]]:
    """What is known of some units, evenly, without what is long and told elsewhere."""
    units = [unit for unit in read.of.units if unit in read.facts]
    few = units[:: max(1, -(-len(units) // MOST_UNITS))]
    kept = [unit for unit in unique([*few, *units[-1:], BETWEEN]) if unit in read.facts]
    return {unit: {k: v for k, v in read.facts[unit].items() if k not in _LONG} for unit in kept}


def _about(axis: StepAxis, read: SweepRows) -> str:
    """What a reader must know of the steps that are drawn."""
    few = (
        f"Figures show {len(axis.steps)} of the {axis.measured:,} checkpoints, evenly spaced, and those "
        "with which something is wrong; sentences are of all, and all rows are in rows/*.parquet."
    )
    numbered = "No checkpoint tells its step: they are numbered in the order of their names."
    parts = ((few, len(axis.steps) < axis.measured), (numbered, read.of.numbered))
    return " ".join(text for text, holds in parts if holds)


def mark_changes(
    panel: Panel, changes: Sequence[SiteReading], readings: Sequence[SiteReading], axis: StepAxis,
    places: Depths,
) -> Panel:  # fmt: skip
    """The panel with the changes of its measure marked on its lines."""
    own = [r for r in readings if r.measure == panel.measures[0] and panel.kind in ("", r.kind)]
    marks = change_marks(changes, own, axis, places)
    return replace(panel, chart=replace(panel.chart, series=[*panel.chart.series, *marks]))


def change_marks(
    changes: Sequence[SiteReading], own: Sequence[SiteReading], axis: StepAxis, places: Depths
) -> list[Series]:
    """The intervals of the changes of these readings, and marks, a series a colour and kind of change."""
    lined = set(spaced(sorted({r.place for r in own}), MOST_LINES))
    at = {(r.measure, r.kind, r.layer, r.step): r for r in own if r.known and r.place in lined}
    x, y = list[float | None](), list[float | None]()
    groups: dict[tuple[Pair, str], list[tuple[float, float, Hover]]] = {}
    for change in changes:
        low, high, first = map(int, (change.low, change.high, change.value))
        step = min(axis.steps, key=lambda other: abs(axis.at(other) - axis.at(first)))
        reading = at.get((change.about, change.kind, change.layer, step))
        if reading is not None:
            x += [axis.at(low), axis.at(high), None]
            y += [reading.value, reading.value, None]
            place = f"after step {low:,}, by step {high:,} (95 %)"
            told = Hover(f"{reading.site} {change.tag}s", "", [place, change.note])
            pair = OWN if reading.kind == "training" else places.colours[reading.place]
            groups.setdefault((pair, change.tag), []).append((axis.at(step), reading.value, told))
    if not groups:
        return []
    intervals = Series("95 % of its place", x, y, colour=INK, width=5, opacity=0.3, keyed=False)
    marks = [
        Series(
            what, [x for x, _, _ in group], [y for _, y, _ in group], style="dots",
            told=[told for *_, told in group], colour=pair, mark=SYMBOLS[what], size=9, opacity=1, edge=INK,
        )
        for (pair, what), group in groups.items()
    ]  # fmt: skip
    return [intervals, *marks]


def switchable(panel: Panel, axis: StepAxis) -> Panel:
    """The panel with what the page's script needs for the other axis of steps: its ticks and range."""
    first = next((step for step in axis.steps if step > 0), 1)
    other = StepAxis(axis.steps, axis.measured, not axis.log)
    ticks = other.ticks()
    text = [f"{step:,}" for step in ticks]
    shown = {"range": list(other.range), "tickvals": [other.at(step) for step in ticks], "ticktext": text}
    return replace(panel, chart=replace(panel.chart, meta={"log": axis.log, "first": first, "other": shown}))

"""The page of a sweep: are these the checkpoints they claim to be, and what happens along their steps.

It is the page of a training run, read off checkpoints: trajectories, maps of layers and heads over steps. On
top stand what was found wrong with checkpoints and which could not be measured; change points are marked on
the lines; checkpoints are held against each other; queries and keys move on axes that all steps share; and a
switch puts all figures on a logarithmic or a linear axis of steps. Figures draw at most as many steps as a
training run's do; sentences, change points and CKA are of more, and each says of how many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from isoscope.kinds.sweep.between import between_sections
from isoscope.kinds.sweep.clouds import moving_album
from isoscope.kinds.sweep.marks import SIGNS, mark_changes, switchable
from isoscope.kinds.sweep.rows import SweepRows, changes_of, read_sweep
from isoscope.kinds.sweep.sentences import opening
from isoscope.kinds.sweep.weights import weight_trajectories
from isoscope.results.store import RunFolder
from isoscope.results.trajectory import BETWEEN
from isoscope.show.figures.panels import Panel
from isoscope.show.figures.step_axis import StepAxis
from isoscope.show.figures.trajectories import Depths
from isoscope.show.measures import FAMILIES, family_of
from isoscope.show.page import page as rows_page
from isoscope.show.page.alarms import Mark, marked
from isoscope.show.page.printed import Sections
from isoscope.show.page.section import WEIGHED, Section, is_weighed, trained_section
from isoscope.show.page.training import Finding, Swept, Training, training
from isoscope.show.readings import SiteReading, unique
from isoscope.show.say.words import headline

MOST_UNITS = 40
"""Units whose facts the page carries; all are in the files."""
_LONG = ("fingerprint", "findings", "explained", "blocks")
_ENOUGH = 4  # checkpoints with steps: of fewer it is not known whether they are in order


def sweep_page(folder: RunFolder) -> str:
    """The text of `report.html`, from the rows that are in the folder now."""
    read = read_sweep(folder)
    run, of = folder.run, read.of
    swept = Swept(
        None, read.findings, tuple(sorted(of.failed.items())), read.examined, len(of.units), of.total, "",
        ordered=len(of.steps) >= _ENOUGH and not of.numbered, signs=tuple(SIGNS.items()),
    )  # fmt: skip
    sections, spoken = None, read.rows
    if len(of.steps) > 1:
        along = training(read.rows, read.facts, run.measures, read.axis)
        sections = list(_sections(along, read))
        spoken = along.spoken[~along.spoken["kind"].map(is_weighed).astype(bool)]
        trusted = spoken[~spoken["step"].isin(_doubted(read.findings))]
        spoken = trusted if trusted["step"].nunique() > 1 else spoken
        swept = replace(swept, training=along, about=_about(along.axis, read))
    said = [opening(of, read.findings, read.examined), headline(spoken) if len(spoken) else ""]
    said_first = " ".join(filter(None, said))
    return rows_page.page(run, read.rows, _few(read), None, sections=sections, said=said_first, swept=swept)


def sections_of(folder: RunFolder) -> Sections:
    """The sections of the page: along the steps, or where there is only one those of any measured run."""
    read, run = read_sweep(folder), folder.run
    if len(read.of.steps) > 1:
        return list(_sections(training(read.rows, read.facts, run.measures, read.axis), read))
    return rows_page.sections_of(run, read.rows, read.facts)


def _doubted(findings: tuple[Finding, ...]) -> list[int]:
    """The steps whose numbers may be another step's: no headline hangs on them."""
    return [one.step for one in findings if one.step is not None and one.kind in ("twin", "out of order")]


def _sections(of: Training, read: SweepRows) -> Iterator[Section]:
    """What the headline speaks of, changes, other families, weights, and what checkpoints show together."""
    together = between_sections(read, of.axis, of.places, of.told)
    rows = of.site_rows()
    named = rows["measure"][~rows["kind"].map(is_weighed).astype(bool)].drop_duplicates()
    families = unique(["training", *FAMILIES, *(family_of(str(m), of.told) for m in named)])
    families = [family for family in families if family not in ("directions", "health", *WEIGHED)]
    lead, *others = (trained_section(of, None, family) for family in ("directions", *families))
    clouds = moving_album(read.points, of.last_rows())
    others = [replace(s, clouds=clouds) if s and s.family == "queries" else s for s in others]
    first = [section for section in together if section.family == "changes"]
    last = [section for section in together if section.family != "changes"]
    readings = [r for r in of.readings if not is_weighed(r.kind)]
    shown = [(section, readings) for section in (lead, *first, *others) if section]
    shown += [*weight_trajectories(of), *((section, readings) for section in last)]
    changes, marks = changes_of(read.between), _marks(read.findings)
    for section, lines in shown:
        places = section.places or of.places

        def along(panel: Panel, lines: list[SiteReading] = lines, places: Depths = places) -> Panel:
            changed = mark_changes(panel, changes, lines, of.axis, places)
            return switchable(marked(changed, of.axis, marks), of.axis)

        yield _along_steps(section, along)


def _along_steps(section: Section, change: Callable[[Panel], Panel]) -> Section:
    """The section with its panels along the steps changed."""
    if section.places is None and section.family not in ("changes", "checkpoints"):
        return section
    heads = section.heads.each(change) if section.heads else None
    large, small = list(map(change, section.large)), list(map(change, section.small))
    return replace(section, large=large, small=small, heads=heads)


def _marks(findings: tuple[Finding, ...]) -> list[Mark]:
    """A mark for each step at which something was found."""
    steps = sorted({one.step for one in findings if one.step is not None})
    return [Mark(at, tuple(one.words for one in findings if one.step == at), new=True) for at in steps]


def _few(read: SweepRows) -> dict[str, dict[str, object]]:
    """What is known of some units, evenly, without what is long and told elsewhere."""
    units = [unit for unit in read.of.units if unit in read.facts]
    few = units[:: max(1, -(-len(units) // MOST_UNITS))]
    kept = [unit for unit in unique([*few, *units[-1:], BETWEEN]) if unit in read.facts]
    return {unit: {k: v for k, v in read.facts[unit].items() if k not in _LONG} for unit in kept}


def _about(axis: StepAxis, read: SweepRows) -> str:
    """What a reader must know of the steps that are drawn."""
    parts = []
    if len(axis.steps) < axis.measured:
        parts.append(
            f"Figures show {len(axis.steps)} of the {axis.measured:,} checkpoints, evenly spaced, and those "
            "with which something is wrong; sentences are of all, and all rows are in rows/*.parquet."
        )
    if read.of.numbered:
        parts.append("No checkpoint tells its step: they are numbered in the order of their names.")
    return " ".join(parts)

"""The page of a sweep: are these the checkpoints they claim to be, and what happens along their steps.

It is the page of a training run, read off checkpoints: trajectories, maps of layers and heads over steps. On
top stand what was found wrong with checkpoints and which could not be measured; change points are marked on
the lines; checkpoints are held against each other; queries and keys move on axes that all steps share; and a
switch puts all figures on a logarithmic or a linear axis of steps. Figures draw at most as many steps as a
training run's do; sentences, change points and CKA are of more, and each says of how many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from isoscope.kinds.sweep.between import between_sections
from isoscope.kinds.sweep.clouds import moving_album
from isoscope.kinds.sweep.marks import SIGNS, mark_changes, switchable
from isoscope.kinds.sweep.rows import SweepRows, changes_of, read_sweep
from isoscope.kinds.sweep.sentences import opening
from isoscope.kinds.sweep.weights import weight_trajectories
from isoscope.results.store import RunFolder
from isoscope.results.trajectory import BETWEEN
from isoscope.show.figures.panels import Panel
from isoscope.show.figures.step_axis import Changed, StepAxis
from isoscope.show.figures.trajectories import Depths
from isoscope.show.figures.weights.sections import is_weighed
from isoscope.show.measures import FAMILIES, family_of
from isoscope.show.page.alarms import Mark, marked
from isoscope.show.page.page import page
from isoscope.show.page.section import Section, trained_section
from isoscope.show.page.swept import Finding, Swept
from isoscope.show.page.training import Training, training
from isoscope.show.readings import SiteReading, unique
from isoscope.show.say.words import headline

MOST_UNITS = 40
"""Units whose facts the page carries; all are in the files."""
_ENOUGH = 4  # checkpoints with steps: of fewer it is not known whether they are in order


def sweep_page(folder: RunFolder) -> str:
    """The text of `report.html`, from the rows that are in the folder now."""
    read = read_sweep(folder)
    run, of = folder.run, read.of
    said = opening(of, read.findings, read.examined)
    failed = tuple(sorted(of.failed.items()))
    swept = Swept(None, read.findings, failed, read.examined, len(of.units), of.total, "")
    swept = replace(swept, ordered=len(of.steps) >= _ENOUGH and not of.numbered, signs=tuple(SIGNS.items()))
    if len(of.steps) < 2:
        words = headline(read.rows) if len(read.rows) else ""
        return page(run, read.rows, _few(read), None, said=" ".join(filter(None, [said, words])), swept=swept)
    along = training(read.rows, read.facts, run.measures, read.axis)
    sections = list(_sections(along, read))
    seen = along.spoken[~along.spoken["kind"].map(is_weighed).astype(bool)]
    trusted = seen[~seen["step"].isin(_doubted(read.findings))]
    words = headline(trusted if trusted["step"].nunique() > 1 else seen) if len(seen) else ""
    swept = replace(swept, training=along, about=_about(along.axis, read))
    said = " ".join(filter(None, [said, words]))
    return page(run, read.rows, _few(read), None, sections=sections, said=said, swept=swept)


def _sections(of: Training, read: SweepRows) -> Iterator[Section]:
    """What the headline speaks of, changes, other families, weights, and what checkpoints show together."""
    together = between_sections(read, of.axis, of.places, of.told)
    first = [section for section in together if section.family == "changes"]
    seen = of.site_rows()
    seen = seen[~seen["kind"].map(is_weighed).astype(bool)]
    named = [str(m) for m in seen["measure"].drop_duplicates()]
    families = unique(["directions", "training", *FAMILIES, *(family_of(m, of.told) for m in named)])
    families = [family for family in families if family not in ("health", "query_key", "vocabulary", "norm")]
    made = [section for family in families if (section := trained_section(of, None, family))]
    clouds = moving_album(read.points, of.last_rows())
    made = [replace(s, clouds=clouds) if s.family == "queries" else s for s in made]
    rest = [section for section in together if section.family != "changes"]
    seen_readings = [r for r in of.readings if not is_weighed(r.kind)]
    lead = [section for section in made if section.family == "directions"]
    others = [section for section in made if section.family != "directions"]
    shown = [(section, seen_readings) for section in (*lead, *first, *others)]
    shown += [*weight_trajectories(of), *((section, seen_readings) for section in rest)]
    changes, marks = changes_of(read.between), _marks(read.findings)
    for section, readings in shown:
        places = section.places or of.places
        change = partial(
            _marked, changes=changes, readings=readings, axis=of.axis, places=places, marks=marks
        )
        yield _along_steps(section, change)


def _marked(
    panel: Panel,
    changes: Sequence[Changed],
    readings: Sequence[SiteReading],
    axis: StepAxis,
    places: Depths,
    marks: Sequence[Mark],
) -> Panel:
    """The panel with its changes and what was found wrong, on an axis that can be switched."""
    return switchable(marked(mark_changes(panel, changes, readings, axis, places), axis, marks), axis)


def _along_steps(section: Section, change: Callable[[Panel], Panel]) -> Section:
    """The section with its panels along the steps changed."""
    if section.places is None and section.family not in ("changes", "checkpoints"):
        return section
    heads = section.heads.each(change) if section.heads else None
    large, small = list(map(change, section.large)), list(map(change, section.small))
    return replace(section, large=large, small=small, heads=heads)


def _doubted(findings: tuple[Finding, ...]) -> list[int]:
    """The steps whose numbers may be another step's: no headline hangs on them."""
    return [one.step for one in findings if one.step is not None and one.kind in ("twin", "out of order")]


def _marks(findings: tuple[Finding, ...]) -> list[Mark]:
    """A mark for each step at which something was found."""
    words: dict[int, list[str]] = {}
    for finding in findings:
        if finding.step is not None:
            words.setdefault(finding.step, []).append(finding.words)
    return [Mark(step, tuple(said), new=True) for step, said in sorted(words.items())]


def _few(read: SweepRows) -> dict[str, dict[str, object]]:
    """What is known of some units, evenly, without what is long and told elsewhere."""
    units = [unit for unit in read.of.units if unit in read.facts]
    step = max(1, -(-len(units) // MOST_UNITS))
    kept = [*units[::step], *(unit for unit in units[-1:] if unit not in units[::step])]
    shown = ("fingerprint", "findings", "explained", "blocks")
    few = {unit: {k: v for k, v in read.facts[unit].items() if k not in shown} for unit in kept}
    if BETWEEN in read.facts:
        few[BETWEEN] = {k: v for k, v in read.facts[BETWEEN].items() if k not in shown}
    return few


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

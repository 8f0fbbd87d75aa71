"""An impact on the terminal and on its page: repairs × tasks, each change with its interval and its verdict.

The column `model` names the repair. The change of a score is a measure of its own: its row names the score in
`about` and is tagged with the verdict. Decided here: a repair keeps its colour in all charts, and so do the
vectors as they are. The bar at the head of an arrow is the paired 95 % interval of the change, laid on the
score before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from isoscope.formatting import ABSENT, short
from isoscope.kinds.screen import WIDTH, Column, Screen, Table, headed, notes_of
from isoscope.repair.impact.outcome import MAIN
from isoscope.results.reading import Reading
from isoscope.results.store import RunFolder
from isoscope.show.charts import Chart, Hover, Series, turned
from isoscope.show.colours import Pair
from isoscope.show.figures.curves import Dot, rows_of_changes
from isoscope.show.figures.panels import Panel
from isoscope.show.measures import Told, name_of, title_of
from isoscope.show.page.content import Content, content
from isoscope.show.page.section import panel_of, section, section_of
from isoscope.show.readings import SiteReading, read, unique

AS_IT_IS = "as it is"
ACROSS = "mean_cosine_between"  # the geometry that scores are drawn against
VERDICTS = {"hurt": "▼", "helped": "▲", "no difference": "·", "cannot matter": "=", "undefined": "?"}
"""The sign of each verdict, in the order of the sentences: harm is reported before help."""

_GEOMETRY = {"mean_cosine_between": "mean\ncosine", "effective_rank": "effective\nrank"}
_HUBS = ("hub_skewness", "anti_hubs")
_MOST = 7  # scores in the table; the page has all
_JSON = ("site", "measure", "repair", "verdict")
Place = tuple[str, int | None]
_CHANCE = "Of twenty intervals that should hold 0, one does not by chance."
_SIGNS = (
    "An arrow leads from the vectors as they are to what a repair makes of them; the bar at its head is the "
    "paired 95 % interval of the change. Further down a dot is full where that interval leaves 0 out, hollow "
    "where it does not, and a square where the repair cannot matter."
)
_FAMILIES = ("directions", "drift", "spectrum")
_HEIGHT = 280
Looks = Mapping[str, tuple[Pair, str, str]]
"""The colour, mark and dash of the vectors as they are and of every repair."""


@dataclass(frozen=True)
class Effect:
    """How a repair changed a score at a site; `x` is the anisotropy; a `main` score stands for its task."""

    place: Place
    measure: str
    repair: str
    before: float
    after: float
    by: Reading
    x: tuple[float, float]
    main: bool = True

    @property
    def verdict(self) -> str:
        """The verdict that the change is tagged with."""
        return self.by.tag if self.by.tag in VERDICTS else "undefined"

    @property
    def site(self) -> str:
        """What a reader calls the site."""
        kind, layer = self.place
        return kind if layer is None else f"{kind} {layer}"

    @property
    def change(self) -> str:
        """The change with its sign."""
        return f"{'+' * (self.by.value > 0)}{short(self.by.value, 2)}"

    def told(self) -> str:
        """The change with its interval: +0.1 [0.05, 0.15]."""
        return f"{self.change} [{short(self.by.low, 2)}, {short(self.by.high, 2)}]"


def ordered(folder: RunFolder) -> pd.DataFrame:
    """The rows of a folder in the order of the layers, repairs as they were asked for."""
    rows, asked = folder.frame(), folder.run.question.get("repairs")
    repairs = [AS_IT_IS, *map(str, asked if isinstance(asked, list | tuple) else ())]
    repair = rows["model"].map({name: number for number, name in enumerate(repairs)})
    layer = rows["layer"].fillna(10**6)
    at = pd.DataFrame({"layer": layer, "repair": repair}).sort_values(["layer", "repair"], kind="stable")
    return rows.loc[at.index].reset_index(drop=True)


def effects(rows: pd.DataFrame) -> list[Effect]:
    """Every change in these rows: layers by number, then the other sites."""
    readings = sorted(read(rows), key=lambda r: (r.layer is None, r.layer or 0, r.kind))
    value = {(r.kind, r.layer, r.model, r.measure): r.value for r in readings}
    main = {r.measure for r in readings if r.tag == MAIN}
    found = []
    for by in (r for r in readings if r.about):
        before, after = (value[by.kind, by.layer, name, by.about] for name in (AS_IT_IS, by.model))
        x, y = (value.get((by.kind, by.layer, name, ACROSS), math.nan) for name in (AS_IT_IS, by.model))
        place, is_main = (by.kind, by.layer), by.about in main
        found.append(Effect(place, by.about, by.model, before, after, by, (x, y), is_main))
    return found


def by_score(found: Sequence[Effect]) -> dict[tuple[Place, str], list[Effect]]:
    """The effects by site and score, in their order."""
    groups: dict[tuple[Place, str], list[Effect]] = {}
    for each in found:
        groups.setdefault((each.place, each.measure), []).append(each)
    return groups


def headline(found: Sequence[Effect], told: Told) -> str:
    """How many repairs hurt and help the first task, at the first site and at the last."""
    scores = by_score([each for each in found if each.main])
    first = [own for own in scores.values() if own[0].measure == next(iter(scores))[1]]
    said = []
    for own in first[:1] + first[1:][-1:]:
        hurt, helped = ([each for each in own if each.verdict == word] for word in ("hurt", "helped"))
        best = max(helped, key=lambda each: abs(each.by.value), default=None)
        most = f" (most {best.repair}, to {short(best.after)})" if best else ""
        score = f"{own[0].site.capitalize()}: {name_of(own[0].measure, told)} is {short(own[0].before)}"
        counts = f"{len(hurt)} certainly hurt and {len(helped)} certainly help{most}"
        said.append(f"{score}; of {len(own)} repairs, {counts}.")
    return " ".join(said) or "There is nothing to compare."


def finding(found: Sequence[Effect], told: Told) -> str:
    """What the repairs did to the main score of each task at each site: a line each, verdicts in turn."""
    lines = []
    for own in by_score([each for each in found if each.main]).values():
        score = f"{own[0].site}, {name_of(own[0].measure, told)} {short(own[0].before)}"
        lines.append(f"{score}: {'; '.join(_verdicts(own))}.")
    return "\n".join(lines) or "There is nothing to compare."


def _verdicts(own: Sequence[Effect]) -> Iterator[str]:
    for verdict in VERDICTS:
        alike = sorted((e for e in own if e.verdict == verdict), key=lambda e: -abs(e.by.value))
        sure = verdict in ("helped", "hurt")
        names = ", ".join(f"{each.repair} {each.told()}" if sure else each.repair for each in alike)
        if verdict == "no difference" and alike:
            least = max((each.by.high - each.by.low) / 2 for each in alike)
            shown = f" (one of {short(least, 2)} would have shown)" if least else ""
            verdict = f"no difference at n = {alike[0].by.n:,}{shown}"
        if alike:
            yield f"{verdict}: {names}"


def screen_of(folder: RunFolder, width: int = WIDTH) -> Screen:
    """A table per layer, what its signs mean, and the verdicts in words."""
    rows, told = ordered(folder), folder.run.measures
    found, readings = effects(rows), [r for r in read(rows) if not r.about]
    tables = []
    for place in dict.fromkeys(each.place for each in found):
        here = [r for r in readings if (r.kind, r.layer) == place]
        tables.append(_table(here, [each for each in found if each.place == place], told))
    signs = ", ".join(f"{sign} {word}" for word, sign in VERDICTS.items() if word != "undefined")
    key = f"score, its change, and the verdict by a paired 95 % interval: {signs}"
    verdicts = [{name: getattr(each, name) for name in _JSON} | {"said": each.by.note} for each in found]
    return Screen((*tables, key, finding(found, told)), notes_of(folder.facts()), {"verdicts": verdicts})


def _table(readings: Sequence[SiteReading], found: Sequence[Effect], told: Told) -> Table:
    """A line per repair: geometry, then scores with their changes."""
    measures = unique(each.measure for each in sorted(found, key=lambda each: not each.main))
    shown = [m for m in measures if m not in _HUBS]
    shown = [*shown[: _MOST - len(_HUBS)], *(m for m in _HUBS if m in measures)]
    geometry = [m for m in _GEOMETRY if any(r.measure == m for r in readings)]
    value = {(r.measure, r.model): short(r.value) for r in readings}
    change = {(each.measure, each.repair): f"\n{each.change} {VERDICTS[each.verdict]}" for each in found}
    lines = []
    for repair in unique(r.model for r in readings):
        at = [(measure, repair) for measure in (*geometry, *shown)]
        lines.append((repair, *(value.get(one, ABSENT) + change.get(one, "") for one in at)))
    heads = (*(_GEOMETRY[m] for m in geometry), *(title_of(measure, told) for measure in shown))
    columns = (Column("repair", right=False), *headed((), heads, folds=True))
    return Table(columns, tuple(lines), found[0].site)


def content_of(folder: RunFolder) -> Content:
    """Arrows, changes site by site, then the geometry along the layers."""
    rows, told = ordered(folder), folder.run.measures
    found = effects(rows)
    names = unique([AS_IT_IS, *(each.repair for each in found)])  # in the order of the models of other pages
    looks = {name: turned(at) for at, name in enumerate(names)}
    shared = {name: colour for name, (colour, *_) in looks.items()}
    repaired = {name: pair for name, pair in shared.items() if name != AS_IT_IS}
    sections = section(
        "arrows", "Anisotropy and score", "Does a rounder cloud serve better?",
        [Panel((), chart.title, chart.remark, chart) for chart in arrows(found, looks, told)], told,
        words=f"{finding(found, told)}\n{_SIGNS}\n{_CHANCE}", key=shared,
        explained=unique([ACROSS, *(each.measure for each in found if each.main)]),
    )  # fmt: skip
    scores, sites = by_score(found), unique(each.site for each in found)
    for site in sites:
        here = {measure: own for (_, measure), own in scores.items() if own[0].site == site}
        sections += section(
            site.replace(" ", "-"), site.capitalize(), "What did each repair change, and is that sure?",
            [panel_of(m, told, changes(o, repaired), f"from {o[0].before:.3g}") for m, o in here.items()],
            told, key=repaired, explained=[m for m, own in here.items() if not own[0].main],
            folded=site not in (sites[0], sites[-1]),
        )  # fmt: skip
    scored = [m for m in rows["measure"].unique() if told.get(m, {}).get("family") == "impact"]
    cloud = rows[~rows["measure"].isin(scored)]
    sections += [made for name in _FAMILIES if (made := section_of(cloud, told, None, name))]
    shown = rows.assign(note=rows["note"].where(rows["about"].fillna("") == "", ""))
    return content(folder, sections, headline(found, told), shown)


def arrows(found: Sequence[Effect], looks: Looks, told: Told) -> list[Chart]:
    """The score against the mean cosine, an arrow per repair that has both ends; one per task and site."""
    drawn = [each for each in found if each.main and not math.isnan(each.x[0] + each.after)]
    tasks, charts = unique(each.measure for each in drawn), []
    for (_, measure), own in sorted(by_score(drawn).items(), key=lambda item: tasks.index(item[0][1])):
        x, y, told_y = [own[0].x[0]], [own[0].before], [Hover(f"{own[0].before:.6g}", f"  {AS_IT_IS}")]
        start = Series(AS_IT_IS, x, y, style="dots", told=told_y, colour=looks[AS_IT_IS][0], size=8)
        start = replace(start, opacity=1, keyed=False)
        series = [*(_arrow(each, *looks[each.repair]) for each in own), start]
        title = f"{title_of(measure, told)} · {own[0].site}"
        charts.append(Chart(title, "mean cosine", "score", series, height=_HEIGHT))
    return charts


def _arrow(each: Effect, colour: Pair, mark: str, dash: str) -> Series:
    low, high = each.before + each.by.low, each.before + each.by.high
    ends = [f"95 % interval {low:.6g} to {high:.6g}"] if not math.isnan(low) else []
    told = [
        Hover(f"{each.before:.6g}", f"  {each.repair}", [f"at {each.x[0]:.6g}", "as it is"]),
        Hover(f"{each.after:.6g}", f"  {each.repair}", [*ends, f"at {each.x[1]:.6g}", each.by.note]),
    ]
    return Series(
        each.repair, each.x, (each.before, each.after), (math.nan, low), (math.nan, high), "arrow", told,
        colour=colour, mark=mark, dash=dash, size=4,
    )  # fmt: skip


def changes(own: Sequence[Effect], colours: Mapping[str, Pair]) -> Chart:
    """One score: a dot per repair with its interval."""
    dots = [
        Dot(row, each.repair, replace(each.by, null=math.nan), colours[each.repair],
            Hover(each.told(), f"  {each.repair}", [each.by.note]), each.verdict not in ("helped", "hurt"),
            "square" if each.verdict == "cannot matter" else "circle", bar=1.6)
        for row, each in enumerate(own)
    ]  # fmt: skip
    return rows_of_changes([each.repair for each in own], dots, "change")

"""The figures of a page for print, by name: overviews, maps, pictures, one per section and per measure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from isoscope.show.draw.matplotlib.sheet import Offered
from isoscope.show.figures.clouds import printed_clouds
from isoscope.show.figures.panels import Panel
from isoscope.show.figures.weights.heads import printed_heads
from isoscope.show.measures import MAIN
from isoscope.show.page.section import Section
from isoscope.show.readings import unique

Sections = Sequence[Section]
_NAMES = {"drift": "drift-and-norms", "layers": "arrangement", "sample": "neighbours"}
"""Sections whose figure has another name: these are names of measures, or of other figures."""
_ALONG = {"steps": "step", "layers": "layer", "values": ""}
"""The overviews, and what the axis of their panels is called."""
_HEADS = {
    "eigenvalues": ("spectrum", "the eigenvalues of W of heads in the complex plane"),
    "propagation": ("predicted", "where the signal of heads passes, by their weights"),
    "attended": ("measured", "where the last query of heads attends"),
}
"""Figures of the weights of heads: the panel of the page that each shows, and one line on it."""
_LISTED = 2


def offered(sections: Sections) -> dict[str, Offered]:
    """The figures of these sections by name: overviews, maps, pictures, one per section and per measure."""
    lines, maps = _by_measure(sections, _lines), _by_measure(sections, _maps)
    mapped = [panel for own in maps.values() for panel in own]
    both = [panel for own in lines.values() for panel in own if panel.chart.map and panel.chart.series]
    bare = [replace(panel, chart=replace(panel.chart, series=())) for panel in both]
    planes = [p for s in sections if s.family == "query_key" for p in s.large if p.chart.grounds]
    found = [
        *(_overview(name, lines) for name in _ALONG),
        _figure("layers-by-steps", f"{_listed(bare)}, as maps of layers and steps", bare),
        _figure("heads", f"{_listed(mapped)} of every head, as maps", mapped),
        _figure("plane", "every head by trace and scale of W, in the regimes", planes),
    ]
    for section in sections:
        if section.clouds:
            charts, grid = printed_clouds(section.clouds)
            says = "queries and keys of heads, those that lie furthest from the origin first"
            found.append(Offered("clouds", says, charts, grid=grid))
        if of := section.pictures:
            found += [Offered(name, says, printed_heads(of, panel)) for name, (panel, says) in _HEADS.items()]
    for section in sections:
        name = _NAMES.get(section.family, section.id.replace("_", "-"))
        says = section.shown.asks or section.shown.heading
        found.append(_figure(name, says[:1].lower() + says[1:], _lines(section) or _maps(section)))
    for measure in unique([*lines, *maps]):
        own = [*lines.get(measure, ()), *maps.get(measure, ())]
        found.append(replace(_figure(measure, own[0].heading, own), alone=True))
    named: dict[str, Offered] = {}
    for one in found:
        if one.charts:
            named.setdefault(one.name, one)
    return named


def _lines(section: Section) -> list[Panel]:
    """The panels of a section without maps of heads and forms of pictures."""
    lines = [*section.large, *section.small]
    profile = section.profile and replace(section.profile, heading=f"{lines[0].heading} by layer")
    return [*lines, *([profile] if profile else [])]


def _maps(section: Section) -> list[Panel]:
    return [*section.maps, *(section.heads.panels if section.heads else [])]


def _by_measure(sections: Sections, part: Callable[[Section], list[Panel]]) -> dict[str, list[Panel]]:
    """The panels of each measure in the first section that shows it alone."""
    found: dict[str, list[Panel]] = {}
    for section in sections:
        if section.family == "comparison":  # of one measure against another
            continue
        panels = part(section)
        measures = unique(m for panel in panels for m in panel.measures if m not in found)
        found |= {m: [panel for panel in panels if m in panel.measures] for m in measures}
    return found


def _overview(name: str, lines: Mapping[str, Sequence[Panel]]) -> Offered:
    axis = _ALONG[name]
    panels = {
        m: [p for p in own if (p.measures[0], p.chart.across.name) == (m, axis) and (axis or p.chart.up.rows)]
        for m, own in lines.items()
    }
    main = [m for m in ("loss", *MAIN) if panels.get(m)]
    shown = [panel for m in main or panels for panel in panels[m]]
    says = f"{_listed(shown)} along the {name}" if axis else "what was measured, beside its null"
    return _figure(name, says, shown)


def _figure(name: str, says: str, panels: Iterable[Panel]) -> Offered:
    return Offered(name, says, [panel.chart.named(panel.heading) for panel in panels])


def _listed(panels: Sequence[Panel]) -> str:
    names = unique(panel.heading for panel in panels)
    few = ", ".join(names[:_LISTED])
    return f"{few} and {len(names) - _LISTED} more" if names[_LISTED:] else few

"""Advice on the terminal and on its page: cosines, what to do, what makes them so, what repairs would change.

Decided here: one line a space, `before` on top and in a colour of its own; of the cosines a hairline reaches
over 98 % of the pairs, a thin bar over 90 %, a thick one over half, and a white tick is the median.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace

from isoscope.formatting import ABSENT, short, two
from isoscope.kinds.advise.findings import MEASURES, Findings, Space, findings_of
from isoscope.kinds.advise.screen import PARTS, Said, advice, headline
from isoscope.kinds.screen import WIDTH, Screen, Table, headed, notes_of
from isoscope.results.reading import Reading
from isoscope.results.store import RunFolder
from isoscope.show.charts import Axis, Chart, Hover, Series
from isoscope.show.colours import MODELS, PAPER, Pair
from isoscope.show.figures.curves import Dot, number_told, rows_of_dots
from isoscope.show.figures.panels import Panel
from isoscope.show.page.content import Content, content
from isoscope.show.page.section import section
from isoscope.show.readings import SiteReading
from isoscope.show.say.shapes import percent

_HEADS = ("cosine between", "9 in 10\ncosines", "relative\ndrift", "effective\nrank", "IsoScore")
_NEIGHBOURS = ("nearest 10\nkept", "nobody's\nneighbour")
_SHOWN_OF = "All numbers are of the half of the vectors that no repair was fitted on."
_ISOTROPIC = "grey: an isotropic cloud"
_REPAIRED = (  # what is shown of each space: reading, heading, remark, how it is written
    ("cosine", "Mean cosine", _ISOTROPIC, short),
    ("kept", "Nearest 10 kept", "grey: chance", percent),
    ("rank", "Effective rank", _ISOTROPIC, short),
    ("drift", "Relative drift", _ISOTROPIC, short),
    ("isoscore", "IsoScore", _ISOTROPIC, short),
    ("anti_hubs", "Nobody's neighbour", "grey: by chance", percent),
)
_AS_IS, _REPAIR = MODELS[1], MODELS[0]
_KEY = {"as it is": _AS_IS, "repaired, fitted on other vectors": _REPAIR}
_BARS = ((1, 99, 1.5, 1.0), (5, 95, 6, 0.45), (25, 75, 14, 1.0))  # from, to, pixels, opacity
_LINE, _ENDS = 38, 64  # pixels a line takes, and the axis with its title
_SMALL = 24
_ROOM = 0.055  # of the axis, kept free on the right for each letter of the longest number
_QUANTILES = "line: 98 % of pairs; pale bar: 90 %; bar: half of them; tick: the median"


def screen_of(folder: RunFolder, width: int = WIDTH) -> Screen:
    """The table and the sentences of the advice in the folder."""
    found = findings_of(folder)
    said = advice(found)
    parts = {part: "\n".join(one.text for one in said if one.part == part) for part in PARTS}
    texts = [f"\n{PARTS[part]}\n{text}" for part, text in parts.items() if text]
    json = {"headline": headline(found), "sentences": [asdict(one) for one in said]}
    return Screen((_table(found), *texts, ""), notes_of(folder.facts()), json)


def _table(found: Findings) -> Table:
    n, null = found.before.rank.n, short(found.before.rank.null)
    caption = f"of {n} vectors that no repair was fitted on; value [95 % interval]; an isotropic cloud of as "
    caption += f"many has a cosine of 0 and an effective rank of {null}"
    there, lines = any(space.kept.known for space in found.after), []
    for space in (found.before, *found.after):
        lie = " to ".join(two(space.quantiles[5].value, space.quantiles[95].value))
        numbers = (short(reading.value) for reading in (space.drift, space.rank, space.isoscore))
        shares = (_share(space.kept), _share(space.anti_hubs)) if there else ()
        lines.append((space.label, space.cosine.said, lie, *numbers, *shares))
    columns = headed(("",), (*_HEADS, *(_NEIGHBOURS if there else ())))
    return Table(columns, tuple(lines), caption=caption, rules=frozenset({1}))


def _share(number: SiteReading) -> str:
    return f"{100 * number.value:.0f} %" if number.known else ABSENT


def content_of(folder: RunFolder) -> Content:
    """Cosines, what to do, causes, and the numbers of every space."""
    found, told = findings_of(folder), folder.run.measures
    said, spaces = advice(found), (found.before, *found.after)
    ladders = []
    for field, heading, remark, write in _REPAIRED:
        numbers = {each.label: getattr(each, field) for each in spaces}
        ladders.append(numbers_panel(numbers, (MEASURES[field],), heading, remark, write))
    asks = "Where do they lie, now and after each repair?"
    sections = [
        *section("space", "Cosines", asks, [cosine_panel(spaces)], told, words=_listed(said, "space"),
                 key=_KEY, wordy=True),
        *section("do", PARTS["do"], "", (), told, words=_listed(said, "do", "unknown"), wordy=True),
        *section("cause", PARTS["cause"], "Dimensions and tokens", _causes(found), told,
                 words=_listed(said, "cause"), wordy=True),
        *section("repair", "What each repair would change", _SHOWN_OF, ladders, told, key=_KEY),
    ]  # fmt: skip
    return content(folder, sections, headline(found))


def _listed(said: Sequence[Said], *parts: str) -> str:
    """Sentences a line each, with what is to be typed in quotes."""
    lines = [re.sub(r"`([^`]+)`", r"“\1”", one.text) for one in said if one.part in parts]
    return "\n".join(f"• {line}" for line in lines) if len(lines) > 1 else "".join(lines)


def _causes(found: Findings) -> list[Panel]:
    # a share of a mean cosine that may be 0 is any number
    few = found.dimensions if found.crowded else ()
    shares = {f"dimension {each.which}": each.alone for each in few}
    cosines = {
        "rarer tokens": found.tokens.rarer, "frequent tokens": found.tokens.frequent,
        "content tokens": found.tokens.cosine, "all tokens": found.all_tokens.cosine,
        "these vectors": found.before.cosine,
    }  # fmt: skip
    names, remark = ("dimension_share", "dimension_share_joined"), "grey: a direction that prefers none"
    bands = ("mean_cosine_rare", "mean_cosine_frequent", "mean_cosine_between")
    return [
        numbers_panel(shares, names, "Share of the mean cosine", remark, percent, _AS_IS),
        numbers_panel(cosines if found.tokens.cosine.known else {}, bands, "Mean cosine", "", short, _AS_IS),
    ]


def cosine_panel(every: Sequence[Space]) -> Panel:
    """The quantiles of the cosines, a line for each space."""
    spaces = [space for space in every if space.quantiles[50].known]
    series = []
    for at, space in enumerate(spaces):
        for low, high, width, opacity in _BARS:
            x = [space.quantiles[end].value for end in (low, high)]
            bar = Series(space.label, x, [-at, -at], colour=_colour(space.label), keyed=False)
            series.append(replace(bar, width=width, opacity=opacity))
        lines = []
        for per_cent, number in space.quantiles.items():
            ends = f" ({number.low:.4g} to {number.high:.4g})" if number.bounded else ""
            lines.append(f"{per_cent} % below {number.value:.4g}{ends}")
        median, told = space.quantiles[50].value, [Hover(space.label, "", lines)]
        tick = Series("median", [median], [-at], style="dots", told=told, mark="line-ns", size=16)
        series.append(replace(tick, colour=PAPER, opacity=1, keyed=False))
    reached = [0.0, *(s.quantiles[end].value for s in spaces for end in (1, 99))]
    aside = 0.03 * (max(reached) - min(reached))
    span = min(reached) - aside, max(reached) + aside
    axis = Axis("cosine of two vectors", span, grid=True, most=6)  # more run into each other on a phone
    rows = [(-float(at), space.label) for at, space in enumerate(spaces)]
    up = Axis(range=(0.4 - len(rows), 0.6), ticks=rows, rows=True, grid=False)
    height = _ENDS + _LINE * len(spaces)
    chart = Chart("", axis, up, series, uprights=((0.0, ""),), height=height, margin={"b": 48})
    return Panel(("cosine_quantile_95",), "Cosines of pairs", _QUANTILES, chart)


def numbers_panel(
    numbers: Mapping[str, Reading], measures: tuple[str, ...], heading: str, remark: str,
    write: Callable[[float], str], colour: Pair | None = None,
) -> Panel:  # fmt: skip
    """Numbers by name as dots with their intervals and nulls; else each in the `colour` of its space."""
    known = {name: number for name, number in numbers.items() if number.known}
    dots = [
        Dot(at, name, number, colour or _colour(name), number_told(number, name))
        for at, (name, number) in enumerate(known.items())
    ]
    reached = [x for n in known.values() for x in (n.value, n.low, n.high, n.null) if x == x]
    left, right = min([0.0, *reached]), max([0.0, *reached])
    right = right if right > left else 1.0
    written = [write(number.value) for number in known.values()]
    wide = (right - left) / (1 - _ROOM * max(map(len, written), default=0))
    axis = Axis(range=(left - 0.04 * wide, left + wide), most=5)
    height = _ENDS - 20 + _SMALL * len(known)
    chart = rows_of_dots(
        [*known], dots, axis, size=8, height=height, margin={"b": 30}, numbers=written, keyed=False
    )
    return Panel(measures, heading, remark, chart)


def _colour(label: str) -> Pair:
    return _KEY.get(label, _REPAIR)

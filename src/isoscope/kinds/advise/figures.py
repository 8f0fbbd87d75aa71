"""The figures of advice: where cosines lie before and after each repair, and how its numbers move.

Decided here: one line a space, `before` on top and in a colour of its own; of the cosines a hairline reaches
over 98 % of the pairs, a thin bar over 90 %, a thick one over half, and a white tick is the median.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

import plotly.graph_objects as go

from isoscope.formatting import short
from isoscope.kinds.advise.findings import BEFORE, Findings, Space
from isoscope.results.reading import Reading
from isoscope.show.colours import GRID, INK, MODELS, PAPER, SOFT, Pair
from isoscope.show.draw.plotly.marks import blank
from isoscope.show.figures.panels import Panel

AS_IS, REPAIRED = MODELS[1], MODELS[0]
KEY: tuple[tuple[str, Pair], ...] = (("as it is", AS_IS), ("repaired, fitted on other vectors", REPAIRED))
_BARS = ((1, 99, 1.5, 1.0), (5, 95, 6, 0.45), (25, 75, 14, 1.0))  # from, to, pixels, opacity
_LINE, _ENDS = 38, 64  # pixels a line takes, and the axis with its title
_SMALL = 24
Write = Callable[[float], str]
_ROOM = 0.055  # of the axis, kept free on the right for each letter of the longest number


def cosine_panel(found: Findings) -> Panel:
    """The quantiles of the cosines, a line for each space."""
    spaces = [space for space in (found.before, *found.after) if space.quantiles[50].known]
    figure = blank(_ENDS + _LINE * len(spaces))
    figure.add_vline(x=0, line={"color": SOFT[0], "width": 1, "dash": "dash"})
    for at, space in enumerate(spaces):
        colour = _colour(space)[0]
        for low, high, width, opacity in _BARS:
            figure.add_scatter(
                x=[space.quantiles[low].value, space.quantiles[high].value],
                y=[-at, -at],
                mode="lines",
                line={"color": colour, "width": width},
                opacity=opacity,
                hoverinfo="skip",
            )
        figure.add_scatter(
            x=[space.quantiles[50].value],
            y=[-at],
            mode="markers",
            marker={"symbol": "line-ns", "size": 16, "line": {"width": 2.5, "color": PAPER[0]}},
            hovertext=[_quantiles(space)],
            hoverinfo="text",
        )
    _ticks(figure, [_named(space.name) for space in spaces])
    figure.update_xaxes(title={"text": "cosine of two vectors", "standoff": 8}, showgrid=True)
    figure.update_xaxes(gridcolor=GRID[0], nticks=6, tickangle=0)  # more run into each other on a phone
    remark = "line: 98 % of pairs; pale bar: 90 %; bar: half of them; tick: the median"
    reached = [0.0, *(s.quantiles[end].value for s in spaces for end in (1, 99))]
    aside = 0.03 * (max(reached) - min(reached))
    figure.update_xaxes(range=[min(reached) - aside, max(reached) + aside])
    figure.update_layout(margin={"b": 48})
    return Panel(("cosine_quantile_95",), "Cosines of pairs", remark, figure)


def ladder(
    found: Findings,
    pick: Callable[[Space], Reading],
    measure: str,
    heading: str,
    remark: str = "",
    write: Write = short,
) -> Panel | None:
    """One number of every space as a dot with its interval and its null; None where no space has it."""
    spaces = [space for space in (found.before, *found.after) if pick(space).known]
    if not spaces:
        return None
    figure = blank(_ENDS - 20 + _SMALL * len(spaces))
    lines = [(_named(space.name), pick(space), _colour(space)[0]) for space in spaces]
    _add_dots(figure, lines, write)
    return Panel((measure,), heading, remark, figure)


def numbers_panel(
    told: Sequence[tuple[str, Reading]],
    measures: tuple[str, ...],
    heading: str,
    remark: str = "",
    write: Write = short,
) -> Panel | None:
    """Named numbers as dots with their intervals and nulls; None where none has a value."""
    known = [(name, number) for name, number in told if number.known]
    if not known:
        return None
    figure = blank(_ENDS - 20 + _SMALL * len(known))
    _add_dots(figure, [(name, number, AS_IS[0]) for name, number in known], write)
    return Panel(measures, heading, remark, figure)


def _add_dots(figure: go.Figure, lines: Sequence[tuple[str, Reading, str]], write: Write) -> None:
    numbers = [number for _, number, _ in lines]
    nulls = [(at, number.null) for at, number in enumerate(numbers) if number.null == number.null]
    figure.add_scatter(
        x=[null for _, null in nulls],
        y=[-at for at, _ in nulls],
        mode="markers",
        marker={"symbol": "line-ns-open", "size": 14, "color": SOFT[0], "line": {"width": 2}},
        hovertext=[f"null {null:.6g}" for _, null in nulls],
        hoverinfo="text",
    )
    for at, (name, number, colour) in enumerate(lines):
        up, down = (number.high - number.value, number.value - number.low) if number.bounded else (0, 0)
        figure.add_scatter(
            x=[number.value],
            y=[-at],
            mode="markers",
            marker={"size": 9, "color": colour},
            error_x={"array": [up], "arrayminus": [down], "color": colour, "thickness": 2, "width": 0},
            hovertext=[_telling(number, name)],
            hoverinfo="text",
        )
    reached = [x for n in numbers for x in (n.value, n.low, n.high, n.null) if x == x]
    low, high = min(0.0, *reached), max(0.0, *reached)
    high = high if high > low else 1.0
    wide = (high - low) / (1 - _ROOM * max(len(write(number.value)) for number in numbers))
    for at, number in enumerate(numbers):
        figure.add_annotation(
            x=1,
            xref="paper",
            xanchor="right",
            y=-at,
            text=html.escape(write(number.value)),
            showarrow=False,
            font={"color": INK[0], "size": 12},
        )
    figure.update_xaxes(range=[low - 0.04 * wide, low + wide], nticks=5, tickangle=0)
    _ticks(figure, [name for name, _, _ in lines])


def _ticks(figure: go.Figure, names: Sequence[str]) -> None:
    figure.update_yaxes(
        tickvals=[-at for at in range(len(names))],
        ticktext=[html.escape(name) for name in names],
        range=[0.6 - len(names), 0.6],
        showgrid=False,
        automargin=True,
        tickfont={"color": INK[0]},
    )
    figure.update_layout(margin={"b": 30})


def _named(name: str) -> str:
    return "as it is" if name == BEFORE else name


def _colour(space: Space) -> Pair:
    return AS_IS if space.name == BEFORE else REPAIRED


def _quantiles(space: Space) -> str:
    lines = [f"<b>{html.escape(_named(space.name))}</b>"]
    for per_cent, number in space.quantiles.items():
        ends = f" ({number.low:.4g} to {number.high:.4g})" if number.bounded else ""
        lines.append(f"{per_cent} % below {number.value:.4g}{ends}")
    return "<br>".join(lines)


def _telling(number: Reading, name: str) -> str:
    lines = [f"<b>{number.value:.6g}</b>  {html.escape(name)}"]
    lines += [f"95 % interval {number.low:.6g} to {number.high:.6g}"] if number.bounded else ["no interval"]
    lines += [f"null {number.null:.6g}"] if number.null == number.null else []
    return "<br>".join([*lines, f"n {number.n:,}"])

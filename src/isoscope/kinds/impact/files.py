"""The figure of an impact that is written beside its page: a row a task, a column a site."""

from __future__ import annotations

from isoscope.kinds.impact.effects import effects, ordered, places
from isoscope.kinds.impact.figures import arrows, drawable
from isoscope.results.store import RunFolder

_WIDTH, _HEIGHT, _MOST = 2.6, 1.9, 3  # inches of a panel, and columns at most


def files_of(folder: RunFolder) -> dict[str, bytes]:
    """The figure for print in every format, by the name of its file.

    Of more sites than the columns hold the first and the last are drawn; the page has those in between.
    """
    from isoscope.show.draw.matplotlib.sheet import printed
    from isoscope.show.draw.matplotlib.style import KINDS

    main = drawable(effects(ordered(folder)))
    sites = places(main)
    sites = sites if len(sites) <= _MOST else [sites[0], sites[-1]]
    charts = arrows(main, folder.run.measures, sites, "\n")
    drawn = printed(charts, (_WIDTH, _HEIGHT), more=(0.0, 0.4), kinds=KINDS)
    return {f"figure.{suffix}": body for suffix, body in drawn.items()}

"""Trackers as the Monitor sees them: plain callables, sink(step, summaries), with a `close` if they like.

Decided here: a tracker that fails is dropped with a warning that has its words, once. Its trouble is not
training's. It is told a handful of numbers of one step, since dashboards choke on thousands of series: of
each measure the mean over the layers and the worst, the end of its range that wants a look.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import pandas as pd

from isoscope.run.monitor.kept import Unit
from isoscope.run.monitor.own import OWN
from isoscope.show.measures import SUMMARISED, how_shown

Sink = Callable[[int, Mapping[str, float]], None]
MOST = 9  # measures, two numbers each


class Sinks:
    """Trackers that have not failed yet."""

    def __init__(self, sinks: Iterable[Sink]) -> None:
        self._sinks = tuple(sinks)

    def tell(self, units: Iterable[Unit]) -> None:
        """Tell the summaries of these units; what is live stays untold, and so do the loop's own numbers."""
        for unit in [each for each in units if not each.live] if self._sinks else ():
            told = summaries(unit.rows[unit.rows["kind"] != OWN])
            when = f"at step {unit.step} and is told no more"
            self._sinks = tuple(
                sink for sink in self._sinks if _spared(partial(sink, unit.step, dict(told)), sink, when)
            )

    def close(self) -> None:
        """Close those that can be closed."""
        sinks, self._sinks = self._sinks, ()
        for sink in sinks:
            if callable(end := getattr(sink, "close", None)):
                _spared(end, sink, "while it was closed")


def summaries(rows: pd.DataFrame) -> dict[str, float]:
    """Mean and worst over layers of each measure, by name; at most 18 of them."""
    layers = rows.loc[rows["head"].isna(), ["measure", "value"]]
    values = {str(name): own for name, own in layers.groupby("measure", sort=False)["value"]}
    chosen = [name for name in dict.fromkeys((*SUMMARISED, *values)) if name in values]
    found = {}
    for name in chosen[:MOST]:
        own, worst = values[name], how_shown(name).worst
        found[f"isoscope/{name}/mean"] = float(own.mean())
        found[f"isoscope/{name}/{worst}"] = float(own.max() if worst == "max" else own.min())
    return found


def name_of(what: Callable[..., object]) -> str:
    """What a function is called, or the class of what can be called."""
    return str(getattr(what, "__name__", type(what).__name__))


def _spared(call: Callable[[], object], sink: Sink, when: str) -> bool:
    """Whether the call went well; a warning where it did not."""
    try:
        call()
    except Exception as reason:  # noqa: BLE001  (whatever a tracker raises, training goes on)
        words = ": ".join(filter(None, [type(reason).__name__, str(reason)]))
        warnings.warn(f"the sink {name_of(sink)} failed {when}: {words}", stacklevel=6)
        return False
    return True

"""Trackers as the Monitor sees them: plain callables, sink(step, summaries), with a `close` if they like.

Decided here: a tracker that fails is dropped with a warning that has its words, once. Its trouble is not
training's.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from isoscope.run.monitor.kept import Unit
from isoscope.run.monitor.own import OWN
from isoscope.run.monitor.summaries import summaries

Sink = Callable[[int, Mapping[str, float]], None]


class Sinks:
    """Those that are still told."""

    def __init__(self, sinks: Iterable[Sink]) -> None:
        self._sinks = tuple(sinks)

    def tell(self, units: Iterable[Unit]) -> None:
        """Tell the summaries of these units; what is live stays untold, and so do the loop's own numbers."""
        for unit in [each for each in units if not each.live] if self._sinks else ():
            told, when = (
                summaries(unit.rows[unit.rows["kind"] != OWN]),
                f"at step {unit.step} and is told no more",
            )
            self._sinks = tuple(
                sink for sink in self._sinks if _spared(partial(sink, unit.step, dict(told)), sink, when)
            )

    def close(self) -> None:
        """Close those that can be closed."""
        sinks, self._sinks = self._sinks, ()
        for sink in sinks:
            if callable(end := getattr(sink, "close", None)):
                _spared(end, sink, "while it was closed")


def name_of(what: Callable[..., object]) -> str:
    """What a function is called, or the class of what can be called."""
    return str(getattr(what, "__name__", type(what).__name__))


def _spared(call: Callable[[], object], sink: Sink, when: str) -> bool:
    """Whether the call went well; a warning where it did not."""
    try:
        call()
    except Exception as reason:  # noqa: BLE001  (whatever a tracker raises, training goes on)
        warnings.warn(f"the sink {name_of(sink)} failed {when}: {_words(reason)}", stacklevel=6)
        return False
    return True


def _words(reason: Exception) -> str:
    return f"{type(reason).__name__}: {reason}" if str(reason) else type(reason).__name__

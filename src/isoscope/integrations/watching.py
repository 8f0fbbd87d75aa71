"""What the callbacks for training loops share: the options of a Monitor, and the Monitor itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from torch import nn

from isoscope.errors import unknown_name
from isoscope.results.row import frame
from isoscope.run.monitor.alarms import ALARMS, AlarmFunction
from isoscope.run.monitor.monitor import Monitor, OnAlarm, Sink
from isoscope.run.monitor.schedule import Schedule


class Watching:
    """A Monitor that is made when training begins; takes what `Monitor` takes, but for the model.

    `part` names the module inside the model that is watched, such as ``"model"``; without it, it is the model
    itself, called with the batches of the probe. `monitor` is the Monitor once training has begun, and stays
    when it has ended.
    """

    def __init__(
        self, probe: str | Iterable[Any],
        *, part: str = "", every: int | Schedule | None = None, out: str | Path | None = None,
        measures: Iterable[str] | None = None, layers: str = "*", heads: bool = True,
        counterfactual: bool = False, skip_first: bool | None = None, skip_special: bool | None = None,
        budget: float | None = 0.02, alarms: Iterable[AlarmFunction] = ALARMS, on_alarm: OnAlarm = "warn",
        sinks: Iterable[Sink] = (), name: str = "model", points: int = 0,
        about: Mapping[str, object] | None = None, resume: bool = True
    ) -> None:  # fmt: skip
        self._part = part
        self._made: Callable[..., Monitor] = partial(
            Monitor, probe=probe, every=every, out=out,
            measures=None if measures is None else tuple(measures), layers=layers, heads=heads,
            counterfactual=counterfactual, skip_first=skip_first, skip_special=skip_special, budget=budget,
            alarms=tuple(alarms), on_alarm=on_alarm,
            sinks=tuple(sinks), name=name, points=points, about=about, resume=resume
        )  # fmt: skip
        self.monitor: Monitor | None = None
        self._told = -1  # the step that the Monitor was last told of

    def frame(self) -> pd.DataFrame:
        """The rows so far."""
        return frame([]) if self.monitor is None else self.monitor.frame()

    def close(self) -> None:
        """Write what waits and close the sinks."""
        if self.monitor is not None:
            self.monitor.close()

    def _begin(self, model: nn.Module, steps: float) -> None:
        """Make the Monitor of a training of this many steps, not positive or infinite where not known."""
        self.close()  # what an earlier training left open when it failed
        inside = dict(model.named_modules())
        if self._part not in inside:  # the model itself is called ""
            raise unknown_name(f"module of {type(model).__name__}", self._part, [*filter(None, inside)])
        known = int(steps) if 0 < steps < float("inf") else None
        self.monitor, self._told = self._made(inside[self._part], steps=known), -1

    def _step(self, step: int) -> None:
        """Look at the model after so many steps, each once, however many batches one is made of."""
        if self.monitor is None or step == self._told:
            return
        self._told = step
        try:
            self.monitor.step(step)
        except BaseException:  # a Trainer may tell callbacks of no error, not even of one that they raise
            self.close()
            raise

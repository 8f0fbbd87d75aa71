"""Watch a training of the transformers Trainer: a callback that holds a Monitor.

    trainer = Trainer(model, args, train_dataset=data, callbacks=[IsoscopeCallback(probe, out="runs/mine")])

The Monitor is made when training begins, on the model that is trained, and looks before the first step and
after each step of the optimiser, however many batches one is made of. Training that is taken up from a
checkpoint takes up the run folder: steps that it has are not measured again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from transformers.trainer_callback import TrainerCallback, TrainerControl, TrainerState
from transformers.training_args import TrainingArguments

from isoscope.results.row import frame
from isoscope.run.monitor.alarms import ALARMS, AlarmFunction
from isoscope.run.monitor.monitor import Monitor, OnAlarm, Sink
from isoscope.run.monitor.schedule import Schedule


class IsoscopeCallback(TrainerCallback):
    """A Monitor for the model of a Trainer; takes what `Monitor` takes, but for the model.

    `monitor` is the Monitor once training has begun, and stays when it has ended.
    """

    def __init__(
        self,
        probe: str | Iterable[Any],
        *,
        every: int | Schedule | None = None,
        out: str | Path | None = None,
        measures: Iterable[str] | None = None,
        layers: str = "*",
        heads: bool = True,
        counterfactual: bool = False,
        budget: float | None = 0.02,
        alarms: Iterable[AlarmFunction] = ALARMS,
        on_alarm: OnAlarm = "warn",
        sinks: Iterable[Sink] = (),
        name: str = "model",
        points: int = 0,
        about: Mapping[str, object] | None = None,
        resume: bool = True,
    ) -> None:
        self._begin: Callable[..., Monitor] = partial(
            Monitor,
            probe=probe,
            every=every,
            out=out,
            measures=None if measures is None else tuple(measures),
            layers=layers,
            heads=heads,
            counterfactual=counterfactual,
            budget=budget,
            alarms=tuple(alarms),
            on_alarm=on_alarm,
            sinks=tuple(sinks),
            name=name,
            points=points,
            about=about,
            resume=resume,
        )
        self.monitor: Monitor | None = None
        self._open = False

    def frame(self) -> pd.DataFrame:
        """The rows so far."""
        return frame([]) if self.monitor is None else self.monitor.frame()

    def close(self) -> None:
        """Write what waits and close the sinks: for a training that ended with an error of its own."""
        if self.monitor is not None and self._open:
            self._open = False
            self.monitor.close()

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **given: Any
    ) -> None:
        """Make the Monitor, and look at the model as it is now."""
        self.close()  # what an earlier training left open when it failed
        self.monitor = self._begin(given["model"], steps=state.max_steps if state.max_steps > 0 else None)
        self._open = True
        self._step(state.global_step)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **given: Any
    ) -> None:
        """Look at the model after a step of the optimiser."""
        self._step(state.global_step)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **given: Any
    ) -> None:
        """Close the Monitor."""
        self.close()

    def _step(self, step: int) -> None:
        assert self.monitor is not None
        try:
            self.monitor.step(step)
        except BaseException:  # the Trainer tells callbacks of no error, not even of one that they raise
            self.close()
            raise

"""Watch a training of Lightning: a callback that holds a Monitor.

    trainer = Trainer(callbacks=[IsoscopeCallback(probe, out="runs/mine")])

The Monitor is made when training starts and looks before the first step and after each step of the optimiser
(`trainer.global_step`), however many batches one is made of. It runs the model in the precision that it
trains in: Lightning enters autocast for the training step only, so the callback enters it for a look. What
the probe holds is what the watched module takes: Lightning moves and converts batches, and a probe is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from torch import nn

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.results.row import frame
from isoscope.run.monitor.alarms import ALARMS, AlarmFunction
from isoscope.run.monitor.monitor import Monitor, OnAlarm, Sink
from isoscope.run.monitor.schedule import Schedule

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.plugins.precision import MixedPrecision
except ImportError as reason:
    raise IsoscopeError(
        "the callback for Lightning needs lightning: install it with `pip install 'isoscope[lightning]'`."
    ) from reason


class IsoscopeCallback(Callback):
    """A Monitor for the module that a Lightning Trainer fits; takes what `Monitor` takes, but for the model.

    `part` names the module inside the LightningModule that is watched, such as ``"model"``; without it, it
    is the LightningModule itself, called with the batches of the probe. `monitor` is the Monitor once
    training has started, and stays when it has ended.
    """

    def __init__(
        self,
        probe: str | Iterable[Any],
        *,
        part: str = "",
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
        self._part = part
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
        self._told = -1  # the step that the Monitor was last told of

    def frame(self) -> pd.DataFrame:
        """The rows so far."""
        return frame([]) if self.monitor is None else self.monitor.frame()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Make the Monitor, and look at the model as it is now."""
        self.close()
        with _as_it_trains(trainer):
            planned = trainer.estimated_stepping_batches
            steps = int(planned) if 0 < planned < float("inf") else None
            self.monitor = self._begin(watched(pl_module, self._part), steps=steps)
        self._open, self._told = True, -1
        self._step(trainer)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Look at the model after a batch that was a step of the optimiser."""
        self._step(trainer)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Close the Monitor."""
        self.close()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Close the Monitor of a training that failed, or was interrupted."""
        self.close()

    def close(self) -> None:
        """Write what waits and close the sinks."""
        if self.monitor is not None and self._open:
            self._open = False
            self.monitor.close()

    def _step(self, trainer: Trainer) -> None:
        if self.monitor is None or trainer.global_step == self._told:  # of a step made of several batches
            return
        self._told = trainer.global_step
        with _as_it_trains(trainer):
            self.monitor.step(self._told)


def watched(module: LightningModule, part: str) -> nn.Module:
    """The module of this name inside a LightningModule; without a name itself, if it can be called."""
    if part:
        inside = dict(module.named_modules())
        if part not in inside:
            raise unknown_name(f"module of {type(module).__name__}", part, [*filter(None, inside)])
        return inside[part]
    if type(module).forward is LightningModule.forward:
        children = ", ".join(f"part='{name}'" for name, _ in module.named_children())
        raise IsoscopeError(
            f"{type(module).__name__} has no forward, so it cannot be run over a probe; define one, or name "
            f"the module to watch: {children or 'it holds none'}."
        )
    return module


def _as_it_trains(trainer: Trainer) -> AbstractContextManager[None]:
    """Autocast, if it trains under it; other precisions are in the weights."""
    plugin = trainer.precision_plugin
    return plugin.forward_context() if isinstance(plugin, MixedPrecision) else nullcontext()

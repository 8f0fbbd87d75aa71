"""Watch a model while it trains: the same probe, the same records, the same rows as `observe`, step by step.

    monitor = Monitor(model, probe=batches, out="runs/mine")
    for step, batch in enumerate(loader):
        monitor.step(step)     # the model after `step` updates: 0 is untouched
        …                      # forward, backward, optimiser

On the steps that its schedule chooses it runs the model without gradient and in eval mode over the probe, in
the autocast state that it finds, and leaves everything as it was: training with it and without it is the
same, bit for bit. Under torch.distributed every rank must call it; rank 0 has rows, sinks and folder.
Trackers are plain callables, sink(step, summaries); alarms are plain functions of the rows of recent steps.
A tracker that fails is dropped with a warning: its trouble is not training's.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
import torch
from torch import nn

from isoscope.errors import IsoscopeError, first_line
from isoscope.models.source import Model
from isoscope.results.row import frame
from isoscope.run.monitor.alarms import ALARMS, Alarm, AlarmFunction, AlarmRaised
from isoscope.run.monitor.gradients import EXPLANATIONS, Gradients
from isoscope.run.monitor.kept import Kept, Unit
from isoscope.run.monitor.live import live
from isoscope.run.monitor.own import explained, own_rows
from isoscope.run.monitor.probe import as_observation, changed_shape, observed, take_up, weights_sample
from isoscope.run.monitor.reduced import Ranks, bare, is_sharded, merged
from isoscope.run.monitor.schedule import Budget, Clock, Schedule, as_schedule, may_serve
from isoscope.run.monitor.sinks import Sink, Sinks, name_of
from isoscope.run.monitor.untouched import untouched
from isoscope.run.observe.observation import Observation
from isoscope.run.provenance import new_run

__all__ = ["Monitor", "OnAlarm", "Sink", "Values"]

Values = Mapping[str, float] | Callable[[], Mapping[str, float]]
OnAlarm = Literal["warn", "raise"] | Callable[[Alarm], None]

_FAILURES = (  # of a forward that no longer fits; anything else is a defect of isoscope's own
    IsoscopeError, RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError,
)  # fmt: skip


class Monitor:
    """Rows of a training run, step by step; use as a context manager, or close it at the end.

    A step is the number of updates done before the look: step 0 is the model as it was initialised.
    `probe` is batches as `observe` takes them, read once, of which `skip_first` and `skip_special` say what
    counts, as there. `every` is a number of steps, a function
    step → bool, or None for the default, dense at first. `out` is a run folder; a folder of the same question
    is taken up, and steps that it has are not measured again. `budget` is the share of training time that
    looking may add: steps are passed over to stay inside. `steps`, the updates that the run will have, lets
    it spend early. `counterfactual` adds the drift share, at the cost of one more pass over the attention of
    64 sequences. `on_alarm` is "warn", "raise", or is called with the `Alarm`; each alarm is told once for a
    site. `points` is how many points of queries and keys a look keeps for pictures. `about` is what else
    fixes the rows, such as a recipe: a folder of another one is refused.
    """

    def __init__(
        self,
        model: nn.Module | Model,
        probe: str | Iterable[Any],
        *,
        every: int | Schedule | None = None,
        out: str | Path | None = None,
        measures: str | Iterable[str] | None = None,
        layers: str = "*",
        heads: bool = True,
        counterfactual: bool = False,
        skip_first: bool | None = None,
        skip_special: bool | None = None,
        budget: float | None = 0.02,
        steps: int | None = None,
        alarms: Iterable[AlarmFunction] = ALARMS,
        on_alarm: OnAlarm = "warn",
        sinks: Iterable[Sink] = (),
        name: str = "model",
        points: int = 0,
        about: Mapping[str, object] | None = None,
        resume: bool = True,
        clock: Clock = time.perf_counter,
    ) -> None:
        if not callable(on_alarm) and on_alarm not in ("warn", "raise"):
            raise IsoscopeError(f"on_alarm is 'warn', 'raise' or a function of an Alarm; got {on_alarm!r}.")
        for name_, number, least in (("steps", steps, 1), ("points", points, 0)):
            if number is not None and (not isinstance(number, int) or number < least):
                raise IsoscopeError(f"{name_} is a whole number from {least} on; got {number!r}.")
        whole = model if isinstance(model, Model) else Model(model, name)
        self._source = replace(whole, module=bare(whole.module))
        self._schedule, self._budget = as_schedule(every), Budget(budget, clock, steps)
        self._alarms, self._on_alarm, self._told = tuple(alarms), on_alarm, set[tuple[str, str]]()
        self._sinks, self._ranks = Sinks(sinks), Ranks.now()
        self._begun, self._stopped, self._points, self._latest = False, "", points, frame([])
        measures = [measures] if isinstance(measures, str) else measures
        self._asked = None if measures is None else tuple(measures)
        with self._budget.spending(look=False), untouched(self._source.module, _generators(probe)):
            self._probe = take_up(
                self._source,
                probe,
                measures=self._asked,
                layers=layers,
                heads=heads,
                counterfactual=counterfactual,
                skip_first=skip_first,
                skip_special=skip_special,
                pictures=points > 0,
            )
            self._share = self._ranks.share(self._probe.batches, whole=self._probe.whole)
        self._idle = self._share.behind if is_sharded(self._source.module) else 0
        title = f"{self._source.name} in training"
        question = {"model": self._source.name, **self._probe.facts(), **(about or {})}
        self._run = new_run("training", title, question, self._probe.measures, EXPLANATIONS)
        self._kept = self._opened(out, resume=resume)

    def step(self, step: int, values: Values | None = None) -> None:
        """Say that so many updates are done; looks at the model if the schedule chooses the step.

        `values` are numbers of your own, such as {"loss": 1.2}, kept with the rows of a step that is looked
        at; a function that gives them is called on such steps only, on rank 0.
        """
        self._budget.called(step)
        if not self._begun:
            self._begun = True
            self._refuse_another(step)
        if self._stopped:
            return
        chosen = self._schedule(step)
        serves = self._budget.share is not None and may_serve(self._schedule, step)
        if (chosen or serves) and self._ranks.told(self._wants(step, chosen=chosen)):
            self._look(step, values)

    def has(self, step: int) -> bool:
        """Whether this step has been looked at; under torch.distributed, on rank 0."""
        return self._kept.has(step)

    @contextmanager
    def watch(self, step: int, *, gradients: bool = False) -> Iterator[None]:
        """Look at the batch that the model is called with inside, in place of the probe.

        Its rows have the revision "live". With `gradients`, backward is to be called inside as well: the
        shares of the gradients of W_Q and W_K along the mean query and the mean key are added. A step that
        is there is not looked at again. Neither alarms nor sinks hear of it; the budget does not count it.
        """
        if self._stopped or self._ranks.told(self._kept.has(step, live=True)):
            yield
            return
        source, folder = replace(self._source, step=step, revision="live"), self._probe.folder()
        if gradients and is_sharded(source.module):
            raise IsoscopeError("gradients are read whole, and FSDP shards them; watch without gradients.")
        before = Gradients(source.module) if gradients else None
        with live(self._probe, source.module, folder):
            yield
        shares = self._ranks.gathered(as_observation(self._probe, source, folder))
        if not shares:
            return
        seen = merged(shares, replace(self._share, alone=False))
        added = [] if before is None else list(before.rows(seen, self._run.id))
        facts = {**seen.known(), "live": True}
        self._kept.keep(Unit(step, frame([*seen.rows(self._run.id), *added]), facts, live=True))

    def frame(self) -> pd.DataFrame:
        """The rows so far; under torch.distributed, on rank 0."""
        return self._kept.frame()

    def latest(self) -> pd.DataFrame:
        """The rows of the last look, without reading the folder; none before the first."""
        return self._latest

    @property
    def budget(self) -> Mapping[str, object]:
        """What looking takes: the share of training time allowed and spent, seconds a look, a step."""
        return self._budget.facts()

    @property
    def folder(self) -> Path | None:
        """Where the run is kept."""
        return None if self._kept.folder is None else self._kept.folder.path

    def notes(self) -> list[str]:
        """What a reader must know: a schedule that was stretched, a model that changed shape."""
        return [*filter(None, [self._budget.note(), self._stopped])]

    def close(self) -> None:
        """Write what waits, and close the sinks.

        Where there is something to note, a unit "end", without rows, has it, with what looking took in all.
        """
        self._sinks.tell(self._kept.close())
        self._sinks.close()
        self._budget.reached()
        folder = self._kept.folder
        if folder is not None and self._budget.looks and (self.notes() or folder.has("end")):
            with suppress(IsoscopeError, OSError):  # rows are safe by now: no reason to end with an error
                facts = {"notes": self.notes(), **self._budgeted()}
                folder.write("end", frame([]), facts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _opened(self, out: str | Path | None, *, resume: bool) -> Kept:
        """The rows so far. Rank 0 has the folder; what goes wrong with it goes wrong everywhere."""
        kept, problem = None, ""
        try:
            kept = Kept(out if self._ranks.first else None, self._run, resume=resume)
        except IsoscopeError as reason:
            problem = str(reason)
        if problem := self._ranks.told(problem):
            raise IsoscopeError(problem)
        assert kept is not None
        return kept

    def _refuse_another(self, step: int) -> None:
        """A folder that has the rows of this step, but of other weights, is that of another training."""
        had = self._kept.known(step).get("first weights") if self._ranks.first else None
        if self._ranks.told(bool(had) and had != weights_sample(self._source.module)):
            raise IsoscopeError(
                f"{self.folder} has rows of step {step} of a model with other weights: it is of another "
                "training. Give another out, or remove that folder."
            )

    def _wants(self, step: int, *, chosen: bool) -> bool:
        """Whether a step that was chosen, or that may serve for one, is to be measured; rank 0 knows."""
        if not self._ranks.first or not (chosen or self._budget.owes) or self._kept.has(step):
            return False
        if torch.cuda.is_available():
            torch.cuda.synchronize()  # what is still running is training
        self._budget.reached()
        affords = self._budget.affords()
        if affords and not chosen:
            self._budget.served += 1
        elif chosen and not affords:
            self._budget.passed_over += 1
            if self._budget.passed_over == 1:
                warnings.warn(self._budget.warning(step), stacklevel=3)
        return affords

    def _look(self, step: int, values: Values | None) -> None:
        """Look, keep, and tell: what sinks and alarm callbacks take is no training either."""
        alarms: list[Alarm] = []
        with self._budget.spending():
            seen = self._observed(replace(self._source, step=step))
            if seen is not None:
                unit, alarms = self._unit(step, seen, values() if callable(values) else values or {})
                self._sinks.tell(self._kept.keep(unit))
            for alarm in self._ranks.told(alarms):
                self._tell(alarm)

    def _observed(self, source: Model) -> Observation | None:
        """The model as all ranks see it, on rank 0; None elsewhere, and where it cannot be measured."""
        problem, seen = changed_shape(self._probe, source.module), None
        if not problem:
            try:
                with untouched(source.module):
                    self._ranks.share_buffers(source.module)
                    seen = observed(self._probe, source, self._share.batches, self._idle)
            except _FAILURES as reason:
                problem = first_line(reason)
        shares = self._ranks.gathered(problem or seen)
        refused = self._ranks.told(next((each for each in shares if isinstance(each, str)), ""))
        if refused:
            why = f"the model can no longer be measured at step {source.step}: {refused}"
            self._stopped = (
                f"{why}. Training goes on without measuring; make a new Monitor for what it is now."
            )
            warnings.warn(self._stopped, stacklevel=4)
            return None
        made = [each for each in shares if isinstance(each, Observation)]
        return merged(made, self._share) if shares else None

    def _unit(self, step: int, seen: Observation, values: Mapping[str, float]) -> tuple[Unit, list[Alarm]]:
        """The rows of a step with what is known of it, the alarms among it: on disk before they are told."""
        found = [*seen.rows(self._run.id), *own_rows(values, seen, self._run.id)]
        rows = frame(found)
        recent = self._kept.recent(step, rows)
        alarms = [alarm for look in self._alarms if (alarm := self._heard(look, recent)) is not None]
        facts = {
            **seen.known(),
            "notes": [*seen.notes(), *self.notes()],
            **self._budgeted(),
            "first weights": weights_sample(self._source.module),
            "alarms": [asdict(alarm) for alarm in alarms],
            "watched": {name_of(look): (look.__doc__ or "").strip().split("\n")[0] for look in self._alarms},
            **({"explained": explained(values)} if values else {}),
        }
        points = seen.points(self._points) if self._points else None
        self._latest = rows
        moved = np.array([row.influence for row in found], object)
        return Unit(step, rows, facts, points=points, influence=moved), alarms

    def _budgeted(self) -> dict[str, object]:
        """The facts on the budget: its numbers, and the note on it where steps were passed over."""
        note = self._budget.note()
        return {"budget": self._budget.facts(), **({"budget note": note} if note else {})}

    def _heard(self, look: AlarmFunction, recent: pd.DataFrame) -> Alarm | None:
        """What an alarm says; one that fails is taken down, with a warning: its trouble is not training's."""
        try:
            return look(recent)
        except Exception as reason:  # noqa: BLE001  whatever it may be
            self._alarms = tuple(each for each in self._alarms if each is not look)
            warnings.warn(f"the alarm {name_of(look)} failed and is taken down: {reason!r}", stacklevel=6)
            return None

    def _tell(self, alarm: Alarm) -> None:
        if (alarm.name, alarm.site) in self._told:
            return
        self._told.add((alarm.name, alarm.site))
        if self._on_alarm == "raise":
            raise AlarmRaised(alarm)
        if callable(self._on_alarm):
            self._on_alarm(alarm)
        else:
            warnings.warn(alarm.words, stacklevel=4)


def _generators(probe: object) -> tuple[torch.Generator, ...]:
    """The random states of a DataLoader's own, which reading it would move on."""
    many = getattr(probe, "batch_sampler", None)
    holders = [probe, getattr(probe, "sampler", None), many, getattr(many, "sampler", None)]
    own = {id(g): g for h in holders if isinstance(g := getattr(h, "generator", None), torch.Generator)}
    return tuple(own.values())

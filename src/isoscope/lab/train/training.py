"""Train a small model, step by step, the same way every time.

A step's batch depends on seed and step alone: training that was stopped goes on to the same weights. A GPU is
never waited for: whether the loss is a number is noted there, and stops updates, until it is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from isoscope.errors import IsoscopeError
from isoscope.lab.penalties.table import Penalty
from isoscope.lab.tasks.base import Examples, Lesson
from isoscope.lab.train.replay import Replayed
from isoscope.models.tap import at_rest

AT_ONCE = 64  # sequences that are judged at once
LOOKED = 16  # steps after which a GPU is asked whether the loss is still a number


class Diverged(IsoscopeError):  # noqa: N818  (what happened, not what is wrong in here)
    """The loss or its gradient is no number any more."""


@dataclass(frozen=True)
class Recipe:
    """How to train: AdamW, a linear warm-up, then a cosine down to a tenth of the rate."""

    steps: int = 400
    batch_size: int = 16
    rate: float = 3e-3
    warmup: int = 20
    decay: float = 0.1  # of the weights
    clip: float = 1.0
    seed: int = 0
    bfloat16: bool = False
    compiled: bool = False

    def rate_at(self, step: int) -> float:
        """The rate of the update that follows `step` others."""
        if step < self.warmup:
            return self.rate * (step + 1) / self.warmup
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.rate * (0.55 + 0.45 * math.cos(math.pi * min(1.0, done)))


class Training:
    """A model that learns a lesson: `steps` makes the updates, `state` and `restore` stop and go on."""

    def __init__(
        self, model: nn.Module, lesson: Lesson, recipe: Recipe, penalties: Sequence[Penalty] = ()
    ) -> None:
        self.model, self.lesson, self.recipe, self.penalties = model, lesson, recipe, tuple(penalties)
        self.device = next(model.parameters()).device
        if recipe.compiled and any(penalty.watches for penalty in penalties):
            raise IsoscopeError(
                "a penalty sees what flows, and compiled code runs out of sight; leave --compile out."
            )
        self._on_gpu = self.device.type == "cuda"
        self.optimiser = torch.optim.AdamW(
            model.parameters(),
            lr=torch.tensor(recipe.rate, device=self.device) if self._on_gpu else recipe.rate,
            betas=(0.9, 0.95), weight_decay=recipe.decay, fused=True, capturable=self._on_gpu
        )  # fmt: skip
        self.done = 0
        self._learn = Replayed(self._step) if self._on_gpu and not recipe.compiled else self._step
        self._run: Callable[[Tensor], Tensor] = torch.compile(model) if recipe.compiled else model
        self._sound = torch.zeros((), device=self.device)  # updates since the last check, all of numbers
        self._spoilt = torch.zeros((), device=self.device)  # 1 from the first that was none on
        self._checked = 0
        self.optimiser.found_inf = self._spoilt  # type: ignore[attr-defined]  # where 1, no update

    def steps(self) -> Iterator[int]:
        """Make the updates that are left; gives the number done, before each and after the last."""
        while self.done < self.recipe.steps:
            yield self.done
            self._update()
        self.check()
        yield self.done

    def held_loss(self) -> float:
        """The loss on what is held out."""
        held, total = self.lesson.held, 0.0
        with torch.no_grad(), at_rest(self.model), self.precision():
            for start in range(0, len(held), AT_ONCE):
                part = slice(start, start + AT_ONCE)
                some = Examples(held.inputs[part], held.targets[part]).to(self.device)
                total += len(some) * float(self.lesson.loss(self.model(some.inputs), some.targets))
        return total / len(held)

    def state(self) -> dict[str, Any]:
        """All that going on takes."""
        return {"done": self.done, "model": self.model.state_dict(), "optimiser": self.optimiser.state_dict()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        own = [(group["lr"], group["capturable"]) for group in self.optimiser.param_groups]
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        for group, (rate, capturable) in zip(self.optimiser.param_groups, own, strict=True):
            group.update(lr=rate, capturable=capturable)  # those of this device
        self.done = self._checked = int(state["done"])

    def precision(self) -> AbstractContextManager[Any]:
        """Autocast to bfloat16 where the recipe says so."""
        kind = self.device.type
        return torch.autocast(kind, torch.bfloat16) if self.recipe.bfloat16 else nullcontext()

    def check(self) -> None:
        """Refuse to go on where a loss was no number; say at which step that was, and where it began."""
        if not bool(self._spoilt):
            self._sound.zero_()
            self._checked = self.done
            return
        step = self._checked + int(self._sound)
        what, where = self._where(step)
        raise Diverged(
            f"the {what} at step {step}, and it began in {where}: that is the first that is not finite. What "
            "was measured and saved before is kept; try a lower --rate."
        )

    def _update(self) -> None:
        rate = self.recipe.rate_at(self.done)
        for group in self.optimiser.param_groups:
            if self._on_gpu:
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        self._learn(self._batch(self.done))
        self.done += 1
        if not self._on_gpu or self.done % LOOKED == 0:
            self.check()

    def _step(self, some: Examples) -> None:
        """One update; on a GPU nothing in it may wait."""
        self.optimiser.zero_grad()
        loss = self._loss(some)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        finite = (loss.detach() + norm).isfinite()
        self._spoilt.copy_(torch.where(finite, self._spoilt, 1.0))
        self._sound.add_(1 - self._spoilt)
        self.optimiser.step()

    def _batch(self, step: int) -> Examples:
        return self.lesson.batch(self.recipe.seed, step, self.recipe.batch_size).to(self.device)

    def _loss(self, some: Examples) -> Tensor:
        """The loss of a batch, with the penalties."""
        if not self.model.training:
            self.model.train()
        with ExitStack() as watching, self.precision():
            for penalty in self.penalties:
                watching.enter_context(penalty.watch(self.model))
            loss = self.lesson.loss(self._run(some.inputs), some.targets)
        return sum((penalty(self.model) for penalty in self.penalties), loss)

    def _where(self, step: int) -> tuple[str, str]:
        """What went wrong at a step, and what was the first in it that is not finite."""
        weights = dict(self.model.named_parameters())
        found = [f"the weight {name}" for name, each in weights.items() if not bool(each.isfinite().all())]
        self.optimiser.zero_grad()
        with _noting(self.model, found):
            loss = self._loss(self._batch(step))
        loss.backward()  # type: ignore[no-untyped-call]
        finite = bool(loss.isfinite())
        for name, weight in weights.items():
            if weight.grad is not None and not bool(weight.grad.isfinite().all()):
                found.append(f"the gradient of {name}" if finite else "the loss or a penalty")
        what = "gradient is no number" if finite else f"loss is {loss.item()}"
        return what, found[0] if found else "a batch that is sound by itself"


@contextmanager
def _noting(model: nn.Module, found: list[str]) -> Iterator[None]:
    """Add to a list, in order, the modules that give out NaN or Inf."""
    names = {part: name or "the model" for name, part in model.named_modules()}

    def look(part: nn.Module, inputs: object, output: object) -> None:
        if isinstance(output, Tensor) and not bool(output.isfinite().all()):
            found.append(f"what leaves {names[part]}")

    with ExitStack() as hooks:
        for part in names:
            hooks.enter_context(part.register_forward_hook(look))
        yield

"""When to look at a model that trains: which steps, and how much of the time it may take.

A schedule is a plain function step → whether to look. The default is dense at first, where geometry moves
fastest, and even later: 0, 1, then every √2-fold step to 512, then every 256th. The budget is a share of
training time. A schedule that is too dear for it is stretched: steps of the default that cannot be paid for
are owed, and taken at later ones; of a schedule of your own they are passed over, and its later steps serve.

Decided here: half of what the whole run may spend can be spent at its beginning; the other half comes with
the steps, so that something is left for all of them. A run whose length is not known is taken to be at least
1,000 steps long; a shorter one may spend more than its share. The first look is always taken: only then is it
known what one costs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from isoscope.errors import IsoscopeError

Schedule = Callable[[int], bool]
Clock = Callable[[], float]

EVEN_FROM, EVENLY = 512, 256  # steps: 19 looks before, one every so many after
LATER = 32  # at its multiples steps that are owed are taken: all ranks must know where without asking
LEAST_STEPS = 1000  # that a run of unknown length is taken to have


def dense_then_even(step: int) -> bool:
    """The default: 0, the rounded powers of √2 up to 512, every 256th step from there.

    >>> [step for step in range(1100) if dense_then_even(step)]
    [0, 1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256, 362, 512, 768, 1024]
    """
    if step <= 0:
        return step == 0
    if step >= EVEN_FROM:
        return step % EVENLY == 0
    return step == round(2 ** (round(2 * math.log2(step)) / 2))


def every_nth(number: int) -> Schedule:
    """Every so many steps, from 0 on.

    >>> [step for step in range(10) if every_nth(4)(step)]
    [0, 4, 8]
    """
    return lambda step: step % number == 0


def as_schedule(every: int | Schedule | None) -> Schedule:
    """The schedule that is meant: the default, every so many steps, or a function of the step."""
    if every is None:
        return dense_then_even
    if callable(every):
        return every
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise IsoscopeError(
            f"every is a number of steps from 1 on, a function step → bool, or None for the default; "
            f"got {every!r}."
        )
    return every_nth(every)


def may_serve(schedule: Schedule, step: int) -> bool:
    """Whether a step may be taken in place of one that is owed: every 32nd, and of the default only.

    >>> [step for step in range(100) if may_serve(dense_then_even, step)]
    [0, 32, 64, 96]
    >>> may_serve(every_nth(10), 32)
    False
    """
    return schedule is dense_then_even and step % LATER == 0


class Budget:
    """An account of time: what looking has taken against what training takes beside it.

    `share` None allows everything. `clock` gives seconds. `steps` is how long the run will be, if known.
    """

    def __init__(
        self, share: float | None, clock: Clock = time.perf_counter, steps: int | None = None
    ) -> None:
        if share is not None and not 0 < share <= 1:
            raise IsoscopeError(
                f"budget is a share of training time, above 0 and at most 1, or None; got {share}."
            )
        self.share, self.clock, self._length = share, clock, steps
        self._least = LEAST_STEPS if steps is None else steps
        self.spent = 0.0  # seconds of looking, getting ready included
        self.looks = 0
        self.training = 0.0  # seconds of training
        self.passed_over = 0  # steps that the schedule chose and the budget could not pay for
        self.served = 0  # later steps that were looked at in place of those
        self._of_looks, self._first_look = 0.0, 0.0
        self._since: float | None = None  # when training was last taken up
        self._steps, self._new_steps = 0, 0
        self._quickest = math.inf  # seconds a step: the first ones warm up, so their mean says too much

    def called(self, step: int = 0) -> None:
        """Count a step of training; a run that is taken up at a later one has only the rest before it."""
        if self._since is None:
            self._since = self.clock()
            if self._length is not None:
                self._least = max(self._length - step, 0)
        else:
            self._new_steps += 1

    def reached(self) -> None:
        """Book the time since the last look, or the last call of this, as training."""
        now = self.clock()
        if self._since is not None and self._new_steps:
            taken = now - self._since
            self.training += taken
            self._quickest = min(self._quickest, taken / self._new_steps)
            self._steps += self._new_steps
            self._since, self._new_steps = now, 0

    @contextmanager
    def spending(self, *, look: bool = True) -> Iterator[None]:
        """Book what happens inside as looking."""
        start = self.clock()
        try:
            yield
        finally:
            taken = self.clock() - start
            self.spent += taken
            if look:
                self.looks += 1
                self._of_looks += taken
                self._first_look = self._first_look or taken
            if self._since is not None:
                self._since += taken

    @property
    def a_look(self) -> float:
        """Seconds that a look takes, on average so far; the first, which compiles kernels, if it is alone."""
        if self.looks < 2:
            return self._of_looks
        return (self._of_looks - self._first_look) / (self.looks - 1)

    @property
    def share_spent(self) -> float:
        """What looking adds to the time of training; NaN before the second step."""
        return self.spent / self.training if self.training > 0 else math.nan

    def affords(self) -> bool:
        """Whether the better half of one more look can be paid, so that the share is met on average.

        Allowed is share · (t + rest / 2): t seconds of training so far, and those that the rest will take at
        the pace of the quickest steps.
        """
        if self.share is None or self.looks == 0:
            return True
        if self._steps == 0:
            return False
        rest = max(self._least - self._steps, 0) * self._quickest
        return self.spent + self.a_look / 2 <= self.share * (self.training + rest / 2)

    @property
    def owes(self) -> bool:
        """Whether more steps were passed over than later ones have served for."""
        return self.passed_over > self.served

    def warning(self, step: int) -> str:
        """Why a step that the schedule chose is not looked at, and what to do about it."""
        known = "" if self._length is not None else ", or say in steps= how long the run is"
        return (
            f"step {step} is not looked at, nor will all others be that the schedule chooses: a look takes "
            f"{self.a_look:.3g} s and a step of training {self._a_step:.3g} s, too much for "
            f"budget={self.share}; give a larger budget= (None: no limit) or fewer measures={known}."
        )

    def facts(self) -> dict[str, object]:
        """What a unit records of it."""
        return {
            "share allowed": self.share,
            "share spent": None if math.isnan(self.share_spent) else round(self.share_spent, 5),
            "seconds a look": round(self.a_look, 6),
            "seconds a step": round(self._a_step, 6) if self._steps else None,
            "steps passed over": self.passed_over,
        }

    def note(self) -> str:
        """A sentence where the schedule was stretched; empty where it was not."""
        if not self.passed_over or self.share is None:
            return ""
        instead = f" and looked at {self.served} later ones in their place" if self.served else ""
        return (
            f"a budget of {100 * self.share:g} % passed over {self.passed_over} of the steps that the "
            f"schedule chose{instead}: a look takes {self.a_look:.3g} s, "
            f"a step of training {self._a_step:.3g} s"
        )

    @property
    def _a_step(self) -> float:
        return self.training / max(self._steps, 1)

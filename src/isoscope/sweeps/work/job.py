"""What is asked of checkpoints, what a worker is given and what it answers: records that travel by pickle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from isoscope.models.source import Model
from isoscope.run.observe.memory import DEFAULT
from isoscope.sweeps.find.checkpoints import Checkpoint
from isoscope.sweeps.verify.fingerprint import Fingerprint
from isoscope.sweeps.verify.integrity import Finding

WHAT = ("measure", "weights", "both")


@dataclass(frozen=True)
class Opened:
    """A model that is there, the batches it is looked at with, and numbers that are known of it."""

    model: Model
    batches: Sequence[Any]
    told: Mapping[str, float] = field(default_factory=dict)


Opener = Callable[[Checkpoint, str | None], Opened]
"""From a checkpoint and a device to what is measured; it must go to another process by pickle."""


@dataclass(frozen=True)
class Asked:
    """What is asked of every checkpoint alike; `name` is what rows call the model.

    Options are those of `observe`, `open_data` and `weigh`. An `opener` opens what is no address, and brings
    its own data.
    """

    name: str
    what: str = "measure"
    data: str = "embedded"
    limit: int | None = 64
    max_length: int | None = None
    batch_size: int = 16
    tokens: str = "auto"
    measures: tuple[str, ...] | None = None
    layers: str = "*"
    heads: bool = False
    counterfactual: bool = True
    length: int = 512
    seed: int = 0
    memory: float = DEFAULT
    device: str | None = None
    dtype: str = "float32"
    trust_remote_code: bool = False
    threads: int = 1
    opener: Opener | None = None

    def options(self, *names: str) -> dict[str, Any]:
        """What is asked by these names, as keyword arguments."""
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Job:
    """One checkpoint to be measured into a run folder; `place` is where its files lie if not at its address.

    `findings` are what is wrong with it: they mark its rows.
    """

    folder: str
    asked: Asked
    checkpoint: Checkpoint
    place: str = ""
    fingerprint: Fingerprint | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What became of a unit: how long it took, how many rows it has, or why it failed."""

    unit: str
    step: int | None
    seconds: float
    rows: int = 0
    failed: str = ""

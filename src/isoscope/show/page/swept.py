"""What the page of a sweep shows beside what a training run has: findings, failures, how many steps."""

from __future__ import annotations

from dataclasses import dataclass

from isoscope.show.page.training import Training


@dataclass(frozen=True)
class Finding:
    """What is wrong with a checkpoint, in one sentence."""

    checkpoint: str
    step: int | None
    kind: str
    words: str


@dataclass(frozen=True)
class Swept:
    """What the page shows of a sweep; without `training` its checkpoints have no steps to stand on."""

    training: Training | None
    findings: tuple[Finding, ...]
    failed: tuple[tuple[str, str], ...]
    examined: bool
    count: int
    total: int
    about: str
    ordered: bool = False  # whether their order can be told
    signs: tuple[tuple[str, str], ...] = ()

"""The penalties by name. To add one: write its class in a file of this folder, and a line here."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from isoscope.errors import IsoscopeError, chosen, unknown_name
from isoscope.lab.penalties.cosreg import CosReg
from isoscope.lab.penalties.entropy import EntropyTarget
from isoscope.lab.penalties.istar import IStar
from isoscope.lab.penalties.locater import LocAteR

Penalty = LocAteR | CosReg | IStar | EntropyTarget


@dataclass(frozen=True)
class Line:
    """A penalty: how it is built and written, `parameters` beside the strength, `needs` without a default."""

    name: str
    build: Callable[..., Penalty]
    formula: str
    says: str
    parameters: dict[str, str]
    needs: tuple[str, ...] = ()

    @property
    def example(self) -> str:
        """How it is written."""
        return ",".join([f"{self.name}=0.1", *(f"{name}=1" for name in self.needs)])


PENALTIES = (
    Line(
        "locater", LocAteR, "λ·mean ‖W‖²/d + keep·mean (tr W − target)²",
        "a narrow spectrum of W = W_Q W_Kᵀ/√e around a mean that is kept",
        {"target": "tr W of every head, in units of a score", "keep": "how strongly it is kept, 1"},
        ("target",),
    ),
    Line(
        "cosreg", CosReg, "λ·(‖Σŵ‖² − |V|)/|V|²",
        "word vectors that point in all directions; under 0, in one",
        {"output": "1 for the table that tokens leave by, 0"},
    ),
    Line(
        "istar", IStar, "λ·mean (1 − IsoScore*)", "hidden states that use all dimensions; under 0, few",
        {"shrinkage": "ζ of the covariance, 0.2"},
    ),
    Line(
        "entropy", EntropyTarget, "λ·mean (H/log v − target)²", "attention as sharp as it is told to be",
        {"target": "from 0, all on one key, to 1, even"}, ("target",),
    ),
)  # fmt: skip


def parse(written: str) -> Penalty:
    """The penalty that is written as a name with its strength, then its parameters.

    >>> parse("locater=.1,target=1")
    LocAteR(strength=0.1, target=1.0, keep=1.0)
    """
    parts = (part.partition("=") for part in written.split(","))
    (name, strength), *others = ((word.strip(), value.strip()) for word, _, value in parts)
    line = chosen("penalty", name, PENALTIES)
    if not strength:
        raise IsoscopeError(f"{name} needs a strength: write {line.example}.")
    values = {"strength": _number(line, name, strength)}
    for parameter, value in others:
        if parameter not in line.parameters:
            raise unknown_name(f"parameter of {name}", parameter, line.parameters)
        if parameter in values:
            raise IsoscopeError(f"'{written}' gives {parameter} twice; once is enough.")
        values[parameter] = _number(line, parameter, value)
    for parameter in line.needs:
        if parameter not in values:
            said = line.parameters[parameter]
            raise IsoscopeError(f"{name} needs {parameter} ({said}): write {line.example}.")
    return line.build(**values)


def _number(line: Line, name: str, written: str) -> float:
    try:
        value = float(written)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise IsoscopeError(f"{name}={written} in a penalty is no number; write {line.example}.")
    return value

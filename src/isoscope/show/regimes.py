"""The regimes a head's weights may be in: what each is called, its colour and its mark."""

from __future__ import annotations

from dataclasses import dataclass

from isoscope.show.colours import MODELS, SOFT, Pair
from isoscope.show.readings import SiteReading

TRACES = {"trace": "frobenius", "trace_on_data": "frobenius_on_data"}
"""Which measure holds the trace of W, and which its scale: by the weights alone, and with the inputs in."""


@dataclass(frozen=True)
class Regime:
    """What a head in it attends to, its colour and its mark."""

    label: str
    colour: Pair
    symbol: str


REGIMES: dict[str, Regime] = {
    "late": Regime("late half", MODELS[0], "circle"),
    "middle": Regime("just past the middle", MODELS[5], "triangle-right"),
    "early": Regime("early half", MODELS[1], "diamond"),
    "middle_early": Regime("just before the middle", MODELS[4], "triangle-left"),
    "uniform": Regime("everywhere", MODELS[2], "square"),
    "uniform_half": Regime("half, everywhere", MODELS[3], "cross"),
    "vanishing": Regime("nowhere", MODELS[6], "x"),
    "undecided": Regime("undecided", SOFT, "circle-open"),
}
"""In the order of the key and of the sentences; what is not among them is undecided."""

LOCALISED = ("late", "middle", "early", "middle_early")
UNDECIDED = "undecided"


def regime_of(reading: SiteReading) -> str:
    """The regime that a trace is tagged with; "undecided" where it has none that is known."""
    return reading.tag if reading.tag in REGIMES else UNDECIDED

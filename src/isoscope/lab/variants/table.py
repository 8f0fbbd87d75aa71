"""The variants by name. To add one: write its module or its map in a file of this folder, and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from isoscope.lab.variants.base import Place
from isoscope.lab.variants.centred import CentredQueries
from isoscope.lab.variants.convolution import Convolution
from isoscope.lab.variants.differential import Differential
from isoscope.lab.variants.maps import LearntSink, by, capped, entmax, off_by_one, sigmoid, sparsemax
from isoscope.lab.variants.scaled import Gated, LogLength, QueryKeyNorm, Softmax, Temperature
from isoscope.lab.variants.sigma import SigmaLinear


@dataclass(frozen=True)
class Variant:
    """A way to attend: what builds it, its formula, and what it is for."""

    name: str
    build: Callable[[Place], nn.Module]
    formula: str
    says: str
    project: Callable[[int, int], nn.Module] = nn.Linear  # what makes queries and keys


VARIANTS = (
    Variant("softmax", Softmax, "p = softmax(q·k/√e)", "what the others are compared to"),
    Variant("qk-norm", QueryKeyNorm, "s = g·rms(q)·rms(k)/√e", "queries and keys of one size"),
    Variant("softcap", by(capped), "p = softmax(50·tanh(s/50))", "scores that cannot grow without end"),
    Variant("off-by-one", by(off_by_one), "p = e^s / (1 + Σe^s)", "room to attend to nothing"),
    Variant("sink", LearntSink, "p = e^s / (e^c + Σe^s)", "the same, one logit c learnt a head"),
    Variant("gated", Gated, "o ⊙ σ(xW)", "heads that may be silent"),
    Variant("differential", Differential, "p₁ − λp₂", "what two maps share cancels"),
    Variant("sparsemax", by(sparsemax), "p = max(s − τ, 0)", "weights that are exactly zero"),
    Variant("entmax", by(entmax), "p = max(s/2 − τ, 0)²", "half-way from softmax to sparsemax"),
    Variant("sigmoid", by(sigmoid), "p = σ(s − log v)", "keys that do not compete"),
    Variant("centred", CentredQueries, "s = (q − m)·k/√e", "queries without the mean m of earlier steps"),
    Variant("sigma", Softmax, "Ŵ = (γ/σ(W))W for q and k", "σReparam: a gain of its own", SigmaLinear),
    Variant("temperature", Temperature, "s = e^t·q·k/√e", "a sharpness learnt for each head"),
    Variant("log-length", LogLength, "s = log v·q·k/√e", "as sharp on long sequences as on short"),
    Variant("convolution", Convolution, "o_t = Σ w_i ⊙ v_{t−i}", "a control without attention"),
)  # fmt: skip
WITHOUT_ATTENTION = ("convolution",)  # controls: there is no entropy to drive them to

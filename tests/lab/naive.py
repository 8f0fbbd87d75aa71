"""Every variant once more, from its formula: one batch, head and query at a time, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor, nn

from isoscope.lab.variants.base import Given, Place
from isoscope.lab.variants.table import VARIANTS, Variant

Row = list[float]
HEADS, WIDTH, LAYER = 2, 8, 3
PLACE = Place(WIDTH, HEADS, LAYER)


def softmax(scores: Row) -> Row:
    return with_sink(scores, -math.inf)


def with_sink(scores: Row, logit: float) -> Row:
    top = max(*scores, logit) if scores else 0.0
    rest = math.exp(logit - top) if logit > -math.inf else 0.0
    total = sum(math.exp(s - top) for s in scores) + rest
    return [math.exp(s - top) / total for s in scores]


def bisected(scores: Row, alpha: float) -> Row:
    """α-entmax: p = max((α−1)s − τ, 0)^{1/(α−1)} with τ such that p adds up to one, by bisection."""
    if not scores:
        return []
    scaled = [(alpha - 1) * s for s in scores]

    def at(threshold: float) -> Row:
        return [max(s - threshold, 0.0) ** (1 / (alpha - 1)) for s in scaled]

    low, high = max(scaled) - 1, max(scaled)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(at(middle)) > 1 else (low, middle)
    return at(low)


def sigmoid(scores: Row) -> Row:
    return [1 / (1 + len(scores) * math.exp(-s)) for s in scores]


def capped(scores: Row) -> Row:
    return softmax([50 * math.tanh(s / 50) for s in scores])


def length_scaled(scores: Row) -> Row:
    return softmax([math.log(max(len(scores), 2)) * s for s in scores])


def visible(given: Given, b: int, i: int) -> list[int]:
    """The keys that query i of sequence b sees."""
    there = range(given.query.shape[2]) if given.counts is None else torch.nonzero(given.counts[b])
    return [int(j) for j in there if not given.causal or int(j) <= i]


@torch.no_grad()
def weights(given: Given, query: Tensor, key: Tensor, of: Callable[[Row, int], Row]) -> Tensor:
    """The weights [b, h, t, t] that `of` gives for the scores q·k/√e of visible keys, and the head."""
    b, h, t, e = query.shape
    found = torch.zeros(b, h, t, t, dtype=torch.float64)
    for n, head, i in product(range(b), range(h), range(t)):
        keys = visible(given, n, i)
        row = [float(query[n, head, i].double() @ key[n, head, j].double()) / math.sqrt(e) for j in keys]
        for j, weight in zip(keys, of(row, head), strict=True):
            found[n, head, i, j] = weight
    return found


def mixed(weight: Tensor, value: Tensor) -> Tensor:
    """Σ_j w_ij v_j, [b, h, t, e]."""
    out = torch.zeros(value.shape, dtype=torch.float64)
    for n, head, i, j in product(*map(range, weight.shape)):
        out[n, head, i] += weight[n, head, i, j] * value[n, head, j].double()
    return out


Maps = Callable[[nn.Module, Given], list[Tensor]]


def by_scores(of: Callable[[Row], Row]) -> Maps:
    return lambda module, given: [weights(given, given.query, given.key, lambda row, _: of(row))]


def by_head(of: Callable[[nn.Module, Row, int], Row]) -> Maps:
    return lambda module, given: [
        weights(given, given.query, given.key, lambda row, head: of(module, row, head))
    ]


def rms(x: Tensor) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + torch.finfo(x.dtype).eps).sqrt()


def _normed(module: nn.Module, given: Given) -> list[Tensor]:
    query, key = rms(given.query) * module.scale.reshape(1, -1, 1, 1), rms(given.key)
    return [weights(given, query, key, lambda row, _: softmax(row))]


def _centred(module: nn.Module, given: Given) -> list[Tensor]:
    query = given.query - module.mean.reshape(1, given.query.shape[1], 1, -1)
    return [weights(given, query, given.key, lambda row, _: softmax(row))]


@torch.no_grad()
def share(module: nn.Module, layer: int = LAYER) -> float:
    """λ of differential attention."""
    (q1, k1), (q2, k2) = module.vectors
    return float((q1 @ k1).exp() - (q2 @ k2).exp()) + start(layer)


def start(layer: int = LAYER) -> float:
    return 0.8 - 0.6 * math.exp(-0.3 * (layer - 1))


def _differential(module: nn.Module, given: Given) -> list[Tensor]:
    half = given.query.shape[-1] // 2
    maps = [
        weights(given, given.query[..., part], given.key[..., part], lambda row, _: softmax(row))
        for part in (slice(0, half), slice(half, None))
    ]
    return [*maps, maps[0] - share(module) * maps[1]]


MAPS: dict[str, Maps] = {  # the weights of each; of several, the last are those that weigh the values
    "softmax": by_scores(softmax),
    "qk-norm": _normed,
    "softcap": by_scores(capped),
    "off-by-one": by_scores(lambda row: with_sink(row, 0.0)),
    "sink": by_head(lambda module, row, head: with_sink(row, float(module.logit[head]))),
    "gated": by_scores(softmax),
    "differential": _differential,
    "sparsemax": by_scores(lambda row: bisected(row, 2.0)),
    "entmax": by_scores(lambda row: bisected(row, 1.5)),
    "sigmoid": by_scores(sigmoid),
    "centred": _centred,
    "sigma": by_scores(softmax),  # what differs are the projections: test_states.py
    "temperature": by_head(
        lambda module, row, head: softmax([math.exp(float(module.logarithm[head])) * s for s in row])
    ),
    "log-length": by_scores(length_scaled),
}


def _gate(module: nn.Module, given: Given, out: Tensor) -> Tensor:
    gate = torch.sigmoid(given.hidden @ module.gate.weight.T + module.gate.bias)
    _, h, _, e = out.shape
    return torch.stack(
        [out[:, head] * gate[:, :, head * e : (head + 1) * e].double() for head in range(h)], 1
    )


def _normed_out(module: nn.Module, given: Given, out: Tensor) -> Tensor:
    size = (out.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return (1 - start()) * out / size * module.gain


AFTER: dict[str, Callable[[nn.Module, Given, Tensor], Tensor]] = {"gated": _gate, "differential": _normed_out}


def convolution(module: nn.Module, given: Given) -> Tensor:
    """o_t = Σ_i w_i ⊙ v_{t−i}, i < 8; around t, from t − 3 to t + 4, where nothing is causal."""
    b, h, t, e = given.value.shape
    kernel = module.mix.weight.view(h, e, 8)
    out = torch.zeros(b, h, t, e, dtype=torch.float64)
    for n, head, at, i in product(range(b), range(h), range(t), range(8)):
        j = at - i if given.causal else at - i + 4
        if 0 <= j < t and (given.counts is None or given.counts[n, j]):
            out[n, head, at] += kernel[head, :, 7 - i] * given.value[n, head, j]
    return out


@torch.no_grad()
def forward(name: str, module: nn.Module, given: Given) -> Tensor:
    """What the variant gives, [b, h, t, e]."""
    if name == "convolution":
        return convolution(module, given)
    out = mixed(MAPS[name](module, given)[-1], given.value)
    return AFTER.get(name, lambda module, given, out: out)(module, given, out)


ATTENDING = tuple(variant for variant in VARIANTS if variant.name != "convolution")


def made(variant: Variant, seed: int = 0) -> nn.Module:
    """The variant in float64, with parameters and buffers that are none of those it starts with."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module = variant.build(PLACE).double().eval()
        with torch.no_grad():
            for weight in (*module.parameters(), *module.buffers()):
                weight.add_(0.4 * torch.randn_like(weight))
    return module


def given(
    *, causal: bool = True, length: int = 5, counts: Tensor | None = None, size: int = 2, seed: int = 1
) -> Given:
    """Random queries, keys and values in float64, a little sharp."""
    random = torch.Generator().manual_seed(seed)
    shape = size, HEADS, length, WIDTH // HEADS
    query, key, value = (torch.randn(shape, generator=random, dtype=torch.float64) for _ in range(3))
    hidden = torch.randn(size, length, WIDTH, generator=random, dtype=torch.float64)
    return Given(hidden, 2 * query, key, value, causal, counts)

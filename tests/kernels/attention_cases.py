"""Inputs of attention, one case for every rule, and how near to the definition a fast path must be.

Every case has four query heads on two key heads: scores within ±3, within ±10, within ±80, and all equal.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from isoscope.geometry.attention import AttentionRows
from isoscope.kernels.attention.rows import STATISTICS

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
REACH = (3.0, 10.0, 80.0, 0.0)  # the largest score of each head
LOWEST = torch.finfo(torch.float32).min


on_triton = pytest.mark.skipif(not find_spec("triton"), reason="needs triton")
BACKENDS = ("chunked", pytest.param("triton", marks=on_triton))


class Case(NamedTuple):
    name: str
    options: Callable[[torch.Generator, int, int], dict[str, Any]]  # of the generator, t and s
    t: int = 37
    s: int = 101


def normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=generator)


def shown(generator: torch.Generator, *shape: int, share: float = 0.5) -> Tensor:
    return torch.rand(shape, generator=generator) < share


def left_padded(generator: torch.Generator, t: int, s: int) -> dict[str, Any]:
    """Causal order and padding on the left in one boolean mask: whole rows see nothing."""
    key = torch.arange(s)
    start = torch.tensor([0, 23])[:, None]
    return {"mask": (torch.ones(t, s).tril().bool() & (key >= start)[:, None])[:, None]}


def like_t5(generator: torch.Generator, t: int, s: int) -> dict[str, Any]:
    """A bias by head and padding in one floating mask: the padding is the lowest number."""
    padding = torch.where(torch.arange(s) < torch.tensor([s, 40])[:, None], 0.0, LOWEST)[:, None, None]
    return {"mask": normal(generator, 1, 4, t, s) * 2 + padding}


CASES = (
    Case("plain", lambda g, t, s: {}),
    Case("longer", lambda g, t, s: {}, 130, 70),
    Case("causal", lambda g, t, s: {"causal": True}, 100, 100),
    Case("causal, earlier keys", lambda g, t, s: {"causal": True}),
    Case("causal, more queries than keys", lambda g, t, s: {"causal": True}, 90, 63),
    Case("one", lambda g, t, s: {"causal": True}, 1, 1),
    Case("lengths", lambda g, t, s: {"key_lengths": torch.tensor([0, 70])}),
    Case("causal lengths", lambda g, t, s: {"causal": True, "key_lengths": torch.tensor([63, 64])}, 100, 100),
    Case("window", lambda g, t, s: {"window": 9}, 70, 100),
    Case("causal window", lambda g, t, s: {"causal": True, "window": 17}, 70, 100),
    Case("wide window", lambda g, t, s: {"window": 80}, 130, 150),
    Case("mask", lambda g, t, s: {"mask": shown(g, 2, 1, t, s)}),
    Case("sparse mask by head", lambda g, t, s: {"mask": shown(g, 1, 4, t, s, share=0.02)}),
    Case("padding mask", lambda g, t, s: {"mask": shown(g, 2, 1, 1, s)}),
    Case("left-padded mask", left_padded, 70, 70),
    Case("mask and order", lambda g, t, s: {"mask": shown(g, t, s), "causal": True, "window": 40}, 70, 90),
    Case("floating mask", lambda g, t, s: {"mask": torch.where(shown(g, t, s), 1.5, -torch.inf)}),
    Case("half mask", lambda g, t, s: {"mask": torch.where(shown(g, 2, 1, t, s), 0.0, -65504.0).half()}),
    Case("as in T5", like_t5),
    Case("bias", lambda g, t, s: {"bias": normal(g, 4, t, s) * 3, "causal": True}),
    Case("key bias", lambda g, t, s: {"key_bias": normal(g, 1, 4, 1, s) * 3, "causal": True}),
    Case("biases", lambda g, t, s: {"key_bias": normal(g, s), "bias": normal(g, t, s), "mask": shown(g, s)}),
    Case("soft-cap", lambda g, t, s: {"softcap": 20.0, "causal": True}),
    Case("soft-cap and mask", lambda g, t, s: {"softcap": 5.0, "mask": shown(g, 2, 1, t, s)}),
    Case("scale", lambda g, t, s: {"scale": 0.03}),
)  # fmt: skip


def heads(
    generator: torch.Generator, t: int, s: int, *, width: int = 24, scale: float | None = None
) -> list[Tensor]:
    """q [2, 4, t, width] and k [2, 2, s, width], lying in memory as models have them: [b, t, h, e]."""
    q, k = (
        normal(generator, 2, t, 4, width).transpose(1, 2),
        normal(generator, 2, s, 2, width).transpose(1, 2),
    )
    scores = (q @ k.repeat_interleave(2, 1).mT) * (width**-0.5 if scale is None else scale)
    q *= (torch.tensor(REACH) / scores.abs().amax((0, 2, 3)))[:, None, None]
    return [q, k]


def moved(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value.to(DEVICE) if isinstance(value, Tensor) else value for name, value in options.items()}


def assert_close(found: AttentionRows, expected: AttentionRows, *, extra: float = 1.0) -> None:
    """1e-5 nats for scores within ±10 and 5e-5 within ±80, by head; NaN only where it is expected."""
    reach = max(1, int(torch.nan_to_num(expected.distance).max()))
    for name in STATISTICS:
        mine, right = getattr(found, name).double().cpu(), getattr(expected, name).double().cpu()
        assert mine.shape == right.shape
        assert (mine.isnan() == right.isnan()).all(), f"{name} is NaN where it should not be, or is not"
        for head, most in enumerate(REACH[: mine.shape[1]]):
            tolerance = (1e-5 if most <= 10 else 5e-5) * extra
            if name == "visible":
                tolerance = 0.0
            elif name == "distance":  # a weight that is off by the tolerance moves a mean by the longest way
                tolerance *= reach
            torch.testing.assert_close(
                mine[:, head],
                right[:, head],
                atol=tolerance,
                rtol=1e-5 if name in ("score_variance", "distance") else 0.0,
                equal_nan=True,
                msg=lambda text, name=name, head=head: f"{name} of head {head}: {text}",
            )

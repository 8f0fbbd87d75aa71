"""Attention that a model computes by hand: from the product of queries and keys to the softmax.

    scores = scale · q kᵀ + terms,   or   c · tanh(scale · q kᵀ / c) + terms

`follow` carries what is known of a tensor of scores from one operation to the next: factors gather in the
scale, masks and position biases in the terms. What it cannot follow it says in `why`; the scores are then
all there is. Subtracting a number from a whole row changes no softmax and is passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from isoscope.models.attention.trail import Step

_KEPT = frozenset((
    "to", "float", "double", "half", "bfloat16", "type", "type_as", "contiguous", "clone", "detach",
    "dropout",
))  # fmt: skip
_RESHAPED = frozenset({"view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze"})
_INVISIBLE = -1e4  # what hides a key: exp(-1e4) is zero in every precision
_Lookup = Callable[[Any], "Step | None"]


@dataclass(frozen=True)
class Scores:
    """What is known of a tensor of scores [..., t, s]: `query` [..., t, e] and `key` [..., s, e] gave it.

    `terms` are added to it; a boolean one is True where the key is visible. `lead` is (b, h) where both
    are folded into one axis. `inner` is the scale inside a tanh. After the softmax it is `spent`.
    """

    query: Tensor | None
    key: Tensor | None
    query_step: Step | None = None
    key_step: Step | None = None
    scale: float = 1.0
    terms: tuple[Tensor, ...] = ()
    lead: tuple[int, int] | None = None
    inner: float | None = None
    why: str = ""
    spent: bool = False


def follow(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Tensor, step: _Lookup
) -> Scores | None:
    """What is known of `out`, if it is scores: made just now, or from scores."""
    if name in ("matmul", "bmm", "baddbmm", "einsum"):
        return _product(name, args, kwargs, out, step)
    given_to = args[0] if name == "cat" and args and isinstance(args[0], tuple | list) else args
    found = [(given, known.scores) for given in given_to if (known := step(given)) and known.scores]
    if not found or out.dim() < 3:
        return None
    given, scores = found[0]
    if name == "softmax":
        return Scores(None, None, spent=True)
    if name in _RESHAPED:
        return _reshaped(scores, given, out)
    if out.shape[:-1] != given.shape[:-1] or out.shape[-1] == 1 < given.shape[-1]:
        return None
    if scores.spent or name in _KEPT:
        return scores
    return _carried(name, args, kwargs, given, scores, step)


def _carried(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], given: Tensor, scores: Scores, step: _Lookup
) -> Scores:
    other = next((value for value in (*args, *kwargs.values()) if value is not given), None)
    number = _number(other, step)
    match name:
        case "mul" | "div" if number is not None and not (name == "div" and args[0] is not given):
            factor = number if name == "mul" else 1 / number
            terms = tuple(term if term.dtype == torch.bool else term * factor for term in scores.terms)
            return replace(scores, scale=scores.scale * factor, terms=terms)
        case "mul" if _per_head(other, scores, step):
            assert isinstance(other, Tensor) and scores.query is not None
            return replace(scores, query=scores.query * other.detach())
        case "tanh" if not scores.terms and scores.inner is None:
            return replace(scores, inner=scores.scale, scale=1.0)
        case "add" | "sub" if number is not None:
            return scores
        case "add" | "sub" if isinstance(other, Tensor) and (name == "add" or args[0] is given):
            sign = kwargs.get("alpha", 1) * (1 if name == "add" else -1)
            return _added(scores, given, other if sign == 1 else other * sign, step(other))
        case "masked_fill" if _hides(args, kwargs, step):
            hidden = args[1] if len(args) > 1 else kwargs["mask"]
            return replace(scores, terms=(*scores.terms, ~hidden))
        case "where" if (
            len(args) == 3 and (fill := _number(args[2 if args[1] is given else 1], step)) is not None
        ):
            if fill <= _INVISIBLE:
                return replace(scores, terms=(*scores.terms, args[0] if args[1] is given else ~args[0]))
    return _lost(scores, f"the scores pass through {name.strip('_')}, which is not a scale, a bias or a mask")


def _product(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Tensor, step: _Lookup
) -> Scores | None:
    """A product of two tensors, neither of them a weight, at least one made of the block's inputs."""
    if out.dim() < 3:
        return None
    operands = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
    if name == "einsum":
        operands = [
            value for part in args[1:] for value in (part if isinstance(part, tuple | list) else [part])
        ]
    if len(operands) != 2 + (name == "baddbmm"):
        return None
    one, other = operands[-2:]
    steps = step(one), step(other)
    if any(isinstance(x, torch.nn.Parameter) for x in (one, other)) or not any(
        s and s.content for s in steps
    ):
        return None
    if any(s is not None and (_is_weight(s) or (s.scores and s.scores.spent)) for s in steps):
        return None
    query, key = one.detach(), other.detach().mT
    if name == "einsum":
        sides = _einsum(args[0], query, other.detach())
        if sides is None:
            return None
        query, key, swapped = sides
        steps = steps[::-1] if swapped else steps
    found = Scores(query, key, *steps, lead=folded(steps[0], query))
    if name == "baddbmm" and kwargs.get("beta", 1) != 0:
        found = replace(found, scale=float(kwargs.get("alpha", 1)))
        return _added(found, out, operands[0] * kwargs.get("beta", 1), step(operands[0]))
    return replace(found, scale=float(kwargs.get("alpha", 1)))


def _is_weight(step: Step) -> bool:
    return step.projected and not step.sources


def _einsum(equation: Any, one: Tensor, other: Tensor) -> tuple[Tensor, Tensor, bool] | None:
    """Queries [..., t, e] and keys [..., s, e] of an equation such as bhte,bhse->bhts."""
    if not isinstance(equation, str) or "->" not in equation or "." in equation:
        return None
    sides, result = equation.replace(" ", "").split("->")
    letters = sides.split(",")
    swapped = result[-1] in letters[0]
    (query_letters, query), (key_letters, key) = zip(letters, (one, other), strict=True)
    if swapped:
        query_letters, query, key_letters, key = key_letters, key, query_letters, query
    lead, row, column = result[:-2], result[-2], result[-1]
    summed = set(query_letters) & set(key_letters) - set(result)
    alike = len(summed) == 1 and column in key_letters and column not in query_letters
    if not alike or {*query_letters} != {*lead, row, *summed} or {*key_letters} != {*lead, column, *summed}:
        return None
    inner = summed.pop()
    query = query.permute([query_letters.index(letter) for letter in (*lead, row, inner)])
    return query, key.permute([key_letters.index(letter) for letter in (*lead, column, inner)]), swapped


def folded(step: Step | None, query: Tensor) -> tuple[int, int] | None:
    """(b, h) of a query [b·h, t, e], from the [b, h, t, e] that it was a few steps before."""
    for _ in range(6):
        if query.dim() != 3 or step is None:
            return None
        b, h, *rest = (*step.shape, 0, 0)
        if len(step.shape) == 4 and b * h == query.shape[0] and tuple(rest[:2]) == tuple(query.shape[1:]):
            return b, h
        step = step.parents[0] if step.parents else None
    return None


def _added(scores: Scores, given: Tensor, term: Tensor, origin: Step | None) -> Scores:
    if term.shape[-1:] == (1,) and given.shape[-1] > 1:
        return scores  # the same for a whole row
    if origin is not None and (origin.content or origin.scores is not None):
        return _lost(scores, "the scores have further terms that depend on the content, beside query and key")
    return replace(scores, terms=(*scores.terms, term.detach()))


def _lost(scores: Scores, why: str) -> Scores:
    return replace(scores, query=None, key=None, terms=(), why=scores.why or why)


def _reshaped(scores: Scores, given: Tensor, out: Tensor) -> Scores | None:
    if out.shape[-2:] != given.shape[-2:]:
        return None
    if given.dim() == 4 and out.dim() == 3:
        return replace(scores, lead=(given.shape[0], given.shape[1]))
    if given.dim() == 3 and out.dim() == 4:
        lead = (out.shape[0], out.shape[1])
        return replace(scores, lead=lead, terms=tuple(unfolded(term, *lead) for term in scores.terms))
    return scores


def _per_head(other: Any, scores: Scores, step: _Lookup) -> bool:
    """Whether it is a learned scale of each head, before anything was added: as good as in the query."""
    plain = scores.query is not None and not scores.terms and scores.inner is None
    if not plain or not isinstance(other, Tensor) or other.dim() < 3 or other.shape[-2:] != (1, 1):
        return False
    origin = step(other)
    return origin is None or not origin.content


def _hides(args: tuple[Any, ...], kwargs: dict[str, Any], step: _Lookup) -> bool:
    value = _number(args[2] if len(args) > 2 else kwargs.get("value"), step)
    return value is not None and value <= _INVISIBLE


def _number(given: Any, step: _Lookup) -> float | None:
    if isinstance(given, int | float):
        return float(given)
    if isinstance(given, Tensor) and given.dim() == 0 and step(given) is None:
        return float(given.detach())
    return None


def unfolded(term: Tensor, b: int, h: int) -> Tensor:
    """A mask of b·h folded into one axis as [b, h, t, s]; any other broadcasts as it is."""
    return term.reshape(b, h, *term.shape[1:]) if term.dim() == 3 and term.shape[0] == b * h else term

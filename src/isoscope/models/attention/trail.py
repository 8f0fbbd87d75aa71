"""How the tensors inside one block came about: just enough to read an attention.

Every operation that a block runs leaves a Step: which of the block's inputs flow into the result, whether
a weight has been at work on it, and whether a table of positions has. Steps hang on tensors by weak
reference and are dropped when the block is left. A tensor is held only where that costs no memory (a view
holds what it is a view of) or where it is the query or key about to be rotated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from weakref import ref

from torch import Tensor, nn

from isoscope.models.attention.softmax import Scores, follow

_SPELLINGS = {
    **{f"__{prefix}{name}__": name for name in ("add", "mul", "sub", "matmul") for prefix in ("", "i")},
    **{f"__{name}__": "div" for name in ("truediv", "itruediv")},
    **{"__radd__": "add", "__rmul__": "mul", "__rsub__": "rsub", "__neg__": "neg", "negative": "neg"},
    **{"multiply": "mul", "divide": "div", "true_divide": "div", "subtract": "sub", "concat": "cat"},
    **{"concatenate": "cat", "swapaxes": "transpose", "swapdims": "transpose", "moveaxis": "movedim"},
}
CASTS = frozenset({"to", "float", "double", "half", "bfloat16", "type", "type_as", "contiguous", "clone"})
VIEWS = frozenset(
    {"view", "reshape", "flatten", "unflatten", "transpose", "permute", "movedim", "t", ".T", ".mT"}
    | {"unsqueeze", "squeeze", "expand", "__getitem__", "narrow", "select", "chunk", "split", "tensor_split"}
    | {"unbind", "view_as_complex", "view_as_real", "reshape_as", "view_as"}
)
# what is linear in the one content tensor it takes; products are only so with what is no content
_LINEAR = CASTS | VIEWS | {"mul", "div", "add", "sub", "neg", "cat", "stack", "roll", "flip", "addcmul"}
_PROJECTIONS = frozenset({"linear", "addmm", "conv1d", "conv2d", "conv3d", "embedding", "bilinear"})
_CASTS = ("to", "type_as")
_PRODUCTS = frozenset({"matmul", "bmm", "baddbmm", "einsum", "mm"})


@dataclass(eq=False, slots=True)  # frozen would cost as much as all the rest
class Step:
    """Where a tensor came from.

    `sources` has one bit for each input of the block that flows in. `projected`: a weight took part.
    `turned`: since the last projection, so did a tensor that is neither weight nor content: positions.
    `call` is what to call again to get it from its parents, where that is linear; `pick` chooses among
    several results; `held` are the inputs that may be asked for later.
    """

    number: int
    operation: str
    shape: tuple[int, ...]
    sources: int
    projected: bool = False
    turned: bool = False
    parents: tuple[Step, ...] = ()
    call: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]] | None = None
    pick: int | None = None
    held: tuple[tuple[Step, Tensor], ...] = ()
    scores: Scores | None = None
    at: int = 0  # the number of the operation in its call of the block

    @property
    def content(self) -> bool:
        """Whether it is made of the block's inputs by its weights."""
        return self.projected and self.sources != 0


@lru_cache(maxsize=4096)
def spelled(function: Callable[..., Any]) -> tuple[str, bool]:
    """The plain name of an operation, however it is spelled, and whether it works in place."""
    name = getattr(function, "__name__", type(function).__name__)
    if name == "__get__":
        return f".{getattr(getattr(function, '__self__', None), '__name__', '')}", False
    in_place = name == "__setitem__" or (name.startswith("__i") and name in _SPELLINGS)
    if name.endswith("_") and not name.endswith("__"):
        name, in_place = name.rstrip("_"), True
    return _SPELLINGS.get(name, name), in_place


class Trail:
    """The steps of one call of a block, by tensor: weakly, and known by more than the address."""

    def __init__(self) -> None:
        self._steps: dict[int, tuple[ref[Tensor], Step]] = {}
        self._number = 0
        self._blind = False
        self.own = 0
        self.twice = False

    def begin(self, inputs: list[Tensor], own: int) -> None:
        """Forget all; the tensors that enter the block are its sources, number `own` its hidden state.

        Where none is seen to enter, whatever a weight meets is taken for the hidden state.
        """
        self.clear()
        for number, tensor in enumerate(inputs):
            self._keep(tensor, self._step("", tensor, sources=1 << number))
        self.twice = len(self._steps) < len(inputs)
        self._blind = not inputs
        hidden = self.step(inputs[own if own < len(inputs) else 0]) if inputs else None
        self.own = hidden.sources if hidden else 1

    def clear(self) -> None:
        """Let go of everything."""
        self._steps = {}
        self.own = 0

    def step(self, tensor: Any) -> Step | None:
        """Where a tensor came from, if it was made in this block or entered it."""
        found = self._steps.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    def note(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, at: int
    ) -> None:
        """Remember one operation that has just run, the number `at` of its call of the block."""
        name, in_place = spelled(function)
        out = args[0] if name == "__setitem__" else out
        several = isinstance(out, tuple | list)
        results = [(number, each) for number, each in enumerate(out if several else (out,)) if _numeric(each)]
        if not results:
            return
        tensors = list(_tensors((args, kwargs) if kwargs else args))
        if name in _CASTS:  # of the other tensor only the dtype and device are taken
            tensors = tensors[:1]
        known = [(step, given) for given in tensors if (step := self.step(given)) is not None]
        weights = any(_is_weight(given) for given in tensors)
        if not known and not weights and name not in _PROJECTIONS:
            return
        if not several and not in_place and any(out is given for given in tensors):
            return  # a cast that had nothing to do
        sources, projected, turned, content = 0, weights or name in _PROJECTIONS, False, False
        fresh = name in _PROJECTIONS or (name in _PRODUCTS and weights)
        for step, _ in known:
            sources |= step.sources
            projected = projected or step.projected
            turned = turned or step.turned
            content = content or step.content
            fresh = fresh or (name in _PRODUCTS and step.projected and not step.sources)
        if fresh and self._blind:
            sources |= self.own
        positions = content and not fresh and not name.endswith("_norm")  # norms have buffers of their own
        positions = positions and any(self._outside(given) for given in tensors)
        turned = (turned or positions) and not fresh
        if in_place and isinstance(out, Tensor):
            self._spread(name, self.step(out), turned)
        call = None
        if content and not in_place and self._linear(name, args):
            call = (function, self._template(args), self._template(kwargs))
        made: dict[str, Any] = {
            "sources": sources,
            "projected": projected,
            "turned": turned,
            "parents": tuple(step for step, _ in known),
            "call": call,
            "held": tuple(known) if call and (positions or name in VIEWS) else (),
            "scores": None if several else follow(name, args, kwargs, out, self.step),
            "at": at,
        }
        for number, result in results:
            self._keep(result, self._step(name, result, **made, pick=number if several else None))

    def _keep(self, tensor: Tensor, step: Step) -> None:
        key, steps = id(tensor), self._steps
        steps[key] = (ref(tensor, lambda _: steps.pop(key, None)), step)

    def _step(self, name: str, tensor: Tensor, *, sources: int, **found: Any) -> Step:
        self._number += 1
        return Step(self._number, name, tuple(tensor.shape), sources, **found)

    def _spread(self, name: str, step: Step | None, turned: bool) -> None:
        """What is changed in place through a view has changed in all that it is a view of."""
        for parent, tensor in step.held if step is not None and step.operation in VIEWS else ():
            self._spread(name, parent, turned)
            self._number += 1
            turned = turned or parent.turned
            changed = replace(parent, number=self._number, operation=name, turned=turned, call=None)
            self._keep(tensor, changed)

    def _outside(self, given: Tensor) -> bool:
        """Whether it is neither weight nor content nor the block's hidden state: a table, a mask."""
        if _is_weight(given) or not _numeric(given) or given.numel() < 2:
            return False
        step = self.step(given)
        return step is None or not (step.projected or step.sources & self.own)

    def _linear(self, name: str, args: tuple[Any, ...]) -> bool:
        if name not in ("mul", "div", "addcmul"):
            return name in _LINEAR
        factors = args[1:3] if name == "addcmul" else args[:2]
        content = [step is not None and step.content for step in map(self.step, factors)]
        return not all(content) and not (name == "div" and content[-1])

    def _template(self, given: Any) -> Any:
        """The arguments with a Step in place of every tensor of content."""
        if isinstance(given, Tensor):
            step = self.step(given)
            return step if step is not None and step.content else given
        if isinstance(given, tuple | list):
            parts = [self._template(part) for part in given]
            return tuple(parts) if isinstance(given, tuple) else parts
        return (
            {key: self._template(part) for key, part in given.items()} if isinstance(given, dict) else given
        )


def _is_weight(given: Tensor) -> bool:
    # as isinstance(given, nn.Parameter), at a tenth of its price
    return type(given) is nn.Parameter or getattr(given, "_is_param", False)


def _numeric(given: Any) -> bool:
    return isinstance(given, Tensor) and (given.is_floating_point() or given.is_complex())


def _tensors(given: Any) -> Iterator[Tensor]:
    if isinstance(given, Tensor):
        yield given
    elif isinstance(given, tuple | list):
        for part in given:
            yield from _tensors(part)
    elif isinstance(given, dict):
        for part in given.values():
            yield from _tensors(part)

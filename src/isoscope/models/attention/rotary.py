"""The query or key before rotary position, and the rotation that takes it to its place.

Nothing is known here of how a model writes its rotation. The steps between the last tensor that no table
of positions has touched and the query are linear, so they are done again on another tensor: halves or
pairs, partial or whole, real or complex. That doing them again on the unrotated query gives the query is
checked on numbers; where it does not, there is a reason in place of a rotation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor

from isoscope.models.attention.trail import CASTS, Step

_FAILURES = (RuntimeError, ValueError, LookupError, TypeError)
_REPEATING = 4  # steps at most that repeat key heads: an axis, an expansion, a shape, a copy
_ROUNDINGS = 32  # of the largest entry: a few operations, each in the query's own precision


@dataclass(frozen=True)
class _Slot:
    """The place of a tensor among the steps, by number."""

    number: int


@dataclass(frozen=True)
class Line:
    """One step to do again: the tensors of content are slots, all others stand as they were."""

    number: int
    at: int  # the number of the operation in its call of the block
    cast_of: int | None
    function: Callable[..., Any]
    args: Any
    kwargs: Any
    pick: int | None

    def again(self, args: Any, kwargs: Any) -> Line | None:
        """The same step of another forward: its tensors that are no content, in their places.

        None where it takes other arguments there.
        """
        try:
            return replace(self, args=_refilled(self.args, args), kwargs=_refilled(self.kwargs, kwargs))
        except _FAILURES:
            return None


@dataclass(frozen=True)
class Rotation:
    """Steps that turn queries or keys [b, h, t, e] to their positions; `swapped`: they run on [b, t, h, e].

    They may also repeat key heads for the query heads that share them, `copies` side by side: each is then
    taken once.
    """

    root: int
    lines: tuple[Line, ...]
    rows: int
    batch: int
    swapped: bool
    copies: int = 1

    def each(self, unrotated: Tensor) -> Tensor:
        """Every row [b, h, t, e] turned to its own position, in the precision it comes in."""
        values: dict[int, Any] = {self.root: unrotated.transpose(1, 2) if self.swapped else unrotated}
        for line in self.lines:
            if line.cast_of is not None:
                values[line.number] = values[line.cast_of]
                continue
            done = line.function(*_filled(line.args, values), **_filled(line.kwargs, values))
            values[line.number] = done if line.pick is None else done[line.pick]
        turned: Tensor = values[self.lines[-1].number]
        return turned[:, :: self.copies]

    def of(self, batch: int, lines: Sequence[Line]) -> Rotation:
        """The same rotation of another forward of so many sequences."""
        return replace(self, lines=tuple(lines), batch=1 if self.batch == 1 else batch)

    def __call__(self, mean: Tensor) -> Tensor:
        """A mean [h, e] as it stands at every row: [b or 1, h, t, e]."""
        return self.each(mean[None, :, None, :].expand(self.batch, -1, self.rows, -1))


@dataclass(frozen=True)
class Still:
    """No position turns the vectors: their mean is the same at every row."""

    rows: int

    def __call__(self, mean: Tensor) -> Tensor:
        """A mean [h, e] as [1, h, t, e]."""
        return mean[None, :, None, :].expand(1, -1, self.rows, -1)


def before_rotation(
    query: Tensor, origin: Step, like: Rotation | None, copies: int = 1
) -> tuple[Tensor, Step, Rotation] | str:
    """The query [b, h, t, e] before positions took part, its step and its rotation, or why there is none.

    So of a key, every head of which may stand in its origin as `copies` side by side. `like` is a rotation
    found before at the same place: its layout is then taken over without a check, which would make the
    device wait.
    """
    front, lines = {origin}, list[Step]()
    held: dict[Step, Tensor] = {}
    while front:
        step = max(front, key=lambda each: each.number)  # so that all that came of it has been passed
        root = held.get(step)
        if len(front) == 1 and not step.turned and root is not None and _may_be(root, query):
            steps = tuple(map(_line, reversed(lines)))
            found = _laid_out(query, root.detach(), step.number, steps, like, copies)
            return found if isinstance(found, str) else (found[0], step, found[1])
        if step.call is None:
            what = step.operation.strip("_") or "an input of the block"
            return f"the query comes to its position by way of {what}, which is not linear in it here"
        front.remove(step)
        front |= {parent for parent in step.parents if parent.content}
        held.update(step.held)
        lines.append(step)
    return "the query before its rotation is gone by the time of the attention"


def _may_be(root: Tensor, query: Tensor) -> bool:
    return root.dim() == 4 and root.numel() == query.numel() and root.is_floating_point()


def _line(step: Step) -> Line:
    """What is needed to do a step again, free of the tensors that were held for the search."""
    assert step.call is not None
    function, args, kwargs = step.call
    cast_of = step.parents[0].number if step.operation in CASTS else None
    return Line(step.number, step.at, cast_of, function, _slots(args), _slots(kwargs), step.pick)


def _laid_out(
    query: Tensor, root: Tensor, number: int, lines: tuple[Line, ...], like: Rotation | None, copies: int
) -> tuple[Tensor, Rotation] | str:
    """With heads before rows or after, for one sequence or for all: as in `like`, or whichever is right.

    The steps at the end that only repeat heads are left out where that does.
    """
    b, _, rows, _ = query.shape
    if like is not None:
        rotation = replace(like, root=number, rows=rows).of(b, lines[: len(like.lines)])
        return root.transpose(1, 2) if like.swapped else root, rotation
    shorter = [(lines[:-cut], 1) for cut in range(1, len(lines)) if cut <= _REPEATING and copies > 1]
    for swapped in (False, True):
        unrotated = root.transpose(1, 2) if swapped else root
        if unrotated.shape != query.shape:
            continue
        for (some, each), batch in product([*shorter, (lines, copies)], dict.fromkeys((1, b))):
            rotation = Rotation(number, some, rows, batch, swapped, each)
            if _gives(rotation, unrotated, query):
                return unrotated, rotation
    return "the rotation that was read from the query's steps does not give the query"


def _gives(rotation: Rotation, unrotated: Tensor, query: Tensor) -> bool:
    """Whether turning each row gives the query, and turning `batch` sequences their part of it.

    Compared at the first and the last sequence: at all of them it would cost as much as several layers.
    """
    try:
        whole, part = rotation.each(unrotated), rotation.each(unrotated[: rotation.batch])
    except _FAILURES:  # a step that names the batch size, done for one sequence
        return False
    if whole.shape != query.shape or part.shape[1:] != query.shape[1:]:
        return False
    return _close(whole[-1:], query[-1:]) and _close(whole[:1], query[:1]) and _close(part[:1], query[:1])


def _close(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return False
    one, exact = (
        torch.where(other.isfinite(), one, 0).double(),
        torch.where(other.isfinite(), other, 0).double(),
    )
    room = _ROUNDINGS * torch.finfo(other.dtype).eps * exact.abs().amax()
    return bool(((one - exact).abs() <= room).all())


def _slots(given: Any) -> Any:
    return _mapped(given, lambda part: _Slot(part.number) if isinstance(part, Step) else part)


def _filled(given: Any, values: dict[int, Any]) -> Any:
    return _mapped(given, lambda part: values[part.number] if isinstance(part, _Slot) else part)


def _refilled(template: Any, given: Any) -> Any:
    """What is given, with the slots of the template in their places."""
    if isinstance(template, _Slot):
        return template
    if isinstance(template, tuple | list):
        parts = [_refilled(*pair) for pair in zip(template, given, strict=True)]
        return tuple(parts) if isinstance(template, tuple) else parts
    if isinstance(template, dict):
        return {key: _refilled(part, given[key]) for key, part in template.items()}
    return given


def _mapped(given: Any, each: Callable[[Any], Any]) -> Any:
    if isinstance(given, tuple | list):
        parts = (_mapped(part, each) for part in given)
        return tuple(parts) if isinstance(given, tuple) else list(parts)
    if isinstance(given, dict):
        return {key: _mapped(part, each) for key, part in given.items()}
    return each(given)

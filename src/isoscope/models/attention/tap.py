"""What every attention inside a model's blocks takes, seen while the model runs.

A mode of torch sees each operation. `F.scaled_dot_product_attention` shows queries, keys and mask as they
are; a softmax over scores is traced back to the product that gave them (softmax.py); the inside of
`F.multi_head_attention_forward` is made visible by running it once more under the mode; what weighs its keys
in another way tells so itself (shown.py). Sites are numbered by call of a block, as in tap.py. Whether
attention is to oneself or across is told by where keys come from: the block's own hidden state, or another of
its inputs. Every function is called as the model calls it, so outputs stay bit for bit what they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from isoscope.errors import IsoscopeError
from isoscope.models.attention.read import Found, from_scaled_dot_product, from_softmax, once_each
from isoscope.models.attention.rotary import Line, Rotation, Still, before_rotation
from isoscope.models.attention.shown import Weigh, mixed, weigh
from isoscope.models.attention.trail import Step, Trail, spelled
from isoscope.models.blocks import float_tensors, plain_name
from isoscope.sites import Site

looked_for = (
    "looked for F.scaled_dot_product_attention, nn.MultiheadAttention and a softmax over products of queries "
    "and keys inside the blocks"
)
_CROSS = ("cross", "encoder_attn", "encdec", "multihead_attn")  # where the data's way does not tell
_FUSED = ("flex_attention", "flash_attention", "paged")  # implementations that show neither


@dataclass(frozen=True)
class Attended:
    """One attention: what enters the scores, and how far it can be taken apart.

    s = scale · q kᵀ + mask, each key head serving h/g query heads that stand together; `scores` are given
    where the model has them. `rotate` takes a mean query [h, e] to [b or 1, h, t, e]: turned to each row's
    position, so that turning the rows of `unrotated` gives `query`; so `rotate_key` of `unrotated_key`. What
    is None has its reason in `why`.
    """

    query: Tensor | None  # [b, h, t, e]
    key: Tensor | None  # [b, g, s, e], every key head once
    scale: float
    causal: bool
    mask: Tensor | None  # boolean (True: visible) or added to the scores; broadcasts to [b, h, t, s]
    scores: Tensor | None  # [b, h, t, s] with the mask, where the model computes the softmax itself
    unrotated: Tensor | None  # [b, h, t, e]
    rotate: Callable[[Tensor], Tensor] | None
    softcap: float | None
    cross: bool
    module: str
    path: str  # sdpa, softmax, multi_head_attention or shown
    part: int  # which of the attentions of its kind in this call of the block
    why: str
    weights_of: Weigh | None = None  # from scores to weights, where that is no softmax
    unrotated_key: Tensor | None = None  # [b, g, s, e]
    rotate_key: Callable[[Tensor], Tensor] | None = None


Receive = Callable[[Site, Attended], None]


@dataclass(frozen=True, eq=False)
class Learnt:
    """What one run through a model tells of the next: how its attentions are laid out, once it was checked.

    Kept from batch to batch, it spares the checks, for which a GPU would have to be waited for.
    """

    counts: dict[Any, int] = field(default_factory=dict)  # attentions in a call of a block on these shapes
    copies: dict[Any, int] = field(default_factory=dict)
    rotations: dict[Any, Rotation | str] = field(default_factory=dict)  # of queries and keys
    explained: dict[Any, bool] = field(default_factory=dict)
    across: dict[Any, dict[int, bool]] = field(
        default_factory=dict
    )  # by call: whether its attentions are cross
    traced: set[Any] = field(default_factory=set)  # calls with an attention that only its trail tells
    turning: set[Any] = field(default_factory=set)  # calls whose queries or keys are turned to their position
    roots: dict[Any, dict[Any, Root | str | None]] = field(default_factory=dict)  # by call, number and side


@dataclass(frozen=True, eq=False)
class Root:
    """Which operation of a call of a block gives queries or keys before rotation, and what turns them."""

    at: int  # the number of the operation
    operation: str
    pick: int | None  # which of its results
    rotation: Rotation

    @property
    def awaited(self) -> set[int]:
        """The numbers of all operations that must be seen again."""
        return {self.at, *(line.at for line in self.rotation.lines)}


@contextmanager
def attention_tap(
    module: nn.Module,
    blocks: Mapping[str, nn.Module],
    receive: Receive,
    *,
    takes: int = 0,
    learnt: Learnt | None = None,
    unrotated: bool = True,
    living: bool = False,
) -> Iterator[None]:
    """While inside, every attention in a block call i is handed to `receive`, at (cross_)attention.i.

    The block's hidden state is the tensor number `takes` of those it takes. A model without attention
    gives nothing; one whose attention is computed where it cannot be seen is an error. Calls of a block that
    have been `learnt` are not traced again: of theirs only what gives and turns the queries is looked at, and
    not even that where the queries before rotary position are not asked for (`unrotated`). Where a gradient
    is to reach the attention it is `living`: then it is handed on with its graph, to make a loss of it.
    """
    hooks = attention_hooks(
        module, blocks, receive, takes=takes, learnt=learnt, unrotated=unrotated, living=living
    )
    with hooks as seen, seen:
        yield
    seen.refuse_hidden(module)


@contextmanager
def attention_hooks(
    module: nn.Module,
    blocks: Mapping[str, nn.Module],
    receive: Receive,
    *,
    takes: int = 0,
    learnt: Learnt | None = None,
    unrotated: bool = True,
    living: bool = False,
) -> Iterator[AttentionMode]:
    """The hooks of `attention_tap`, for many forwards: each runs inside the mode that this gives.

    Outside the mode hooks do nothing.
    """
    learnt = Learnt() if learnt is None else learnt
    names = {id(part): plain_name(name) for name, part in module.named_modules()}
    course = _Course(names, takes, learnt, unrotated)
    own = {id(block): block for block in blocks.values()}
    parts = {id(part): part for block in own.values() for part in block.modules()}
    with ExitStack() as hooks:
        hooks.enter_context(module.register_forward_pre_hook(course.start))
        for block in own.values():
            hooks.enter_context(block.register_forward_pre_hook(course.enter_block, with_kwargs=True))
        for part in parts.values():
            hooks.enter_context(part.register_forward_pre_hook(course.enter))
            hooks.enter_context(part.register_forward_hook(course.leave))
        for block in own.values():
            hooks.enter_context(block.register_forward_hook(course.leave_block))
        yield AttentionMode(course, receive, living)


def _refuse_fused(module: nn.Module) -> None:
    chosen = {
        str(getattr(getattr(part, "config", None), "_attn_implementation", "")) for part in module.modules()
    }
    hidden = sorted(name for name in chosen if any(kind in name for kind in _FUSED))
    if hidden:
        raise IsoscopeError(
            f"{type(module).__name__} computes its attention by {hidden[0]}, which shows neither queries nor "
            'scores; load it with attn_implementation="sdpa".'
        )


class _Course:
    """Which call of which block is being run, and which module inside it is the innermost."""

    def __init__(self, names: Mapping[int, str], takes: int, learnt: Learnt, unrotated: bool) -> None:
        self.names, self.takes, self.learnt, self.unrotated = names, takes, learnt, unrotated
        self.active = 0  # how often the mode is on
        self.calls, self.depth = 0, 0
        self.inside: list[str] = []
        self.parts: Counter[str] = Counter()
        self.call: Any = None
        self.known = False  # this call was traced before and need not be again
        self.over = False  # nothing more to come in this call: what follows need not be remembered
        self.trail = Trail()
        self.operations = 0  # of this call
        self.awaited: dict[int, list[Root]] = {}  # by number of the operation
        self.held: dict[Root, Tensor] = {}
        self.lines: dict[Root, list[Line]] = {}

    def start(self, module: nn.Module, inputs: Any) -> None:
        self.calls, self.depth = 0, 0
        self.inside.clear()
        self.trail.clear()

    def enter_block(self, block: nn.Module, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        if not self.active:
            return
        self.parts.clear()
        given = float_tensors(inputs, keywords)
        self.call = (self.calls, *(tensor.shape for tensor in given))
        counted = self.learnt.counts.get(self.call)
        roots = self.learnt.roots.get(self.call, {})
        complete = counted is not None and len(roots) == 2 * counted
        still = not self.unrotated or self.call not in self.learnt.turning or complete
        self.known = counted is not None and still and self.call not in self.learnt.traced
        self.over = counted == 0 or self.known
        self.operations, self.held, self.lines, self.awaited = 0, {}, {}, {}
        for root in roots.values() if self.known and self.unrotated else ():
            if isinstance(root, Root):
                for number in root.awaited:
                    self.awaited.setdefault(number, []).append(root)
        self.trail.begin(given, self.takes)
        self.depth += 1  # last, so that what is asked here is no operation of the block

    def leave_block(self, block: nn.Module, inputs: Any, output: Any) -> None:
        if not self.active:
            return
        self.learnt.counts[self.call] = self.parts.total()
        self.depth -= 1
        self.calls += 1
        self.trail.clear()
        self.held, self.lines = {}, {}

    def hold(self, number: int, operation: str, args: Any, kwargs: Any, out: Any) -> None:
        """Keep what an operation that was awaited gives, or what it turns queries by."""
        for root in self.awaited[number]:
            if number == root.at:
                found = (
                    out if root.pick is None else out[root.pick] if isinstance(out, tuple | list) else None
                )
                if operation == root.operation and isinstance(found, Tensor):
                    self.held[root] = found
            for line in root.rotation.lines:
                if line.at == number and (again := line.again(args, kwargs)) is not None:
                    self.lines.setdefault(root, []).append(again)

    def next_part(self, kind: str) -> int:
        """Which of its kind in this call of the block; when all that it had before have come, it is over."""
        part = self.parts[kind]
        self.parts[kind] += 1
        self.over = self.known or self.parts.total() == self.learnt.counts.get(self.call)
        return part

    def enter(self, part: nn.Module, inputs: Any) -> None:
        if self.active:
            self.inside.append(self.names.get(id(part), ""))

    def leave(self, part: nn.Module, inputs: Any, output: Any) -> None:
        if self.active and self.inside:
            self.inside.pop()


class AttentionMode(TorchFunctionMode):
    """Sees every operation, remembers those inside a block, and reads the attentions among them."""

    def __init__(self, course: _Course, receive: Receive, living: bool) -> None:
        super().__init__()
        self.course, self.receive, self.living = course, receive, living
        self.received = False
        self.heads: int | None = None  # while inside F.multi_head_attention_forward
        self.learnt = course.learnt

    def __enter__(self) -> Self:
        self.course.active += 1
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *failure: Any) -> None:
        self.course.active -= 1
        super().__exit__(*failure)  # type: ignore[no-untyped-call]

    def refuse_hidden(self, module: nn.Module) -> None:
        """Say so where blocks have run and their attention is known to be computed out of sight."""
        if self.course.calls and not self.received:
            _refuse_fused(module)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        course = self.course
        if not course.depth:
            return func(*args, **kwargs)
        course.operations += 1
        number = course.operations
        if func is functional.multi_head_attention_forward:
            return self._opened(func, args, kwargs)
        if func is weigh or func is mixed:
            return self._told(func, args)
        out = func(*args, **kwargs)
        name, _ = spelled(func)
        if number in course.awaited:
            course.hold(number, name, args, kwargs, out)
        if name == "scaled_dot_product_attention":
            query, key = (args + tuple(kwargs.get(each) for each in ("query", "key")[len(args) :]))[:2]
            steps = course.trail.step(query), course.trail.step(key)
            if query.dim() == 3 and not self.heads:  # only the trail tells how many heads there are
                course.learnt.traced.add(course.call)
            self._take(from_scaled_dot_product(args, kwargs, self.heads, steps, self.living), "sdpa")
        elif name == "softmax" and isinstance(out, Tensor):
            given = args[0] if args else kwargs.get("input")
            step = course.trail.step(given)
            found = from_softmax(given, step, args, kwargs, self.heads, self.living)
            if found is not None:
                course.learnt.traced.add(course.call)
                self._take(found, "softmax", out)
        if not course.over:
            course.trail.note(func, args, kwargs, out, number)
        return out

    def _opened(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run F.multi_head_attention_forward so that the mode sees its inside.

        Its first act is to ask whether a mode wants the call as a whole; that one question is answered no.
        """
        space = vars(functional)
        asked = space["has_torch_function"]

        def no(_: Any) -> bool:
            space["has_torch_function"] = asked
            return False

        self.heads = int(args[4] if len(args) > 4 else kwargs["num_heads"])
        space["has_torch_function"] = no
        try:
            with self:
                return func(*args, **kwargs)
        finally:
            space["has_torch_function"] = asked
            self.heads = None

    def _told(self, func: Callable[..., Tensor], args: tuple[Any, ...]) -> Tensor:
        """An attention that shows its weights; one that mixes those of others has no queries of its own."""
        out = func(*args)
        course = self.course
        site = Site("attention" if func is weigh else "mixed_attention", course.calls + 1)
        place = site, course.next_part(site.kind)
        query, key, scores, scale, weights_of = args if func is weigh else (None, None, args[1], 1.0, None)
        origin, key_origin = course.trail.step(query), course.trail.step(key)
        if not self.living:
            query, key, scores = (None if x is None else x.detach() for x in (query, key, scores))
        before: tuple[Any, ...] = None, None, "its weights are mixed of those of other attentions", None, None
        if query is not None and key is not None and not self.living:
            before = self._both_unrotated(query, key, (origin, key_origin), place)
        self.received = True
        self.receive(
            site,
            Attended(
                query=query, key=key, scale=scale, causal=False, mask=None, scores=scores,
                unrotated=before[0], rotate=before[1], softcap=None, cross=False,
                module=course.inside[-1] if course.inside else "", path="shown", part=place[1], why=before[2],
                weights_of=weights_of or (lambda _: out if self.living else out.detach()),
                unrotated_key=before[3], rotate_key=before[4],
            ),
        )  # fmt: skip
        if not course.over:
            course.trail.note(func, args, {}, out, course.operations)
        return out

    def _take(self, found: Found, path: str, probabilities: Tensor | None = None) -> None:
        course = self.course
        cross = self._is_cross(found.query_step, found.key_step)
        site = Site("cross_attention" if cross else "attention", course.calls + 1)
        part = course.next_part(site.kind)
        place = (site, part)
        why = found.why
        query, key, mask = found.query, found.key, found.mask
        if probabilities is not None and query is not None:
            explained = self.learnt.explained
            if place not in explained:
                with torch.no_grad():
                    explained[place] = found.explains(probabilities)
            if not explained[place]:
                query = key = mask = None
                why = "the query and key that were traced do not give the scores"
        before: tuple[Any, ...] = (None,) * 5
        if query is not None and key is not None:
            copies, there = self.learnt.copies, (*place, key.shape[1])  # repeated only where there is a mask
            key, copies[there] = once_each(key, query.shape[1], copies.get(there))
            if course.unrotated and not self.living:
                steps = found.query_step, found.key_step
                before = self._both_unrotated(query, key, steps, place, copies[there])
                why = why or before[2]
        self.received = True
        self.receive(
            site,
            Attended(
                query=query, key=key, scale=found.scale, causal=found.causal, mask=mask, scores=found.scores,
                unrotated=before[0], rotate=before[1], softcap=found.softcap, cross=cross,
                module=course.inside[-1] if course.inside else "",
                path="multi_head_attention" if self.heads else path, part=part, why=why,
                unrotated_key=before[3], rotate_key=before[4],
            ),
        )  # fmt: skip

    def _both_unrotated(
        self,
        query: Tensor,
        key: Tensor,
        origins: tuple[Step | None, Step | None],
        place: tuple[Site, int],
        copies: int = 1,
    ) -> tuple[Any, ...]:
        """Queries before rotation, what turns them, why there are none; and so keys, without the reason."""
        queries = self._unrotated(query, origins[0], place, "query", 1)
        return *queries, *self._unrotated(key, origins[1], place, "key", copies)[:2]

    def _unrotated(
        self, vectors: Tensor, origin: Step | None, place: tuple[Site, int], side: str, copies: int
    ) -> tuple[Tensor | None, Callable[[Tensor], Tensor] | None, str]:
        course, number = self.course, (self.course.parts.total(), side)
        roots = self.learnt.roots.setdefault(course.call, {})
        if course.known:
            return self._from_root(vectors, roots.get(number))
        if origin is not None and not origin.turned:
            roots[number] = None
            return vectors, Still(vectors.shape[2]), ""
        self.learnt.turning.add(course.call)
        if origin is None:
            roots[number] = f"where the {side} comes from was not seen, so neither was its rotation"
        elif len(origin.shape) != 4:
            roots[number] = f"the {side} is rotated before it has heads of its own"
        else:
            rotations, kind = self.learnt.rotations, (*place, side, vectors.shape[0] > 1)
            known = rotations.get(kind)
            found = known if isinstance(known, str) else before_rotation(vectors, origin, known, copies)
            rotations[kind] = found if isinstance(found, str) else found[2]
            if not isinstance(found, str):
                unrotated, root, rotation = found
                if root.at:  # else it entered the block
                    roots[number] = Root(root.at, root.operation, root.pick, rotation)
                return unrotated, rotation, ""
            roots[number] = found
        return None, None, str(roots[number])

    def _from_root(
        self, vectors: Tensor, root: Root | str | None
    ) -> tuple[Tensor | None, Callable[[Tensor], Tensor] | None, str]:
        """Queries or keys before their rotation in a call that was traced before."""
        if root is None:
            return vectors, Still(vectors.shape[2]), ""
        if isinstance(root, str):
            return None, None, root
        found, lines = self.course.held.pop(root, None), self.course.lines.pop(root, [])
        if found is None or found.numel() != vectors.numel() or len(lines) != len(root.rotation.lines):
            raise IsoscopeError(
                "the model runs other operations on some inputs than on the first, before an attention with "
                "rotary position; its queries and keys cannot be followed. Choose measures that need neither."
            )
        found = found.detach()
        rotation = root.rotation.of(len(vectors), lines)
        return found.transpose(1, 2) if rotation.swapped else found, rotation, ""

    def _is_cross(self, query: Step | None, key: Step | None) -> bool:
        """Keys of another input than the hidden state; where that was not seen, by the module's name."""
        told = self.learnt.across.setdefault(self.course.call, {})
        number = self.course.parts.total()
        if self.course.known and number in told:
            return told[number]
        told[number] = self._crosses(query, key)
        return told[number]

    def _crosses(self, query: Step | None, key: Step | None) -> bool:
        trail = self.course.trail
        if query is None or key is None or not key.sources or trail.twice:
            name = ".".join(self.course.inside[-1:]).lower()
            return any(word in name for word in _CROSS)
        own = trail.own if query.sources & trail.own else query.sources
        return not key.sources & own

"""Look at a model once before measuring it: its blocks, its sites, and how to read what flows there.

One run on a little data settles what structure alone does not: which of a block's tensors is the hidden
state (the one that the next block takes up), which axis numbers the sequences, which holds the dimensions
of a vector, and which sites belong to a decoder. Weights do not matter for any of it: while `remembering`,
checkpoints of one model are looked at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from torch import Tensor, nn

from isoscope.data.batch import Batch, main_input
from isoscope.errors import IsoscopeError, first_line
from isoscope.models.attention.tap import Attended, attention_tap
from isoscope.models.blocks import find_blocks, float_tensors, handed_on
from isoscope.models.tap import at_rest, tap
from isoscope.sites import Site

_FAILURES = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError)
_Call = tuple[str, list[Tensor], list[Tensor]]
_Attended = tuple[int, tuple[int, ...]]
_Shown = tuple[dict[Site, tuple[int, ...]], tuple[Site, ...], str]
_remembering: ContextVar[bool] = ContextVar("remembering", default=False)
_last: dict[object, tuple[Any, dict[str, str]]] = {}  # of one model: the survey, and where its blocks are


@dataclass(frozen=True)
class Survey:
    """What a model shows: its blocks by name, the block each layer leaves, the shape at each site.

    `channels` is the axis that holds the dimensions of a vector: the last, or 1 for feature maps.
    `input_axis` and `flow_axis` number the sequences in what the model takes and in what flows.
    `attention` are the sites where attention is seen, `unseen` says why where it is computed out of sight.
    """

    blocks: Mapping[str, nn.Module]
    leaves: Mapping[Site, str]
    shapes: Mapping[Site, tuple[int, ...]]
    channels: Mapping[Site, int]
    decoder: frozenset[Site]
    gives: int
    takes: int
    input_axis: int
    flow_axis: int
    attention: tuple[Site, ...] = ()
    unseen: str = ""

    def width(self, site: Site) -> int:
        """The dimensions of a vector there."""
        return self.shapes[site][self.channels[site]]

    def vectors(self, site: Site, seen: Tensor) -> Tensor:
        """What flows as [b, t, d]: sequences first, a feature map [b, c, h, w] as its positions."""
        if seen.dim() == 3 and self.flow_axis == 1:
            return seen.transpose(0, 1)
        return seen.movedim(self.channels[site], -1).flatten(1, -2) if seen.dim() > 3 else seen


def survey(module: nn.Module, batch: Batch) -> Survey:
    """Find the blocks of a model and the sites they show, in order. Runs it once or twice, rarely thrice."""
    like = _likeness(module, batch) if _remembering.get() else None
    if like is not None and like in _last:
        found, paths = _last[like]
        return replace(found, blocks={name: module.get_submodule(path) for name, path in paths.items()})
    try:
        with at_rest(module):
            found = _survey(module, batch)
    except _FAILURES as reason:
        told = first_line(reason)
        raise IsoscopeError(f"{type(module).__name__} cannot be run on this data: {told}.") from reason
    if like is not None:
        places = {id(part): path for path, part in module.named_modules()}
        _last.clear()  # no block is held: a model is let go of when it was measured
        _last[like] = replace(found, blocks={}), {name: places[id(x)] for name, x in found.blocks.items()}
    return found


@contextmanager
def remembering() -> Iterator[None]:
    """While inside, a model like the last one is not looked at again: for checkpoints as they were loaded."""
    token = _remembering.set(True)
    try:
        yield
    finally:
        _remembering.reset(token)


def _likeness(module: nn.Module, batch: Batch) -> object | None:
    """What two models have in common that show the same: class, config, parts, precision, shape of inputs.

    None where there is no config: then nothing tells them apart.
    """
    told = getattr(getattr(module, "config", None), "to_dict", None)
    some = next(module.parameters(), None)
    if told is None or some is None:
        return None
    config = repr({name: value for name, value in told().items() if name != "_name_or_path"})
    parts = tuple((name, type(part)) for name, part in module.named_modules())
    inputs = {"": batch.inputs} if isinstance(batch.inputs, Tensor) else batch.inputs
    given = tuple((name, x.shape, x.dtype) for name, x in inputs.items() if isinstance(x, Tensor))
    return type(module), config, parts, some.dtype, some.device, given


def _survey(module: nn.Module, batch: Batch) -> Survey:
    blocks = find_blocks(module, lambda: batch.call(module))
    with _calls(module, blocks) as (calls, attended):
        first = _shown(module, blocks, batch, 0, 0)
    if not calls:
        raise IsoscopeError(f"{type(module).__name__} never called its blocks ({', '.join([*blocks][:3])}).")
    gives, takes = _hidden_state(calls)
    shapes, attention, unseen = first if gives == takes == 0 else _shown(module, blocks, batch, gives, takes)
    leaves = {Site("layer", number): name for number, (name, _, _) in enumerate(calls, start=1)}
    flow_axis = _flow_axis(shapes[Site("layer", 1)], attended[0] if attended else None)
    return Survey(
        blocks=blocks,
        leaves=leaves,
        shapes=shapes,
        channels={site: _channel_axis(module, blocks, leaves, site, shape) for site, shape in shapes.items()},
        decoder=_decoder_sites(module, blocks, leaves),
        gives=gives,
        takes=takes,
        input_axis=_input_axis(batch, shapes[Site("layer", 1)], flow_axis),
        flow_axis=flow_axis,
        attention=attention,
        unseen=unseen,
    )


def _shown(
    module: nn.Module, blocks: Mapping[str, nn.Module], batch: Batch, gives: int, takes: int
) -> _Shown:
    """The shape at every layer, the sites that show attention in order, and why a model hides it."""
    shapes: dict[Site, tuple[int, ...]] = {}
    found: dict[Site, None] = {}

    def layer(site: Site, seen: Tensor) -> None:
        shapes[site] = tuple(seen.shape)

    def attention(site: Site, attended: Attended) -> None:
        found[site] = None

    ran = False
    with tap(module, blocks, layer, gives=gives, takes=takes):
        try:
            with attention_tap(module, blocks, attention, takes=takes, unrotated=False):
                batch.call(module)
                ran = True
        except IsoscopeError as reason:
            if not ran:
                raise
            return shapes, (), str(reason)
    return shapes, tuple(sorted(found, key=lambda site: (site.layer or 0, site.kind))), ""


def sequence_first(module: nn.Module) -> bool:
    """Whether attention inside may take its sequences second, as torch.nn does unless told."""
    return any(isinstance(part, nn.MultiheadAttention) and not part.batch_first for part in module.modules())


@contextmanager
def _calls(
    module: nn.Module, blocks: Mapping[str, nn.Module]
) -> Iterator[tuple[list[_Call], list[_Attended]]]:
    """While inside: every call of a block with what it takes and gives; axis and shape of attention."""
    calls: list[_Call] = []
    attended: list[_Attended] = []
    names = {id(block): name for name, block in blocks.items()}

    def note(block: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        calls.append((names[id(block)], float_tensors(args, kwargs), float_tensors(output)))

    def attend(part: nn.MultiheadAttention, args: Any, kwargs: Any) -> None:
        attended.append((0 if part.batch_first else 1, tuple(float_tensors(args, kwargs)[0].shape)))

    with ExitStack() as hooks:
        for block in {id(block): block for block in blocks.values()}.values():
            hooks.enter_context(block.register_forward_hook(note, with_kwargs=True))
        for part in module.modules():
            if isinstance(part, nn.MultiheadAttention):
                hooks.enter_context(part.register_forward_pre_hook(attend, with_kwargs=True))
        yield calls, attended


def _hidden_state(calls: list[_Call]) -> tuple[int, int]:
    """Which tensor of those given and taken is handed on; failing that, the first pair of one shape."""
    for one, following in pairwise(calls):
        if (found := handed_on(one[1:], following[1:])) is not None:
            return found
    _, taken, given = calls[0]
    for takes, x in enumerate(taken):
        for gives, y in enumerate(given):
            if x.shape == y.shape:
                return gives, takes
    return 0, 0


def _flow_axis(shape: tuple[int, ...], attended: _Attended | None) -> int:
    """The axis of the sequences in what flows: that of the attention, unless a block swaps the two."""
    if attended is None or len(shape) != 3:
        return 0
    axis, inside = attended
    swapped = shape[:2] != inside[:2] and shape[:2] == inside[1::-1]
    return 1 - axis if swapped else axis


def _input_axis(batch: Batch, shape: tuple[int, ...], flow_axis: int) -> int:
    """The axis of the sequences in what the model takes: that of the flow, unless the model swaps the two."""
    main = main_input(batch.inputs)
    if main is None or main.dim() < 2 or len(shape) != 3:
        return 0
    taken = tuple(main.shape[:2])
    swapped = taken != shape[:2] and taken == shape[1::-1]
    same = taken == shape[:2]
    return (1 - flow_axis if swapped else flow_axis) if swapped or same else 0


def _channel_axis(
    module: nn.Module,
    blocks: Mapping[str, nn.Module],
    leaves: Mapping[Site, str],
    site: Site,
    shape: tuple[int, ...],
) -> int:
    """1 where a convolution or batch norm of the block has as many channels as axis 1, else the last."""
    if len(shape) < 4:
        return -1
    block = blocks[leaves.get(site, next(iter(blocks)))] if site.kind == "layer" else module
    sizes: set[object] = set()
    for part in block.modules():
        sizes |= {getattr(part, name, None) for name in ("in_channels", "out_channels", "num_features")}
    return 1 if shape[1] in sizes else -1


def _decoder_sites(
    module: nn.Module, blocks: Mapping[str, nn.Module], leaves: Mapping[Site, str]
) -> frozenset[Site]:
    """The sites of an encoder-decoder that lie in its decoder, its output among them."""
    if not getattr(getattr(module, "config", None), "is_encoder_decoder", False):
        return frozenset()
    decoder = getattr(module, "get_decoder", lambda: None)()
    inside = {id(part) for part in decoder.modules()} if isinstance(decoder, nn.Module) else set()
    return frozenset({site for site, name in leaves.items() if id(blocks[name]) in inside} | {Site("output")})

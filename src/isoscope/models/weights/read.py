"""One attention's weights read and taken apart by head, with the norms in front and what they leave out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from isoscope.errors import IsoscopeError
from isoscope.models.weights import config as config_of
from isoscope.models.weights.config import said
from isoscope.models.weights.files import Opened, Tensors
from isoscope.models.weights.layouts import biases_of, cut, cut_biases, weights_of
from isoscope.models.weights.names import Place, Tower, numbers_of
from isoscope.models.weights.norms import Found, has_norm, last_norm, norm_in_front
from isoscope.sites import Site

_TURNED = "rotary position turns queries and keys after the projection, which the static form leaves out"
_QK_NORMS = ("q_norm", "k_norm", "q_layernorm", "k_layernorm", "q_ln", "k_ln", "query_norm", "key_norm")
_SHORTENED = {"sr": "layer_norm", "sequence_reduction.sequence_reduction": "sequence_reduction.layer_norm"}


@dataclass(frozen=True)
class Norm:
    """A norm's γ as it multiplies (one added where the model adds it), β where it has one, and ε.

    `place` says where it stands: before attention, or after the block before it, the embedding, the encoder.
    """

    name: str
    kind: str  # LayerNorm or RMSNorm
    weight: Tensor  # [d]
    bias: Tensor | None
    eps: float
    place: str


@dataclass(frozen=True)
class Projections:
    """Queries and keys of one attention: q = x W_Q + b_Q, k = x W_K + b_K, score = scale·q·k.

    h/g query heads that stand together share a key head. x is what leaves `norm`, on the side of the keys
    `key_norm`. `module` tells apart two attentions of one block. `remarks` say what this leaves out.
    """

    site: Site
    module: str
    query: Tensor  # [h, d, e]
    key: Tensor  # [g, d, e]
    query_bias: Tensor | None  # [h, e]
    key_bias: Tensor | None  # [g, e]
    scale: float
    norm: Norm | None
    key_norm: Norm | None
    rotary: bool
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """An attention in the order of the run: its site, its place, and the block that runs before its own."""

    site: Site
    place: Place
    tower: Tower
    layer: int  # in its tower, from 0
    previous: str | None
    calls: int  # how often its block is called


def read_projections(opened: Opened, step: Step, towers: Iterable[Tower]) -> Projections:
    """The weights of one attention."""
    tensors, place = opened.tensors, step.place
    config = config_of.part_for(opened.config, step.tower)
    heads = _heads(opened, config, step)
    layout, width = config_of.cut_of(config, place.cut), config_of.gated_width(config)
    both = weights_of(place, tensors.read)
    try:
        query, key = cut(*both, layout, heads, config_of.key_heads_of(config, heads), width)
        biases = cut_biases(*biases_of(place, tensors.names, tensors.read), layout, (query, key), width)
    except (ValueError, RuntimeError) as reason:
        shapes = " and ".join(dict.fromkeys(str(tuple(each.shape)) for each in both))
        raise IsoscopeError(
            f"{place.query[0]} of '{tensors.where}' does not divide into {heads} heads: its shape, and that "
            f"of its keys, is {shapes} ({str(reason).splitlines()[0]})."
        ) from reason
    front = norm_in_front(place, step.tower, step.previous, tensors.names, config, post_norm(tensors, place))
    behind = _key_norm(tensors, step, towers, config, front)
    rotary = config_of.is_rotary(config, step.layer) and not place.cross
    remarks = [*_remarks(opened, config, step, front), *([_TURNED] if rotary else [])]
    if width is not None and both[0].shape[0] == 2 * heads * width:
        remarks.append("the queries' weight also holds a gate of attention's output, which is left away")
    if lost := sum(int((~each.isfinite()).sum()) for each in (query, key)):
        remarks.append(f"{lost} weights of queries and keys are NaN or Inf")
    norm = read_norm(tensors, front, config)
    return Projections(
        site=step.site,
        module=place.module,
        query=query.mT,
        key=key.mT,
        query_bias=biases[0],
        key_bias=biases[1],
        scale=config_of.scale_of(config, both[0].shape[1], query.shape[1], step.layer),
        norm=norm,
        key_norm=norm if behind == front else read_norm(tensors, behind, config),
        rotary=rotary,
        remarks=tuple(remarks),
    )


def read_norm(tensors: Tensors, found: Found, config: Any) -> Norm | None:
    """The norm of this name; None where there is none."""
    if found.name is None:
        return None
    words = (("weight", "gamma"), ("bias", "beta"))
    there = [[name for word in pair if (name := f"{found.name}.{word}") in tensors.names] for pair in words]
    weight, bias = (tensors.read(names[0]) if names else None for names in there)
    if weight is None:
        return None
    live = _module(tensors, found.name)
    eps = said(live, "eps", "variance_epsilon")
    kind = config_of.norm_kind(config, bias is not None)
    if config is None and "rms" in type(live).__name__.lower():
        kind = "RMSNorm"
    return Norm(
        name=found.name,
        kind=kind,
        weight=weight + 1 if config_of.adds_one(config) else weight,
        bias=bias,
        eps=float(eps) if isinstance(eps, float) else config_of.epsilon_of(config),
        place=found.where,
    )


def post_norm(tensors: Tensors, place: Place) -> bool | None:
    """Whether a block of nn.TransformerEncoder is post-norm: as it says, or torch's default; else None."""
    if not place.query[0].endswith(("in_proj_weight", "q_proj_weight")):
        return None
    first = getattr(_module(tensors, place.block), "norm_first", False)
    return not first if has_norm(f"{place.block}.norm1", tensors.names) else None


def _key_norm(tensors: Tensors, step: Step, towers: Iterable[Tower], config: Any, front: Found) -> Found:
    """The norm that keys come from: the encoder's last across, SegFormer's own where it shortens."""
    place = step.place
    if place.cross:
        encoders = [tower for tower in towers if not tower.decoder and tower != step.tower]
        if not encoders:
            return Found(None, "")
        return last_norm(encoders[-1], tensors.names, config, post_norm(tensors, place))
    own = _shortened(place, tensors.names)
    return front if own is None else Found(own, "after the keys' own shortening")


def _shortened(place: Place, names: frozenset[str]) -> str | None:
    """The norm after the convolution by which SegFormer shortens the sequence that keys are made of."""
    at = place.module
    return next((f"{at}.{norm}" for part, norm in _SHORTENED.items() if f"{at}.{part}.weight" in names), None)


def _heads(opened: Opened, config: Any, step: Step) -> int:
    """From the config; of a live module without one, from the attention itself."""
    if len(step.place.query) > 1:
        return len(step.place.query)
    found = config_of.heads_of(config, step.tower, next(iter(numbers_of(step.place.block)), 0))
    parts = step.place.module.split(".")
    for count in range(len(parts), -1, -1):
        if found is None and opened.tensors.module is not None:
            found = said(_module(opened.tensors, ".".join(parts[:count])), *config_of.HEADS)
            found = found if isinstance(found, int) else None
    if found is None:
        raise config_of.no_heads(opened.tensors.where)
    return found


def _remarks(opened: Opened, config: Any, step: Step, front: Found) -> list[str]:
    names, place = opened.tensors.names, step.place
    found = [] if front.name is not None else [f"{front.where}: the weights are given as they stand"]
    if step.calls > 1:
        found.append(f"one set of weights, called {step.calls} times")
    if normed := [name for name in _QK_NORMS if has_norm(f"{place.module}.{name}", names)]:
        found.append(
            f"queries and keys are normalised after the projection ({', '.join(normed)}), "
            "which the static form leaves out"
        )
    if f"{place.module}.logit_scale" in names:
        found.append(
            "queries and keys are scaled to length 1, then by a learned factor, which this leaves out"
        )
    if _shortened(place, names) is not None:
        found.append("keys are made of a sequence shortened by a convolution, with a norm of its own")
    if not opened.known:
        found.append("what the scores are multiplied by is not known and taken to be 1/√e")
    if post_norm(opened.tensors, place) and opened.tensors.module is None:
        found.append("whether norms stand before or after is not stored; torch's default, after, is taken")
    return [*found, *config_of.left_out(config)]


def _module(tensors: Tensors, name: str) -> nn.Module | None:
    """The live module of this name, where there is one."""
    try:
        return None if tensors.module is None else tensors.module.get_submodule(name)
    except AttributeError:
        return None

"""Which names mean queries and keys, and which block of which tower they stand in.

One table of name endings serves a hundred models. Blocks are numbered as the tap numbers calls: the encoder's
first, then the decoder's, from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from isoscope.errors import IsoscopeError

_ASIDE = "frontier_predictor."  # its states do not go on, and the tap does not number it
CROSS = ("cross", "encoder_attn", "encdec", "multihead_attn")  # in the name of an attention to another tower


@dataclass(frozen=True)
class Layout:
    """How the weights of an attention end, and how the rows [rows, d] of a fused one are cut.

    `whole` the query's and the key's own weights · `stacked` [h·e | g·e | g·e], queries, keys, values ·
    `grouped` [g, h/g + 2, e], queries of a group, its key and value · `key_value` the query's own weight,
    keys and values stacked · `quarters` [4, 3, h/4, e], queries, values, keys · `headed` [d, h, e].
    """

    query: str
    key: str
    cut: str = "whole"


LAYOUTS = (
    Layout("q_proj.weight", "k_proj.weight"),  # Llama, Whisper, BART, OPT, CLIP, wav2vec 2.0, GPT-J, ViT
    Layout("query.weight", "key.weight"),  # BERT and its kin, ALBERT, Swin, OpenAI's Whisper
    Layout("query_proj.weight", "key_proj.weight"),  # DeBERTa v2
    Layout("projection_query.weight", "projection_key.weight"),  # CvT
    Layout("q_lin.weight", "k_lin.weight"),  # DistilBERT, XLM
    Layout("q.weight", "k.weight"),  # T5
    Layout("wq.weight", "wk.weight"),  # Llama's own files
    Layout("to_q.weight", "to_k.weight"),
    Layout("linear_q.weight", "linear_k.weight"),  # Conformers
    Layout("q_proj_weight", "k_proj_weight"),  # nn.MultiheadAttention with keys of another width
    Layout("q_attn.weight", "c_attn.weight", "key_value"),  # GPT-2 across
    Layout("c_attn.weight", "c_attn.weight", "stacked"),  # GPT-2
    Layout("in_proj_weight", "in_proj_weight", "stacked"),  # nn.MultiheadAttention
    Layout("qkv_proj.weight", "qkv_proj.weight", "stacked"),  # Phi-3
    Layout("Wqkv.weight", "Wqkv.weight", "stacked"),  # ModernBERT, MPT, DBRX
    Layout("qkv.weight", "qkv.weight", "stacked"),
    Layout("W_pack.weight", "W_pack.weight", "stacked"),
    Layout("query_key_value.weight", "query_key_value.weight", "grouped"),  # GPT-NeoX, BLOOM, Falcon
    Layout("wqkv.weight", "wqkv.weight", "grouped"),
    Layout("self.in_proj.weight", "self.in_proj.weight", "grouped"),  # DeBERTa v1
    Layout("rel_attn.q", "rel_attn.k", "headed"),  # XLNet
)
_ORDER = (  # towers run in this order; what is none of these stands third
    (re.compile(r"initial"), 0),
    (re.compile(r"vision|visual|image"), 1),
    (re.compile(r"text|language"), 3),
    (re.compile(r"decoder"), 4),
    (re.compile(r"final"), 5),
)


@dataclass(frozen=True)
class Place:
    """One attention by name: its block, its module, and its weights, several where heads have their own."""

    block: str
    module: str
    cross: bool
    cut: str
    query: tuple[str, ...]
    key: tuple[str, ...]


@dataclass(frozen=True)
class Tower:
    """A stack of blocks by name, in order."""

    stem: str  # "encoder.layer.#"
    blocks: tuple[str, ...]

    @property
    def decoder(self) -> bool:
        """Whether its name says that it is a decoder."""
        return "decoder" in self.stem


def find_places(names: Iterable[str]) -> list[Place]:
    """Every attention whose names are known; of MANTa, none that only tells where it cuts."""
    there = frozenset(name for name in names if _ASIDE not in name)
    found: dict[str, Place] = {}
    for layout in LAYOUTS:
        for name in sorted(there):
            if name != layout.query and not name.endswith(f".{layout.query}"):
                continue
            module = _owner(name)
            key = name.removesuffix(layout.query) + layout.key
            if key in there and module not in found:
                block = _block(module)
                cross = _is_cross(module[len(block) :])
                found[module] = Place(block, module, cross, layout.cut, (name,), (key,))
    return _gathered(found.values())


def places_by_pattern(names: Iterable[str], query: str, key: str) -> list[Place]:
    """The attentions whose weights match these patterns, whose one group is the number of the layer."""
    there = sorted(names)
    queries, keys = _matched(there, query, "query"), _matched(there, key, "key")
    if set(queries) != set(keys):
        odd = sorted(set(queries) ^ set(keys))[0]
        raise IsoscopeError(f"--query and --key do not match the same layers: layer {odd} is only in one.")
    if queries == keys:
        raise IsoscopeError(
            f"--query and --key both match {next(iter(queries.values()))[0]}; give two names."
        )
    return [
        Place(block, _owner(name), _is_cross(name[len(block) :]), "whole", (name,), (keys[layer][0],))
        for layer, (name, block) in sorted(queries.items())
    ]


def _owner(weight: str) -> str:
    """The attention that a weight belongs to: `x.attention` of `x.attention.query.weight`."""
    return weight.removesuffix(".weight").rpartition(".")[0]


def _is_cross(within: str) -> bool:
    return any(word in within.lower() for word in CROSS)


def _matched(names: Sequence[str], pattern: str, option: str) -> dict[int, tuple[str, str]]:
    """The name and its block by layer."""
    try:
        wanted = re.compile(pattern)
    except re.error as reason:
        raise IsoscopeError(f"--{option} '{pattern}' is no pattern: {reason}.") from reason
    if wanted.groups != 1:
        raise IsoscopeError(
            f"--{option} '{pattern}' needs one group for the layer's number, as in "
            r"'blocks\.(\d+)\.query\.weight'."
        )
    found: dict[int, tuple[str, str]] = {}
    for name in names:
        if (match := wanted.search(name)) and match[1].isdigit():
            if int(match[1]) in found:
                both = f"{found[int(match[1])][0]} and {name}"
                raise IsoscopeError(f"--{option} '{pattern}' matches twice in layer {match[1]}: {both}.")
            found[int(match[1])] = (name, name[: match.end(1)])
    if not found:
        raise IsoscopeError(f"--{option} '{pattern}' matches no weight; there are: {some(names)}.")
    return found


def unknown(where: str, names: Iterable[str]) -> IsoscopeError:
    """Say which names were looked for, some that exist, and how to name them."""
    wanted = ", ".join(dict.fromkeys(layout.query for layout in LAYOUTS))
    return IsoscopeError(
        f"no queries and keys are known in '{where}': looked for names that end in {wanted} with keys beside "
        f"them; there are: {some(names)}. Name them with --query and --key, patterns with one group for the "
        r"layer's number, as in --query 'blocks\.(\d+)\.query\.weight'."
    )


def some(names: Iterable[str]) -> str:
    """A few names as examples, one of each kind.

    >>> some(["h.0.w", "h.1.w", "norm"])
    'h.0.w, norm'
    """
    kinds = {stem_of(name): name for name in sorted(names, reverse=True)}
    return ", ".join(sorted(kinds.values())[:8]) or "none"


def stem_of(block: str) -> str:
    """A name with its numbers left out.

    >>> stem_of("encoder.layers.0.blocks.12")
    'encoder.layers.#.blocks.#'
    """
    return ".".join("#" if part.isdigit() else part for part in block.split("."))


def numbers_of(block: str) -> tuple[int, ...]:
    """The numbers in a name, in order."""
    return tuple(int(part) for part in block.split(".") if part.isdigit())


def find_towers(places: Iterable[Place], names: Iterable[str]) -> list[Tower]:
    """The stacks that hold these attentions, with all of their blocks, in the order in which they run."""
    stems = sorted({stem_of(place.block) for place in places})
    blocks: dict[str, set[str]] = {stem: set() if stem else {""} for stem in stems}  # "": no list at all
    for name in names:
        parts = name.split(".")
        for stem in stems:
            head = ".".join(parts[: stem.count(".") + 1])
            if stem_of(head) == stem:
                blocks[stem].add(head)
    rank = {stem: next((at for word, at in reversed(_ORDER) if word.search(stem)), 2) for stem in stems}
    in_order = sorted(stems, key=lambda stem: (rank[stem], stem))
    return [Tower(stem, tuple(sorted(blocks[stem], key=numbers_of))) for stem in in_order]


def _block(module: str) -> str:
    """The block that a module stands in: its name up to the last number.

    The number of a part inside the block (T5's ``layer.0``) and of a head in a list of heads do not count.
    """
    parts = module.split(".")
    for place in range(len(parts) - 1, 0, -1):
        if parts[place].isdigit():
            before = parts[place - 1]
            if before.endswith("heads") or (before == "layer" and place > 1 and parts[place - 2].isdigit()):
                continue
            return ".".join(parts[: place + 1])
    return parts[0] if parts[0].isdigit() else module


def _gathered(places: Iterable[Place]) -> list[Place]:
    """Heads that have weights of their own, put together as one attention."""
    found: dict[tuple[str, str], list[Place]] = {}
    for place in places:
        whole, _, number = place.module.rpartition(".")
        is_head = number.isdigit() and place.module != place.block
        found.setdefault((place.block, whole if is_head else place.module), []).append(place)
    gathered = []
    for (block, module), heads in found.items():
        heads.sort(key=lambda place: numbers_of(place.module))
        query = tuple(name for place in heads for name in place.query)
        key = tuple(name for place in heads for name in place.key)
        gathered.append(Place(block, module, heads[0].cross, heads[0].cut, query, key))
    return gathered

"""What the tap shows of attention is the model's own: its probabilities, its sites, and nothing changed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from weakref import ref

import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import _get_current_function_mode_stack

from isoscope.errors import IsoscopeError
from isoscope.models.attention.read import once_each
from isoscope.models.attention.tap import Attended, attention_tap, looked_for
from isoscope.models.attention.trail import spelled
from isoscope.models.blocks import find_blocks
from isoscope.models.tap import at_rest
from isoscope.sites import Site
from tests.models import modal, tiny
from tests.models.test_tap import hooks

Seen = list[tuple[Site, Attended]]
_SIZES = {**tiny._SIZES, **tiny._ENDS, "num_attention_heads": 4}
MORE: dict[str, Callable[[], transformers.PreTrainedConfig]] = {
    "bart": lambda: transformers.BartConfig(
        vocab_size=tiny.VOCABULARY, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=64,
        pad_token_id=tiny.PAD, decoder_start_token_id=tiny.SEP, init_std=0.3, **tiny._ENDS,
    ),
    "xlnet": lambda: transformers.XLNetConfig(
        vocab_size=tiny.VOCABULARY, d_model=16, n_layer=2, n_head=2, d_inner=32, initializer_range=0.3
    ),
    "gemma2": lambda: transformers.Gemma2Config(
        **_SIZES, num_key_value_heads=2, head_dim=8, attn_logit_softcapping=2.0
    ),
    "qwen3": lambda: transformers.Qwen3Config(**_SIZES, num_key_value_heads=1, head_dim=8),
    "gptj": lambda: transformers.GPTJConfig(
        vocab_size=tiny.VOCABULARY, n_embd=16, n_layer=2, n_head=2, rotary_dim=4, n_positions=64,
        initializer_range=0.3, **tiny._ENDS,
    ),
    "bloom": lambda: transformers.BloomConfig(
        vocab_size=tiny.VOCABULARY, hidden_size=16, n_layer=2, n_head=2, initializer_range=0.3, **tiny._ENDS
    ),
    "swinv2": lambda: transformers.Swinv2Config(
        image_size=32, patch_size=4, embed_dim=8, depths=[2, 2], num_heads=[2, 2], window_size=4
    ),
    "beit_bias": lambda: transformers.BeitConfig(**modal._VIT, use_relative_position_bias=True),
}  # fmt: skip
PICTURES = (*modal.IMAGES, "swinv2", "beit_bias")
CONVOLUTIONAL = ("convnext", "resnet", "resnet_bottleneck", "efficientnet")
FAMILIES = tuple(name for name in (*tiny.CONFIGS, *modal.ALL, *MORE) if name not in CONVOLUTIONAL)
PADDED = (*(name for name in tiny.CONFIGS), "t5", "byt5", "bart", "xlnet", "gemma2", "qwen3", "gptj", "bloom")


def build(family: str) -> Any:
    """A random model of this family, with weights large enough that attention is far from uniform."""
    torch.manual_seed(0)
    if family in tiny.CONFIGS:
        return tiny.model(family)
    made = modal.build(family) if family in modal.ALL else transformers.AutoModel.from_config(MORE[family]())
    with torch.no_grad():
        for weight in made.parameters():
            if weight.dim() >= 2 and (spread := weight.std()) < 0.1:  # or all zero, as tables of biases are
                weight.copy_(torch.randn_like(weight).mul_(0.3) if spread == 0 else weight * 0.3 / spread)
    return made.eval()


def inputs(family: str, *, padded: bool = False) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(5)
    if family in PICTURES:
        return {"pixel_values": torch.randn(2, 3, 32, 32, generator=generator)}
    if family == "whisper":
        heard = torch.randn(2, 80, 200, generator=generator)
        return {"input_features": heard, "decoder_input_ids": torch.randint(4, 40, (2, 9))}
    if family in modal.SOUND:
        return {"input_values": torch.randn(2, 4000, generator=generator)}
    given = tiny.ids() if padded else {"input_ids": tiny.ids(3, 19)["input_ids"].clamp(min=3)}
    if family in ("t5", "byt5", "bart"):  # as long as the encoder's: lengths do not tell cross from self
        given["decoder_input_ids"] = given["input_ids"].flip(0)
    return given


def look(module: nn.Module, call: Callable[[], object]) -> Seen:
    seen: Seen = []
    with at_rest(module):
        blocks = find_blocks(module, call)
        with attention_tap(module, blocks, lambda site, attended: seen.append((site, attended))):
            call()
    return seen


def products(seen: Attended) -> Tensor:
    """The probabilities in float64, from queries and keys alone."""
    assert seen.query is not None and seen.key is not None
    query, key = seen.query.double(), seen.key.double()
    key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    scores = seen.scale * query @ key.mT
    if seen.causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
    if seen.mask is not None and seen.mask.dtype == torch.bool:
        scores = scores.masked_fill(~seen.mask, -torch.inf)
    elif seen.mask is not None:
        scores = scores + seen.mask.double()
    return scores.softmax(-1)


def probabilities(seen: Attended) -> Tensor:
    return products(seen) if seen.scores is None else seen.scores.double().softmax(-1)


def own(family: str, given: dict[str, Tensor], monkeypatch: pytest.MonkeyPatch) -> dict[Site, Tensor]:
    """What the model itself says, computed eagerly: encoder first, then decoder, then across."""
    module = build(family)
    if module._supports_sdpa:
        module.set_attn_implementation("eager")
    if family == "cvt":  # it does not give its attention
        kept: list[Tensor] = []
        plain = functional.softmax
        with torch.no_grad(), monkeypatch.context() as patch:
            patch.setattr(
                functional, "softmax", lambda *args, **kwargs: kept.append(plain(*args, **kwargs)) or kept[-1]
            )
            module(**given)
        return {Site("attention", number): found for number, found in enumerate(kept, 1)}
    with torch.no_grad():
        told = module(**given, output_attentions=True)
    if "encoder_attentions" in told:
        there = (*told.encoder_attentions, *told.decoder_attentions)
        first = len(told.encoder_attentions) + 1
        across = {Site("cross_attention", i): x for i, x in enumerate(told.cross_attentions, first)}
        return {**{Site("attention", i): x for i, x in enumerate(there, 1)}, **across}
    every = 2 if family in ("swin", "swinv2") else 1  # those give the last of each stage
    return {Site("attention", i * every): x for i, x in enumerate(told.attentions, 1)}


def counted(site: Site, given: dict[str, Tensor], told: Tensor) -> Tensor:
    """The rows [b, t] of queries that are not padding."""
    mask = given.get("attention_mask")
    if mask is None or mask.shape[1] != told.shape[2] or site.kind == "cross_attention":
        return torch.ones(told.shape[0], told.shape[2], dtype=torch.bool)
    return mask.bool()


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_probabilities_are_the_models_own(family: str, padded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if padded and family not in PADDED:
        pytest.skip("takes no padding")
    given = inputs(family, padded=padded)
    told = own(family, given, monkeypatch)
    module = build(family)
    seen = look(module, lambda: module(**given))
    first = {site: attended for site, attended in seen if attended.part == 0}
    assert set(told) <= set(first)
    assert len(told) == len(first) or family in ("swin", "swinv2")
    for site, theirs in told.items():
        assert theirs.shape[-1] == 1 or theirs.amax(-1).mean() > 1.005 / theirs.shape[-1], (
            "too near uniform to tell"
        )
        rows = counted(site, given, theirs)
        ours = [probabilities(first[site])]
        if first[site].query is not None:
            ours.append(products(first[site]))
        for mine in ours:
            apart = (mine - theirs).transpose(1, 2)[rows].abs().max()
            assert apart < 1e-5, f"{family}, {site}: {apart}"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_two_ways_to_compute_it_show_the_same(family: str) -> None:
    """Once as F.scaled_dot_product_attention, once by hand, on the same weights."""
    given = inputs(family, padded=family in PADDED)
    fused = build(family)
    if not fused._supports_sdpa:
        pytest.skip("is written in one way only")
    by_hand = copy.deepcopy(fused)
    by_hand.set_attn_implementation("eager")
    one, other = look(fused, lambda: fused(**given)), look(by_hand, lambda: by_hand(**given))
    assert [(site, a.module, a.part) for site, a in one] == [(site, a.module, a.part) for site, a in other]
    for (site, a), (_, b) in zip(one, other, strict=True):
        assert (a.path, b.path) == ("sdpa", "softmax")
        assert (a.why, b.why) == ("", "")
        assert a.scale == pytest.approx(b.scale)
        rows = counted(site, given, b.scores)
        pairs = [(a.query, b.query), (a.key, b.key), (a.unrotated, b.unrotated), (products(a), products(b))]
        for x, y in pairs:
            assert x.shape == y.shape
            length = x.shape[2] == rows.shape[1]
            apart = (x - y).transpose(1, 2)[rows] if length else x - y
            assert apart.abs().max() < 2e-5, site


@pytest.mark.parametrize("family", (*FAMILIES, *CONVOLUTIONAL))
def test_nothing_changes_and_nothing_stays(family: str) -> None:
    module, given = build(family), inputs(family)
    before = hooks(module)
    asked = functional.has_torch_function
    with torch.no_grad():
        plain = module(**given)[0]
    tapped: list[Tensor] = []
    seen = look(module, lambda: tapped.append(module(**given)[0]))
    assert torch.equal(plain, tapped[-1])
    assert hooks(module) == before
    assert not _get_current_function_mode_stack()
    assert functional.has_torch_function is asked
    assert bool(seen) == (family not in CONVOLUTIONAL)

    def receive(site: Site, attended: Attended) -> None:
        raise ZeroDivisionError

    if seen:
        blocks = find_blocks(module, lambda: module(**given))
        with pytest.raises(ZeroDivisionError), at_rest(module), attention_tap(module, blocks, receive):
            module(**given)
    assert hooks(module) == before
    assert not _get_current_function_mode_stack()


def test_sites_count_calls_and_start_again_with_every_forward() -> None:
    module = tiny.model("albert", num_hidden_layers=4)
    given = tiny.ids()
    seen = look(module, lambda: [module(**given) for _ in range(2)])
    assert [site for site, _ in seen] == [Site("attention", i) for i in (1, 2, 3, 4)] * 2
    assert len({attended.module for _, attended in seen}) == 1


def test_a_failed_forward_does_not_shift_the_next() -> None:
    module, seen = tiny.nano(), list[Site]()

    def receive(site: Site, attended: Attended) -> None:
        seen.append(site)
        if len(seen) == 3:
            raise ZeroDivisionError

    with at_rest(module), attention_tap(module, find_blocks(module), receive):
        with pytest.raises(ZeroDivisionError):
            module(tiny.ids()["input_ids"])
        module(tiny.ids()["input_ids"])
    assert seen[3:] == [Site("attention", i) for i in (1, 1, 2, 2, 3, 3)]


def test_several_attentions_in_one_block_are_parts() -> None:
    module = tiny.nano()
    seen = look(module, lambda: module(tiny.ids()["input_ids"]))
    assert [(site.layer, a.part, a.module) for site, a in seen] == [
        (i + 1, head, f"h.{i}.heads.{head}") for i in range(3) for head in range(2)
    ]
    for _, attended in seen:  # [b, t, e] is one head
        assert attended.query is not None and attended.query.shape == (3, 1, 24, 8)
        assert attended.causal


@pytest.mark.parametrize("family", ["t5", "byt5", "bart", "whisper"])
def test_self_and_cross_are_told_apart(family: str) -> None:
    module, given = build(family), inputs(family)
    seen = look(module, lambda: module(**given))
    for site, attended in seen:
        across = any(word in attended.module for word in ("EncDec", "encoder_attn"))
        assert attended.cross == across == (site.kind == "cross_attention")
    layers = [site.layer for site, attended in seen if attended.cross]
    assert layers == list(range(max(layers) - len(layers) + 1, max(layers) + 1)), "the decoder's"


def test_attention_outside_of_blocks_is_not_received() -> None:
    config = transformers.SiglipVisionConfig(**modal._VIT)
    module = transformers.SiglipVisionModel(config).eval()  # its head is an nn.MultiheadAttention
    given = inputs("vit")
    seen = look(module, lambda: module(**given))
    assert [site for site, _ in seen] == [Site("attention", i) for i in (1, 2, 3)]


class Block(nn.Module):
    """A block whose attention is given as a function of its queries, keys and values."""

    def __init__(self, attend: Callable[..., Tensor], heads: int = 4, key_heads: int = 4) -> None:
        super().__init__()
        self.query, self.value = nn.Linear(16, 16), nn.Linear(16, 16)
        self.key = nn.Linear(16, 4 * key_heads)
        self.attend, self.heads, self.key_heads = attend, heads, key_heads

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (
            each(x).unflatten(-1, (-1, 4)).transpose(1, 2) for each in (self.query, self.key, self.value)
        )
        return x + self.attend(query, key, value).transpose(1, 2).flatten(2)


class Stack(nn.Module):
    def __init__(self, attend: Callable[..., Tensor], **sizes: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(attend, **sizes) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def attended_by(attend: Callable[..., Tensor], **sizes: int) -> Attended:
    torch.manual_seed(3)
    module, x = Stack(attend, **sizes), torch.randn(3, 7, 16)
    return look(module, lambda: module(x))[0][1]


def grouped(repeat: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    return lambda q, k, v: functional.scaled_dot_product_attention(q, repeat(k), v)


@pytest.mark.parametrize(
    ("repeat", "heads"),
    [
        (lambda k: k.repeat_interleave(2, dim=1), 2),
        (lambda k: k[:, :, None].expand(-1, -1, 2, -1, -1).reshape(3, 4, 7, 4), 2),
        (lambda k: torch.stack([k, k], dim=2).flatten(1, 2), 2),
        (lambda k: k.repeat(1, 2, 1, 1), 4),  # side by side as blocks: not the order in which heads pair
        (lambda k: torch.cat([k, k + 1], dim=1), 4),
        (lambda k: torch.zeros(3, 4, 7, 4), 4),
    ],
)
def test_repeated_key_heads_are_there_once(repeat: Callable[[Tensor], Tensor], heads: int) -> None:
    seen = attended_by(grouped(repeat), key_heads=2)
    assert seen.query is not None and seen.key is not None
    assert (seen.query.shape, seen.key.shape) == ((3, 4, 7, 4), (3, heads, 7, 4))


def test_key_heads_shared_by_the_function_itself() -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v[:, :2], enable_gqa=True)

    def single(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k.expand(-1, 4, -1, -1), v)

    two, one = attended_by(attend, key_heads=2), attended_by(single, key_heads=1)
    assert two.key is not None and two.key.shape[1] == 2
    assert one.key is not None and one.key.shape[1] == 1


@pytest.mark.parametrize("rows", [3, 7])
def test_a_causal_flag_on_a_rectangle_is_a_mask(rows: int) -> None:
    seen = attended_by(
        lambda q, k, v: functional.pad(
            torch._C._nn.scaled_dot_product_attention(q[:, :, :rows], k, v, is_causal=True, scale=0.3),
            (0, 0, 0, 7 - rows),
        )
    )
    assert seen.scale == 0.3
    assert seen.causal == (rows == 7)
    visible = (products(seen) > 0).all(dim=(0, 1))
    assert torch.equal(visible, torch.ones(rows, 7, dtype=torch.bool).tril())


def test_more_axes_are_sequences() -> None:
    """Windows as an axis of their own, with a mask for each."""
    hidden = torch.zeros(1, 2, 1, 3, 3).masked_fill(torch.eye(3, dtype=torch.bool), -torch.inf)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, w = (each[:, :, :6].unflatten(2, (2, 3)).movedim(2, 1) for each in (q, k, v))
        done = functional.scaled_dot_product_attention(q, k, w, attn_mask=hidden)
        return torch.cat([done.movedim(1, 2).flatten(2, 3), v[:, :, 6:]], dim=2)

    seen = attended_by(attend)
    assert seen.query is not None and seen.query.shape == (6, 4, 3, 4)
    assert torch.equal(products(seen)[..., 0, 0], torch.zeros(6, 4, dtype=torch.float64))


def test_no_activation_outlives_its_block() -> None:
    """Not even one that rotary position has kept for its mean."""
    module, given = build("qwen3"), inputs("qwen3")
    alive: list[Callable[[], Tensor | None]] = []

    def receive(site: Site, attended: Attended) -> None:
        assert all(each() is None for each in alive)
        assert attended.query is not None and attended.key is not None and attended.unrotated is not None
        alive.extend(ref(each) for each in (attended.query, attended.key, attended.unrotated))
        alive.extend(ref(each._base) for each in (attended.unrotated,) if each._base is not None)

    with at_rest(module), attention_tap(module, find_blocks(module), receive):
        module(**given, use_cache=False)
        assert all(each() is None for each in alive)
    assert len(alive) >= 9


class Wrapped(nn.Module):
    """As data-parallel training wraps a model."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, **given: Tensor) -> Any:
        return self.module(**given)


def test_wrapped_and_compiled_models_are_named_as_they_are() -> None:
    module, given = build("llama"), inputs("llama")
    plain = look(module, lambda: module(**given))
    for outer in (Wrapped(module), torch.compile(module, backend="eager"), Wrapped(copy.deepcopy(module))):
        seen = look(outer, lambda outer=outer: outer(**given))
        assert [(site, a.module) for site, a in seen] == [(site, a.module) for site, a in plain]
        for (_, a), (_, b) in zip(seen, plain, strict=True):
            assert a.query is not None and b.query is not None
            assert torch.equal(a.query, b.query)


class Hidden(nn.Module):
    """A model whose attention is computed where no mode sees it."""

    def __init__(self, implementation: str) -> None:
        super().__init__()
        self.config = transformers.PreTrainedConfig()
        self.config._attn_implementation_internal = implementation
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def test_an_implementation_that_shows_nothing_is_an_error() -> None:
    module = Hidden("flex_attention")
    with pytest.raises(
        IsoscopeError, match=r'Hidden computes .* by flex_attention.*attn_implementation="sdpa"'
    ):
        look(module, lambda: module(torch.randn(2, 3, 4)))
    silent = Hidden("sdpa")
    assert look(silent, lambda: silent(torch.randn(2, 3, 4))) == []
    assert "scaled_dot_product_attention" in looked_for


def test_more_attentions_than_before_are_all_seen() -> None:
    """What follows the last attention of a call is not followed; longer inputs have more of them."""
    module = build("canine")
    counts, seen = list[int](), list[Site]()
    with at_rest(module), attention_tap(module, find_blocks(module), lambda site, _: seen.append(site)):
        for length in (16, 40, 16, 64, 40):
            before = len(seen)
            module(input_ids=tiny.ids(2, length)["input_ids"])
            counts.append(len(seen) - before)
    assert counts[0] == counts[2] < counts[1] == counts[4] < counts[3]


def test_float64_oracle_would_notice_a_wrong_scale_or_mask() -> None:
    """The comparison above can fail."""
    given = inputs("llama", padded=True)
    module = build("llama")
    seen = dict(look(module, lambda: module(**given)))[Site("attention", 2)]
    right = products(seen)
    for wrong in (replace(seen, scale=seen.scale * 1.001), replace(seen, mask=None)):
        assert (products(wrong) - right).abs().max() > 1e-5


def test_copies_of_a_key_head_are_taken_once() -> None:
    keys = torch.arange(2.0).repeat_interleave(3).view(1, 6, 1, 1)
    assert once_each(keys, 6, None)[0].flatten().tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    "function, name",
    [
        (torch.Tensor.__imul__, ("mul", True)),
        (torch.multiply, ("mul", False)),
        (torch.Tensor.mT.__get__, (".mT", False)),
    ],
)
def test_an_operation_has_one_name_however_it_is_spelled(function: Any, name: tuple[str, bool]) -> None:
    assert spelled(function) == name

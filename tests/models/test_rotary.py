"""The query before rotary position: the projection's own, its mean turned as the model turns it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from isoscope.errors import IsoscopeError
from isoscope.models.attention.rotary import Rotation, Still
from isoscope.models.attention.tap import Attended, attention_hooks, attention_tap
from isoscope.models.attention.trail import Trail
from isoscope.models.blocks import find_blocks
from isoscope.models.tap import at_rest
from tests.models import tiny
from tests.models.test_attention_tap import Stack, build, inputs, look

ROTARY = ("llama", "gpt_neox", "modernbert", "qwen3", "gptj")
B, H, T, E = 3, 4, 7, 4
POSITIONS = torch.outer(torch.arange(T).float(), torch.tensor([1.0, 0.1]))  # [t, e/2]
COS, SIN = POSITIONS.cos(), POSITIONS.sin()


def explicit(rows: Tensor, matrices: Tensor) -> Tensor:
    """Every row by the matrix [t, e, e] of its position, in float64."""
    return torch.einsum("tfe,bhte->bhtf", matrices.double(), rows.double())


def matrices_of(rotate: Callable[[Tensor], Tensor], heads: int, width: int) -> Tensor:
    """The matrix of every position, read off the rotation of the axes."""
    axes = [rotate(torch.eye(width, dtype=torch.float64)[i].expand(heads, -1))[0, 0] for i in range(width)]
    return torch.stack(axes, dim=-1)


def check(seen: Attended) -> Tensor:
    """That rotating rows gives the query, and that the rotation is one; its matrices [t, e, e]."""
    assert seen.why == ""
    assert seen.query is not None and seen.unrotated is not None and isinstance(seen.rotate, Rotation)
    assert seen.unrotated.shape == seen.query.shape
    _, heads, rows, width = seen.query.shape
    assert (seen.rotate.each(seen.unrotated.double()) - seen.query).abs().max() < 1e-5
    matrices = matrices_of(seen.rotate, heads, width)
    assert (explicit(seen.unrotated, matrices) - seen.query).abs().max() < 1e-5
    eye = torch.eye(width, dtype=torch.float64)
    assert (matrices @ matrices.mT - eye).abs().max() < 1e-6
    assert (matrices[0] - eye).abs().max() < 1e-6, "the first position is not turned"
    assert rows == 1 or (matrices[1] - eye).abs().max() > 0.1
    mean = seen.unrotated.double().mean((0, 2))
    turned = seen.rotate(mean)
    assert turned.shape[0] in (1, len(seen.query)) and turned.shape[1:] == (heads, rows, width)
    assert (turned - torch.einsum("tfe,he->htf", matrices, mean)).abs().max() < 1e-12
    return matrices


@pytest.mark.parametrize("family", ROTARY)
def test_models_of_many_forms(family: str) -> None:
    module, given = build(family), inputs(family)
    for _, seen in look(module, lambda: module(**given)):
        check(seen)


def key_of(seen: Attended) -> Attended:
    """The same attention with its key in the place of its query."""
    return replace(seen, query=seen.key, unrotated=seen.unrotated_key, rotate=seen.rotate_key)


@pytest.mark.parametrize("family", ROTARY[:-1])
def test_keys_are_turned_as_queries_are(family: str) -> None:
    """Also where key heads are repeated for the query heads that share them."""
    module, given = build(family), inputs(family)
    for _, seen in look(module, lambda: module(**given)):
        matrices = check(key_of(seen))
        assert torch.equal(matrices, check(seen))
        assert seen.rotate_key is not None and seen.key is not None
        assert len(seen.rotate_key(torch.ones(*seen.key.shape[1::2]))) == 1, "one sequence stands for all"


@pytest.mark.parametrize("repeated", [True, False])
def test_keys_with_heads_repeated_after_they_were_turned(repeated: bool) -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = (x[:, ::2] for x in (k, v))  # two heads, each for two of the four query heads
        k = halves(k)
        if repeated:
            k, v = (x[:, :, None].expand(-1, -1, 2, -1, -1).reshape(len(x), 4, T, E) for x in (k, v))
        return functional.scaled_dot_product_attention(halves(q), k, v, enable_gqa=not repeated)

    torch.manual_seed(6)
    module, x = Stack(attend), torch.randn(B, T, 16)
    seen = look(module, lambda: module(x))[0][1]
    assert seen.key is not None and seen.key.shape[1] == 2
    check(key_of(seen))


@pytest.mark.parametrize("family", ["bert", "t5", "bloom"])
def test_without_rotary_position_the_mean_key_stays(family: str) -> None:
    module, given = build(family), inputs(family)
    for _, seen in look(module, lambda: module(**given)):
        assert seen.key is not None and seen.unrotated_key is not None and isinstance(seen.rotate_key, Still)
        assert torch.equal(seen.unrotated_key, seen.key)


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_unrotated_is_what_leaves_the_projection_and_its_norm(family: str) -> None:
    module, given = build(family), inputs(family)
    made: list[Tensor] = []
    name = "q_norm" if family == "qwen3" else "q_proj"
    for layer in module.layers:
        getattr(layer.self_attn, name).register_forward_hook(lambda _, __, out: made.append(out))
    seen = look(module, lambda: module(**given))
    for (_, attended), own in zip(seen, made[-len(seen) :], strict=True):
        assert attended.query is not None and attended.unrotated is not None
        expected = own.reshape(3, 19, attended.query.shape[1], -1).transpose(1, 2)
        assert torch.equal(attended.unrotated, expected)
    # and the model's own tables turn its mean so
    mean = torch.randn(attended.query.shape[1], attended.query.shape[3], dtype=torch.float64)
    cos, sin = (table[0].double() for table in module.rotary_emb(mean.float(), torch.arange(19)[None]))
    half = torch.cat([-mean[:, mean.shape[1] // 2 :], mean[:, : mean.shape[1] // 2]], -1)
    expected = mean[:, None] * cos + half[:, None] * sin
    assert attended.rotate is not None
    assert (attended.rotate(mean)[0] - expected).abs().max() < 1e-6


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5", "vit", "whisper", "bloom"])
def test_without_rotary_position_the_mean_stays(family: str) -> None:
    module, given = build(family), inputs(family)
    for _, seen in look(module, lambda: module(**given)):
        assert seen.query is not None and seen.unrotated is not None and isinstance(seen.rotate, Still)
        assert torch.equal(seen.unrotated, seen.query)
        mean = seen.query.mean((0, 2))
        turned = seen.rotate(mean)
        assert turned.shape == (1, *seen.query.shape[1:])
        assert torch.equal(turned[0, :, -1], mean)


def halves(q: Tensor) -> Tensor:
    one, other = q.chunk(2, dim=-1)
    return torch.cat([one * COS - other * SIN, other * COS + one * SIN], dim=-1)


def pairs(q: Tensor) -> Tensor:
    one, other = q[..., ::2], q[..., 1::2]
    return torch.stack((one * COS - other * SIN, one * SIN + other * COS), dim=-1).flatten(-2)


def complex_pairs(q: Tensor) -> Tensor:
    q = q.transpose(1, 2)  # [b, t, h, e]
    turned = torch.view_as_complex(q.float().reshape(*q.shape[:-1], -1, 2)) * torch.complex(COS, SIN)[:, None]
    return torch.view_as_real(turned).flatten(3).type_as(q).transpose(1, 2)


def partly(q: Tensor) -> Tensor:
    turned, rest = q[..., :2], q[..., 2:]
    one, other = turned.unbind(-1)
    cos, sin = COS[:, 0], SIN[:, 0]
    return torch.cat([torch.stack([one * cos - other * sin, other * cos + one * sin], -1), rest], -1)


def by_batch(q: Tensor) -> Tensor:
    """A step that names the size of the batch."""
    return halves(q.reshape(q.shape[0], H, T, E)).view(q.shape[0], H, T, E)


def rotated(turn: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    return lambda q, k, v: functional.scaled_dot_product_attention(turn(q), turn(k), v)


def first(turn: Callable[[Tensor], Tensor], dtype: torch.dtype = torch.float32, batch: int = B) -> Attended:
    torch.manual_seed(6)
    module, x = Stack(rotated(turn)).to(dtype), torch.randn(batch, T, 16).to(dtype)
    return look(module, lambda: module(x))[0][1]


@pytest.mark.parametrize("turn", [halves, pairs, complex_pairs])
def test_forms_that_people_write(turn: Callable[[Tensor], Tensor]) -> None:
    matrices = check(first(turn))
    angle = POSITIONS[3, 0].double()
    step = 2 if turn is halves else 1  # which two dimensions turn together
    assert matrices[3, 0, 0] == pytest.approx(float(angle.cos()), abs=1e-6)
    assert matrices[3, step, 0] == pytest.approx(float(angle.sin()), abs=1e-6)


def test_part_of_the_dimensions() -> None:
    seen = first(partly)
    assert seen.query is not None and seen.unrotated is not None and seen.rotate is not None, seen.why
    assert torch.equal(seen.unrotated[..., 2:], seen.query[..., 2:])
    check(seen)


def test_a_step_that_names_the_batch() -> None:
    seen = first(by_batch)
    assert seen.rotate is not None
    assert seen.rotate(torch.randn(H, E)).shape in ((1, H, T, E), (B, H, T, E))
    check_rows(seen)


def check_rows(seen: Attended) -> None:
    assert seen.unrotated is not None and seen.query is not None and seen.rotate is not None
    flat = torch.ones_like(seen.unrotated).double() * seen.unrotated.double().mean((0, 2))[None, :, None]
    assert isinstance(seen.rotate, Rotation)
    expected = seen.rotate.each(flat)
    assert (seen.rotate(flat[0, :, 0]) - expected).abs().max() < 1e-12


def test_positions_of_their_own_in_every_sequence() -> None:
    module = build("llama")
    given = {**inputs("llama"), "position_ids": torch.stack([torch.arange(19) + i for i in (0, 5, 9)])}
    for _, seen in look(module, lambda: module(**given)):
        assert seen.rotate is not None and seen.query is not None
        mean = torch.randn(seen.query.shape[1], seen.query.shape[3])
        turned = seen.rotate(mean)
        assert turned.shape == seen.query.shape
        torch.testing.assert_close(turned[0, :, 5:], turned[1, :, :-5])
        check_rows(seen)


def test_half_precision() -> None:
    seen = first(lambda q: halves(q.float()).to(q.dtype), torch.bfloat16)
    assert seen.unrotated is not None and seen.rotate is not None
    mean = seen.unrotated.double().mean((0, 2))
    assert seen.rotate(mean).dtype == torch.float64, "a mean is not rounded to the model's precision"


@pytest.mark.parametrize("lengths", [((1, 5), (3, 9)), ((3, 9), (1, 5)), ((3, 9), (2, 4))])
def test_batches_of_other_sizes_follow(lengths: tuple[tuple[int, int], ...]) -> None:
    """The layout is checked once a place; what comes after is as right."""
    module, seen = build("llama"), list[Any]()
    with at_rest(module), attention_tap(module, find_blocks(module), lambda _, a: seen.append(a)):
        for size, length in lengths:
            module(input_ids=tiny.ids(size, length + 9)["input_ids"])
    for attended in seen:
        check(attended)


@pytest.mark.parametrize("family", ROTARY[:-1])  # the last weighs its keys by hand: only a trail tells
def test_a_call_that_is_known_is_followed_without_being_traced(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other tokens and other positions, in the same shape: what is shown is what tracing shows."""
    module, given = build(family), inputs(family, padded=True)
    other = {name: x.flip(0) for name, x in given.items()}
    traced = [seen for _, seen in look(module, lambda: module(**other))]
    known: list[Attended] = []
    notes: list[str] = []
    plain = Trail.note
    monkeypatch.setattr(
        Trail, "note", lambda self, *parts: (notes.append(str(parts[0])), plain(self, *parts))[1]
    )
    with at_rest(module), attention_hooks(module, find_blocks(module), lambda _, a: known.append(a)) as mode:
        with mode:
            module(**given)
        assert notes
        notes.clear()
        known.clear()
        module(**given)  # outside the mode nothing is seen
        assert not known
        with mode:
            module(**other)
    assert not notes
    for one, expected in (
        (each(one), each(expected))
        for one, expected in zip(known, traced, strict=True)
        for each in (key_of, replace)
    ):
        assert one.unrotated is not None and expected.unrotated is not None
        assert torch.equal(one.unrotated, expected.unrotated)
        mean = torch.randn(one.unrotated.shape[1], one.unrotated.shape[3], dtype=torch.float64)
        assert one.rotate is not None and expected.rotate is not None
        assert torch.equal(one.rotate(mean), expected.rotate(mean))


def test_operations_that_change_from_batch_to_batch_are_refused() -> None:
    again = iter((False, False, True, True))

    def turn(q: Tensor) -> Tensor:
        return halves(q.exp().log() if next(again) else q)

    module, x = (
        Stack(lambda q, k, v: functional.scaled_dot_product_attention(turn(q), k, v)),
        torch.rand(B, T, 16),
    )
    hooks = attention_hooks(module, find_blocks(module), lambda *_: None)
    with at_rest(module), hooks as mode, mode:
        module(x)
        with pytest.raises(IsoscopeError, match="runs other operations on some inputs than on the first"):
            module(x)


def normed_after(q: Tensor) -> Tensor:
    turned = halves(q)
    return turned * turned.square().mean(-1, keepdim=True).rsqrt()


def in_place(q: Tensor) -> Tensor:
    q = q.clone()
    q[..., :2] = halves(q)[..., :2]
    return q


def through_a_view(q: Tensor) -> Tensor:
    q = q.contiguous()
    q[..., :2].mul_(COS)
    return q


@pytest.mark.parametrize("turn", [normed_after, in_place, through_a_view])
def test_what_cannot_be_done_again_has_a_reason(turn: Callable[[Tensor], Tensor]) -> None:
    seen = first(turn)
    assert seen.query is not None
    assert (seen.unrotated, seen.rotate) == (None, None)
    assert "not linear" in seen.why


def test_a_wrong_rotation_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is on numbers: with the steps in disorder it refuses."""
    plain = Rotation.each
    monkeypatch.setattr(Rotation, "each", lambda self, rows: plain(self, rows) + 1e-3)
    seen = first(halves)
    assert seen.unrotated is None
    assert "does not give the query" in seen.why


def test_a_norm_with_a_buffer_is_no_position() -> None:
    norm = nn.BatchNorm2d(H).eval()
    seen = first(lambda q: norm(q))
    assert isinstance(seen.rotate, Still)

"""The lab's Transformer: its parts in their order, its shapes, seeds and refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from isoscope.errors import IsoscopeError
from isoscope.lab.model.transformer import Attention, Shape, build
from isoscope.lab.variants.table import VARIANTS

SMALL = Shape(7, width=8, layers=2, heads=2, length=6)


def ids(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(7, shape, generator=torch.Generator().manual_seed(seed))


def test_forward_is_embedding_blocks_norm_and_head():
    model = build(SMALL, seed=0).double()
    given = ids(3, 5)
    x = model.tokens.weight[given] + model.positions.weight[:5]
    for block in model.blocks:
        x = block(x)
    torch.testing.assert_close(model(given), model.norm(x) @ model.head.weight.T)


def test_heads_are_cut_side_by_side():
    attention = Attention(replace(SMALL, causal=False), 1).double()
    x = torch.randn(1, 4, 8, dtype=torch.float64)
    outs = []
    for head in range(2):
        mine = slice(4 * head, 4 * head + 4)
        q, k, v = (
            x[0] @ part.weight[mine].T + part.bias[mine]
            for part in (attention.query, attention.key, attention.value)
        )
        outs.append((q @ k.T / 2).softmax(-1) @ v)
    expected = torch.cat(outs, -1) @ attention.out.weight.T + attention.out.bias
    torch.testing.assert_close(attention(x, None)[0], expected)


def test_vectors_enter_and_a_pooled_model_gives_one_answer():
    shape = Shape(3, width=8, layers=1, heads=2, length=6, vectors=True, outputs=5, pooled=True, causal=False)
    model = build(shape, seed=0)
    frames = torch.randn(2, 6, 3)
    assert model(frames).shape == (2, 5)
    assert build(replace(shape, pooled=False), seed=0)(frames).shape == (2, 6, 5)
    counts = torch.tensor([[1, 1, 1, 1, 0, 0], [1] * 6])
    torch.testing.assert_close(model(frames, counts)[:1], model(frames[:1, :4]))


def test_an_encoder_sees_the_future_and_a_decoder_does_not():
    for causal in (True, False):
        model = build(replace(SMALL, causal=causal), seed=0)
        given, later = ids(1, 6), ids(1, 6)
        later[:, -1] = (later[:, -1] + 1) % 7
        assert torch.equal(model(given)[:, 0], model(later)[:, 0]) == causal


def test_the_same_seed_gives_the_same_weights_and_leaves_the_world_alone():
    state = torch.get_rng_state()
    one, two, other = build(SMALL, seed=1), build(SMALL, seed=1), build(SMALL, seed=2)
    assert torch.equal(state, torch.get_rng_state())
    pairs = zip(one.parameters(), two.parameters(), strict=True)
    assert all(torch.equal(x, y) for x, y in pairs)
    assert not torch.equal(one.head.weight, other.head.weight)


def test_models_of_all_variants_start_alike_in_what_they_share():
    plain = build(SMALL, seed=3).state_dict()
    for variant in VARIANTS:
        mine = build(replace(SMALL, attention=variant.name), seed=3).state_dict()
        shared = plain.keys() & mine.keys()
        assert {"tokens.weight", "blocks.1.attention.query.weight", "blocks.1.mlp.2.weight"} <= shared
        for name in shared:
            torch.testing.assert_close(plain[name], mine[name], msg=f"{variant.name}: {name}")


def test_weights_start_as_gpt_2_has_them():
    model = build(replace(SMALL, width=64, layers=1), seed=0)
    for name, weight in model.named_parameters():
        if weight.dim() == 2:
            assert float(weight.detach().std()) == pytest.approx(0.02, rel=0.1), name
        elif name.endswith("bias"):
            assert not weight.any(), name


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"attention": "softmx"}, "no attention variant is called 'softmx'; did you mean 'softmax'?"),
        ({"norm": "rmsnorm"}, "no norm is called 'rmsnorm'; did you mean 'rms'?"),
        ({"heads": 3}, "3 heads do not divide a width of 8; 1, 2, 4, 8 would."),
        ({"attention": "differential", "heads": 8}, "1 dimensions a head are odd"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(change: dict[str, object], sentence: str):
    with pytest.raises(IsoscopeError) as refused:
        replace(SMALL, **change)
    assert sentence in str(refused.value)


def test_a_sequence_beyond_its_positions_is_refused():
    with pytest.raises(IsoscopeError, match="the model has 6 positions and was given 7"):
        build(SMALL, seed=0)(ids(1, 7))

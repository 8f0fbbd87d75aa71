"""Attention under NaN, padding on either side, models that feed their own decoder, and sequences second."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import transformers
from torch import nn

import isoscope
from isoscope.errors import IsoscopeError
from isoscope.run.observe.fold import SEQUENCES
from tests.models.tiny import EVERY

SIZES = {"vocab_size": 300, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64}


def ids(sequences: int, length: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(5, 299, (sequences, length), generator=torch.Generator().manual_seed(seed))


def table(model, batches, measures):
    rows = isoscope.observe(model, batches, measures=measures, **EVERY).frame()
    return rows.set_index(["kind", "layer", "measure"])


@pytest.mark.parametrize("size", [16, 48])
@pytest.mark.parametrize("place", [0, 47])
def test_trap_one_nan_key_leaves_grouped_heads_grouped(size, place):
    """Copies of a key head hold NaN where it does; were they not copies, whole batches would not fit."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        **SIZES, num_hidden_layers=1, num_key_value_heads=2, initializer_range=0.3
    )
    model = transformers.LlamaModel(config).eval()
    model.embed_tokens.weight.data[299] = math.nan
    tokens = ids(48, 12)
    tokens[place, 9] = 299
    mask = torch.ones_like(tokens)
    mask[1::2, 10:] = 0
    batches = [
        {"input_ids": some, "attention_mask": its}
        for some, its in zip(torch.split(tokens, size), torch.split(mask, size), strict=True)
    ]
    rows = table(model, batches, ["entropy", "key_drift", "not_finite_rows"])
    counted = int(mask.sum())
    bad = rows.value["attention", 1, "not_finite_rows"]
    assert bad > 0
    assert rows.n["attention", 1, "entropy"] == 4 * counted - bad
    assert rows.n["attention", 1, "key_drift"] == 2 * (counted - 1)  # two key heads, without the NaN


def test_trap_a_decoder_that_the_model_feeds_counts_no_padding():
    torch.manual_seed(0)
    config = transformers.BartConfig(
        vocab_size=300, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64,
        init_std=0.3,
    )  # fmt: skip
    model = transformers.BartModel(config).eval()
    tokens = ids(20, 10)
    padded = torch.cat([tokens, torch.ones(20, 30, dtype=torch.long)], dim=1)
    mask = (torch.arange(40) < 10).long().expand(20, 40)
    names = ["mean_cosine", "entropy", "query_drift"]
    alone = table(model, [{"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}], names)
    together = table(model, [{"input_ids": padded, "attention_mask": mask}], names)
    assert alone.n.tolist() == together.n.tolist()
    assert np.allclose(alone.value, together.value, rtol=1e-5, atol=1e-6)


def hunyuan() -> nn.Module:
    """A model whose query before rotary position cannot be had: a norm follows the rotation."""
    torch.manual_seed(0)
    config = transformers.HunYuanDenseV1Config(
        **SIZES, num_hidden_layers=2, num_key_value_heads=4, initializer_range=0.3, head_dim=8, pad_token_id=0
    )
    return transformers.HunYuanDenseV1Model(config).eval().double()


def test_trap_one_nan_does_not_spoil_the_mean_over_the_other_sequences():
    model, tokens = hunyuan(), ids(60, 12)
    names = ["drift_share", "entropy_without_drift"]
    clean = table(model, [{"input_ids": tokens[1:]}], names)
    model.embed_tokens.weight.data[299] = math.nan
    tokens[0, 0] = 299
    spoilt = table(model, [{"input_ids": tokens}], names)
    assert spoilt.value.notna().all()  # at layer 1 the other positions of that sequence still count
    assert np.allclose(clean.value["attention", 2], spoilt.value["attention", 2], rtol=1e-9)


def test_trap_positions_are_those_of_the_sequence_not_of_the_padded_batch():
    model, lengths = hunyuan(), [6 + i % 7 for i in range(60)]
    rows = [ids(1, length, seed)[0] for seed, length in enumerate(lengths)]
    names = ["drift_share", "entropy_without_drift"]

    def batch(side: str) -> dict[str, torch.Tensor]:
        found = {name: torch.zeros(60, 12, dtype=torch.long) for name in ("input_ids", "attention_mask")}
        found["position_ids"] = torch.zeros(60, 12, dtype=torch.long)
        for i, row in enumerate(rows):
            at = slice(0, len(row)) if side == "right" else slice(12 - len(row), 12)
            found["input_ids"][i, at], found["attention_mask"][i, at] = row, 1
            found["position_ids"][i, at] = torch.arange(len(row))
        return found

    right, left = (table(model, [batch(side)], names) for side in ("right", "left"))
    assert right.n.tolist() == left.n.tolist()
    assert np.allclose(right.value, left.value, rtol=1e-6)


def test_trap_sequences_second_with_a_mask_that_has_them_first():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=False, dropout=0.0)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    padding = torch.zeros(80, 7, dtype=torch.bool)
    padding[::2, 5:] = True
    seen = isoscope.observe(model, [{"src": torch.randn(7, 80, 16), "src_key_padding_mask": padding}])
    assert seen.facts["counterfactual"]["sequences"] == SEQUENCES
    share = seen.frame().query("measure == 'drift_share'")
    assert share.value.notna().all()


def test_no_more_sequences_than_said_are_read_again_however_alike_they_are():
    model = transformers.BertModel(transformers.BertConfig(**SIZES, num_hidden_layers=1)).eval()
    seen = isoscope.observe(model, [ids(1, 8).expand(100, 8)] * 2, measures=["drift_share"])
    assert seen.facts["counterfactual"]["sequences"] == SEQUENCES


def test_what_cannot_be_read_where_it_is_asked_for_is_one_sentence():
    model = transformers.BertModel(transformers.BertConfig(**SIZES, num_hidden_layers=1)).eval()
    cloud = torch.randn(20, 3)
    with pytest.raises(
        IsoscopeError, match=r"^entropy needs a model: a cloud has neither layers nor attention\.$"
    ):
        isoscope.describe(cloud, measures=["entropy"])
    with pytest.raises(IsoscopeError, match=r"^entropy cannot be read at 'layer\.\*': choose other"):
        isoscope.observe(model, [ids(4, 8)], measures=["entropy"], layers="layer.*")
    with pytest.raises(IsoscopeError, match=r"^cka_first cannot be read at '0': choose other"):
        isoscope.observe(model, [ids(4, 8)], measures=["cka_first"], layers="0")

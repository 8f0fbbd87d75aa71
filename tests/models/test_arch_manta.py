"""MANTa-LM: names, frontiers against Longformer, pooling by hand, and results that no batch changes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
import transformers
from torch import Tensor

import isoscope
from isoscope.models.arch.configs import MantaConfig
from isoscope.models.arch.manta.frontiers import LocalTransformer
from isoscope.models.arch.manta.model import Manta
from isoscope.models.arch.manta.pooling import BlockPooling, shares
from isoscope.models.inputs import open_data
from isoscope.models.source import fingerprint
from isoscope.models.weights import open_weights

SETTINGS = {
    "model_type": "manta", "architectures": ["MantaForConditionalGeneration"], "byte_embedding_dim": 8,
    "frontier_predictor_num_attention_heads": 2, "frontier_predictor_attention_window": 6, "d_model": 16,
    "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 2, "max_length_inputs": 96,
    "max_length_encoder_decoder": 90, "feed_forward_proj": "gated-gelu",
    "auto_map": {"AutoModelForSeq2SeqLM": "own.Manta"},
}  # fmt: skip
OF_LONGFORMER = (
    "embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight",
    "embeddings.token_type_embeddings.weight", "embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias",
    "pooler.dense.weight", "pooler.dense.bias",
    *(
        f"encoder.layer.0.{part}.{what}"
        for part in (
            "attention.self.query", "attention.self.key", "attention.self.value",
            "attention.self.query_global", "attention.self.key_global", "attention.self.value_global",
            "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense", "output.dense",
            "output.LayerNorm",
        )
        for what in ("weight", "bias")
    ),
)  # fmt: skip
SELF = (
    "layer.0.SelfAttention.q",
    "layer.0.SelfAttention.k",
    "layer.0.SelfAttention.v",
    "layer.0.SelfAttention.o",
)
CROSS = tuple(f"layer.1.EncDecAttention.{name}" for name in "qkvo")
EARLIER = (  # names of the state 0193a9f8
    ("encoder.t5_encoder.", "encoder_decoder.encoder."),
    ("encoder.", ""),
    ("decoder_embeddings.", "encoder_decoder.shared."),
    ("decoder.", "encoder_decoder.decoder."),
)


def settings(**changes: object) -> MantaConfig:
    kept = {name: value for name, value in SETTINGS.items() if name not in ("auto_map", "architectures")}
    return MantaConfig(**{**kept, **changes})


def small(seed: int = 0, **changes: object) -> Manta:
    torch.manual_seed(seed)
    model = Manta(settings(**changes)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.4)
        model.encoder.frontier_predictor.output_projection.weight.mul_(4)
    return model


def names(layers: int, decoder_layers: int) -> set[str]:
    """What the authors' classes register, T5's gated feed-forward parts among it."""
    fed = ("DenseReluDense.wi_0", "DenseReluDense.wi_1", "DenseReluDense.wo", "layer_norm")
    encoder = (*SELF, "layer.0.layer_norm", *(f"layer.1.{name}" for name in fed))
    decoder = (
        *SELF,
        "layer.0.layer_norm",
        *CROSS,
        "layer.1.layer_norm",
        *(f"layer.2.{name}" for name in fed),
    )
    bias = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    return {
        "encoder.byte_embeddings.weight",
        *(f"encoder.frontier_predictor.local_transformer.{name}" for name in OF_LONGFORMER),
        *(f"encoder.frontier_predictor.output_projection.{what}" for what in ("weight", "bias")),
        "encoder.pooler.conv_layers.0.weight",
        *(f"encoder.pooler.out_projection.{what}" for what in ("weight", "bias")),
        *(f"encoder.t5_encoder.block.{i}.{name}.weight" for i in range(layers) for name in encoder),
        *(f"decoder.block.{i}.{name}.weight" for i in range(decoder_layers) for name in decoder),
        *(f"{stack}.{bias}" for stack in ("encoder.t5_encoder", "decoder")),
        *(f"{stack}.final_layer_norm.weight" for stack in ("encoder.t5_encoder", "decoder")),
        "decoder_embeddings.weight",
        "decoder.embed_tokens.weight",
    }


def test_names_are_the_authors() -> None:
    with torch.device("meta"):
        model = Manta(settings())
    assert set(model.state_dict()) == names(2, 3)
    assert model.state_dict()["encoder.pooler.conv_layers.0.weight"].shape == (1, 1, 3, 8)
    several = Manta(settings(pooling_kernel_size=[[2, 5], [3, 7]], pooling_depthwise_convolution=False))
    shapes = {name: tuple(x.shape) for name, x in several.state_dict().items() if "pooler" in name}
    assert shapes["encoder.pooler.conv_layers.1.weight"] == (8, 7, 3)
    assert shapes["encoder.pooler.out_projection.weight"] == (16, 12)


@pytest.mark.parametrize("length", [5, 12, 31])
def test_frontiers_are_seen_as_by_longformer(length: int) -> None:
    torch.manual_seed(4)
    own = LocalTransformer(settings(frontier_predictor_num_layers=2, max_length_inputs=40)).eval()
    config = transformers.LongformerConfig(
        attention_window=6, hidden_size=8, intermediate_size=32, num_attention_heads=2, num_hidden_layers=2,
        max_position_embeddings=43, vocab_size=1, pad_token_id=0, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    theirs = transformers.LongformerModel(config).eval()
    assert set(own.state_dict()) == set(theirs.state_dict())
    with torch.no_grad():
        for weight in theirs.parameters():
            weight.normal_(std=0.5)
    own.load_state_dict(theirs.state_dict())
    embedded = torch.randn(2, length, 8)
    mask = torch.ones(2, length, dtype=torch.long)
    mask[1, length - 2 :] = 0
    with torch.no_grad():
        wanted = theirs(inputs_embeds=embedded, attention_mask=mask).last_hidden_state
        found = own(embedded, mask)
    torch.testing.assert_close(found[mask.bool()], wanted[mask.bool()], rtol=1e-4, atol=1e-5)


def shares_by_hand(frontiers: list[float], least: float) -> list[list[float]]:
    """The share of every byte in every block, from the density of a normal with σ for a variance."""
    means, deviations, mean, variance = [], [], 0.0, least
    for place, begins in enumerate(frontiers):
        begins = 0.0 if place == 0 else begins
        mean, variance = mean + begins, variance + begins * (1 - begins)
        means.append(mean)
        deviations.append(math.sqrt(variance))
    most = max(m + 3 * d for m, d in zip(means, deviations, strict=True))
    count = min(len(frontiers), int(most) + 1)
    found = []
    for mean, deviation in zip(means, deviations, strict=True):
        raw = [math.exp(-((mean - block) ** 2) / (2 * deviation)) for block in range(count)]
        found.append([each / sum(raw) for each in raw])
    return found


@pytest.mark.parametrize("length", [1, 2, 9, 20])
def test_shares_by_hand(length: int) -> None:
    frontiers = torch.rand(1, length, dtype=torch.float64, generator=torch.Generator().manual_seed(length))
    wanted = torch.tensor(shares_by_hand(frontiers[0].tolist(), 1e-3), dtype=torch.float64)
    torch.testing.assert_close(shares(frontiers, 1e-3)[0], wanted.T, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(shares(frontiers, 1e-3).sum(1), torch.ones(1, length, dtype=torch.float64))


def pooled_by_hand(pooling: BlockPooling, frontiers: Tensor, x: Tensor) -> Tensor:
    """The vectors of blocks of one sequence [s, d]: for each block a convolution of its own, written out."""
    held = pooling.state_dict()
    share = shares(frontiers[None], pooling.regularised)[0]
    if pooling.mean:
        share = share / share.sum(1, keepdim=True).clamp(min=1)
    rows = []
    for block in share:
        weighed, channels = block[:, None] * x, []
        for number, layer in enumerate(pooling.conv_layers):
            kernel, width = held[f"conv_layers.{number}.weight"], layer.kernel
            before = (width - 1) // 2
            ahead = (width - 1 - before) - before
            made = []
            for place in range(len(x)):
                total = 0
                for i in range(width):
                    at = place + i - before + ahead
                    if 0 <= at < len(x):
                        one = kernel[0, 0, i] * weighed[at] if layer.alone else weighed[at] @ kernel[..., i]
                        total = total + one
                made.append(
                    total if isinstance(total, Tensor) else torch.zeros(layer.weight.shape[1]).double()
                )
            stacked = torch.stack(made)
            channels.append(stacked.sum(0) if pooling.mean else stacked.max(0).values)
        rows.append(torch.cat(channels))
    pooled = torch.stack(rows[: pooling.longest])
    for i in range(len(pooling.highway._layers)):
        both = pooled @ held[f"highway._layers.{i}.weight"].T + held[f"highway._layers.{i}.bias"]
        change, carry = both.chunk(2, -1)
        pooled = carry.sigmoid() * pooled + (1 - carry.sigmoid()) * change.clamp(min=0)
    return pooled @ held["out_projection.weight"].T + held["out_projection.bias"]


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize(
    ("kernels", "alone"), [([(3, 6)], True), ([(5, 6)], True), ([(1, 4), (4, 3), (3, 5)], False)]
)
def test_pooling_by_hand(kernels: list[tuple[int, int]], alone: bool, mean: bool) -> None:
    torch.manual_seed(7)
    config = MantaConfig(
        byte_embedding_dim=6, d_model=5, pooling_kernel_size=kernels, pooling_depthwise_convolution=alone,
        pooling_mean_pool=mean, pooling_n_highway_layers=2, max_length_encoder_decoder=9,
    )  # fmt: skip
    pooling = BlockPooling(config).double()
    frontiers, x = torch.rand(2, 17, dtype=torch.float64), torch.randn(2, 17, 6, dtype=torch.float64)
    for row in range(2):
        with torch.no_grad():
            found = pooling(frontiers[row : row + 1], x[row : row + 1])[0]
            wanted = pooled_by_hand(pooling, frontiers[row], x[row])
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish(small(), tmp_path_factory.mktemp("manta"))


def publish(model: Manta, place: Path, *, earlier: bool = False) -> Path:
    """A pickle with a language model's head, and the authors' config; ByT5's tokenizer has no files."""
    held = {"lm_head.weight": torch.zeros(384, 16)}
    for name, value in model.state_dict().items():
        for own, other in EARLIER if earlier else ():
            if name.startswith(own):
                name = other + name.removeprefix(own)
                break
        held[name] = value
    torch.save(held, place / "pytorch_model.bin")
    (place / "config.json").write_text(json.dumps(SETTINGS))
    transformers.ByT5Tokenizer(extra_ids=125).save_pretrained(place)
    return place


@pytest.mark.parametrize("earlier", [False, True])
def test_files_of_both_states_load(earlier: bool, tmp_path: Path) -> None:
    loaded = isoscope.load(str(publish(small(), tmp_path, earlier=earlier)))
    assert loaded.notes == ()
    assert fingerprint(loaded.module) == fingerprint(small())


def test_measured_block_by_block_whatever_the_batches(folder: Path) -> None:
    loaded = isoscope.load(str(folder))
    assert loaded.longest == 102  # the table of places of the frontier predictor, less its padding
    tables = []
    for size in (1, 4):
        data = open_data("embedded", loaded, limit=4, max_length=40, batch_size=size)
        assert len(next(iter(data))) == 1
        tables.append(
            isoscope.observe(loaded, data, measures=["mean_cosine", "entropy", "mean_norm"]).frame()
        )
    assert tables[0].value.tolist() == tables[1].value.tolist()
    table = tables[0]
    assert table.value.notna().all()
    assert sorted(set(table[table.kind == "layer"].layer)) == [
        0,
        1,
        2,
        3,
        4,
        5,
    ]  # two of blocks, three of bytes
    assert sorted(set(table[table.kind == "attention"].layer)) == [1, 2, 3, 4, 5]
    assert sorted(set(table[table.kind == "cross_attention"].layer)) == [3, 4, 5]
    n = table[(table.kind == "layer") & (table.measure == "mean_cosine")].n.tolist()
    with torch.no_grad():
        blocks = [loaded.module.encoder(batch.inputs["input_ids"]).shape[1] for batch in data]
    assert n == [sum(blocks)] * 3 + [n[3]] * 3  # all blocks; of the decoder what counts of the text
    assert n[3] == 4 * (40 - 2)  # neither the start nor the first byte
    assert data.facts()["counting"]["blocks"] == "counted"


def test_a_batch_gives_the_blocks_of_its_longest(folder: Path) -> None:
    """Why one sequence is fed at a time: in a batch, as in the authors' code, all have as many blocks."""
    model = isoscope.load(str(folder)).module
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(3, 250, (6, 40), generator=generator)
    with torch.no_grad():
        together = model.encoder(ids).shape[1]
        alone = [model.encoder(row[None]).shape[1] for row in ids]
    assert together == max(alone)
    assert len(set(alone)) > 1


def test_weights_are_numbered_as_the_tap_does(folder: Path) -> None:
    opened = open_weights(str(folder))
    assert [str(site) for site in opened.sites] == [
        "attention.1", "attention.2", "attention.3", "cross_attention.3", "attention.4", "cross_attention.4",
        "attention.5", "cross_attention.5",
    ]  # fmt: skip
    found = next(opened.projections())
    assert found.scale == 1.0
    assert any("bias of relative position" in remark for remark in found.remarks)

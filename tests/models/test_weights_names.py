"""Which names are queries and keys: blocks and towers, patterns of one's own, and what is not known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import save_file
from torch import nn

from isoscope.errors import IsoscopeError
from isoscope.models.weights import open_weights
from isoscope.models.weights.names import find_places, find_towers, stem_of
from tests.models import tiny, weighed


@pytest.mark.parametrize(
    ("name", "key", "block", "cross"),
    [
        ("bert.encoder.layer.3.attention.self.query.weight", "key.weight", "bert.encoder.layer.3", False),
        ("decoder.block.1.layer.0.SelfAttention.q.weight", "k.weight", "decoder.block.1", False),
        ("decoder.block.1.layer.1.EncDecAttention.q.weight", "k.weight", "decoder.block.1", True),
        ("decoder.blocks.0.cross_attn.query.weight", "key.weight", "decoder.blocks.0", True),
        ("stages.0.blocks.1.attention.self.query.weight", "key.weight", "stages.0.blocks.1", False),
        ("transformer.resblocks.2.attn.in_proj_weight", None, "transformer.resblocks.2", False),
        ("self_attn.in_proj_weight", None, "self_attn", False),
        ("in_proj_weight", None, "", False),
        ("crossformer.layers.0.attn.qkv.weight", None, "crossformer.layers.0", False),
    ],
)  # fmt: skip
def test_blocks_by_name(name: str, key: str | None, block: str, cross: bool) -> None:
    partner = name if key is None else name.removesuffix(name.rsplit(".", 2)[-2] + ".weight") + key
    (place,) = find_places([name, partner, "norm.weight"])
    assert (place.block, place.cross, place.query, place.key) == (block, cross, (name,), (partner,))


def test_a_query_without_a_key_is_none() -> None:
    """Latent attention (DeepSeek) has no keys of its own beside its queries."""
    assert find_places(["layers.0.self_attn.q_proj.weight", "layers.0.self_attn.kv_b_proj.weight"]) == []
    assert find_places(["layers.0.mixer.in_proj.weight", "layers.0.pos_query_proj.weight"]) == []


def test_towers_in_the_order_of_the_run() -> None:
    names = [
        f"{stem}.{number}.attn.qkv.weight"
        for stem in ("decoder.layers", "encoder.layers", "final_encoder.layer", "initial_encoder.layer")
        for number in (10, 2, 0)
    ]
    towers = find_towers(find_places(names), [*names, "encoder.layers.1.conv.weight"])
    assert [tower.stem.split(".")[0] for tower in towers] == [
        "initial_encoder", "encoder", "decoder", "final_encoder"
    ]  # fmt: skip
    assert [int(block.rsplit(".", 1)[1]) for block in towers[1].blocks] == [0, 1, 2, 10]
    assert stem_of("a.12.b") == "a.#.b"


def test_canine_is_numbered_as_it_runs() -> None:
    module = weighed.shaken(tiny.model("canine"))
    weights = open_weights(module)
    seen = weighed.run(module, {"input_ids": torch.randint(5, 90, (1, 48))})
    assert set(weights.sites) == set(seen.attended)
    assert [step.place.block.split(".")[0] for step in weights.steps] == [
        "initial_char_encoder", "encoder", "encoder", "encoder", "final_char_encoder"
    ]  # fmt: skip


def test_blocks_without_attention_are_counted() -> None:
    config = transformers.Lfm2Config(
        **{**weighed._GROUPED, "num_hidden_layers": 3}, layer_types=["conv", "full_attention", "conv"]
    )
    module = weighed.shaken(transformers.AutoModel.from_config(config))
    weights = open_weights(module)
    seen = weighed.run(module, weighed.inputs("lfm2"))
    assert [str(site) for site in weights.sites] == ["attention.2"] == [str(site) for site in seen.attended]
    (found,) = weights.projections()
    assert found.norm is not None and found.norm.name == "layers.1.operator_norm"
    q = torch.einsum("btd,hde->bthe", seen.left[found.norm.name][0], found.query.double())
    torch.testing.assert_close(q, seen.entered["layers.1.self_attn.q_layernorm"][0])


def test_a_gate_beside_the_queries_is_left_away() -> None:
    config = transformers.Qwen3NextConfig(
        **weighed._GROUPED, head_dim=8, layer_types=["full_attention"] * 2, mlp_only_layers=[0, 1]
    )
    module = weighed.shaken(transformers.AutoModel.from_config(config))
    seen = weighed.run(module, weighed.inputs("qwen3_next"))
    for found in open_weights(module).projections():
        assert found.query.shape == (4, 16, 8) and any("gate" in told for told in found.remarks)
        q = torch.einsum("btd,hde->bthe", seen.left[found.norm.name][0], found.query.double())
        torch.testing.assert_close(q, seen.entered[f"{found.module}.q_norm"][0])


def test_keys_of_another_width() -> None:
    """nn.MultiheadAttention keeps three weights then, and still one bias."""
    module = weighed.shaken(nn.MultiheadAttention(16, 4, kdim=6, vdim=6, batch_first=True))
    (found,) = open_weights(module).projections()
    assert found.query.shape == (4, 16, 4) and found.key.shape == (4, 6, 4)
    x, y = torch.randn(2, 5, 16).double(), torch.randn(2, 3, 6).double()
    _, expected = module.double()(x, y, y, average_attn_weights=False)
    torch.testing.assert_close(weighed.scores_from(found, x, y).softmax(-1), expected, rtol=1e-6, atol=1e-7)


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """An architecture that nobody knows, with names of its own."""
    torch.manual_seed(0)
    held = {
        f"trunk.{layer}.mix.{part}.weight": torch.randn(12, 16)
        for layer in range(11)
        for part in ("asking", "answering")
    }
    save_file({**held, "trunk.0.mix.asking.bias": torch.randn(12)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "strange", "num_attention_heads": 3}))
    return tmp_path


def test_patterns_name_what_is_not_known(strange: Path) -> None:
    weights = open_weights(
        str(strange), query=r"trunk\.(\d+)\.mix\.asking\.weight", key=r"\.(\d+)\..*answering\.weight"
    )
    assert [site.layer for site in weights.sites] == [*range(1, 12)]
    found = list(weights.projections())
    assert found[0].query.shape == found[0].key.shape == (3, 16, 4)
    assert found[0].query_bias is not None and found[1].query_bias is None
    assert found[0].scale == 0.5 and any("taken to be 1/√e" in told for told in found[0].remarks)
    stored = weights.opened.tensors.read("trunk.10.mix.answering.weight")
    assert torch.equal(found[10].key[2], stored[8:12].T)


def test_what_cannot_be_named(strange: Path) -> None:
    asking, answering = r"trunk\.(\d+)\.mix\.asking\.weight", r"trunk\.(\d+)\.mix\.answering\.weight"
    for query, key, told in (
        (None, None, r"no queries and keys are known in .*looked for names that end in q_proj.weight, .*"
                     r"there are: trunk.0.mix.answering.weight, .*--query and --key, patterns with one"),
        (asking, None, "--query was given without --key"),
        (None, answering, "--key was given without --query"),
        ("(", answering, r"--query '\(' is no pattern"),
        (r"trunk\.\d+", answering, "needs one group for the layer's number"),
        (r"branch\.(\d+)", answering, "matches no weight; there are: trunk.0"),
        (r"trunk\.(\d+)", answering, "matches twice in layer 0"),
        (asking, asking, "both match trunk.0.mix.asking.weight"),
        (r"trunk\.(\d)\.mix\.asking\.weight", answering, "layer 10 is only in one"),
    ):  # fmt: skip
        with pytest.raises(IsoscopeError, match=told):
            open_weights(str(strange), query=query, key=key)
    (strange / "config.json").write_text("{}")
    with pytest.raises(
        IsoscopeError, match="does not say how many heads it has: looked for num_attention_heads"
    ):
        list(open_weights(str(strange), query=asking, key=answering).projections())


def test_a_model_without_attention_keeps_its_vocabulary() -> None:
    class Bag(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wte, self.lm_head = nn.Embedding(7, 3), nn.Linear(3, 7)

    weights = open_weights(Bag())
    assert weights.sites == () and weights.final_norm() is None
    assert weights.vocabulary("input").matrix.shape == (7, 3)
    assert weights.vocabulary("output").bias.shape == (7,)
    with pytest.raises(IsoscopeError, match="no queries and keys are known in 'Bag'"):
        weights.projections()
    with pytest.raises(IsoscopeError, match="no vocabulary is called 'in'"):
        weights.vocabulary("in")

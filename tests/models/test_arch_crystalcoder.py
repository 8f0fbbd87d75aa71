"""CrystalCoder: the published names and size, muP and the rotation by hand, and the way to measure it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

import isoscope
from isoscope.errors import IsoscopeError
from isoscope.models.arch.configs import CrystalCoderConfig
from isoscope.models.arch.crystalcoder import CrystalCoder, turn
from isoscope.models.weights import open_weights
from tests.models import tiny

HERE = ("wte.weight", "ln_f.weight", "ln_f.bias")
OF_A_BLOCK = (  # in the index of LLM360/CrystalCoder's shards, after transformer.h.0.
    "attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight", "attn.c_proj.bias", "ln_1.weight",
    "ln_1.bias", "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_fc2.weight",
    "mlp.c_fc2.bias", "mlp.c_proj.weight", "mlp.c_proj.bias",
)  # fmt: skip
PUBLISHED = 26_960_145_024  # bytes, as the index says
SETTINGS = {  # the published config.json, smaller
    "model_type": "crystalcoder", "architectures": ["CrystalCoderLMHeadModel"], "n_embd": 24, "n_head": 2,
    "n_layer": 3, "n_inner": 20, "n_positions": 64, "vocab_size": tiny.VOCABULARY, "rotary_dim": 4,
    "position_embedding_type": "rotary", "activation_function": "swiglu", "layer_norm_epsilon": 1e-5,
    "mup_embeddings_scale": 14.6, "mup_output_alpha": 2.22, "mup_width_scale": 0.0625,
    "mup_scale_qk_dot_by_d": True, "scale_attn_weights": True, "tie_word_embeddings": True,
    "attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "use_cache": True,
    "auto_map": {"AutoConfig": "configuration_crystalcoder.CrystalCoderConfig",
                 "AutoModel": "modeling_crystalcoder.CrystalCoderModel"},
}  # fmt: skip


def small(seed: int = 0) -> CrystalCoder:
    torch.manual_seed(seed)
    kept = {name: value for name, value in SETTINGS.items() if name not in ("auto_map", "architectures")}
    model = CrystalCoder(CrystalCoderConfig(**kept)).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return model


def publish(model: CrystalCoder, folder: Path) -> Path:
    """As the authors do: a config with code that is never run, pickled shards with two buffers a block."""
    held = {f"transformer.{name}": value for name, value in model.state_dict().items()}
    for block in range(3):
        held[f"transformer.h.{block}.attn.bias"] = torch.ones(1, 1, 64, 64, dtype=torch.bool).tril()
        held[f"transformer.h.{block}.attn.masked_bias"] = torch.tensor(-1e4)
    held["lm_head.weight"] = model.wte.weight.detach().clone()
    names = sorted(held)
    files = {name: f"pytorch_model-0000{1 + (i % 2)}-of-00002.bin" for i, name in enumerate(names)}
    for file in set(files.values()):
        torch.save({name: held[name] for name in names if files[name] == file}, folder / file)
    index = {"metadata": {"total_size": 1}, "weight_map": files}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text(json.dumps(SETTINGS))
    tiny.tokenizer("none").save_pretrained(folder)
    said = json.loads((folder / "tokenizer_config.json").read_text())
    own = [None, "tokenization_crystalcoder_fast.CrystalCoderTokenizerFast"]
    said |= {"tokenizer_class": "CrystalCoderTokenizer", "auto_map": {"AutoTokenizer": own}}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish(small(), tmp_path_factory.mktemp("crystalcoder"))


def test_names_and_size_are_the_published_ones() -> None:
    with torch.device("meta"):
        model = CrystalCoder(CrystalCoderConfig(n_inner=10922, rotary_dim=32))
    assert set(model.state_dict()) == {
        *HERE,
        *(f"h.{block}.{name}" for block in range(32) for name in OF_A_BLOCK),
    }
    weights = sum(weight.numel() for weight in model.parameters())
    head, buffers = (
        32032 * 4096,
        32 * (2048 * 2048 + 4),
    )  # an output matrix of its own; a byte a place, a float
    assert 4 * (weights + head) + buffers == PUBLISHED


def test_a_turn_by_hand() -> None:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(2, 3, 7, 10, generator=generator, dtype=torch.float64)
    turned = turn(x, 6)
    assert torch.equal(turned[..., 6:], x[..., 6:])
    for place in range(7):
        for plane in range(3):
            angle = place * 10_000 ** (-2 * plane / 6)
            one, other = x[:, :, place, 2 * plane], x[:, :, place, 2 * plane + 1]
            cosine, sine = math.cos(angle), math.sin(angle)
            wanted = torch.stack([one * cosine - other * sine, one * sine + other * cosine], -1)
            found = turned[:, :, place, 2 * plane : 2 * plane + 2]
            torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6)


def by_hand(model: CrystalCoder, ids: Tensor) -> Tensor:
    """The last state, token by token and head by head."""
    held = {name: value.double() for name, value in model.state_dict().items()}

    def normed(x: Tensor, name: str) -> Tensor:
        x = (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
        return x * held[f"{name}.weight"] + held[f"{name}.bias"]

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ held[f"{name}.weight"] + held[f"{name}.bias"]

    x = 14.6 * held["wte.weight"][ids]
    for block in range(3):
        at = f"h.{block}"
        made = linear(normed(x, f"{at}.ln_1"), f"{at}.attn.c_attn")
        outs = []
        for head in range(2):
            query, key, value = (made[:, 24 * i + 12 * head : 24 * i + 12 * (head + 1)] for i in range(3))
            query, key = (turn(each[None, None], 4)[0, 0] for each in (query, key))
            scores = query @ key.T / 12  # by the width of a head, not its root
            scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -math.inf)
            outs.append(scores.softmax(-1) @ value)
        x = x + linear(torch.cat(outs, -1), f"{at}.attn.c_proj")
        inside = normed(x, f"{at}.ln_2")
        gate = linear(inside, f"{at}.mlp.c_fc2")
        x = x + linear(linear(inside, f"{at}.mlp.c_fc") * gate * gate.sigmoid(), f"{at}.mlp.c_proj")
    return normed(x, "ln_f")


def test_the_model_by_hand() -> None:
    model = small(seed=5).double()
    ids = torch.randint(5, tiny.VOCABULARY, (2, 19), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        found = model(ids).last_hidden_state
        for row in range(2):
            torch.testing.assert_close(found[row], by_hand(model, ids[row]), rtol=1e-6, atol=1e-6)
        model.config.mup_embeddings_scale = 1.0
        assert (model(ids).last_hidden_state - found).abs().max() > 0.01  # and the test can fail


def test_padding_changes_nothing() -> None:
    model = small()
    ids = torch.randint(5, tiny.VOCABULARY, (1, 11), generator=torch.Generator().manual_seed(2))
    padded = torch.cat([ids, torch.full((1, 4), 7)], dim=1)
    mask = torch.tensor([[1] * 11 + [0] * 4])
    with torch.no_grad():
        alone, beside = model(ids).last_hidden_state, model(padded, mask).last_hidden_state
    assert beside.isfinite().all()
    torch.testing.assert_close(beside[:, :11], alone, rtol=1e-4, atol=1e-5)


def test_published_files_load_and_are_measured(folder: Path) -> None:
    loaded = isoscope.load(str(folder))
    assert isinstance(loaded.module, CrystalCoder)
    assert (loaded.notes, loaded.longest) == ((), 64)
    for name, value in small().state_dict().items():
        assert torch.equal(loaded.module.state_dict()[name], value), name
    assert len(loaded.tokenizer("ab")["input_ids"]) == 2
    table = isoscope.observe(loaded, "embedded", measures=["mean_cosine", "entropy", "drift_share"]).frame()
    assert set(table[table.kind == "layer"].layer) == {0, 1, 2, 3}
    assert set(table[table.kind == "attention"].layer) == {1, 2, 3}
    assert {"output"} <= set(table.kind)
    assert table.value.notna().all()


def test_weights_know_its_scale(folder: Path) -> None:
    opened = open_weights(str(folder))
    found = list(opened.projections())
    assert [str(each.site) for each in found] == ["attention.1", "attention.2", "attention.3"]
    assert all(each.scale == pytest.approx(1 / 12) for each in found)
    assert any("rotary" in remark.lower() for remark in found[0].remarks)
    assert not any("not known" in remark for remark in found[0].remarks)


def test_what_is_not_here_is_told() -> None:
    with pytest.raises(
        IsoscopeError, match="position_embedding_type 'alibi', and of CrystalCoder only 'rotary'"
    ):
        CrystalCoder(CrystalCoderConfig(**{**SETTINGS, "position_embedding_type": "alibi"}))

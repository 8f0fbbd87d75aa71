"""Single files of weights: state dicts with a config beside them, and OpenAI's own Whisper layout."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import isoscope
from isoscope.errors import IsoscopeError
from isoscope.models.source import fingerprint
from tests.models import modal, tiny


@pytest.mark.parametrize("form", ["plain.pt", "wrapped.pt", "prefixed.pth", "headed.safetensors"])
def test_a_state_dict_with_its_config(form: str, tmp_path: Path) -> None:
    folder = tiny.save("bert", tmp_path / "whole")
    weights = tiny.model("bert").state_dict()
    file = tmp_path / "alone" / form
    file.parent.mkdir()
    match form:
        case "plain.pt":
            torch.save(weights, file)
        case "wrapped.pt":
            torch.save({"epoch": 3, "model_state_dict": weights}, file)
        case "prefixed.pth":
            torch.save({f"module._orig_mod.{name}": value for name, value in weights.items()}, file)
        case _:
            headed = {f"bert.{name}": value.clone() for name, value in weights.items()}
            save_file(headed | {"classifier.weight": torch.zeros(2, 2)}, file)
    loaded = isoscope.load(str(file), config=str(folder))
    assert fingerprint(loaded.module) == fingerprint(tiny.model("bert"))
    assert loaded.tokenizer is not None
    shutil.copy(folder / "config.json", file.parent)
    assert fingerprint(isoscope.load(str(file)).module) == fingerprint(loaded.module)


def test_the_original_whisper_layout(tmp_path: Path) -> None:
    """Written with OpenAI's names, a model comes back as it was, with its own feature extractor."""
    model = modal.build("whisper")
    config = model.config
    names = (
        ("encoder.layer_norm.", "encoder.ln_post."),
        ("decoder.layer_norm.", "decoder.ln."),
        ("embed_positions.weight", "positional_embedding"),
        ("embed_tokens", "token_embedding"),
        (".encoder_attn_layer_norm.", ".cross_attn_ln."),
        (".self_attn_layer_norm.", ".attn_ln."),
        (".final_layer_norm.", ".mlp_ln."),
        (".encoder_attn.", ".cross_attn."),
        (".self_attn.", ".attn."),
        (".q_proj.", ".query."),
        (".k_proj.", ".key."),
        (".v_proj.", ".value."),
        (".out_proj.", ".out."),
        (".fc1.", ".mlp.0."),
        (".fc2.", ".mlp.2."),
        (".layers.", ".blocks."),
    )
    weights = {}
    for name, value in model.state_dict().items():
        for ours, theirs in names:
            name = name.replace(ours, theirs)
        weights[name] = value.half()
    dims = {
        "n_mels": config.num_mel_bins,
        "n_vocab": config.vocab_size,
        "n_audio_ctx": config.max_source_positions,
        "n_audio_state": config.d_model,
        "n_audio_head": config.encoder_attention_heads,
        "n_audio_layer": config.encoder_layers,
        "n_text_ctx": config.max_target_positions,
        "n_text_state": config.d_model,
        "n_text_head": config.decoder_attention_heads,
        "n_text_layer": config.decoder_layers,
    }
    # OpenAI's feed-forward is four times as wide, the tiny model's twice: widen it with zeros
    for name in [name for name in weights if ".mlp." in name]:
        shape = list(weights[name].shape)
        axis = 1 if ".mlp.2.weight" in name else 0
        if ".mlp.2.bias" not in name:
            extra = shape.copy()
            extra[axis] = 4 * config.d_model - shape[axis]
            weights[name] = torch.cat([weights[name], torch.zeros(extra, dtype=torch.half)], dim=axis)
    torch.save({"dims": dims, "model_state_dict": weights}, tmp_path / "tiny.pt")
    loaded = isoscope.load(str(tmp_path / "tiny.pt"))
    assert loaded.takes == "sound"
    features = torch.randn(2, 80, 200)
    spoken = torch.tensor([[3, 5, 7]] * 2)
    with torch.no_grad():
        expected = model.half().float()(input_features=features, decoder_input_ids=spoken)[0]
        found = loaded.module(input_features=features, decoder_input_ids=spoken)[0]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    table = isoscope.observe(loaded, "embedded", measures=["mean_norm"]).frame()
    assert table.value.notna().all()


def test_files_that_hold_no_weights(tmp_path: Path) -> None:
    for name, content, told in (
        ("list.pt", [1, 2], "holds no weights by name but list"),
        ("empty.pt", {"epoch": 3}, "holds no weights by name; it has: epoch"),
    ):
        torch.save(content, tmp_path / name)
        with pytest.raises(IsoscopeError, match=told):
            isoscope.load(str(tmp_path / name))
    (tmp_path / "cut.pt").write_bytes(b"PK\x03\x04")
    with pytest.raises(IsoscopeError, match=r"cut\.pt is cut short"):
        isoscope.load(str(tmp_path / "cut.pt"))
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(IsoscopeError, match="is no file of weights"):
        isoscope.load(str(tmp_path / "notes.txt"))

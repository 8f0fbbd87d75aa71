"""A single file of weights becomes a model: a state dict with its config, OpenAI's own Whisper or a VAN."""

from __future__ import annotations

import json
import pickle
import re
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from isoscope.errors import IsoscopeError, first_line
from isoscope.models import arch

SUFFIXES = (".safetensors", ".pt", ".pth", ".bin", ".ckpt", ".tar")  # .pth.tar: an older way to say .pth
_CUT_SHORT = ("truncated", "incomplete", "eof", "ran out of input")  # in what is said of an old pickle
_WRAPPERS = ("model_state_dict", "state_dict", "model")
_VAN = "block1.0.attn.spatial_gating_unit.conv_spatial.weight"
_WHISPER_NAMES = (  # OpenAI's names, and those of transformers
    (r"\.blocks\.", ".layers."),
    (r"\.cross_attn_ln\.", ".encoder_attn_layer_norm."),
    (r"\.cross_attn\.", ".encoder_attn."),
    (r"\.attn_ln\.", ".self_attn_layer_norm."),
    (r"\.attn\.", ".self_attn."),
    (r"\.(query|key|value)\.", lambda found: f".{found[1][0]}_proj."),
    (r"_attn\.out\.", "_attn.out_proj."),
    (r"\.mlp_ln\.", ".final_layer_norm."),
    (r"\.mlp\.0\.", ".fc1."),
    (r"\.mlp\.2\.", ".fc2."),
    (r"\.ln_post\.|^decoder\.ln\.", lambda found: f"{found[0].split('.')[0]}.layer_norm."),
    (r"token_embedding", "embed_tokens"),
    (r"positional_embedding", "embed_positions.weight"),
)


def load_checkpoint(file: Path, config: Path | None) -> tuple[nn.Module, Any]:
    """The model in `file`, and what turns its data into tensors where the file alone tells.

    `config` is a config.json or a folder with one; without it the one beside the file is taken.
    """
    import transformers

    held = _read(file)
    if isinstance(held.get("dims"), Mapping) and isinstance(held.get("model_state_dict"), Mapping):
        return _whisper(file, held["dims"], held["model_state_dict"])
    weights = state_dict_in(file, held)
    place = config or file.parent
    place = place if place.name.endswith(".json") else place / "config.json"
    if _VAN in weights and not place.exists():
        from isoscope.models.arch.van import Van, config_of

        # the authors' own VAN; pictures as their evaluation takes them: 224 wide, of .9 of a picture
        process = transformers.ConvNextImageProcessorPil(size={"shortest_edge": 224}, crop_pct=0.9)
        return _fill(file, Van(config_of(weights)), weights), process
    if not place.exists():
        raise IsoscopeError(
            f"'{file}' is a file of weights and there is no {place}; name its config.json with --config."
        )
    try:
        arch.know_configs()
        settings = transformers.AutoConfig.from_pretrained(place)
        if settings.model_type in arch.KINDS:
            arch.know_models()
        module = transformers.AutoModel.from_config(settings)
    except (OSError, ValueError, KeyError) as reason:
        raise IsoscopeError(f"cannot make a model of {place}: {first_line(reason)}.") from reason
    return _fill(file, module, weights), None


def _read(file: Path) -> dict[str, Any]:
    if file.suffix != ".safetensors":
        return unpickled(file)
    refuse_cut_short(file)
    try:
        return load_file(file)
    except (OSError, SafetensorError) as reason:
        raise IsoscopeError(f"cannot read {file}: {first_line(reason)}.") from reason


def unpickled(file: Path) -> dict[str, Any]:
    """What a pickle of plain tensors holds, mapped from the file where its format allows it."""
    refuse_cut_short(file)
    try:
        try:
            held = torch.load(file, "cpu", weights_only=True, mmap=True)
        except (RuntimeError, ValueError):  # the format before 2020 cannot be mapped
            held = torch.load(file, "cpu", weights_only=True)
    except (IndexError, EOFError, struct.error) as reason:  # an old pickle that ends in the middle
        raise _cut_short(file) from reason
    except (OSError, RuntimeError, ValueError, pickle.UnpicklingError) as reason:
        if any(sign in f"{type(reason).__name__} {reason}".lower() for sign in _CUT_SHORT):
            raise _cut_short(file) from reason
        if isinstance(reason, pickle.UnpicklingError):
            raise IsoscopeError(
                f"refused to load '{file}': it is a pickle that asks for more than tensors, "
                "and nothing of it was run. Ask for a safetensors version."
            ) from reason
        raise IsoscopeError(f"cannot read {file}: {first_line(reason)}.") from reason
    if not isinstance(held, dict):
        raise IsoscopeError(f"'{file}' holds no weights by name but {type(held).__name__}.")
    return held


def refuse_cut_short(file: Path) -> None:
    """Say that a file ends too early: safetensors by what their header tells, pickles by how a zip ends."""
    there = file.stat().st_size
    with file.open("rb") as stream:
        head = stream.read(8)
        length = int.from_bytes(head, "little")
        header = stream.read(length) if length <= there - 8 else b""
    if file.suffix != ".safetensors":
        if b"PK\x03\x04".startswith(head[:4]) and not zipfile.is_zipfile(file):
            raise _cut_short(file)
        return
    if there < 8 or length > there - 8:
        raise _cut_short(file)
    try:
        told = json.loads(header).items()
        ends = [each["data_offsets"][1] for name, each in told if name != "__metadata__"]
        needed = 8 + length + max(ends, default=0)
    except (ValueError, TypeError, KeyError, AttributeError):
        return  # what is wrong with it, the library says
    if there < needed:
        raise IsoscopeError(f"{file.name} is cut short: {there:,} of {needed:,} bytes are there.")


def _cut_short(file: Path) -> IsoscopeError:
    size = file.stat().st_size
    return IsoscopeError(f"{file.name} is cut short: {size:,} bytes are there and its end is missing.")


def state_dict_in(file: Path, held: Mapping[str, Any]) -> dict[str, Tensor]:
    """The state dict inside the contents of a checkpoint file, without its wrapper."""
    for name in _WRAPPERS:
        if isinstance(held.get(name), Mapping):
            held = held[name]
    weights = {name: value for name, value in held.items() if isinstance(value, Tensor)}
    if not weights:
        raise IsoscopeError(f"'{file}' holds no weights by name; it has: {', '.join(map(str, [*held][:5]))}.")
    return weights


def _fill(file: Path, module: nn.Module, weights: Mapping[str, Tensor]) -> nn.Module:
    """Load the weights, whatever was wrapped around the names; everything the model has must be there."""
    wanted = module.state_dict()
    prefix = f"{getattr(module, 'base_model_prefix', '')}."
    fitting = {}
    for name, value in weights.items():
        plain = re.sub(r"^(module\.|_orig_mod\.)+", "", name)
        fitting[plain if plain in wanted else plain.removeprefix(prefix).removeprefix("model.")] = value
    there = {*fitting, *(name for name, _ in module.named_buffers())}
    missing = [name for name in wanted if name not in there and not name.startswith("pooler.")]
    misshaped = [name for name in wanted if name in fitting and fitting[name].shape != wanted[name].shape]
    if missing or misshaped:
        told = [f"{len(missing)} missing, first {missing[0]}"] if missing else []
        if misshaped:
            name = misshaped[0]
            shapes = f"{tuple(fitting[name].shape)} where the config says {tuple(wanted[name].shape)}"
            told.append(f"{len(misshaped)} of another shape, first {name}: {shapes}")
        raise IsoscopeError(f"the weights in '{file}' do not fit the config: {'; '.join(told)}.")
    module.load_state_dict({name: fitting[name] for name in wanted if name in fitting}, strict=False)
    return module


def _whisper(file: Path, dims: Mapping[str, int], weights: Mapping[str, Tensor]) -> tuple[nn.Module, Any]:
    import transformers

    # the end of text comes right after the words: 50256 of them in English, 50257 in many languages
    end = min(50256 if dims["n_vocab"] == 51864 else 50257, dims["n_vocab"] - 2)
    config = transformers.WhisperConfig(
        vocab_size=dims["n_vocab"],
        num_mel_bins=dims["n_mels"],
        d_model=dims["n_audio_state"],
        encoder_layers=dims["n_audio_layer"],
        encoder_attention_heads=dims["n_audio_head"],
        encoder_ffn_dim=4 * dims["n_audio_state"],
        max_source_positions=dims["n_audio_ctx"],
        decoder_layers=dims["n_text_layer"],
        decoder_attention_heads=dims["n_text_head"],
        decoder_ffn_dim=4 * dims["n_text_state"],
        max_target_positions=dims["n_text_ctx"],
        decoder_start_token_id=end + 1,
        bos_token_id=end,
        eos_token_id=end,
        pad_token_id=end,
    )
    renamed = {}
    for name, value in weights.items():
        for pattern, replacement in _WHISPER_NAMES:
            name = re.sub(pattern, replacement, name)
        renamed[name] = value
    seconds = 2 * dims["n_audio_ctx"] * 160 // 16_000
    extractor = transformers.WhisperFeatureExtractor(feature_size=dims["n_mels"], chunk_length=seconds)
    return _fill(file, transformers.WhisperModel(config), renamed), extractor

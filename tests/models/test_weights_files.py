"""The same weights from every kind of file, read one at a time; and a sentence for every bad one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import huggingface_hub
import pytest
import torch
import transformers
from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from isoscope.errors import IsoscopeError
from isoscope.models.source import Model
from isoscope.models.weights import files as weights_files
from isoscope.models.weights import open_weights
from tests.models import modal, weighed


@pytest.fixture(scope="module")
def module() -> nn.Module:
    return weighed.model("llama", transformers.AutoModelForCausalLM)


@pytest.fixture
def folder(module: nn.Module, tmp_path: Path) -> Path:
    module.save_pretrained(tmp_path / "whole")
    return tmp_path / "whole"


@pytest.fixture
def sharded(module: nn.Module, tmp_path: Path) -> Path:
    module.save_pretrained(tmp_path / "parts", max_shard_size="6KB")
    assert len([*(tmp_path / "parts").glob("*.safetensors")]) > 3
    return tmp_path / "parts"


def pickled(folder: Path, name: str = "pytorch_model.bin", wrap: Callable[..., object] = dict) -> Path:
    """The folder's safetensors as a pickle."""
    torch.save(wrap(load_file(folder / "model.safetensors")), folder / name)
    (folder / "model.safetensors").unlink()
    return folder


def shards_of_pickles(folder: Path) -> Path:
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    for file in folder.glob("*.safetensors"):
        torch.save(load_file(file), file.with_suffix(".bin"))
        file.unlink()
    index["weight_map"] = {k: v.replace(".safetensors", ".bin") for k, v in index["weight_map"].items()}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    (folder / "model.safetensors.index.json").unlink()
    return folder


def test_every_kind_of_file_gives_the_same(
    module: nn.Module, folder: Path, sharded: Path, tmp_path: Path
) -> None:
    copies = [Path(shutil.copytree(folder, tmp_path / name)) for name in "abcde"]
    pickled(copies[1], "any.pt", lambda held: {"epoch": 1, "model_state_dict": held})
    pickled(copies[2], "any.ckpt", lambda held: {f"module._orig_mod.{k}": v for k, v in held.items()})
    held = load_file(copies[4] / "model.safetensors")
    torch.save(held, copies[4] / "old.pt", _use_new_zipfile_serialization=False)
    places: list[str | nn.Module | Model] = [
        str(folder),
        str(sharded),
        str(pickled(copies[0])),
        str(copies[1] / "any.pt"),
        str(copies[2] / "any.ckpt"),
        str(copies[3] / "model.safetensors"),
        str(copies[4] / "old.pt"),
        str(shards_of_pickles(Path(shutil.copytree(sharded, tmp_path / "f")))),
        nn.DataParallel(module),
        Model(module, "mine", "7"),
    ]
    first = open_weights(module)
    for place in places:
        weights = open_weights(place)
        assert weights.sites == first.sites
        for one, other in zip(weights.projections(), first.projections(), strict=True):
            assert weighed.same(one, other), place
        assert torch.equal(weights.vocabulary("output").matrix, first.vocabulary("output").matrix)
        assert torch.equal(weights.final_norm().weight, first.final_norm().weight)
    named = open_weights(places[-1])
    assert (named.model, named.revision) == ("mine", "7")


def test_one_layer_at_a_time(sharded: Path) -> None:
    """Opening reads no tensor; a layer reads its own and no other."""
    weights, read = open_weights(str(sharded)), []

    def stored(name: str) -> Tensor:
        read.append(name)
        return tensors.stored(name)

    tensors = weights.opened.tensors
    watched = replace(weights, opened=replace(weights.opened, tensors=replace(tensors, stored=stored)))
    layers = watched.projections()
    assert len(watched.sites) == 3 and read == []
    next(layers)
    assert sorted(read) == [
        "model.layers.0.input_layernorm.weight",
        "model.layers.0.self_attn.k_proj.weight",
        "model.layers.0.self_attn.q_proj.weight",
    ]


@pytest.mark.parametrize("kept", [torch.bfloat16, torch.float16, torch.float64])
def test_numbers_come_as_float32_or_wider(module: nn.Module, folder: Path, kept: torch.dtype) -> None:
    held = {name: value.to(kept) for name, value in load_file(folder / "model.safetensors").items()}
    save_file(held, folder / "model.safetensors")
    found = next(open_weights(str(folder)).projections())
    assert found.query.dtype == (torch.float64 if kept == torch.float64 else torch.float32)
    assert torch.equal(
        found.query, next(open_weights(module).projections()).query.to(kept).to(found.query.dtype)
    )


def test_norms_by_their_older_names(tmp_path: Path) -> None:
    module = weighed.model("bert")
    module.save_pretrained(tmp_path)
    held = load_file(tmp_path / "model.safetensors")
    renamed = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
        for name, value in held.items()
    }
    save_file(renamed, tmp_path / "model.safetensors")
    for one, other in zip(
        open_weights(str(tmp_path)).projections(), open_weights(module).projections(), strict=True
    ):
        assert weighed.same(one, other) and one.norm.bias is not None


OPENAI = (
    ("encoder.layer_norm.", "encoder.ln_post."), ("decoder.layer_norm.", "decoder.ln."),
    ("embed_tokens", "token_embedding"), (".encoder_attn_layer_norm.", ".cross_attn_ln."),
    (".self_attn_layer_norm.", ".attn_ln."), (".encoder_attn.", ".cross_attn."), (".self_attn.", ".attn."),
    (".q_proj.", ".query."), (".k_proj.", ".key."), (".layers.", ".blocks."),
)  # fmt: skip


def test_the_original_whisper_layout(tmp_path: Path) -> None:
    module = weighed.shaken(modal.build("whisper"))
    held = {}
    for name, value in module.state_dict().items():
        for ours, theirs in OPENAI:
            name = name.replace(ours, theirs)
        held[name] = value
    dims = {"n_audio_head": 2, "n_text_head": 2}
    torch.save({"dims": dims, "model_state_dict": held}, tmp_path / "tiny.pt")
    weights, live = open_weights(str(tmp_path / "tiny.pt")), open_weights(module)
    for one, other in zip(weights.projections(), live.projections(), strict=True):
        assert weighed.same(one, other)
    assert weights.final_norm().name == "decoder.ln"
    assert weights.vocabulary("output").tied
    assert torch.equal(weights.vocabulary("output").matrix, module.decoder.embed_tokens.weight)


def test_the_hub_gives_only_what_is_asked_for(
    sharded: Path, module: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []

    def download(name: str, file: str, revision: str | None = None) -> str:
        assert (name, revision) == ("owner/tiny", "c" * 40)
        if not (sharded / file).exists():
            raise EntryNotFoundError(file)
        fetched.append(file)
        return str(sharded / file)

    asked: list[object] = []
    monkeypatch.setattr(
        weights_files, "locate", lambda *given: (asked.append(given), ("owner/tiny", "c" * 40))[1]
    )
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    weights = open_weights("owner/tiny@step7")
    assert asked == [("owner/tiny", "step7")]
    assert (weights.model, weights.revision) == ("owner/tiny", "c" * 40)
    assert fetched == ["config.json", "model.safetensors.index.json"]
    assert weighed.same(next(weights.projections()), next(open_weights(module).projections()))
    shards = json.loads((sharded / "model.safetensors.index.json").read_text())["weight_map"]
    first = {file for name, file in shards.items() if "layers.0" in name}
    assert set(fetched[2:]) <= first and len(fetched) == len(set(fetched))

    def gone(name: str, file: str, revision: str | None = None) -> str:
        raise LocalEntryNotFoundError("offline")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", gone)
    with pytest.raises(IsoscopeError, match="is not on this machine and the hub cannot be reached"):
        open_weights("owner/tiny")


class Code:
    """What a pickle runs when it is read carelessly."""

    def __reduce__(self) -> tuple[object, ...]:
        return (exec, ("raise SystemExit",))


def test_bad_folders(folder: Path, sharded: Path, tmp_path: Path) -> None:
    def refused(place: Path, told: str) -> None:
        with pytest.raises(IsoscopeError) as error:
            list(open_weights(str(place)).projections())
        said = str(error.value)
        assert told in said and said.endswith(".") and "\n" not in said, said

    file = next(sharded.glob("*-00002-of-*"))
    file.rename(tmp_path / "aside")
    refused(sharded, f"the shard {file.name} of '{sharded}' is missing; its index says")
    (sharded / "model.safetensors.index.json").write_text("{}")
    refused(sharded, "is no index of shards")
    whole = (folder / "model.safetensors").read_bytes()
    for kept in (len(whole) // 2, 40, 0):
        (folder / "model.safetensors").write_bytes(whole[:kept])
        refused(folder, "model.safetensors is cut short: ")
    (folder / "model.safetensors").unlink()
    refused(
        folder, f"'{folder}' holds no weights: looked for model.safetensors.index.json, model.safetensors"
    )
    torch.save({"weight": torch.ones(1), "code": Code()}, folder / "pytorch_model.bin")
    refused(folder, "it is a pickle that asks for more than tensors, and nothing of it was run")
    (folder / "pytorch_model.bin").write_bytes(b"PK\x03\x04")
    refused(folder, "pytorch_model.bin is cut short: ")
    torch.save([1, 2], folder / "pytorch_model.bin")
    refused(folder, "holds no weights by name but list")
    (folder / "pytorch_model.bin").write_bytes(b"")
    refused(folder, "pytorch_model.bin is cut short: ")
    (folder / "model.safetensors").write_bytes(whole)
    (folder / "config.json").write_text("[1]")
    refused(folder, "holds list, no settings by name")
    (folder / "config.json").write_text("{")
    refused(folder, "cannot read")
    (folder / "config.json").unlink()
    refused(folder, "there is no config.json in it")
    refused(folder / "model.safetensors", "has no config.json, which tells the number of heads")
    (folder / "notes.txt").write_text("x")
    refused(folder / "notes.txt", "is no file of weights")


def test_bad_numbers(folder: Path) -> None:
    held = load_file(folder / "model.safetensors")
    name = "model.layers.1.self_attn.q_proj.weight"
    held[name][0, :3] = torch.nan
    save_file(held, folder / "model.safetensors")
    found = list(open_weights(str(folder)).projections())
    told = "3 weights of queries and keys are NaN or Inf"
    assert [told in each.remarks for each in found] == [False, True, False]
    held[name] = held[name].nan_to_num().to(torch.int8)
    save_file(held, folder / "model.safetensors")
    with pytest.raises(IsoscopeError, match=f"{name} of .* is stored as int8.*not quantised"):
        list(open_weights(str(folder)).projections())
    held[name] = torch.ones(6, 16)
    save_file(held, folder / "model.safetensors")
    with pytest.raises(IsoscopeError, match=f"{name} of .* does not divide into 4 heads.*\\(6, 16\\)"):
        list(open_weights(str(folder)).projections())

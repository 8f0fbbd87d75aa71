"""When weights are taken for the same: all that is weighed counts, nothing else; on the hub the commit."""

from __future__ import annotations

import json
from pathlib import Path

import huggingface_hub
import pytest
import torch
from huggingface_hub.errors import EntryNotFoundError
from safetensors.torch import load_file, save_file

from isoscope.models.weights import files as weights_files
from isoscope.models.weights import open_weights
from isoscope.run.weigh.weigh import weigh
from isoscope.run.weigh.weighed import fingerprint
from tests.run.weighing import bert, llama, sharded


def test_the_fingerprint_knows_other_weights(tmp_path: Path) -> None:
    model = bert()
    model.save_pretrained(tmp_path)
    first = fingerprint(open_weights(str(tmp_path)))
    assert fingerprint(open_weights(str(tmp_path))) == first
    with torch.no_grad():
        model.encoder.layer[1].attention.self.query.weight.mul_(1.001)
    model.save_pretrained(tmp_path)
    assert fingerprint(open_weights(str(tmp_path))) != first


def test_the_fingerprint_is_of_all_that_is_weighed_and_of_nothing_else(tmp_path: Path) -> None:
    """One number anywhere, or the config; the same of weights that are not read."""
    llama().save_pretrained(tmp_path)  # type: ignore[operator]
    file, config = tmp_path / "model.safetensors", tmp_path / "config.json"
    held = load_file(file)

    def now(**given: str) -> str:
        return fingerprint(open_weights(str(tmp_path), **given))

    first = now()
    layer = "model.layers.1"
    for name, weighed in (
        (f"{layer}.self_attn.q_proj.weight", True),
        (f"{layer}.self_attn.k_proj.weight", True),
        (f"{layer}.input_layernorm.weight", True),
        ("model.embed_tokens.weight", True),
        ("lm_head.weight", True),
        ("model.norm.weight", True),
        (f"{layer}.mlp.up_proj.weight", False),
        (f"{layer}.self_attn.v_proj.weight", False),
    ):
        other = held[name].clone()
        other.view(-1)[5] += 1
        save_file({**held, name: other}, file)
        assert (now() != first) == weighed, name
    save_file(held, file)
    assert now() == first
    written = json.loads(config.read_text())
    other = tmp_path / "other" / "config.json"
    other.parent.mkdir()
    other.write_text(json.dumps({**written, "num_attention_heads": 2}))
    assert now(config=str(other)) != first
    config.write_text(other.read_text())
    assert now() == now(config=str(other)) != first


def test_on_the_hub_only_shards_with_something_to_weigh_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = sharded(llama(), tmp_path)
    fetched: list[str] = []

    def download(name: str, file: str, revision: str | None = None) -> str:
        if not (place / file).exists():
            raise EntryNotFoundError(file)
        fetched.append(file)
        return str(place / file)

    commit = ["c" * 40]
    monkeypatch.setattr(weights_files, "locate", lambda *given: ("owner/tiny", commit[0]))
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    first = fingerprint(open_weights("owner/tiny", whole=False))
    assert fetched == ["config.json", "model.safetensors.index.json"]
    found = weigh("owner/tiny")
    files = json.loads((place / "model.safetensors.index.json").read_text())["weight_map"]
    read = ("q_proj.weight", "k_proj.weight", "input_layernorm.weight", "tokens.weight", "head.weight")
    needed = {file for name, file in files.items() if name.endswith((*read, "model.norm.weight"))}
    assert {file for file in fetched if file.startswith("model-")} == needed < set(files.values())
    assert found.revision == commit[0] and not any("shard" in remark for remark in found.remarks)
    commit[0] = "d" * 40
    assert fingerprint(open_weights("owner/tiny", whole=False)) != first

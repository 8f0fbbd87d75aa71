"""A folder becomes a model: what is in it, what is missing, what is refused."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import isoscope
from isoscope.errors import IsoscopeError
from isoscope.models.source import Model, fingerprint
from tests.models import tiny

Saved = Callable[[str], Path]
WEIGHTS = "model.safetensors"


@pytest.fixture
def folder(saved: Saved, tmp_path: Path) -> Path:
    """A copy of the saved BERT that a test may spoil."""
    return shutil.copytree(saved("bert"), tmp_path / "model")


def test_what_was_saved_is_what_is_loaded(folder: Path) -> None:
    loaded = isoscope.load(str(folder))
    assert (loaded.name, loaded.revision, loaded.notes) == (str(folder), "", ())
    assert not any(part.training for part in loaded.module.modules())
    assert loaded.tokenizer("ab")["input_ids"] == tiny.tokenizer()("ab")["input_ids"]
    assert loaded.facts()["dtype"] == "float32"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_dtype(folder: Path, dtype: str) -> None:
    loaded = isoscope.load(str(folder), dtype=dtype)
    assert loaded.facts()["dtype"] == dtype
    rows = isoscope.observe(loaded, [tiny.ids()], measures=["mean_cosine"]).frame()
    full = isoscope.observe(isoscope.load(str(folder)), [tiny.ids()], measures=["mean_cosine"]).frame()
    assert rows.value.tolist() == pytest.approx(full.value.tolist(), abs=0.02)


def test_an_unknown_dtype(folder: Path) -> None:
    with pytest.raises(IsoscopeError, match="no dtype is called 'float33'; did you mean 'float32'"):
        isoscope.load(str(folder), dtype="float33")


def test_an_unknown_device(folder: Path) -> None:
    with pytest.raises(IsoscopeError, match="device 'abacus' cannot be used here"):
        isoscope.load(str(folder), device="abacus")


def test_a_folder_without_config(tmp_path: Path) -> None:
    with pytest.raises(IsoscopeError, match=r"holds no model: there is no config\.json in it"):
        isoscope.load(str(tmp_path))


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2", "llama", "deberta_v2"])
def test_a_folder_without_tokenizer(saved: Saved, tmp_path: Path, family: str) -> None:
    """transformers makes up a tokenizer that knows no word; that is none."""
    for name in ("config.json", WEIGHTS):
        shutil.copy(saved(family) / name, tmp_path)
    loaded = isoscope.load(str(tmp_path))
    assert loaded.tokenizer is None
    with pytest.raises(IsoscopeError, match="comes without tokenizer, so text cannot be read for it"):
        isoscope.observe(loaded, "embedded")
    assert len(isoscope.observe(loaded, [tiny.ids()], measures=["drift"]).frame()) >= tiny.LAYERS + 1


def test_canine_needs_no_files_for_its_tokenizer(saved: Saved, tmp_path: Path) -> None:
    for name in ("config.json", WEIGHTS):
        shutil.copy(saved("canine") / name, tmp_path)
    assert isoscope.load(str(tmp_path)).tokenizer("é", add_special_tokens=False)["input_ids"] == [ord("é")]


def test_missing_weights_are_told(folder: Path) -> None:
    weights = load_file(folder / WEIGHTS)
    gone = sorted(name for name in weights if name.startswith("encoder.layer.1.attention.self.query"))
    save_file(
        {name: x for name, x in weights.items() if name not in gone}, folder / WEIGHTS, {"format": "pt"}
    )
    loaded = isoscope.load(str(folder))
    assert loaded.notes == (f"2 weights are not in the checkpoint and random, first {gone[0]}",)
    seen = isoscope.observe(loaded, [tiny.ids()], measures=["drift"])
    assert loaded.notes[0] in seen.notes()


def test_a_missing_pooler_is_no_matter(folder: Path) -> None:
    weights = load_file(folder / WEIGHTS)
    kept = {name: x for name, x in weights.items() if not name.startswith("pooler.")}
    assert len(kept) < len(weights)
    save_file(kept, folder / WEIGHTS, {"format": "pt"})
    assert isoscope.load(str(folder)).notes == ()


class Trap:
    """What a poisoned pickle holds: loading it would make a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


def test_a_malicious_pickle_is_refused_and_not_run(folder: Path, tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    (folder / WEIGHTS).unlink()
    torch.save({"embeddings.word_embeddings.weight": Trap(sprung)}, folder / "pytorch_model.bin")
    with pytest.raises(IsoscopeError, match=r"refused to load .* nothing of it was run"):
        isoscope.load(str(folder))
    assert not sprung.exists()
    torch.load(folder / "pytorch_model.bin", weights_only=False)
    assert sprung.exists(), "the trap works: read carelessly, it goes off"


def test_an_honest_pickle_is_read(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    torch.save(tiny.model("bert").state_dict(), folder / "pytorch_model.bin")
    assert fingerprint(isoscope.load(str(folder)).module) == fingerprint(tiny.model("bert"))


def test_code_that_comes_with_a_model_is_not_run(folder: Path, tmp_path: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Own"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'ran')!r})\n")
    with pytest.raises(IsoscopeError, match="is run only with --trust-remote-code"):
        isoscope.load(str(folder))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (WEIGHTS, b""),
        (WEIGHTS, b"\x10" * 100),
        ("config.json", b"{"),
        ("config.json", b'{"model_type": "?"}'),
    ],
)
def test_broken_files_are_a_sentence(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(IsoscopeError, match="cannot load the model"):
        isoscope.load(str(folder))


def test_no_weights_at_all(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    with pytest.raises(IsoscopeError, match=r"no file named model\.safetensors"):
        isoscope.load(str(folder))


def test_sharded_safetensors(tmp_path: Path) -> None:
    whole = tiny.model("bert")
    whole.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    loaded = isoscope.load(str(tmp_path))
    assert loaded.notes == ()
    assert fingerprint(loaded.module) == fingerprint(whole)


@pytest.mark.parametrize("family", tiny.CONFIGS)
def test_fingerprint_survives_saving(family: str, saved: Saved) -> None:
    assert fingerprint(isoscope.load(str(saved(family))).module) == fingerprint(tiny.model(family))


def test_fingerprint_sees_one_bit_of_one_weight() -> None:
    module = tiny.model("bert")
    first = fingerprint(module)
    weight = module.encoder.layer[1].output.dense.bias
    with torch.no_grad():
        weight[3] = math.nextafter(float(weight[3]), math.inf) + 2**-20
    assert fingerprint(module) != first
    assert fingerprint(tiny.model("bert", seed=1)) != first


@pytest.mark.parametrize(("family", "longest"), [("bert", 80), ("roberta", 78), ("gpt2", 80), ("canine", 80)])
def test_longest(family: str, longest: int, saved: Saved, tmp_path: Path) -> None:
    """RoBERTa numbers positions from its padding on: the first two of its table are never used."""
    loaded = isoscope.load(str(saved(family)))
    assert loaded.longest == longest
    (tmp_path / "words.txt").write_text("so many words " * 20)
    seen = isoscope.observe(loaded, str(tmp_path / "words.txt"), measures=["drift"])
    assert seen.facts["longest"] == longest


def test_longest_of_tokenizer_and_of_nothing() -> None:
    assert Model(tiny.nano(), "nano", tokenizer=tiny.tokenizer(longest=40)).longest == 40
    assert Model(tiny.nano(), "nano", tokenizer=tiny.tokenizer()).longest is None
    assert Model(tiny.model("bert"), "bert", tokenizer=tiny.tokenizer(longest=40)).longest == 40


def test_roberta_takes_no_more_than_longest(saved: Saved) -> None:
    module = isoscope.load(str(saved("roberta"))).module
    row = torch.full((1, 78), 9)
    module(row)
    with pytest.raises((IndexError, RuntimeError)):
        module(torch.full((1, 79), 9))


def test_the_libraries_screens_are_left_as_they_were(folder: Path) -> None:
    transformers.logging.set_verbosity_info()
    try:
        isoscope.load(str(folder))
        assert transformers.logging.get_verbosity() == transformers.logging.INFO
    finally:
        transformers.logging.set_verbosity_warning()


def test_a_folder_has_no_revisions(folder: Path) -> None:
    for ask in (lambda: isoscope.load(f"{folder}@main"), lambda: isoscope.load(str(folder), revision="main")):
        with pytest.raises(IsoscopeError, match="is a folder and has no revision 'main'"):
            ask()


def test_a_checkpoint_of_another_model_is_refused(folder: Path) -> None:
    save_file({"something.else": torch.zeros(3)}, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(IsoscopeError, match=r"do not fit its config.json: \d+ are missing, first"):
        isoscope.load(str(folder))

"""A fingerprint knows the weights and not the files, and what is wrong with either, in one sentence."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from isoscope.sweeps.find.checkpoints import Checkpoint
from isoscope.sweeps.verify.fingerprint import Fingerprint, fingerprint
from isoscope.sweeps.verify.settings import _settings_of, settings_in
from isoscope.sweeps.verify.verify import _stamp
from tests.sweeps.trajectory import at, copied, tiny, walk


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return walk(tmp_path_factory.mktemp("walk"), [5])[0]


def only(path: Path) -> Fingerprint:
    return fingerprint(at(path))


def fault(path: Path) -> str:
    found = only(path)
    assert found.fault.endswith(".") and "\n" not in found.fault and "Traceback" not in found.fault
    return found.fault


def as_files(folder: Path, to: Path) -> list[Path]:
    """The same weights in every format, with the config beside."""
    weights = load_file(folder / "model.safetensors")
    to.mkdir()
    backwards = dict(reversed(weights.items()))
    torch.save(backwards, to / "new.pt")
    torch.save({"model_state_dict": weights, "step": 5}, to / "wrapped.pth")
    torch.save(weights, to / "old.bin", _use_new_zipfile_serialization=False)
    save_file({f"module.{name}": value for name, value in weights.items()}, to / "ddp.safetensors")
    (to / "config.json").write_text((folder / "config.json").read_text())
    model = tiny()
    model.load_state_dict(weights)
    model.save_pretrained(to / "sharded", max_shard_size="20KB")
    torch.save(weights, to / "pytorch_model.bin")
    assert len(list((to / "sharded").glob("*.safetensors"))) > 2
    return [*(to / name for name in ("new.pt", "wrapped.pth", "old.bin", "ddp.safetensors", "sharded")), to]


def test_the_same_weights_in_every_format_are_the_same(folder: Path, tmp_path: Path) -> None:
    first = only(folder)
    assert first.digest and first.config and first.sketch and not first.fault
    for path in as_files(folder, tmp_path / "files"):
        found = only(path)
        assert (found.digest, found.config, found.sketch) == (first.digest, first.config, first.sketch), path
        assert (found.parts, found.layout, found.fault) == (first.parts, first.layout, "")


def test_one_bit_a_name_a_shape_or_a_type_makes_another(folder: Path, tmp_path: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    name = "encoder.layer.1.output.dense.weight"
    bit, renamed, turned, halved = ({**weights} for _ in range(4))
    bit[name] = weights[name].clone()
    bit[name].view(torch.int32)[3, 1] ^= 1
    renamed[f"{name}_"] = renamed.pop(name)
    turned[name] = weights[name].T.contiguous()
    halved[name] = weights[name].half()
    found = []
    for number, changed in enumerate((weights, bit, renamed, turned, halved)):
        save_file(changed, tmp_path / f"{number}.safetensors")
        found.append(only(tmp_path / f"{number}.safetensors"))
    assert len({each.digest for each in found}) == len(found)
    assert found[0].layout == found[1].layout == found[4].layout
    assert len({each.layout for each in found}) == 3
    differ = [
        part for (part, one), (_, other) in zip(found[0].parts, found[1].parts, strict=True) if one != other
    ]
    assert differ == ["encoder.layer.1"]


def test_a_sketch_has_the_same_places_in_every_checkpoint(tmp_path: Path) -> None:
    """Two checkpoints that differ by a constant have sketches that do, in every place."""
    weights = tiny().state_dict()
    save_file({name: value.clone() for name, value in weights.items()}, tmp_path / "a.safetensors")
    torch.save({name: value + 0.5 for name, value in reversed(weights.items())}, tmp_path / "b.pt")
    one, other = only(tmp_path / "a.safetensors"), only(tmp_path / "b.pt")
    assert len(one.sketch) > 1000
    assert torch.tensor(other.sketch).sub(torch.tensor(one.sketch)).sub(0.5).abs().max() < 1e-6
    assert torch.tensor(one.sketch).unique().numel() > 900  # no norms or biases, which are alike


def test_it_travels(folder: Path) -> None:
    found = only(folder)
    assert Fingerprint.from_json(found.to_json()) == found
    assert pickle.loads(pickle.dumps(found)) == found
    assert len(found.to_json()) < 20_000
    broken = only(folder / "nowhere")
    assert Fingerprint.from_json(broken.to_json()) == broken and "is not there" in broken.fault


@pytest.mark.parametrize("change", ["harmless", "spelling", "heads"])
def test_what_the_config_says(folder: Path, tmp_path: Path, change: str) -> None:
    other = copied(folder, tmp_path / "other")
    said = json.loads((other / "config.json").read_text())
    if change == "harmless":
        said |= {"_name_or_path": "elsewhere", "transformers_version": "4.0.0", "use_cache": False}
    elif change == "spelling":
        said["torch_dtype"] = f"torch.{said.pop('dtype')}"
    else:
        said["num_attention_heads"] = 4
    (other / "config.json").write_text(json.dumps(said))
    assert (only(other).config == only(folder).config) == (change != "heads")
    if change == "heads":
        assert set(only(other).settings) ^ set(only(folder).settings) == {
            ("num_attention_heads", "2"),
            ("num_attention_heads", "4"),
        }


def test_a_config_of_no_known_kind_is_compared_as_it_is_written(folder: Path, tmp_path: Path) -> None:
    found = []
    for number, said in enumerate(({"model_type": "own", "width": 3}, {"model_type": "own", "width": 4})):
        other = copied(folder, tmp_path / str(number))
        (other / "config.json").write_text(json.dumps(said))
        found.append(only(other))
    assert found[0].config != found[1].config and not found[0].fault
    (other / "config.json").write_text("{")
    assert "cannot read" in fault(other) and only(other).kind == "broken"
    (other / "config.json").unlink()
    assert only(other).config == "" and not only(other).fault


@pytest.mark.parametrize("file", ["model.safetensors", "new.pt", "old.bin"])
def test_a_file_that_is_cut_short(folder: Path, tmp_path: Path, file: str) -> None:
    as_files(folder, tmp_path / "files")
    source = folder / file if file == "model.safetensors" else tmp_path / "files" / file
    whole = source.read_bytes()
    path = tmp_path / f"cut{source.suffix}"
    for length in (0, 3, 9, 200, len(whole) // 3, len(whole) - 1):
        path.write_bytes(whole[:length])
        # an old pickle that ends in its first bytes cannot be told from one that asks for too much
        if file != "old.bin" or length > 200:
            assert fault(path).startswith(f"{path.name} is cut short: "), length
        assert only(path).kind == "broken" and only(path).digest == ""


def test_shards_that_are_missing_or_cut_short(folder: Path, tmp_path: Path) -> None:
    sharded = as_files(folder, tmp_path / "files")[4]
    shards = sorted(sharded.glob("*.safetensors"))
    body = shards[1].read_bytes()
    shards[1].write_bytes(body[:-5])
    assert (
        fault(sharded)
        == f"{shards[1].name} is cut short: {len(body) - 5:,} of {len(body):,} bytes are there."
    )
    shards[1].unlink()
    assert fault(sharded).startswith(
        f"the shard {shards[1].name} of '{sharded.name}' is missing; its index says "
    )
    shards[2].unlink()
    assert fault(sharded) == f"2 shards are missing, first {shards[1].name}."
    (sharded / "model.safetensors.index.json").write_text("{}")
    assert "no index of shards" in fault(sharded)


def test_what_is_no_number_is_named_and_counted(folder: Path, tmp_path: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    name = "encoder.layer.0.attention.self.query.weight"
    weights[name][1, :3] = torch.nan
    weights[name][2, 2] = -torch.inf
    save_file(weights, tmp_path / "a.safetensors")
    assert fault(tmp_path / "a.safetensors") == f"{name} has 3 NaN and 1 infinite."
    found = only(tmp_path / "a.safetensors")
    assert found.kind == "not finite" and found.digest
    weights["pooler.dense.bias"][:] = torch.inf
    torch.save({key: value.half() for key, value in weights.items()}, tmp_path / "a.pt")
    assert fault(tmp_path / "a.pt") == (
        f"{name} has 3 NaN and 1 infinite, the first of 2 tensors that are not finite."
    )


def test_large_numbers_and_other_types_are_finite(tmp_path: Path) -> None:
    """A sum that overflows is counted again; whole numbers, bits and float8 are read as well."""
    held = {
        "large": torch.full((300,), 3e38),
        "half": torch.full((3000,), 6e4, dtype=torch.float16),
        "whole": torch.arange(5),
        "bits": torch.tensor([True, False]),
        "eighth": torch.ones(8).to(torch.float8_e4m3fn),
        "empty": torch.zeros(0, 4),
        "scalar": torch.tensor(2.0),
    }
    torch.save(held, tmp_path / "a.pt")
    save_file(held, tmp_path / "a.safetensors")
    assert not only(tmp_path / "a.pt").fault
    assert only(tmp_path / "a.pt").digest == only(tmp_path / "a.safetensors").digest


def test_what_holds_no_weights(tmp_path: Path) -> None:
    assert "holds no weights: looked for" in fault(tmp_path)
    torch.save([1, 2], tmp_path / "list.pt")
    assert "holds no weights by name but list" in fault(tmp_path / "list.pt")
    (tmp_path / "bad.pt").write_bytes(pickle.dumps(Path("x"), protocol=2))
    assert "asks for more than tensors" in fault(tmp_path / "bad.pt")
    (tmp_path / "text.safetensors").write_text("hello, this is no file of weights")
    assert fault(tmp_path / "text.safetensors")


def test_a_config_elsewhere(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "step_5.safetensors"
    path.write_bytes((folder / "model.safetensors").read_bytes())
    for named in (folder, folder / "config.json"):
        found = fingerprint(Checkpoint("step_5", 5, str(path), config=str(named)))
        assert found.config == only(folder).config != ""


AT_ONCE = """
import sys, threading
from pathlib import Path
from isoscope.sweeps.verify.settings import settings_in
start, found = threading.Barrier(4), {}
def read(place):
    start.wait()
    found[place] = settings_in(Path(place))[0]
several = [threading.Thread(target=read, args=(place,)) for place in sys.argv[1:]]
[each.start() for each in several]
[each.join() for each in several]
print(*(found[place] for place in sys.argv[1:]))
"""


def test_threads_that_begin_at_once_read_the_same(folder: Path, tmp_path: Path) -> None:
    """In a process of its own, where transformers is not yet imported; defaults tell who understood."""
    said = json.loads((folder / "config.json").read_text())
    places = [tmp_path / f"{number}.json" for number in range(4)]
    for number, place in enumerate(places):
        place.write_text(json.dumps(said, indent=number))  # other texts that say the same
    made = subprocess.run(
        [sys.executable, "-c", AT_ONCE, *map(str, places)], capture_output=True, text=True, check=True
    )
    assert made.stdout.split() == [only(folder).config] * 4, made.stderr


def test_the_same_text_is_read_once_wherever_it_is(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text('{"model_type": "own", "width": 17}')
        (tmp_path / f"{name}{{}}.json").write_text("[{}")
    before = _settings_of.cache_info().misses
    assert settings_in(tmp_path / "a.json") == settings_in(tmp_path / "b.json")
    assert _settings_of.cache_info().misses == before + 1
    for name in ("a", "b"):  # and what is wrong is told of the right file
        place = tmp_path / f"{name}{{}}.json"
        assert settings_in(place)[2].startswith(f"cannot read {place}: ")


def test_a_config_that_is_wrong_is_compared_and_a_library_that_is_broken_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = (
        {"model_type": "bert", "hidden_size": "wide"},
        {"model_type": "llama", "num_attention_heads": 0},
        {"model_type": "bert", "dtype": "nonsense"},
        {"model_type": "bert", "num_labels": "many"},
        {"model_type": "llava", "text_config": {"model_type": "none such"}},
    )
    for said in wrong:
        (tmp_path / "config.json").write_text(json.dumps(said))
        digest, settings, fault = settings_in(tmp_path / "config.json")
        assert digest and len(settings) == len(said) and not fault

    def broken(*_: object, **__: object) -> None:
        raise ImportError("half of the library")

    monkeypatch.setattr(transformers.AutoConfig, "for_model", broken)
    (tmp_path / "config.json").write_text('{"model_type": "bert", "hidden_size": 1234}')
    with pytest.raises(ImportError):
        settings_in(tmp_path / "config.json")


def test_identity_is_of_weights_and_config(folder: Path) -> None:
    found = only(folder)
    assert found.identity == only(folder).identity
    others = [replace(found, digest="0"), replace(found, config="0")]
    assert len({each.identity for each in (found, *others)}) == 3
    assert replace(found, sketch=(), fault="x").identity == found.identity


def test_a_config_that_is_given_is_part_of_the_stamp(folder: Path, tmp_path: Path) -> None:
    """By its path and what it says, also where size and time are the same."""
    path, given = tmp_path / "step_5.safetensors", tmp_path / "elsewhere" / "config.json"
    path.write_bytes((folder / "model.safetensors").read_bytes())
    given.parent.mkdir()
    text = (folder / "config.json").read_text()
    given.write_text(text)
    checkpoint = Checkpoint("step_5", 5, str(path), config=str(given))
    stamp, config, at_first = _stamp(checkpoint), fingerprint(checkpoint).config, given.stat()
    assert _stamp(replace(checkpoint, config=str(given.parent))) == stamp == _stamp(checkpoint)
    assert (
        _stamp(replace(checkpoint, config=str(folder))) != stamp != _stamp(replace(checkpoint, config=None))
    )
    changed = text.replace('"num_attention_heads": 2', '"num_attention_heads": 4')
    assert changed != text
    given.write_text(changed)
    os.utime(given, ns=(at_first.st_atime_ns, at_first.st_mtime_ns))
    assert given.stat().st_size == at_first.st_size and given.stat().st_mtime_ns == at_first.st_mtime_ns
    assert _stamp(checkpoint) != stamp and fingerprint(checkpoint).config != config
    given.unlink()
    assert fingerprint(checkpoint).config == "" and _stamp(checkpoint) != stamp


def test_an_adapter_is_no_model(folder: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "checkpoint-5"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text('{"peft_type": "LORA", "r": 4}')
    save_file({"lora_A.weight": torch.ones(4, 8)}, adapter / "adapter_model.safetensors")
    assert fault(adapter) == (
        "checkpoint-5 holds an adapter (adapter_config.json) and no model; merge it into its model first."
    )
    assert only(adapter).kind == "broken"
    (adapter / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    assert only(adapter).digest == only(folder).digest and not only(adapter).fault


def test_reading_costs_about_as_much_as_hashing(tmp_path: Path) -> None:
    """64 MB: well under what any model's loading takes. No bound that a slow machine would break."""
    save_file({"w": torch.zeros(4096, 4096)}, tmp_path / "a.safetensors")
    started = time.perf_counter()
    assert not only(tmp_path / "a.safetensors").fault
    assert time.perf_counter() - started < 10

"""A fingerprint knows the weights and not the files, and what is wrong with either, in one sentence."""

from __future__ import annotations

import json
import pickle
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from isoscope.run.sweep.checkpoints import Checkpoint
from isoscope.run.sweep.fingerprint import Fingerprint, fingerprint
from tests.run.sweep.trajectory import at, copied, tiny, walk


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
    assert fault(sharded).startswith(f"the shard {shards[1].name} is missing; its index says ")
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


def test_reading_costs_about_as_much_as_hashing(tmp_path: Path) -> None:
    """64 MB: well under what any model's loading takes. No bound that a slow machine would break."""
    save_file({"w": torch.zeros(4096, 4096)}, tmp_path / "a.safetensors")
    started = time.perf_counter()
    assert not only(tmp_path / "a.safetensors").fault
    assert time.perf_counter() - started < 10

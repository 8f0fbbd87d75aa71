"""Where the tensors of a model lie, and how one of them is read without the rest.

A folder, a hub id (of which only what is asked for is downloaded), a file or a live module: each becomes
names and a way to read one. A pickle is read as plain tensors only, so it cannot run code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from isoscope.errors import IsoscopeError, first_line
from isoscope.models.blocks import plain_name
from isoscope.models.checkpoint import SUFFIXES, refuse_cut_short, state_dict_in, unpickled
from isoscope.models.hub import transport_errors
from isoscope.models.source import locate, parted, quiet

LOOKED_FOR = (  # in this order; an index names the shards
    "model.safetensors.index.json",
    "model.safetensors",
    "pytorch_model.bin.index.json",
    "pytorch_model.bin",
)
_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
Fetch = Callable[[str], Path | None]


@dataclass(frozen=True)
class Fault:
    """A shard that cannot be had: its file, what is wrong as several may share it, and all in a sentence."""

    file: str
    wrong: str  # "are missing"
    sentence: str


def told_together(faults: Iterable[Fault]) -> str:
    """The faults by what is wrong: one in its own words, of several how many they are and the first.

    >>> told_together(Fault(file, "are missing", f"{file} is missing.") for file in "ba")
    '2 shards are missing, first a'
    """
    found = []
    for wrong, alike in groupby(sorted(faults, key=lambda each: (each.wrong, each.file)), lambda f: f.wrong):
        first, *others = alike
        several = f"{1 + len(others)} shards {wrong}, first {first.file}"
        found.append(several if others else first.sentence.rstrip("."))
    return "; ".join(found)


@dataclass(frozen=True)
class Tensors:
    """The tensors of a model by name, read one at a time; `module` where it is a live one.

    `faults` are the shards that cannot be had: on this machine all that the index names, whether something
    in them was asked for or not; of the hub those that were asked for.
    """

    where: str
    names: frozenset[str]
    stored: Callable[[str], Tensor]
    shape: Callable[[str], tuple[int, ...]]
    check: Callable[[frozenset[str]], None] = lambda names: None
    module: nn.Module | None = None
    faults: Callable[[], tuple[Fault, ...]] = tuple
    living: bool = False  # where they are, with their gradient

    def read(self, name: str) -> Tensor:
        """The tensor on the CPU, float32 unless it is float64; a quantised one is an error."""
        found = self.stored(name) if self.living else self.stored(name).detach().cpu()
        if found.dtype not in _FLOATS:
            raise IsoscopeError(
                f"{name} of '{self.where}' is stored as {str(found.dtype).removeprefix('torch.')}, which is "
                "no plain number; give a version of the model that is not quantised."
            )
        return found if found.dtype == torch.float64 else found.float()


@dataclass(frozen=True)
class Opened:
    """Tensors, what the config says, and the address they came from; `commit` is set for those of the hub."""

    tensors: Tensors
    config: Any
    model: str
    revision: str = ""
    known: bool = True  # whether transformers knows the kind of config
    settings: str = ""  # the config as it is written
    commit: str = ""


def open_address(address: str, revision: str | None, config: str | None) -> Opened:
    """The weights at a folder, a hub id that ``@revision`` may follow, or in a single file."""
    if Path(address).is_file():
        return _open_file(Path(address), Path(config) if config else None)
    name, asked = parted(address, revision)
    place, commit = locate(name, asked)
    local = Path(place).is_dir()
    fetch: Fetch = partial(file_in_folder, Path(place)) if local else cache(partial(_from_hub, place, commit))
    said, known, settings = _config(Path(config) if config else fetch("config.json"), name)
    found = next((file for file in LOOKED_FOR if fetch(file) is not None), None)
    if found is None:
        raise IsoscopeError(f"'{name}' holds no weights: looked for {', '.join(LOOKED_FOR)}.")
    whole = not found.endswith("json")
    tensors = single_file_tensors(name, fetch, found) if whole else sharded_tensors(name, found, fetch, local)
    return Opened(tensors, said, name, commit or asked or "", known, settings, commit)


def open_module(module: nn.Module, name: str, revision: str = "", *, living: bool = False) -> Opened:
    """The weights of a live module, as they are now; `living`, with their gradient."""
    state = module.state_dict(keep_vars=living)
    held = {plain_name(key): value for key, value in state.items() if isinstance(value, Tensor)}
    inner = module
    while isinstance(within := getattr(inner, "_orig_mod", getattr(inner, "module", None)), nn.Module):
        inner = within
    config = getattr(inner, "config", None)
    known = config is not None and hasattr(config, "model_type")
    written = str(config.to_json_string()) if config is not None and hasattr(config, "to_json_string") else ""
    tensors = replace(_held(name, held, inner), living=living)
    return Opened(tensors, config if known else None, name, revision, known, written)


def file_in_folder(folder: Path, file: str) -> Path | None:
    """The path of a file in a folder, or None if it is missing."""
    return folder / file if (folder / file).is_file() else None


def _from_hub(name: str, commit: str, file: str) -> Path | None:
    """A file of a hub model on this machine, downloaded where it is not; None where there is none."""
    import huggingface_hub
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError

    unreachable: tuple[type[Exception], ...] = (HfHubHTTPError, OSError, *transport_errors())
    try:
        with quiet():
            return Path(huggingface_hub.hf_hub_download(name, file, revision=commit or None))
    except LocalEntryNotFoundError as reason:
        raise IsoscopeError(
            f"{file} of '{name}' is not on this machine and the hub cannot be reached."
        ) from reason
    except EntryNotFoundError:
        return None
    except unreachable as reason:
        raise IsoscopeError(f"cannot download {file} of '{name}': {first_line(reason)}.") from reason


def _config(file: Path | None, name: str) -> tuple[Any, bool, str]:
    """The config, by transformers where it knows the kind, else what the file says; which; and its text."""
    import transformers

    if file is not None and not file.name.endswith(".json"):
        file = file / "config.json"
    if file is None or not file.exists():
        raise IsoscopeError(f"'{name}' has no config.json, which tells the number of heads; name one.")
    try:
        written = file.read_text(encoding="utf-8")
        said = json.loads(written, object_hook=lambda each: SimpleNamespace(**each))
    except (OSError, ValueError) as reason:
        raise IsoscopeError(f"cannot read {file}: {first_line(reason)}.") from reason
    try:
        with quiet():
            return transformers.AutoConfig.from_pretrained(file, trust_remote_code=False), True, written
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    if not isinstance(said, SimpleNamespace):
        raise IsoscopeError(f"{file} holds {type(said).__name__}, no settings by name.")
    return said, False, written


def _open_file(file: Path, config: Path | None) -> Opened:
    if file.suffix not in SUFFIXES:
        raise IsoscopeError(f"'{file}' is no file of weights ({', '.join(SUFFIXES)}); give one, or a folder.")
    held = {} if file.suffix == ".safetensors" else unpickled(file)
    if isinstance(held.get("dims"), Mapping) and isinstance(held.get("model_state_dict"), Mapping):
        dims = held["dims"]
        whisper = SimpleNamespace(
            model_type="whisper",
            is_encoder_decoder=True,
            encoder_attention_heads=dims["n_audio_head"],
            decoder_attention_heads=dims["n_text_head"],
            architectures=["WhisperForConditionalGeneration"],
            tie_word_embeddings=True,
        )
        tensors = _held(str(file), dict(held["model_state_dict"]))
        return Opened(tensors, whisper, str(file), settings=str(sorted(dims.items())))
    said, known, settings = _config(config or file.parent, str(file))
    tensors = _pickle(str(file), file, held) if held else single_file_tensors(str(file), lambda _: file, "")
    return Opened(tensors, said, str(file), known=known, settings=settings)


def single_file_tensors(name: str, fetch: Fetch, file: str) -> Tensors:
    """The tensors of a checkpoint in one file."""
    path = fetch(file)
    assert path is not None
    if path.suffix != ".safetensors":
        return _pickle(name, path, unpickled(path))
    refuse_cut_short(path)
    try:
        shard: Any = safe_open(path, "pt")
    except (OSError, SafetensorError) as reason:
        raise IsoscopeError(f"cannot read {path}: {first_line(reason)}.") from reason
    stored = {plain_name(key): key for key in shard.keys()}  # noqa: SIM118  it is no mapping
    return Tensors(
        name,
        frozenset(stored),
        lambda key: shard.get_tensor(stored[key]),
        lambda key: tuple(shard.get_slice(stored[key]).get_shape()),
    )


def sharded_tensors(name: str, index: str, fetch: Fetch, local: bool) -> Tensors:
    """Several files, and an index that says which tensor is in which; opened when first read."""
    path = fetch(index)
    assert path is not None
    try:
        files = dict(json.loads(path.read_text())["weight_map"])
    except (OSError, ValueError, KeyError, TypeError) as reason:
        raise IsoscopeError(f"cannot read {path}: it is no index of shards.") from reason
    stored = {plain_name(key): key for key in files}

    broken: dict[str, Fault] = {}

    @cache
    def part(file: str) -> Tensors:
        if file in broken:  # the hub is not asked twice
            raise IsoscopeError(broken[file].sentence)
        wrong = "cannot be downloaded"
        try:
            if (shard := fetch(file)) is None:
                wrong, lost = "are missing", sum(each == file for each in files.values())
                raise IsoscopeError(
                    f"the shard {file} of '{name}' is missing; its index says {lost} tensors."
                )
            wrong = "cannot be read"
            return single_file_tensors(name, lambda _: shard, file)
        except IsoscopeError as reason:
            broken[file] = Fault(file, wrong, str(reason))
            raise

    def faults() -> tuple[Fault, ...]:
        for file in sorted(set(files.values())) if local else ():
            # to open a pickle can be to read all of it, so of one that nothing asked for only this is known
            if file.endswith(".safetensors") or fetch(file) is None:
                with suppress(IsoscopeError):
                    part(file)
        return tuple(broken[file] for file in sorted(broken))

    def check(names: frozenset[str]) -> None:
        for file in sorted({files[stored[key]] for key in names}) if local else ():
            part(file)  # of the hub, a shard is downloaded when it is read

    def stored_in(key: str) -> Tensors:
        held = part(files[stored[key]])
        if key not in held.names:
            raise IsoscopeError(f"{key} is not in {files[stored[key]]} of '{name}', where the index has it.")
        return held

    return Tensors(
        name,
        frozenset(stored),
        lambda key: stored_in(key).stored(key),
        lambda key: stored_in(key).shape(key),
        check,
        faults=faults,
    )


def _pickle(name: str, file: Path, held: Mapping[str, Any]) -> Tensors:
    return _held(name, {plain_name(key): value for key, value in state_dict_in(file, held).items()})


def _held(name: str, held: Mapping[str, Tensor], module: nn.Module | None = None) -> Tensors:
    return Tensors(
        name, frozenset(held), lambda key: held[key], lambda key: tuple(held[key].shape), module=module
    )

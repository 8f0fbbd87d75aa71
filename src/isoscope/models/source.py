"""An address becomes a model and its tokenizer: a hub id or a local folder, `@revision` after either.

safetensors first; a pickle is only read as plain tensors, so it cannot run code; code that comes with
a model runs only when asked for. Weights that the checkpoint lacks are named, never silently random.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn

from isoscope.errors import IsoscopeError, first_line, unknown_name
from isoscope.models import arch, zoo
from isoscope.models.checkpoint import SUFFIXES, load_checkpoint
from isoscope.models.hub import Unreachable, asking, hushed

DTYPES = {name: getattr(torch, name) for name in ("float32", "bfloat16", "float16", "float64")}
_TAKES = {"pixel_values": "images", "input_values": "sound", "input_features": "sound"}
_LOADING = (  # what transformers raises when a checkpoint cannot be had
    OSError, ValueError, KeyError, RuntimeError, ImportError, AttributeError, TypeError, SafetensorError,
)  # fmt: skip


@dataclass(frozen=True)
class Model:
    """A module, its tokenizer where it has one, and where both come from."""

    module: nn.Module
    name: str
    revision: str = ""
    tokenizer: Any = None
    processor: Any = None
    notes: tuple[str, ...] = ()
    step: int | None = None

    @property
    def takes(self) -> str:
        """What the model takes: text, images or sound."""
        return _TAKES.get(getattr(self.module, "main_input_name", ""), "text")

    @property
    def longest(self) -> int | None:
        """The most positions the model takes, where it says so."""
        said = [getattr(self.tokenizer, "model_max_length", None)]
        said.append(getattr(getattr(self.module, "config", None), "max_position_embeddings", None))
        for name, part in self.module.named_modules():
            if isinstance(part, nn.Embedding) and "position" in name.rsplit(".", 1)[-1]:
                offset = 0 if part.padding_idx is None else part.padding_idx + 1
                said.append(part.num_embeddings - offset)
        sane = [int(number) for number in said if isinstance(number, int | float) and 0 < number < 1e6]
        return min(sane, default=None)

    def facts(self) -> dict[str, object]:
        """What is known of the model without reading all of it."""
        weights = next(self.module.parameters(), None)
        return {
            "model": self.name,
            "revision": self.revision,
            "class": type(self.module).__name__,
            "parameters": sum(weight.numel() for weight in self.module.parameters()),
            "dtype": "" if weights is None else str(weights.dtype).removeprefix("torch."),
            "device": "" if weights is None else str(weights.device),
        }


def fingerprint(module: nn.Module) -> str:
    """Sixteen hex digits of the names and bytes of all weights and buffers."""
    digest = hashlib.blake2b(digest_size=8)
    for name, tensor in sorted(module.state_dict().items()):
        if isinstance(tensor, torch.Tensor):
            raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
            digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
            digest.update(raw.numpy().data)
    return digest.hexdigest()


def load(
    address: str,
    *,
    revision: str | None = None,
    device: str | None = None,
    dtype: str = "float32",
    config: str | None = None,
    trust_remote_code: bool = False,
) -> Model:
    """Load the model at `address` with its tokenizer, for measuring.

    `address` is a folder, a hub id or a name of the zoo, which ``@revision`` may follow, or a single file of
    weights, with its config.json beside it or at `config`. `device` is the GPU where there is one, unless
    named; `dtype` is float32, bfloat16, float16 or float64.
    """
    import transformers

    if dtype not in DTYPES:
        raise unknown_name("dtype", dtype, DTYPES)
    where = place_for(device)
    if Path(address).is_file():
        return _load_file(Path(address), config, where, DTYPES[dtype])
    name, revision = parted(address, revision)
    place, commit = locate(name, revision)
    name, revision = zoo.hub_address(name, revision)
    options: dict[str, Any] = {"revision": commit or revision, "trust_remote_code": trust_remote_code}
    with quiet():
        try:
            settings = transformers.AutoConfig.from_pretrained(place, **options)
            if settings.model_type in arch.KINDS:
                arch.know_models()
            made_of = {
                "config": settings,
                "dtype": DTYPES[dtype],
                "key_mapping": arch.renamed(settings.model_type),
            }
            module, loading = transformers.AutoModel.from_pretrained(
                place, output_loading_info=True, **made_of, **options
            )
        except pickle.UnpicklingError as reason:
            raise IsoscopeError(
                f"refused to load '{name}': its weights are a pickle that asks for more than tensors, "
                "and nothing of it was run. Ask for a safetensors version."
            ) from reason
        except _LOADING as reason:
            if "trust_remote_code" in str(reason):
                raise IsoscopeError(
                    f"the model '{name}' comes with code, which is run only with --trust-remote-code."
                ) from reason
            raise IsoscopeError(f"cannot load the model '{name}': {first_line(reason)}.") from reason
        takes = _TAKES.get(module.main_input_name, "text")
        tokenizer = _tokenizer(place, options) if takes == "text" else None
        processor = _processor(takes, place, options)
    missing = sorted(key for key in loading["missing_keys"] if not key.startswith("pooler."))
    if len(missing) > len(module.state_dict()) / 2:
        raise IsoscopeError(
            f"the weights of '{name}' do not fit its config.json: "
            f"{len(missing)} are missing, first {missing[0]}."
        )
    told = f"{len(missing)} weights are not in the checkpoint and random, first "
    notes = tuple(told + first for first in missing[:1])
    return Model(module.to(where).eval(), name, commit or revision or "", tokenizer, processor, notes)


def _load_file(file: Path, config: str | None, device: torch.device, dtype: torch.dtype) -> Model:
    if file.suffix not in SUFFIXES:
        raise IsoscopeError(f"'{file}' is no file of weights ({', '.join(SUFFIXES)}); give one, or a folder.")
    place = str(Path(config) if config else file.parent)
    with quiet():
        module, processor = load_checkpoint(file, Path(config) if config else None)
        takes = _TAKES.get(getattr(module, "main_input_name", ""), "text")
        tokenizer = _tokenizer(place, {}) if takes == "text" else None
        processor = processor or _processor(takes, place, {})
    return Model(module.to(device, dtype).eval(), str(file), tokenizer=tokenizer, processor=processor)


def place_for(name: str | None) -> torch.device:
    """The device of this name, or the GPU if there is one; one that cannot be used is an error."""
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
        if torch.zeros(1, device=device).is_meta:
            raise RuntimeError("nothing is computed there")
    except (RuntimeError, AssertionError, NotImplementedError) as reason:
        raise IsoscopeError(f"device '{name}' cannot be used here: {first_line(reason)}.") from reason
    return device


def parted(address: str, revision: str | None) -> tuple[str, str | None]:
    """An address and a revision, which may follow it as ``@revision`` unless that is a folder's name."""
    if "@" not in address or Path(address).exists():
        return address, revision or None
    name, _, written = address.rpartition("@")
    return name, revision or written or None


def locate(address: str, revision: str | None) -> tuple[str, str]:
    """Where to load an address or a name of the zoo from and, for the hub, the revision's commit today."""
    arch.know_configs()
    name, revision = zoo.hub_address(address, revision)
    if Path(name).exists():
        if not (Path(name) / "config.json").exists():
            raise IsoscopeError(f"'{name}' holds no model: there is no config.json in it.")
        if revision is not None:
            raise IsoscopeError(
                f"'{name}' is a folder and has no revision '{revision}'; only hub ids have revisions."
            )
        return name, ""
    from huggingface_hub import HfApi, constants, try_to_load_from_cache

    cached, meant = None, zoo.meant(name)
    try:
        with asking(name, revision, f" Give a folder or a hub id.{meant}"), quiet():
            kept = try_to_load_from_cache(name, "config.json", revision=revision)  # raises where it is no id
            cached = (str(Path(kept).parent), Path(kept).parent.name) if isinstance(kept, str) else None
            if constants.HF_HUB_OFFLINE:
                raise ConnectionError
            return name, HfApi().model_info(name, revision=revision, timeout=10).sha or ""
    except Unreachable as reason:
        if cached is None and name != address:
            raise zoo.not_here(address, name, revision) from reason
        if cached is None:
            raise IsoscopeError(
                f"no model '{name}': there is no such folder here, and the hub cannot be reached. Give a "
                f"folder, or come back online.{meant}"
            ) from reason
        return cached


def _tokenizer(place: str, options: dict[str, Any]) -> Any:
    import transformers

    try:
        found = transformers.AutoTokenizer.from_pretrained(place, **options)
    except Exception:  # noqa: BLE001  the Rust library behind it raises nothing narrower
        try:  # its class comes as code with the model, and is a file of tokens all the same: CrystalCoder
            found = transformers.PreTrainedTokenizerFast.from_pretrained(place, **options)
        except Exception:  # noqa: BLE001
            return None
    # Where the files are missing, transformers makes one of its special tokens and at most two more.
    return found if len(found) > len(set(found.all_special_ids)) + 2 else None


def _processor(takes: str, place: str, options: dict[str, Any]) -> Any:
    """What turns pictures or recordings into tensors; None where the model comes without."""
    import transformers

    try:
        if takes == "images":
            return transformers.AutoImageProcessor.from_pretrained(place, backend="pil", **options)
        if takes == "sound":
            return transformers.AutoFeatureExtractor.from_pretrained(place, **options)
    except _LOADING:
        return None
    return None


@contextmanager
def quiet() -> Iterator[None]:
    """Keep other libraries' progress bars and remarks off the screen while they load."""
    import transformers

    verbosity, bars = transformers.logging.get_verbosity(), transformers.logging.is_progress_bar_enabled()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        with hushed():
            yield
    finally:
        transformers.logging.set_verbosity(verbosity)
        if bars:
            transformers.logging.enable_progress_bar()

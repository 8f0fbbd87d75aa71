"""What a config says, without what may change along a training and change nothing.

Paths, versions and switches of the library are left out; old spellings are read as transformers reads them.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from isoscope.errors import first_line
from isoscope.models.source import quiet

Settings = tuple[tuple[str, str], ...]
_TURN = threading.Lock()  # what is silenced is silenced for all
_HARMLESS = frozenset((
    "_name_or_path", "name_or_path", "transformers_version", "_commit_hash", "use_cache", "return_dict",
    "output_attentions", "output_hidden_states", "gradient_checkpointing", "attn_implementation",
    "_attn_implementation", "torchscript", "_attn_implementation_autoset", "_attn_implementation_internal",
    "global_step", "step", "training_step", "problem_type", "id2label", "label2id",
))  # fmt: skip


def settings_in(file: Path) -> tuple[str, Settings, str]:
    """Digest and settings of a config.json, and what is wrong with it; empty where there is none."""
    try:
        return *_settings_of(file.read_text(encoding="utf-8")), ""
    except (FileNotFoundError, NotADirectoryError):
        return "", (), ""
    except (OSError, ValueError) as reason:
        return "", (), f"cannot read {file}: {first_line(reason)}."


@lru_cache(maxsize=64)  # most checkpoints of a training have the same
def _settings_of(text: str) -> tuple[str, Settings]:
    """Digest and settings of the text of a config; what is no config is a ValueError."""
    said = json.loads(text)
    if not isinstance(said, dict):
        raise ValueError(f"it holds {type(said).__name__}, no settings by name")
    found = tuple(sorted(_flat(_understood(said))))
    return hashlib.blake2b(repr(found).encode(), digest_size=8).hexdigest(), found


def _understood(said: dict[str, Any]) -> Mapping[str, Any]:
    """The config with its defaults, by transformers where it knows the kind; else as it is written.

    Transformers is imported in the turn too: a thread that comes while another imports it sees half of it.
    """
    said = {"dtype" if name == "torch_dtype" else name: value for name, value in said.items()}
    if isinstance(said.get("dtype"), str):
        said["dtype"] = said["dtype"].removeprefix("torch.")
    kind = str(said.get("model_type"))
    others = {name: value for name, value in said.items() if name != "model_type"}
    with _TURN:
        from huggingface_hub.errors import StrictDataclassError
        from transformers import AutoConfig

        wrong = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, StrictDataclassError)
        try:
            with quiet():
                return dict(AutoConfig.for_model(kind, **others).to_dict())
        except wrong:  # it can still be compared
            return said


def _flat(said: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Every setting by its full name; None is as good as not there."""
    for name, value in said.items():
        if name in _HARMLESS or value is None:
            continue
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            told = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
            yield f"{before}{name}", told

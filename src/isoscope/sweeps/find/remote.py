"""Checkpoints that are revisions of a model on the hub: which there are, and what the hub says of them.

Its hashes tell twins before anything large is downloaded. Of a checkpoint only what measuring needs is looked
at: its config, its weights in the best format that is there, its tokenizer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from isoscope.errors import IsoscopeError
from isoscope.models import zoo
from isoscope.models.hub import asking
from isoscope.models.weights.files import LOOKED_FOR
from isoscope.sweeps.find.checkpoints import Checkpoint, in_order, step_in
from isoscope.sweeps.find.patterns import expand
from isoscope.sweeps.verify.fingerprint import BROKEN, Fingerprint
from isoscope.sweeps.verify.settings import Settings, settings_in

_COMMIT = re.compile(r"[0-9a-f]{40}")
_BESIDE = re.compile(  # what a tokenizer or a processor reads, and code that comes with a model
    r"(tokenizer|vocab|merges|special_tokens|added_tokens|spiece|sentencepiece|bpe|normalizer|preprocessor"
    r"|processor|video_preprocessor|feature_extractor|chat_template)[^/]*\.(json|txt|model|jinja|tiktoken)"
    r"|[^/]+\.py"
)
_SHARD = re.compile(r"-(\d+)-of-(\d+)(\.[a-z]+)")
_SHOWN = 8  # revisions that an error names
_commits: dict[tuple[str, str], str] = {}  # of revisions that were listed: one sweep, one state of the hub
_configs: dict[tuple[str, str], tuple[str, Settings, str]] = {}  # by address and hash


@dataclass(frozen=True)
class File:
    """A file of a revision: its size, and the hub's hash of what is in it."""

    name: str
    size: int
    hash: str


@dataclass(frozen=True)
class Listing:
    """The files of one revision that measuring needs, at the commit that it stands for today."""

    commit: str
    files: tuple[File, ...]
    weights: tuple[File, ...]  # those of them that hold tensors
    fault: str = ""


def revisions(address: str, pattern: str | None = None) -> list[Checkpoint]:
    """The checkpoints of a hub model by step: the revisions of a pattern, or all its branches and tags."""
    from huggingface_hub import HfApi

    with asking(address, None):
        refs = HfApi().list_repo_refs(address)
    known = {each.name: each.target_commit for each in [*refs.branches, *refs.tags]}
    names = list(known) if pattern is None else expand(pattern)
    missing = [name for name in names if name not in known and not _COMMIT.fullmatch(name)]
    if missing:
        raise _no_revision(address, missing, len(names), known)
    _commits.update({(address, name): known[name] for name in names if name in known})
    return in_order(Checkpoint(name, step_in(name), address, name) for name in names)


def of_zoo(name: str, pattern: str | None = None) -> list[Checkpoint]:
    """The checkpoints of a model of the papers: those its training left, unless a pattern names others."""
    entry = zoo.find(name)
    if not entry.series:
        return revisions(entry.hub, pattern or entry.revisions)
    names = expand(pattern or entry.revisions)
    return in_order(Checkpoint(each, step_in(each), entry.series.format(each), "main") for each in names)


def remote_fingerprint(checkpoint: Checkpoint) -> Fingerprint:
    """A fingerprint from what the hub says: no sketch, and no weights are downloaded, only a config.

    Only of the same format do two such fingerprints compare; those of what was downloaded always do.
    """
    found = listing(checkpoint)
    config, settings, fault = _settings(checkpoint.address, found)
    parts = tuple(sorted((file.name, file.hash[:16]) for file in found.weights))
    said = repr(sorted(file.hash for file in found.weights))
    digest = hashlib.blake2b(said.encode(), digest_size=8).hexdigest()
    if wrong := found.fault or fault:
        return Fingerprint("" if found.fault else digest, config, (), wrong, BROKEN, settings=settings)
    return Fingerprint(digest, config, parts=parts, settings=settings)


def listing(checkpoint: Checkpoint) -> Listing:
    """What measuring needs of a revision, and what of it is not there."""
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    address, revision = checkpoint.address, checkpoint.revision or None
    with asking(address, revision):
        commit = _commits.get((address, revision or ""))
        if commit is None:
            commit = HfApi().model_info(address, revision=revision, timeout=30).sha or ""
        entries = list(HfApi().list_repo_tree(address, revision=commit or revision))
    files = {
        entry.path: File(entry.path, entry.size, entry.lfs.sha256 if entry.lfs else entry.blob_id)
        for entry in entries
        if isinstance(entry, RepoFile)
    }
    weights, fault = _weights(files)
    beside = [file for name, file in files.items() if name == "config.json" or _BESIDE.fullmatch(name)]
    index = [files[name] for name in LOOKED_FOR if name.endswith(".json") and name in files][:1]
    index = index if any(_SHARD.search(file.name) for file in weights) else []
    return Listing(commit, tuple(sorted([*beside, *index, *weights], key=str)), tuple(weights), fault)


def _weights(files: Mapping[str, File]) -> tuple[list[File], str]:
    """The files with weights in the format that comes first, and what is missing of them."""
    found = next((name for name in LOOKED_FOR if name in files), None)
    if found is None:
        return [], f"it holds no weights: looked for {', '.join(LOOKED_FOR)}."
    if not found.endswith(".json"):
        return [files[found]], ""
    stem, suffix = found.removesuffix(".index.json").rsplit(".", 1)
    shards = [name for name in files if re.fullmatch(rf"{stem}-\d+-of-\d+\.{suffix}", name)]
    if not shards:
        return [], f"there is {found} and none of the shards that it names."
    fault, lost = "", _lost(shards)
    if lost:
        one = len(lost) == 1
        fault = (
            f"the shard {lost[0]} is missing." if one else f"{len(lost)} shards are missing, first {lost[0]}."
        )
    return [files[name] for name in shards], fault


def _lost(shards: Iterable[str]) -> list[str]:
    """The shards that are not there, by how many the others' names say that they are.

    >>> _lost(["model-00001-of-00003.safetensors", "model-00003-of-00003.safetensors"])
    ['model-00002-of-00003.safetensors']
    """
    there = set(shards)
    wanted = set()
    for name in there:
        if found := _SHARD.search(name):
            stem, width = name[: found.start()], len(found[1])
            wanted |= {
                f"{stem}-{number:0{width}d}-of-{found[2]}{found[3]}" for number in range(1, int(found[2]) + 1)
            }
    return sorted(wanted - there)


def _settings(address: str, found: Listing) -> tuple[str, Settings, str]:
    """What a config on the hub says; the same file is downloaded once, whatever revisions have it."""
    from huggingface_hub import hf_hub_download

    config = next((file for file in found.files if file.name == "config.json"), None)
    if config is None:
        return "", (), ""
    if (address, config.hash) not in _configs:
        with asking(address, found.commit):
            file = hf_hub_download(address, "config.json", revision=found.commit)
        _configs[address, config.hash] = settings_in(Path(file))
    return _configs[address, config.hash]


def _no_revision(address: str, missing: list[str], asked: int, known: Iterable[str]) -> IsoscopeError:
    there = in_order(Checkpoint(name, step_in(name), "") for name in known)
    names = [each.name for each in there]
    first, near, half = missing[0], _nearest(missing[0], there), _SHOWN // 2
    several = f"{len(missing)} of the {asked} revisions that were asked for, first"
    what = several if len(missing) > 1 else "the revision"
    guess = f"; did you mean '{near}'?" if near else "."
    shown = names if len(names) <= _SHOWN else [*names[:half], "…", *names[-half:]]
    return IsoscopeError(
        f"the model '{address}' lacks {what} '{first}'{guess} It has {len(names)}: {', '.join(shown)}."
    )


def _nearest(name: str, there: Sequence[Checkpoint]) -> str | None:
    """What was probably meant: the same words with the nearest step, or else the nearest spelling."""
    step, words = step_in(name), re.sub(r"\d+", "", name)
    alike = [each for each in there if each.step is not None and re.sub(r"\d+", "", each.name) == words]
    if step is not None and alike:
        return min(alike, key=lambda each: abs((each.step or 0) - step)).name
    return next(iter(get_close_matches(name, [each.name for each in there], n=1)), None)

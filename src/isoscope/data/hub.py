"""Datasets as data: `ID:SPLIT:COLUMN`, or `ID@CONFIG:SPLIT:COLUMN`; the ID is the hub's or a folder.

Read as a stream, so that a few sequences of a large dataset do not download all of it, and as Arrow, so
that nothing is decoded here: a picture or a recording is the bytes of its file, and what reads folders
reads those. A folder holds Parquet, JSONL or the like, or was written by `save_to_disk`. The library
`datasets` is an extra and is imported when an address asks for it.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from isoscope.errors import IsoscopeError, first_line, unknown_name

_ROWS = 32  # read at a time: of text a page, of pictures some megabytes
_SAVED = ("dataset_dict.json", "state.json")  # what save_to_disk leaves in a folder
_PROTOCOLS = {"", "hf", "zip", "tar", "gzip"}  # a dataset may name files in these places, no others


@dataclass(frozen=True)
class Column:
    """One column of one split of a dataset, as an address names it."""

    dataset: str
    configuration: str | None
    split: str
    name: str


def column_at(address: str) -> Column | None:
    """The column that `address` names; None where it is a path, or has no two colons.

    >>> column_at("owner/name@small:test:text")
    Column(dataset='owner/name', configuration='small', split='test', name='text')
    >>> column_at("file.jsonl:text") is None
    True
    """
    parts = address.rsplit(":", 2)
    if len(parts) != 3 or not all(parts) or any(map(_exists, (address, address.rpartition(":")[0]))):
        return None
    dataset, split, name = parts
    before, at, after = dataset.rpartition("@")
    if at and before and after and not _exists(dataset):
        return Column(before, after, split, name)
    return Column(dataset, None, split, name)


def texts(column: Column) -> Iterator[str]:
    """The texts of a column, blank ones left out."""
    return (text for text in _values(column, "text") if text is not None and text.strip())


def files(column: Column, what: str) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of the files in a column of `what`, pictures or recordings; of a lost one no bytes."""
    for number, value in enumerate(_values(column, what), start=1):
        if value is not None:
            path = value["path"] or f"row {number}"
            content = value["bytes"]
            yield (
                PurePosixPath(path.split("::")[0]).name,
                _fetched(column, path) if content is None else content,
            )


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # too long for a path, or with a null byte in it
        return False


def _values(column: Column, what: str) -> Iterator[Any]:
    """What a column holds, row by row, after a look at whether it is there and holds `what`."""
    table = _split(column)
    features, ahead = table.features, _batches(table, column)
    if features is None:  # as of CSV and plain text: the first rows say
        from datasets import Features

        first = next(ahead, None)
        features = {} if first is None else Features.from_arrow_schema(first.schema)
        ahead = chain([first], ahead)
    if not features:  # no rows at all
        return iter(())
    kinds = {name: _kind(feature) for name, feature in features.items()}
    if column.name not in kinds:
        raise unknown_name(f"column of '{column.dataset}'", column.name, kinds)
    if kinds[column.name] != what:
        fitting = ", ".join(name for name, kind in kinds.items() if kind == what) or "none"
        raise IsoscopeError(
            f"column '{column.name}' of '{column.dataset}' holds {kinds[column.name]}, and this model takes "
            f"{what}; columns of {what} there: {fitting}."
        )
    return (value for batch in ahead for value in batch[column.name].to_pylist())


def _batches(table: Any, column: Column) -> Iterator[Any]:
    """Some rows at a time, as Arrow tables."""
    batches = iter(table.with_format("arrow").iter(batch_size=_ROWS))
    try:
        while True:
            with _reading(column):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch
    finally:
        # A scan of Parquet that is left half-way holds Arrow's threads until it is collected, and they
        # abort an interpreter that ends before (apache/arrow#45214): 16 times in 20, and 0 in 20 so.
        del batches
        gc.collect()


def _kind(feature: Any) -> str:
    """What a column of this type holds, in the words of the errors."""
    import datasets

    match feature:
        case datasets.Image():
            return "pictures"
        case datasets.Audio():
            return "recordings"
        case datasets.Value() if "string" in feature.dtype:
            return "text"
        case _:
            return str(getattr(feature, "dtype", type(feature).__name__))


def _split(column: Column) -> Any:
    """The split that is asked for, as a table of the library, nothing of it read yet."""
    if getattr(find_spec("datasets"), "origin", None) is None:  # a mere folder of that name has no origin
        raise IsoscopeError(
            f"reading the dataset '{column.dataset}' needs the library datasets: install isoscope[datasets]."
        )
    if Path(column.dataset).is_file():
        raise IsoscopeError(f"'{column.dataset}' is a file; a dataset is a folder or a hub id.")
    saved = any((Path(column.dataset) / name).exists() for name in _SAVED)
    splits = _saved(column) if saved else _opened(column)
    if column.split not in splits:
        raise unknown_name(f"split of '{column.dataset}'", column.split, map(str, splits))
    return splits[column.split]


def _saved(column: Column) -> Mapping[str, Any]:
    import datasets

    if column.configuration is not None:
        raise IsoscopeError(
            f"'{column.dataset}' was written by save_to_disk and has no configuration "
            f"'{column.configuration}'; leave it out."
        )
    with _reading(column):
        found = datasets.load_from_disk(column.dataset)
    # A table saved alone need not say its split; the library calls an only one train.
    return found if isinstance(found, dict) else {str(found.split or "train"): found}


def _opened(column: Column) -> Mapping[str, Any]:
    import datasets
    from datasets.exceptions import DatasetNotFoundError
    from huggingface_hub.errors import HFValidationError

    name = column.dataset
    missing = f"no dataset '{name}': there is no such folder here, and "
    try:
        with _quiet():
            return datasets.load_dataset(name, column.configuration, streaming=True)
    except DatasetNotFoundError as reason:
        if "gated" in str(reason):
            raise IsoscopeError(
                f"the dataset '{name}' is gated: log in with `hf auth login` first."
            ) from reason
        raise IsoscopeError(f"{missing}the hub has none of that name. Give a folder or a hub id.") from reason
    except ConnectionError as reason:
        raise IsoscopeError(
            f"{missing}the hub cannot be reached. Give a folder, or come back online."
        ) from reason
    except Exception as reason:
        no_id = isinstance(reason, HFValidationError) or type(reason) is FileNotFoundError
        if no_id and not Path(name).exists():
            raise IsoscopeError(
                f"{missing}it is no hub id (owner/name). Give a folder or a hub id."
            ) from reason
        named = _about_configurations(column) if isinstance(reason, ValueError) else None
        raise named or _unreadable(column, reason) from reason


def _about_configurations(column: Column) -> IsoscopeError | None:
    """Whether what went wrong is the configuration: one that is not there, or none named of several."""
    import datasets

    try:
        with _quiet():
            names = datasets.get_dataset_config_names(column.dataset)
    except Exception:  # noqa: BLE001  then it is not the configuration, and the first reason is told
        return None
    if column.configuration is None and len(names) > 1:
        return IsoscopeError(
            f"the dataset '{column.dataset}' has several configurations; name one as "
            f"{column.dataset}@CONFIG:{column.split}:{column.name}: {', '.join(sorted(names))}."
        )
    if column.configuration is not None and column.configuration not in names:
        return unknown_name(f"configuration of '{column.dataset}'", column.configuration, names)
    return None


def _fetched(column: Column, path: str) -> bytes:
    """The bytes of a file that a row only names, here or on the hub."""
    import fsspec

    if any(part.rpartition("://")[0] not in _PROTOCOLS for part in path.split("::")):
        return b""
    with _reading(column):
        try:
            with fsspec.open(path, "rb") as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return b""


def _unreadable(column: Column, reason: BaseException) -> IsoscopeError:
    return IsoscopeError(f"cannot read the dataset '{column.dataset}': {first_line(reason)}.")


@contextmanager
def _reading(column: Column) -> Iterator[None]:
    """One sentence for whatever goes wrong: each format's reader and each connection raises its own kind."""
    try:
        with _quiet():
            yield
    except IsoscopeError:
        raise
    except Exception as reason:
        raise _unreadable(column, reason) from reason


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the libraries' progress bars and remarks off the screen while they read."""
    import datasets
    from huggingface_hub import utils as hub

    loggers = [logging.getLogger(name) for name in ("datasets", "huggingface_hub")]
    levels = [logger.level for logger in loggers]
    bars = [part for part in (datasets, hub) if not part.are_progress_bars_disabled()]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    for part in bars:
        part.disable_progress_bars()
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        for part in bars:
            part.enable_progress_bars()

"""Files of vectors: mapped and not read where the format allows it, and written as they are repaired."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from isoscope.data.vectors import FORMATS, read_vectors
from isoscope.errors import IsoscopeError
from isoscope.repair.keep.repair import Repair
from isoscope.run.telling import Progress

Array = np.ndarray[Any, Any]
ROWS = 8192  # that are written at a time


def holds_vectors(address: str) -> bool:
    """Whether this is a file of vectors: a .safetensors with a config.json beside it is a model's."""
    file = Path(address)
    if not file.exists() and file.suffix.lower() in (".npy", ".npz", ".parquet", ".csv"):
        raise IsoscopeError(f"no file at '{address}'; give vectors as {', '.join(FORMATS)}.")
    if not file.is_file() or file.suffix.lower() not in FORMATS:
        return False
    return file.suffix.lower() != ".safetensors" or not (file.parent / "config.json").exists()


def open_vectors(file: Path, array: str | None = None) -> tuple[Array, list[str]]:
    """The vectors of a file, [n, d], and remarks. A .npy is mapped, not read; others are read whole."""
    if file.suffix.lower() == ".npy" and file.is_file():
        try:
            # copied on writing, which nobody does: torch warns of arrays that cannot be written to
            found = np.load(file, mmap_mode="c", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            found = None
        if found is not None and found.ndim == 2 and found.dtype in (np.float16, np.float32, np.float64):
            return found, []
    points, _, notes = read_vectors(file, array)
    return points, notes


def refuse_unwritable(file: Path) -> None:
    """Say that repaired vectors are written in one format."""
    if file.suffix.lower() != ".npy":
        raise IsoscopeError(f"repaired vectors are written as .npy; '{file}' ends otherwise.")


def write_repaired(repair: Repair, vectors: Array, file: Path, *, progress: Progress | None = None) -> None:
    """Write vectors [n, d] repaired to a .npy file, a few thousand at a time, whole or not at all."""
    refuse_unwritable(file)
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as stream:
            kind = np.dtype(vectors.dtype if np.issubdtype(vectors.dtype, np.floating) else np.float64)
            header = {"descr": kind.str, "fortran_order": False, "shape": (len(vectors), repair.gives)}
            np.lib.format.write_array_header_1_0(stream, header)
            for start in range(0, len(vectors), ROWS):
                part = vectors[start : start + ROWS]
                stream.write(np.ascontiguousarray(repair.apply(part)).data)
                if progress is not None:
                    progress(start + len(part), len(vectors))
        aside.replace(file)
    except OSError as reason:
        raise IsoscopeError(f"cannot write '{file}': {reason.strerror or reason}.") from reason
    finally:
        aside.unlink(missing_ok=True)

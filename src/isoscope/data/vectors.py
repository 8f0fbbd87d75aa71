"""A file of vectors becomes an array [n, d]. No format here can run code: pickled objects are refused."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from safetensors import SafetensorError
from safetensors.torch import load as load_safetensors

from isoscope.errors import IsoscopeError, first_line, unknown_name

Array = npt.NDArray[np.floating]
FORMATS = (".npy", ".npz", ".parquet", ".safetensors", ".csv")


def read_vectors(file: Path, array: str | None = None) -> tuple[Array, str, list[str]]:
    """The vectors in `file`, one a row, a hash of the file, and remarks.

    `array` names one of several arrays (.npz, .safetensors) or the column that holds the vectors
    (.parquet). Without it a file with one array has that, and a table has its number columns, but for one
    that numbers the rows.
    """
    if not file.exists():
        raise IsoscopeError(f"no file at '{file}'; give vectors as {', '.join(FORMATS)}.")
    if file.suffix.lower() not in FORMATS or not file.is_file():
        raise IsoscopeError(
            f"'{file}' has no format that is read here; give vectors as {', '.join(FORMATS)}."
        )
    notes: list[str] = []
    try:
        found = _read(file, array, notes)
    except (OSError, EOFError, SafetensorError, ValueError, zipfile.BadZipFile) as reason:
        if "Object arrays" in str(reason):
            raise IsoscopeError(
                f"refused to read {file}: it holds pickled objects, which could run code, and none was run."
            ) from reason
        raise IsoscopeError(f"cannot read {file}: {first_line(reason)}.") from reason
    if not np.issubdtype(found.dtype, np.number) or np.iscomplexobj(found):
        raise IsoscopeError(f"{file} does not hold real numbers but {found.dtype}.")
    if found.ndim != 2:
        raise IsoscopeError(f"{file} holds the shape {found.shape}; vectors are [vectors, dimensions].")
    wanted = np.result_type(found.dtype, np.float16)
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()[:16]
    return found.astype(np.float64 if wanted.itemsize > 8 else wanted), digest, notes


def _read(file: Path, array: str | None, notes: list[str]) -> npt.NDArray[np.generic]:
    match file.suffix.lower():
        case ".npy":
            with file.open("rb") as stream:
                begins = stream.read(6)
            if begins != b"\x93NUMPY":
                raise ValueError("it does not begin as a .npy file does")
            return np.load(file, allow_pickle=False)
        case ".npz":
            with np.load(file, allow_pickle=False) as arrays:
                return arrays[_one_of(list(arrays), array, file)]
        case ".safetensors":
            tensors = load_safetensors(file.read_bytes())
            return tensors[_one_of(list(tensors), array, file)].double().numpy()
        case ".parquet":
            return _from_table(pd.read_parquet(file), array, file, notes)
        case _:
            return _from_table(pd.read_csv(file, header=_header(file)), array, file, notes)


def _one_of(names: list[str], asked: str | None, file: Path) -> str:
    if asked is not None:
        if asked not in names:
            raise unknown_name(f"array in {file}", asked, names)
        return asked
    if not names:
        raise IsoscopeError(f"{file} holds no array.")
    if len(names) != 1:
        raise IsoscopeError(
            f"{file} holds {len(names)} arrays; name one with --array: {', '.join(sorted(names))}."
        )
    return names[0]


def _from_table(
    table: pd.DataFrame, column: str | None, file: Path, notes: list[str]
) -> npt.NDArray[np.generic]:
    if column is None:
        lists = [name for name in table if len(table) and isinstance(table[name].iloc[0], np.ndarray | list)]
        column = str(lists[0]) if len(lists) == 1 else None
    if column is not None:
        if column not in table:
            raise unknown_name(f"column in {file}", column, map(str, table))
        return np.stack([np.asarray(vector) for vector in table[column]])
    numbers = table.select_dtypes("number")
    index = [name for name in numbers if _counts_rows(numbers[name])]
    used = numbers.drop(columns=index)
    if used.shape[1] == 0:
        raise IsoscopeError(
            f"{file} has no column of numbers; there are: {', '.join(map(str, table)) or 'none'}."
        )
    for name in table.columns.difference(numbers.columns, sort=False):
        if pd.to_numeric(table[name], errors="coerce").notna().mean() > 0.5:
            raise IsoscopeError(f"column '{name}' of {file} holds numbers but for some cells; mend those.")
    left = [str(name) for name in table if name not in used]
    if left:
        notes.append(f"{used.shape[1]} columns of {file.name} are dimensions; left out: {', '.join(left)}")
    return used.to_numpy(dtype=np.float64)


def _counts_rows(column: pd.Series[float]) -> bool:
    """Whether a column only numbers the rows, as an index or an id does."""
    whole = pd.api.types.is_integer_dtype(column)
    return bool(whole and len(column) > 2 and (column.diff().iloc[1:] == 1).all())


def _header(file: Path) -> int | None:
    """A first line that is all numbers is data, not names."""
    with file.open(encoding="utf-8", errors="replace") as stream:
        cells = stream.readline().strip().split(",")
    try:
        _ = [float(cell) for cell in cells]
    except ValueError:
        return 0
    return None

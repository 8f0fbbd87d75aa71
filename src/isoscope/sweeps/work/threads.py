"""How many threads a unit computes with: the same everywhere, since a sum over several rounds otherwise."""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager

NAMES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def set_before_import(threads: int, environment: MutableMapping[str, str] = os.environ) -> None:
    """Say it to the libraries of a process that has not imported them yet."""
    environment.update(dict.fromkeys(NAMES, str(threads)))
    environment["TOKENIZERS_PARALLELISM"] = "false"  # it warns of processes otherwise


@contextmanager
def so_many_threads(threads: int) -> Iterator[None]:
    """Compute with so many threads inside, in torch and in the linear algebra of NumPy and SciPy."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    with threadpool_limits(threads):
        torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)

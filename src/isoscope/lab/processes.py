"""Answers of a function to several items, so many at once in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TypeVar

from isoscope.errors import IsoscopeError

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def in_processes(
    function: Callable[[Item], Answer], items: Sequence[Item], parallel: int, begin: Callable[[], object]
) -> Iterator[tuple[int, Answer]]:
    """The place of each item with its answer, as they come; `begin` is called once per process."""
    if parallel == 1 or len(items) < 2:
        yield from ((place, function(item)) for place, item in enumerate(items))
        return
    workers = ProcessPoolExecutor(parallel, get_context("spawn"), initializer=begin)
    try:
        waited = {workers.submit(function, item): place for place, item in enumerate(items)}
        yield from ((waited[each], each.result()) for each in as_completed(waited))
    except BrokenProcessPool as reason:
        raise IsoscopeError(
            "a process of --parallel ended by itself, perhaps for want of memory; what was finished is kept, "
            "take fewer and run the same command again."
        ) from reason
    finally:
        workers.shutdown(cancel_futures=True)

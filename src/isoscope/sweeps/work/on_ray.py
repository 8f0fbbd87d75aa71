"""Units as tasks of Ray: the same function, on a cluster that runs or on one that is started here.

A task has as many CPUs as a unit has threads, and a share of a GPU where one is asked for. Where it dies Ray
runs it again, `RETRIES` times; then it is a failed row. All nodes must see the run folder under the same
path. Ray is imported when it is asked for, sends nothing to its makers and starts no dashboard.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from isoscope.errors import IsoscopeError, first_line
from isoscope.sweeps.work.job import Job, Outcome
from isoscope.sweeps.work.local import Slot, Stopped
from isoscope.sweeps.work.threads import set_before_import

RETRIES = 2
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",  # a task without a GPU sees none
}


@contextmanager
def ray_slots(
    workers: int | None, threads: int, *, address: str | None = None, gpus: float = 0.0
) -> Iterator[list[Slot]]:
    """So many tasks at once; None is as many as fit. A cluster that was started for them ends with them."""
    os.environ.update({name: value for name, value in _QUIET.items() if name not in os.environ})
    try:
        ray: Any = import_module("ray")
    except ImportError as reason:
        raise IsoscopeError(
            "--engine ray needs Ray, which is not installed: pip install 'isoscope[ray]'."
        ) from reason
    mine = not ray.is_initialized()
    if mine:
        _connect(ray, address, workers, threads)
    try:
        fits = _fitting(ray.cluster_resources(), threads, gpus)
        if fits < 1:
            raise IsoscopeError(
                f"no node of the cluster has room for a unit of {threads} CPUs and {gpus:g} GPUs; "
                "give fewer --threads or --gpus-per-task."
            )
        task = ray.remote(_task).options(num_cpus=threads, num_gpus=gpus, max_retries=RETRIES)
        yield [_slot(ray, task) for _ in range(min(workers or fits, fits))]
    finally:
        if mine:
            ray.shutdown()


def _connect(ray: Any, address: str | None, workers: int | None, threads: int) -> None:
    many = (workers or os.cpu_count() or 1) * threads
    own = {} if address else {"num_cpus": many, "include_dashboard": False}
    try:
        ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR", **own)
    except (ConnectionError, RuntimeError, ValueError, OSError) as reason:
        at = f" at '{address}'" if address else ""
        raise IsoscopeError(f"cannot reach or start a Ray cluster{at}: {first_line(reason)}.") from reason


def _fitting(there: Mapping[str, float], threads: int, gpus: float) -> int:
    """How many tasks a cluster has room for.

    >>> _fitting({"CPU": 8.0, "GPU": 1.0}, threads=2, gpus=0.5)
    2
    """
    rooms = [there.get("CPU", 0.0) / threads, *([there.get("GPU", 0.0) / gpus] if gpus else [])]
    return int(min(rooms))


def _slot(ray: Any, task: Any) -> Slot:
    """Room for one task: it is waited for, or taken back."""
    held: list[Any] = []
    stopped: list[bool] = []

    def measure(job: Job) -> Outcome:
        if stopped:
            raise Stopped
        held[:] = [task.remote(job, str(Path.cwd()))]
        try:
            answer = ray.get(held[0])
        except ray.exceptions.RayTaskError as reason:
            inner = getattr(reason, "cause", None)
            if isinstance(inner, IsoscopeError):
                raise inner from reason
            raise IsoscopeError(f"a task of Ray: {first_line(reason)}.") from reason
        except ray.exceptions.RayError as reason:
            if stopped:
                raise Stopped from reason
            from isoscope.sweeps.work.unit import fail

            return fail(job, f"its task on Ray died, {1 + RETRIES} times: {first_line(reason)}")
        finally:
            held.clear()  # a task that has just ended must not be cancelled: Ray 2.60 aborts this process
        assert isinstance(answer, Outcome)
        return answer

    def stop() -> None:
        stopped.append(True)
        for each in list(held):
            with suppress(ray.exceptions.RayError, ValueError, TypeError):
                ray.cancel(each, force=True)

    return Slot(measure, stop)


def _task(job: Job, place: str) -> Outcome:
    """One unit on a node: in the folder where the sweep was asked for, since addresses may be relative."""
    set_before_import(job.asked.threads)
    if Path(place).is_dir():
        os.chdir(place)
    from isoscope.sweeps.work.unit import measure_one

    return measure_one(job)

"""Queries and keys of one head at many steps, all on one pair of axes.

The pictures of a single checkpoint have axes of their own. Here axes are fitted to all steps together, each
step scaled to the same size for that, so that a late step of large vectors does not own them; what is drawn
are the vectors as they are. Three kinds of axes as in `geometry.clouds`: fitted to the vectors (which lean
on the means by construction), to their spread about the means of each step, and random.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from isoscope.geometry.clouds import AXES, Axes, pull, random_axes
from isoscope.results.points import Points, moving, points_frame
from isoscope.results.trajectory import Trajectory, thinned
from isoscope.sites import Site
from isoscope.sweeps.work.samples import Head, read_heads

STEPS = 24  # that a picture moves through
HEADS = 16  # that have one: those whose mean query and mean key are largest and most parallel at the end

Array = NDArray[np.float64]


def moving_points(of: Trajectory) -> pd.DataFrame:
    """The points of all steps: picture "steps shared" and so on, series "query 1000" and "key 1000"."""
    return points_frame(_drawn(of))


def _drawn(of: Trajectory) -> Iterator[Points]:
    chosen = thinned(range(len(of.units)), STEPS)
    held = {of.steps[at]: read_heads(of.folder, of.units[at]) for at in chosen}
    held = {step: heads for step, heads in held.items() if heads}
    if len(held) < 2:
        return
    always = [place for place in list(held.values())[-1] if all(place in heads for heads in held.values())]
    last = list(held.values())[-1]
    pulled = sorted(always, key=lambda place: -_pull(last[place]))[:HEADS]
    for site, head in sorted(pulled, key=lambda place: (place[0].kind, place[0].layer or 0, place[1])):
        yield from _of_head(site, head, {step: heads[site, head] for step, heads in held.items()})


def _pull(head: Head) -> float:
    return pull(torch.from_numpy(head.query), torch.from_numpy(head.key))


def _of_head(site: Site, head: int, steps: Mapping[int, Head]) -> Iterator[Points]:
    widths = {each.query.shape[1] for each in steps.values()}
    if len(widths) > 1 or not all(
        np.isfinite(e.query).all() and np.isfinite(e.key).all() for e in steps.values()
    ):
        return
    for how in AXES:
        axes, share = fitted(list(steps.values()), how, seed=1000 * (site.layer or 0) + head)
        for step, each in steps.items():
            for series, vectors in (("query", each.query), ("key", each.key)):
                x, y = (vectors.astype(np.float64) @ axes).T.tolist()
                yield Points(moving(how), site.kind, site.layer, head, moving(series, step), x, y)
        yield Points(moving(how), site.kind, site.layer, head, "share", [share[0]], [share[1]])


def fitted(steps: list[Head], how: Axes, seed: int = 0) -> tuple[Array, Array]:
    """Two orthonormal axes [e, 2] for all steps, and the share of the energy (of "centred", spread) on each.

    Each axis points so that the mean query of the last step lies at its positive side.
    """
    parts = []
    for step in steps:
        clouds = [step.query.astype(np.float64), step.key.astype(np.float64)]
        size = float(np.sqrt(np.mean([(cloud**2).mean() for cloud in clouds]))) or 1.0
        if how == "centred":
            clouds = [cloud - cloud.mean(0) for cloud in clouds]
        parts += [cloud / size for cloud in clouds]
    stack = np.concatenate(parts)
    if how == "random":
        axes = random_axes(stack.shape[1], seed).numpy()
    else:
        axes = np.linalg.svd(stack, full_matrices=False)[2][:2].T
        axes = np.pad(axes, ((0, 0), (0, 2 - axes.shape[1])))
    mean = steps[-1].query.astype(np.float64).mean(0) @ axes
    axes = axes * np.where(mean < 0, -1.0, 1.0)
    total = float((stack**2).sum()) or float("nan")
    return axes, ((stack @ axes) ** 2).sum(0) / total

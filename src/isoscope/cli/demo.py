"""`isoscope demo`: train a small model and see its geometry change."""

from __future__ import annotations

from pathlib import Path

from isoscope.cli.options import LAB, AtLeast1, verb


@verb(LAB | {"out": "The run folder."})
def demo(steps: AtLeast1 = 400, seed: int = 0, out: Path = Path("runs/demo"), json: bool = False) -> object:
    """Train a small Transformer on text that ships with Python, and watch its geometry change."""
    from isoscope.cli.screen.live import LiveView
    from isoscope.lab.train.demo import perform, prepare, watch
    from isoscope.results.store import read_run

    plan = prepare(steps, seed)
    model = plan.experiment.build(plan.lesson)
    with (
        LiveView("a small Transformer in training", steps=steps) as view,
        watch(plan, model, out, on_alarm=view.alarm, sink=view) as monitor,
    ):
        view.watch(monitor)
        perform(plan, model, monitor, view.progress)
    return read_run(out)

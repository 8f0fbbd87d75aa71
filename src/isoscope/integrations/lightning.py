"""Watch a training of Lightning: a callback that holds a Monitor.

    trainer = Trainer(callbacks=[IsoscopeCallback(probe, out="runs/mine")])

The Monitor is made when training starts and looks before the first step and after each step of the optimiser
(`trainer.global_step`), however many batches one is made of. It runs the model in the precision that it
trains in: Lightning enters autocast for the training step only, so the callback enters it for a look. What
the probe holds is what the watched module takes: Lightning moves and converts batches, and a probe is none.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from isoscope.errors import IsoscopeError
from isoscope.integrations.watching import Watching

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.plugins.precision import MixedPrecision
except ImportError as reason:
    raise IsoscopeError(
        "the callback for Lightning needs lightning: install it with `pip install 'isoscope[lightning]'`."
    ) from reason


class IsoscopeCallback(Watching, Callback):
    """A Monitor for the module that a Lightning Trainer fits.

    The options are those of `Monitor`, and `part`, a module inside the LightningModule that is watched in its
    place, such as ``"model"``.
    """

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Make the Monitor, and look at the model as it is now."""
        if not self._part and type(pl_module).forward is LightningModule.forward:
            children = ", ".join(f"part='{name}'" for name, _ in pl_module.named_children())
            raise IsoscopeError(
                f"{type(pl_module).__name__} has no forward, so it cannot be run over a probe; define one or "
                f"name the module to watch: {children or 'it holds none'}."
            )
        with _as_it_trains(trainer):
            self._begin(pl_module, trainer.estimated_stepping_batches)
            self._step(trainer.global_step)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Look at the model after a batch that was a step of the optimiser."""
        with _as_it_trains(trainer):
            self._step(trainer.global_step)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Close the Monitor."""
        self.close()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Close the Monitor of a training that failed, or was interrupted."""
        self.close()


def _as_it_trains(trainer: Trainer) -> AbstractContextManager[None]:
    """Autocast, if it trains under it; other precisions are in the weights."""
    plugin = trainer.precision_plugin
    return plugin.forward_context() if isinstance(plugin, MixedPrecision) else nullcontext()

"""Watch a training of the transformers Trainer: a callback that holds a Monitor.

    trainer = Trainer(model, args, train_dataset=data, callbacks=[IsoscopeCallback(probe, out="runs/mine")])

The Monitor is made when training begins, on the model that is trained, and looks before the first step and
after each step of the optimiser, however many batches one is made of. Training that is taken up from a
checkpoint takes up the run folder: steps that it has are not measured again.
"""

from __future__ import annotations

from typing import Any

from transformers.trainer_callback import TrainerCallback, TrainerControl, TrainerState
from transformers.training_args import TrainingArguments

from isoscope.integrations.watching import Watching


class IsoscopeCallback(Watching, TrainerCallback):
    """A Monitor for the model of a Trainer; call `close` after a training that ended with an error.

    The options are those of `Monitor`, and `part`, a module inside the model that is watched in its place.
    """

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **given: Any
    ) -> None:
        """Make the Monitor, and look at the model as it is now."""
        self._begin(given["model"], state.max_steps)
        self._step(state.global_step)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **given: Any
    ) -> None:
        """Look at the model after a step of the optimiser."""
        self._step(state.global_step)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **given: Any
    ) -> None:
        """Close the Monitor."""
        self.close()

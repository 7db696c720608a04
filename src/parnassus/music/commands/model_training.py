"""The training of models of music that are compared on the same pieces."""

from functools import partial
from typing import TypeVar

from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data.splits import Batches
from parnassus.optim import Adam
from parnassus.train import ModelCollection, Run, descend

Model = TypeVar("Model", bound=nn.Module)


def train_models(
    run: Run,
    models: ModelCollection[Model],
    batches: Batches[Tensor] | Batches[tuple[Tensor, Tensor]],
    *,
    learning_rate: float,
) -> ModelCollection[Model]:
    """Train all models on the same batches by Adam with a 1cycle schedule; `learning_rate` is its peak.

    The mean of their losses is logged. Returns the models on the device of the run.
    """
    num_models = len(models)  # before torchrun wraps them
    models, optimizer, schedule = run.prepare(
        models,
        partial(Adam, lr=learning_rate),
        partial(OneCycleLR, max_lr=learning_rate, total_steps=len(batches) + 1, pct_start=0.1, cycle_momentum=False),
    )
    for step, loss in descend(run, models, optimizer, batches):
        schedule.step()
        run.log(step, loss=loss / num_models)
    return models

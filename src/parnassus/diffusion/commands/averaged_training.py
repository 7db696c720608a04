"""Training of a diffusion model whose weights are averaged over the steps."""

from functools import partial
from typing import cast

from torch import Tensor
from torch.optim import Adam
from torch.optim.lr_scheduler import OneCycleLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from parnassus.data import Batches
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.train import Run, descend


def train_with_averaging(run: Run, model: DDPM, batches: Batches[tuple[Tensor, Tensor]], learning_rate: float) -> DDPM:
    """Train by Adam with the 1cycle schedule; returns and publishes the exponential moving average with decay 0.99.

    The learning rate has its peak `learning_rate` after 10 % of the steps.
    """
    average = AveragedModel(model, device=run.device, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    model, optimizer, scheduler = run.prepare(
        model,
        partial(Adam, lr=learning_rate),
        partial(OneCycleLR, max_lr=learning_rate, total_steps=len(batches) + 1, pct_start=0.1),
    )
    run.keep("average", average)
    for step, loss in descend(run, model, optimizer, batches):
        average.update_parameters(model)
        scheduler.step()
        run.log(step, loss=loss)
    averaged = cast("DDPM", average.module)
    run.publish(averaged)
    return averaged

"""A linear autoencoder, trained by descent, turns into the principal subspace (book sec. 4.3)."""

import time
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim import SGD

from parnassus.data import open_data
from parnassus.latent.linear_autoencoder import LinearAutoencoder
from parnassus.latent.pca import PCA
from parnassus.latent.projection import principal_angles, pseudo_inverse, second_moment
from parnassus.report import curves, heatmap
from parnassus.train import Run, at_least, at_most, descend
from parnassus.train.metrics import read_metrics

covers = ("B4.3-1", "B4.3-3", "B4.3-12", "B4.3-13", "B4.3-14")
expected = {
    "largest_angle": at_most(1e-2),
    "excess_error": at_most(1e-4),
    "encoder_gap": at_most(1e-3),
    "cosine_to_first_component": at_most(0.999),
}
profiles = {"smoke": {"steps": 300}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # a built-in name, or your own folder or file
    latent: int = 4  # numbers in the code
    steps: int = 4_000  # steps of descent, all examples at once
    lr: float = 0.03  # learning rate, with momentum 0.9

    def __call__(self, run: Run) -> dict[str, float]:
        x = open_data(self.data).to(run.device).train.x.flatten(1)
        x = x - x.mean(0)  # centred data need no biases
        began = time.perf_counter()
        pca = PCA.fit(x, self.latent)
        closed_form = time.perf_counter() - began

        model = LinearAutoencoder(x.shape[1], self.latent, bias=False)
        model, optimizer = run.prepare(model, partial(SGD, lr=self.lr, momentum=0.9))
        began = time.perf_counter()
        for step, loss in descend(run, model, optimizer, _Everything(x, self.steps)):
            V, W = model.encoder.weight.detach(), model.decoder.weight.detach()
            run.log(
                step,
                loss=loss,
                excess_error=(loss / pca.residual - 1).clamp(min=1e-9),
                largest_angle=principal_angles(W, pca.components).max(),
                encoder_gap=(V - pseudo_inverse(W)).abs().max(),
            )

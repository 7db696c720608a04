"""A denoiser learns the way back to a circle, and its arrows are the score (book sec. 4.4)."""

from dataclasses import dataclass
from functools import partial
from math import pi

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity
from torch.optim import Adam

from parnassus.data import Split
from parnassus.latent.autoencoder import Autoencoder
from parnassus.latent.denoising import DenoisingAutoencoder, gaussian, ideal_denoiser, score, smoothed_log_density
from parnassus.layers import mlp, tanh
from parnassus.report import arrows, histograms
from parnassus.train import Run, at_least, at_most, descend

covers = ("B4.4-3", "B4.4-4")
expected = {
    "distance_ratio": at_most(0.25, "distance to the circle after denoising over that before"),
    "gap_to_ideal": at_most(0.045, "RMS distance to the best possible denoiser, E[x | noisy x]"),
    "score_cosine": at_least(0.97, "cosine between what the denoiser adds and the slope of the log-density"),
}
profiles = {"smoke": {"steps": 100}}


@dataclass(frozen=True)
class Experiment:
    steps: int = 5_000  # gradient steps
    batch: int = 512  # points per step
    width: int = 128  # hidden units
    std: float = 0.25  # noise added to the points of the unit circle

    def __call__(self, run: Run) -> dict[str, float]:
        angle = torch.arange(2_000) * 2 * pi / 2_000
        circle = torch.stack([angle.cos(), angle.sin()], 1).to(run.device)
        network = Autoencoder(mlp((2, self.width, self.width), activation=tanh), mlp((self.width, self.width, 2)))
        model = DenoisingAutoencoder(network, partial(gaussian, std=self.std))
        model, optimizer = run.prepare(model, partial(Adam, lr=1e-3))
        for step, loss in descend(run, model, optimizer, Split(circle).batches(self.batch, self.steps)):
            run.log(step, loss=loss)

        model.requires_grad_(requires_grad=False)
        noisy = gaussian(circle, std=self.std)
        before, after = _distance(noisy), _distance(model(noisy))
        figure = histograms({"noisy": before, "denoised": after}, x_label="distance to the circle")
        run.figure("distances", figure, "Denoising moves points towards the circle.")
        grid = torch.cartesian_prod(*[torch.linspace(-1.6, 1.6, 17, device=run.device)] * 2)
        fields = {"field": model(grid) - grid, "ideal_field": ideal_denoiser(circle, grid, std=self.std) - grid}
        captions = ("g(f(x̂)) − x̂ of the network, drawn at a third.", "E[x | x̂] − x̂, the best there is, at a third.")
        for (name, field), caption in zip(fields.items(), captions, strict=True):
            run.figure(name, arrows(grid, field / 3, background=circle), caption)

        learnt = score(model(noisy), noisy, std=self.std)
        return {
            "distance_ratio": float(after.mean() / before.mean()),
            "gap_to_ideal": float((model(noisy) - ideal_denoiser(circle, noisy, std=self.std)).square().mean().sqrt()),
            "score_cosine": float(cosine_similarity(learnt.flatten(), self._slope(circle, noisy).flatten(), dim=0)),
        }

    def _slope(self, circle: Tensor, x_hat: Tensor) -> Tensor:
        """∇ log p_s(x̂) by automatic differentiation."""
        x_hat = x_hat.clone().requires_grad_()
        (slope,) = torch.autograd.grad(smoothed_log_density(circle, x_hat, std=self.std).sum(), x_hat)
        return slope


def _distance(x: Tensor) -> Tensor:
    """From each point to the nearest of the unit circle."""
    distance: Tensor = (torch.linalg.vector_norm(x, dim=1) - 1).abs()
    return distance

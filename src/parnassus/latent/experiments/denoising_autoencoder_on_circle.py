"""Denoising autoencoder of points on a circle: its vector field estimates the score (book sec. 4.4)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity
from torch.optim import Adam

from parnassus.data import Split
from parnassus.latent.autoencoders.autoencoder import Autoencoder
from parnassus.latent.autoencoders.denoising_autoencoder import (
    DenoisingAutoencoder,
    add_gaussian_noise,
    exact_denoiser,
    score_from_denoiser,
    smoothed_log_density,
)
from parnassus.latent.figures import plot_vector_field
from parnassus.latent.textbook.circle import circle_points, distance_to_circle
from parnassus.layers import mlp, tanh
from parnassus.report import histograms
from parnassus.train import Positive, Run, at_least, at_most, descend

covers = ("B4.4-3", "B4.4-4")
expected = {
    "distance_ratio": at_most(0.25, "ratio of the mean distances to the circle after and before denoising"),
    "distance_to_optimal_denoiser": at_most(0.045, "RMS distance to the optimal denoiser E[x | noisy x]"),
    "score_cosine": at_least(0.97, "cosine similarity of the estimated score and the gradient of the log-density"),
}
profiles = {"smoke": {"steps": 100}}


@dataclass(frozen=True)
class Experiment:
    steps: Positive[int] = 5_000  # gradient steps
    batch_size: Positive[int] = 512  # points per gradient step
    width: Positive[int] = 128  # hidden units
    noise_std: Positive[float] = 0.25  # standard deviation of the noise added to the points

    def __call__(self, run: Run) -> dict[str, float]:
        circle = circle_points(2_000).float().to(run.device)
        network = Autoencoder(mlp((2, self.width, self.width), activation=tanh), mlp((self.width, self.width, 2)))
        model = DenoisingAutoencoder(network, partial(add_gaussian_noise, std=self.noise_std))
        model, optimizer = run.prepare(model, partial(Adam, lr=1e-3))
        for step, loss in descend(run, model, optimizer, Split(circle).batches(self.batch_size, self.steps)):
            run.log(step, loss=loss)

        model.requires_grad_(requires_grad=False)
        noisy = add_gaussian_noise(circle, std=self.noise_std)
        before, after = distance_to_circle(noisy), distance_to_circle(model(noisy))
        figure = histograms({"noisy": before, "denoised": after}, x_label="distance to the circle")
        run.figure("distances", figure, "Distance to the circle before and after denoising.")
        grid = torch.cartesian_prod(*[torch.linspace(-1.6, 1.6, 17, device=run.device)] * 2)
        fields = {"field": model(grid) - grid, "ideal_field": exact_denoiser(circle, grid, std=self.noise_std) - grid}
        captions = ("g(f(x̂)) − x̂ of the network, at 1/3 scale.", "E[x | x̂] − x̂ of the optimal denoiser, at 1/3 scale.")
        for (name, field), caption in zip(fields.items(), captions, strict=True):
            run.figure(name, plot_vector_field(grid, field / 3, background=circle), caption)

        score = score_from_denoiser(model(noisy), noisy, std=self.noise_std)
        return {
            "distance_ratio": float(after.mean() / before.mean()),
            "distance_to_optimal_denoiser": float(
                (model(noisy) - exact_denoiser(circle, noisy, std=self.noise_std)).square().mean().sqrt()
            ),
            "score_cosine": float(
                cosine_similarity(score.flatten(), self._exact_score(circle, noisy).flatten(), dim=0)
            ),
        }

    def _exact_score(self, circle: Tensor, x_hat: Tensor) -> Tensor:
        """∇ log p_s(x̂) by automatic differentiation."""
        x_hat = x_hat.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(smoothed_log_density(circle, x_hat, std=self.noise_std).sum(), x_hat)
        return gradient

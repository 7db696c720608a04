"""Explicit, implicit, sliced and denoising score matching: error and cost of each (book secs. 13.2.6, 13.2.8)."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from parnassus.diffusion.figures import plot_score_field
from parnassus.diffusion.networks.score_networks import mlp_energy, mlp_score
from parnassus.diffusion.scores.energy_based_score import EnergyBasedScore
from parnassus.diffusion.scores.gaussian_mixture import IsotropicMixture
from parnassus.diffusion.scores.score_matching import (
    ScoreFunction,
    ScoreMatching,
    denoising_score_matching,
    explicit_score_matching,
    implicit_score_matching,
    sliced_score_matching,
)
from parnassus.diffusion.scores.vector_fields import jacobian_asymmetry
from parnassus.flows.residual.jacobian_traces import rademacher_directions
from parnassus.optim import Adam
from parnassus.report import curves, subplots
from parnassus.train import ModelCollection, Positive, Run, at_most, no_band

covers = ("B13.2.6-1", "B13.2.6-2", "B13.2.6-3", "B13.2.8-1")
expected = {
    "error_explicit": at_most(
        0.02, "relative error E‖s − ∇log p‖² / E‖∇log p‖² on test points, explicit score matching"
    ),
    "error_implicit": at_most(0.06, "relative error on test points, implicit score matching with the exact divergence"),
    "error_sliced": at_most(0.06, "relative error on test points, sliced score matching with one random projection"),
    "error_denoising": at_most(0.07, "relative error for the score of the noisy density, denoising score matching"),
    "error_denoising_of_the_clean": no_band("relative error of the denoising score as a score of the clean density"),
    "error_energy": at_most(0.03, "relative error of the gradient of an energy, denoising score matching"),
    "asymmetry_network": no_band("median ‖J − Jᵀ‖/‖J + Jᵀ‖ of the unconstrained denoising network"),
    "asymmetry_energy": at_most(
        1e-4, "median ‖J − Jᵀ‖/‖J + Jᵀ‖ of the gradient of the energy, symmetric by construction"
    ),
    "cost_ratio": no_band("ratio of times per step in 64 dimensions, exact divergence to one random projection"),
}
profiles = {"smoke": {"steps": 10, "width": 16, "dimensions": (2, 4)}}
METHODS = ("explicit", "implicit", "sliced", "denoising", "energy")


def mixture(device: torch.device) -> IsotropicMixture:
    """Three overlapping Gaussians."""
    means = torch.tensor([[-1.5, -0.6], [1.5, -0.6], [0.0, 1.4]], device=device)
    return IsotropicMixture.from_components(means, means.new_tensor([0.5, 0.6, 0.4]), means.new_tensor([0.3, 0.5, 0.2]))


@dataclass(frozen=True)
class Experiment:
    steps: Positive[int] = 1_500  # gradient steps
    batch_size: Positive[int] = 256  # new points per gradient step
    width: Positive[int] = 64  # hidden units in each of two layers
    noise_std: Positive[float] = 0.3  # standard deviation σ of the noise in denoising score matching
    learning_rate: Positive[float] = 2e-3  # initial learning rate of Adam, decayed linearly to 0
    dimensions: tuple[Positive[int], ...] = (2, 4, 8, 16, 32, 64)  # dimensions at which the time per step is measured

    def __call__(self, run: Run) -> dict[str, float]:
        truth = mixture(run.device)
        noisy = partial(truth.score, noise=self.noise_std)
        losses = self.losses(truth.score)
        models = ModelCollection[ScoreMatching](
            {name: ScoreMatching(self.network(name), loss) for name, loss in losses.items()}
        )
        models, optimizer = run.prepare(models, partial(Adam, lr=self.learning_rate))
        targets = {name: noisy if name in ("denoising", "energy") else truth.score for name in METHODS}
        test, _ = truth.sample(4_000)
        points = {name: test + self.noise_std * torch.randn_like(test) * (targets[name] is noisy) for name in METHODS}

        for step, _ in run.steps(self.steps):
            optimizer.param_groups[0]["lr"] = self.learning_rate * (1 - step / self.steps)
            x, _ = truth.sample(self.batch_size)
            run.update(optimizer, models.loss(x))
            if step % max(1, self.steps // 50) == 0:
                errors = {
                    name: relative_error(models.model(name).score, targets[name], points[name]) for name in METHODS
                }
                run.record(step, **{f"error/{name}": error for name, error in errors.items()})

        fields = {name: models.model(name).score for name in METHODS}
        self.plot_fields(run, truth, fields)
        lines = {name: run.curve(f"error/{name}") for name in METHODS}
        figure = curves(lines, x_label="step", y_label="relative squared error", log_y=True)
        run.figure(
            "errors",
            figure,
            "E‖s − ∇log p‖² / E‖∇log p‖² on test points during training; for the last two methods p is the noisy p_σ.",
        )
        half_scale = ("implicit", "sliced")  # these losses are half as large as the others
        noise = {
            name: gradient_noise(losses[name], fields[name], truth, self.batch_size, 2.0 if name in half_scale else 1.0)
            for name in METHODS
        }
        final = {name: relative_error(fields[name], targets[name], points[name]) for name in METHODS}
        run.table(
            "methods",
            [
                {
                    "method": name,
                    "requires": REQUIREMENTS[name],
                    "error": final[name],
                    "gradient noise": noise[name] / noise["explicit"],
                }
                for name in METHODS
            ],
            f"Gradient noise: RMS distance of the gradient of {self.batch_size} points from its mean, relative to "
            "explicit score matching, whose gradient noise vanishes for a perfect fit.",
        )
        ratio = self.plot_cost(run, losses)
        return {
            **{f"error_{name}": error for name, error in final.items()},
            "error_denoising_of_the_clean": relative_error(fields["denoising"], truth.score, test),
            "asymmetry_network": float(jacobian_asymmetry(fields["denoising"], test[:500]).median().detach()),
            "asymmetry_energy": float(jacobian_asymmetry(fields["energy"], test[:500]).max().detach()),
            "cost_ratio": ratio,
        }

    def network(self, name: str) -> nn.Module:
        return EnergyBasedScore(mlp_energy(2, self.width)) if name == "energy" else mlp_score(2, self.width)

    def losses(self, truth: ScoreFunction) -> dict[str, Callable[[ScoreFunction, Tensor], Tensor]]:
        def denoising(score: ScoreFunction, x: Tensor) -> Tensor:
            return denoising_score_matching(score, x, torch.randn_like(x), std=self.noise_std)

        return {
            "explicit": lambda score, x: explicit_score_matching(score, truth, x),
            "implicit": implicit_score_matching,
            "sliced": lambda score, x: sliced_score_matching(score, x, rademacher_directions(x)[0]),
            "denoising": denoising,
            "energy": denoising,
        }

    def plot_fields(self, run: Run, truth: IsotropicMixture, fields: dict[str, nn.Module]) -> None:
        figure, axes = subplots(2, 3, size=(11, 7.4))
        panels: dict[str, ScoreFunction] = {
            "true score ∇ log p": truth.score,
            **{TITLES[name]: fields[name] for name in METHODS},
        }
        for ax, (title, field) in zip(axes.flat, panels.items(), strict=True):
            plot_score_field(ax, truth, field)
            ax.set_title(title)
        run.figure(
            "learned scores",
            figure,
            "Learned scores (blue) and the true score of the clean data (grey), with arrow lengths √‖s‖. They agree "
            "where data lie and differ in regions without data. The last two methods learn the score of the noisy "
            "density, which is smaller.",
        )

    def plot_cost(self, run: Run, losses: dict[str, Callable[[ScoreFunction, Tensor], Tensor]]) -> float:
        """The time per training step against the dimension, with the exact trace and with one random projection."""
        lines: dict[str, tuple[list[int], list[float]]] = {}
        names = {"implicit": "implicit, exact trace", "sliced": "sliced, one projection", "denoising": "denoising"}
        for method, name in names.items():
            seconds = [
                seconds_per_step(ScoreMatching(mlp_score(d, self.width), losses[method]), d) for d in self.dimensions
            ]
            lines[name] = list(self.dimensions), [1e3 * value for value in seconds]
        figure = curves(lines, x_label="number of dimensions", y_label="time per step (ms)", log_x=True, log_y=True)
        run.figure(
            "time per step",
            figure,
            "The exact divergence needs one backward pass per dimension, a random projection a single one.",
        )
        exact, projected, _ = (line[1][-1] for line in lines.values())
        return exact / projected


REQUIREMENTS = {
    "explicit": "the true score",
    "implicit": "data, and d backward passes",
    "sliced": "data, and one backward pass",
    "denoising": "data and noise",
    "energy": "data and noise",
}
TITLES = {
    "explicit": "explicit score matching",
    "implicit": "implicit score matching",
    "sliced": "sliced score matching",
    "denoising": "denoising score matching",
    "energy": "denoising, energy gradient",
}


def relative_error(score: ScoreFunction, truth: ScoreFunction, x: Tensor) -> float:
    """E‖s − truth‖² / E‖truth‖² at these points."""
    with torch.no_grad():
        error = explicit_score_matching(score, truth, x).mean()
        return float(error / explicit_score_matching(torch.zeros_like, truth, x).mean())


def gradient_noise(
    loss: Callable[[ScoreFunction, Tensor], Tensor], score: nn.Module, truth: IsotropicMixture, batch: int, scale: float
) -> float:
    """The root mean square distance of the gradient of one batch from its mean, after training."""
    gradients = []
    for _ in range(40):
        x, _ = truth.sample(batch)
        parts = torch.autograd.grad(scale * loss(score, x).mean(), list(score.parameters()), allow_unused=True)
        gradients.append(torch.cat([part.flatten() for part in parts if part is not None]))
    return float(torch.stack(gradients).var(0).sum().sqrt())


def seconds_per_step(model: ScoreMatching, dimensions: int, repeats: int = 5) -> float:
    """The median time of a loss and its gradient on 256 points."""
    x = torch.randn(256, dimensions)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        model.loss(x).backward()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]

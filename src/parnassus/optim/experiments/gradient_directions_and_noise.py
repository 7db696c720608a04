"""Gradient directions and noise: directional derivatives, mini-batch variance, SGD noise floor (Diehl sec. 1.5)."""

from collections.abc import Callable
from dataclasses import dataclass
from math import pi

import torch
from torch import Tensor
from torch.func import grad

from parnassus.atlas import exponent
from parnassus.optim import (
    gradient_descent,
    per_sample_gradients,
    shuffled_batches,
    steepest_descent,
    stochastic_gradient_descent,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Positive, Run, at_most, between

covers = ("D1.5.2", "D1.5.3", "D1.5.5", "Z3.4")
expected = {
    "steepest_angle_error": at_most(
        0.6, "angle between the direction with the smallest derivative and −∇C, in degrees"
    ),
    "min_derivative_ratio": between(-1.0, -0.9999, "ratio of the smallest sampled directional derivative to ‖∇C‖"),
    "variance_exponent": between(-1.1, -0.9, "exponent of the batch size in the variance of the batch gradient"),
    "bias_in_standard_errors": at_most(4.5, "mean of batch gradients minus full gradient, in standard errors"),
    "floor_exponent": between(0.8, 1.2, "exponent of η in the final squared distance, with replacement"),
    "floor_exponent_reshuffled": between(1.3, 2.2, "exponent of η in the final squared distance, reshuffled batches"),
    "full_batch_difference": at_most(1e-12, "maximum difference between full-batch SGD and gradient descent"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"epochs": 4, "num_batches": 200, "num_runs": 20}, "gpu": {}}

SIZES = (1, 4, 16, 64)
START = (-1.0, 0.6)
RATES = (0.02, 0.04, 0.08, 0.16)


BatchSampler = Callable[[int, int, torch.Generator], Tensor]
"""Indices (run, example) of the examples of one epoch, in order, for each of several runs."""


def sample_with_replacement(num_runs: int, num_examples: int, generator: torch.Generator) -> Tensor:
    return torch.randint(num_examples, (num_runs, num_examples), generator=generator)


def reshuffle(num_runs: int, num_examples: int, generator: torch.Generator) -> Tensor:
    return torch.rand(num_runs, num_examples, generator=generator).argsort(1)


SAMPLERS: dict[str, BatchSampler] = {"with replacement": sample_with_replacement, "reshuffled": reshuffle}


def squared_error(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return (x @ theta - y).square() / 2


@dataclass(frozen=True)
class Experiment:
    num_examples: Positive[int] = 256  # training examples of the regression
    num_directions: Positive[int] = 720  # unit directions whose derivative is measured
    num_batches: Positive[int] = 2_000  # batches sampled of each size
    epochs: Positive[int] = 20  # epochs of each SGD run
    num_runs: Positive[int] = 200  # SGD runs of each learning rate

    def __call__(self, run: Run) -> dict[str, float]:
        generator = torch.Generator().manual_seed(run.seed)
        x = (
            torch.randn(self.num_examples, 2, generator=generator, dtype=torch.float64)
            * torch.tensor([1.0, 0.6]).double()
        )
        y = x @ torch.tensor([1.0, -1.0]).double() + 0.7 * torch.randn(self.num_examples, generator=generator).double()
        result = self.measure_derivatives(run, x, y)
        result |= self.measure_gradient_noise(run, x, y, generator) | self.measure_noise_floors(run, x, y, generator)
        run.note(
            "results",
            "The derivative in direction u is ⟨u, ∇C⟩ = ‖∇C‖ cos φ: smallest opposite to the gradient, zero orthogonal "
            "to it. The gradient of a mini-batch is an unbiased estimate; four times as many examples halve its "
            "standard error. At a fixed learning rate this noise keeps SGD from converging.",
        )
        return result

    def measure_derivatives(self, run: Run, x: Tensor, y: Tensor) -> dict[str, float]:
        theta = torch.tensor(START, dtype=torch.float64)

        def cost(theta: Tensor) -> Tensor:
            return squared_error(theta, x, y).mean()

        gradient = grad(cost)(theta)
        angle = torch.linspace(-pi, pi, self.num_directions + 1, dtype=torch.float64)[:-1]
        unit = torch.stack([angle.cos(), angle.sin()], 1)
        h = 1e-5
        derivative = torch.stack([(cost(theta + h * each) - cost(theta - h * each)) / (2 * h) for each in unit])
        steepest = steepest_descent(gradient)
        best_sample = unit[derivative.argmin()]
        figure, axes = subplots(1, 2, size=(10.4, 4.0))
        line = torch.linspace(-2.6, 2.6, 81, dtype=torch.float64)
        plane = torch.stack(torch.meshgrid(line, line, indexing="xy"), -1).reshape(-1, 2)
        heights = (plane @ x.T - y).square().mean(1).reshape(81, 81) / 2
        axes[0, 0].contour(line, line, heights, levels=14, colors=[FAINT], linewidths=0.8)
        axes[0, 0].scatter(*(theta + unit[::12]).T, c=derivative[::12], cmap="RdBu_r", s=26, zorder=3)
        axes[0, 0].annotate(
            "", tuple(theta + steepest), tuple(theta), arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 1.6}
        )
        axes[0, 0].set(xlabel="θ₁", ylabel="θ₂", aspect="equal", title="directions at one point")
        degrees = angle.rad2deg()
        axes[0, 1].plot(degrees, derivative, color=PALETTE[0], label="finite differences")
        axes[0, 1].plot(degrees[::24], (unit @ gradient)[::24], "o", color=PALETTE[1], markersize=4, label="⟨u, ∇C⟩")
        axes[0, 1].axhline(-float(gradient.norm()), color=FAINT, linestyle=":", linewidth=1.4)
        steepest_degrees = float(torch.atan2(steepest[1], steepest[0]).rad2deg())
        axes[0, 1].axvline(steepest_degrees, ymax=0.72, color=INK, linestyle="--", linewidth=1)
        axes[0, 1].set(xlabel="direction in degrees", title="directional derivative", xticks=range(-180, 181, 90))
        axes[0, 1].set_ylim(-1.2 * float(gradient.norm()), 1.9 * float(gradient.norm()))
        axes[0, 1].legend(loc="upper center")
        run.figure(
            "directional derivatives",
            figure,
            "Left: a cost, a point, and the unit circle around it, red where the cost increases and blue where it "
            "decreases; the arrow is −∇C/‖∇C‖. Right: the derivative is a cosine of the direction, with its minimum "
            "−‖∇C‖ (dotted) at the arrow (dashed).",
        )
        return {
            "steepest_angle_error": float((best_sample @ steepest).clamp(-1, 1).arccos().rad2deg()),
            "min_derivative_ratio": float(((unit @ gradient).min() / gradient.norm()).clamp(min=-1)),
        }

    def measure_gradient_noise(self, run: Run, x: Tensor, y: Tensor, generator: torch.Generator) -> dict[str, float]:
        theta = torch.tensor(START, dtype=torch.float64)
        gradients = per_sample_gradients(squared_error, theta, x, y)
        full = gradients.mean(0)
        figure, axes = subplots(1, 2, size=(10.4, 4.0))
        variances, biases = [], []
        for size, colour in zip(SIZES, PALETTE, strict=False):
            indices = torch.randint(len(x), (self.num_batches, size), generator=generator)
            estimates = gradients[indices].mean(1)
            axes[0, 0].plot(*estimates[:400].T, "o", color=colour, markersize=2.5, alpha=0.5, label=f"|B| = {size}")
            variances.append(estimates.var(0).sum())
            biases.append(((estimates.mean(0) - full).abs() / (estimates.std(0) / self.num_batches**0.5)).max())
        axes[0, 0].plot(*full, "+", color=INK, markersize=14, markeredgewidth=2)
        margin = 2.5 * gradients.std(0)
        axes[0, 0].set(
            xlabel="∂C/∂θ₁",
            ylabel="∂C/∂θ₂",
            title="mini-batch gradients",
            xlim=(float(full[0] - margin[0]), float(full[0] + margin[0])),
            ylim=(float(full[1] - margin[1]), float(full[1] + margin[1])),
        )
        axes[0, 0].legend(markerscale=2, loc="upper right")
        sizes, variance = torch.tensor(SIZES, dtype=torch.float64), torch.stack(variances)
        axes[0, 1].loglog(sizes, variance, color=PALETTE[0], marker="o", label="measured")
        axes[0, 1].loglog(sizes, variance[0] / sizes, color=INK, linestyle="--", linewidth=1.2, label="∝ 1/|B|")
        axes[0, 1].set(xlabel="batch size", title="variance of the gradient", xticks=SIZES)
        axes[0, 1].set_xticklabels([str(size) for size in SIZES])
        axes[0, 1].minorticks_off()
        axes[0, 1].legend()
        run.figure(
            "mini-batch gradients",
            figure,
            "Left: gradients at one point from batches of several sizes, around the full gradient (cross). They are "
            "unbiased. Right: their variance is inversely proportional to the batch size.",
        )
        return {
            "variance_exponent": exponent(sizes, variance),
            "bias_in_standard_errors": float(torch.stack(biases).max()),
        }

    def measure_noise_floors(self, run: Run, x: Tensor, y: Tensor, generator: torch.Generator) -> dict[str, float]:
        """Measure the stationary squared distance of SGD from the minimum against the learning rate."""
        best = torch.linalg.lstsq(x, y[:, None]).solution[:, 0]
        figure, axes = subplots(1, 3, size=(12.5, 3.9))
        floors: dict[str, list[Tensor]] = {name: [] for name in SAMPLERS}
        for rate, colour in zip(RATES, PALETTE, strict=False):
            for name, distances in floors.items():
                paths = self.run_sgd(x, y, rate, SAMPLERS[name], generator)
                distance = (paths - best).square().sum(-1).mean(1)
                distances.append(distance[len(distance) // 2 :].mean())
                if name == "with replacement":
                    axes[0, 0].semilogy(distance, color=colour, linewidth=1, label=f"η = {rate:g}")
                    axes[0, 1].plot(*paths[-1].T, "o", color=colour, markersize=2.5, alpha=0.6)
        axes[0, 0].set(xlabel="step", title="squared distance, with replacement")
        axes[0, 0].legend(ncols=2)
        axes[0, 1].plot(*best, "+", color=INK, markersize=14, markeredgewidth=2)
        axes[0, 1].set(xlabel="θ₁", ylabel="θ₂", title="final parameters", aspect="equal")
        rates = torch.tensor(RATES, dtype=torch.float64)
        exponents = {}
        for (name, distances), colour in zip(floors.items(), PALETTE, strict=False):
            exponents[name] = exponent(rates, torch.stack(distances))
            axes[0, 2].loglog(
                rates, torch.stack(distances), color=colour, marker="o", label=f"{name}: η^{exponents[name]:.2f}"
            )
        axes[0, 2].set(xlabel="η", title="final squared distance", xticks=RATES)
        axes[0, 2].set_xticklabels([f"{rate:g}" for rate in RATES])
        axes[0, 2].minorticks_off()
        axes[0, 2].legend()
        run.figure(
            "noise floor of SGD",
            figure,
            "SGD with batches of 4 converges to a stationary distribution around the minimum (cross). Sampled with "
            "replacement, the squared distance is proportional to the learning rate. Reshuffled, so that every epoch "
            "uses each example once, much of the noise cancels within an epoch and the distance is smaller.",
        )
        start = torch.tensor(START, dtype=torch.float64)
        full_batch = stochastic_gradient_descent(
            squared_error,
            start,
            (x, y),
            batches=shuffled_batches(len(x), len(x), epochs=30, generator=generator),
            learning_rate=0.2,
        )
        plain = gradient_descent(lambda theta: squared_error(theta, x, y).mean(), start, learning_rate=0.2, steps=30)
        return {
            "floor_exponent": exponents["with replacement"],
            "floor_exponent_reshuffled": exponents["reshuffled"],
            "full_batch_difference": float((full_batch - plain).abs().max()),
        }

    def run_sgd(self, x: Tensor, y: Tensor, rate: float, sampler: BatchSampler, generator: torch.Generator) -> Tensor:
        """Iterates of many SGD runs at once, (step, run, 2)."""
        theta = torch.tensor(START, dtype=torch.float64).repeat(self.num_runs, 1)
        path = [theta]
        for _ in range(self.epochs):
            for batch in sampler(self.num_runs, len(x), generator).split(4, dim=1):
                residual = (x[batch] * theta[:, None]).sum(-1) - y[batch]
                theta = theta - rate * (residual[..., None] * x[batch]).mean(1)
                path.append(theta)
        return torch.stack(path)

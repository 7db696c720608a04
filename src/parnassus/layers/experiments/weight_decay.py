"""Weight decay: regularisation path, ridge regression, and L² penalty against AdamW (book ex. 2.3)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Adam, AdamW, Optimizer

from parnassus.data import load_digits
from parnassus.data.built_in.toy import linear
from parnassus.layers import (
    check_labels,
    dense_classifier,
    effective_parameters,
    evaluate,
    linear_model,
    ridge_path,
    ridge_regression,
)
from parnassus.losses import mean_squared_error
from parnassus.optim import gradient_descent, l2_penalty, penalised_minimiser, shrinkage_factors, weight_decay_groups
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.train import Positive, Run, at_least, at_most, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B2.2-9", "Z3.15")
expected = {
    "limit_distance": at_most(1e-8, "distance between the limit of gradient descent and (H + αI)⁻¹Hθ*"),
    "ridge_error_ratio": at_least(
        1.5, "ratio of the test error of least squares to that of ridge regression with the best penalty"
    ),
    "penalty_difference": at_least(0.5, "difference of two weights after Adam with an L² penalty; both should decay"),
    "decoupled_difference": at_most(0.1, "difference of the two weights after Adam with decoupled weight decay"),
    "accuracy_without": no_band("test accuracy without weight decay"),
    "accuracy_penalty": no_band("best test accuracy with an L² penalty and Adam"),
    "accuracy_decoupled": no_band("best test accuracy with decoupled weight decay (AdamW)"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 5, "noise_steps": 600}, "gpu": {}}

OptimizerFactory = Callable[[Iterable[nn.Parameter]], Optimizer]


@dataclass(frozen=True)
class Experiment:
    max_curvature: Positive[float] = 4.0  # larger curvature of the quadratic loss
    min_curvature: Positive[float] = 0.3  # smaller curvature of the quadratic loss
    num_examples: Positive[int] = 30  # training examples of the ridge regression
    num_features: Positive[int] = 25  # features of the ridge regression
    num_images: Positive[int] = 150  # training images of the networks
    steps: Positive[int] = 300  # gradient steps per network
    noise_steps: Positive[int] = 3_000  # steps of two weights with pure noise gradients

    def __call__(self, run: Run) -> dict[str, float]:
        metrics = (
            self.shrink_quadratic_minimiser(run)
            | self.fit_ridge_regression(run)
            | self.decay_under_noise_gradients(run)
            | self.train_digit_networks(run)
        )
        run.note(
            "summary",
            "Weight decay shrinks directions of low curvature most: as α grows, the minimiser loses these components "
            "first. With few examples and many features this helps: the best penalty divides the test error by "
            f"{metrics['ridge_error_ratio']:.1f}.\n\nAdam divides the gradient of an L² penalty by the root mean "
            "square of the whole gradient, so a weight with large gradients hardly decays. Decoupled weight decay "
            "(AdamW) shrinks the weights directly, all at the same rate.",
        )
        return metrics

    def shrink_quadratic_minimiser(self, run: Run) -> dict[str, float]:
        """Regularisation path of a quadratic loss, and the shrinkage of each component."""
        rotation = torch.tensor([[0.8, -0.6], [0.6, 0.8]], dtype=torch.float64)
        hessian = (
            rotation
            @ torch.diag(torch.tensor([self.max_curvature, self.min_curvature], dtype=torch.float64))
            @ rotation.T
        )
        optimum = rotation @ torch.tensor([1.0, 2.0], dtype=torch.float64)
        alphas = torch.logspace(-3, 3, 61, dtype=torch.float64)
        path = torch.stack([penalised_minimiser(hessian, optimum, float(alpha)) for alpha in alphas])
        run.figure(
            "regularisation path",
            plot_contours(hessian, optimum, path, alphas),
            "Contours of the loss (ellipses) and of the penalty (circles). As α grows the minimiser moves from θ* to "
            "0, first along the direction of low curvature.",
        )
        factors = {
            f"λ = {each:g}": (alphas, shrinkage_by_penalty(each, alphas))
            for each in (self.max_curvature, 1.0, self.min_curvature)
        }
        run.figure(
            "shrinkage factors",
            curves(factors, x_label="penalty α", y_label="shrinkage factor λ/(λ + α)", log_x=True),
            "Along an eigenvector with curvature λ, the component of θ* is halved at α = λ.",
        )

        def penalised_loss(theta: Tensor) -> Tensor:
            return (theta - optimum) @ hessian @ (theta - optimum) / 2 + l2_penalty(theta, 1.0)

        limit = gradient_descent(penalised_loss, torch.zeros_like(optimum), learning_rate=0.2, steps=400)[-1]
        return {"limit_distance": float((limit - penalised_minimiser(hessian, optimum, 1.0)).norm())}

    def fit_ridge_regression(self, run: Run) -> dict[str, float]:
        """Training and test error by penalty; three of the true coefficients are not zero."""
        coefficients = (1.0, -1.0, 0.5) + (0.0,) * (self.num_features - 3)
        train, test = (
            linear(n, coefficients, 0.0, noise=1.0, seed=2 * run.seed + i)
            for i, n in ((0, self.num_examples), (1, 4_000))
        )
        assert train.y is not None
        assert test.y is not None
        x, y = train.x.double(), train.y.double()
        test_x, test_y = test.x.double(), test.y.double()
        penalties = torch.logspace(-3, 2, 51, dtype=torch.float64)
        models = [ridge_regression(x, y, penalty=float(each)) for each in penalties]
        train_errors = torch.stack([mean_squared_error(model.predict(x), y) for model in models])
        test_errors = torch.stack([mean_squared_error(model.predict(test_x), test_y) for model in models])
        parameter_counts = torch.stack([effective_parameters(x, penalty=float(each)) for each in penalties])
        path = ridge_path(x, y, penalties=penalties)
        run.figure(
            "ridge regression",
            plot_ridge_regression(penalties, train_errors, test_errors, parameter_counts, path),
            f"{self.num_examples} examples, {self.num_features} features, of which three are relevant (in colour). "
            "Left: errors; the smallest test error is marked. Middle: effective number of parameters. Right: "
            "coefficients by penalty.",
        )
        unpenalised = ridge_regression(x, y, penalty=0.0)
        unpenalised_error = mean_squared_error(linear_model(test_x, unpenalised.w, unpenalised.b), test_y)
        return {"ridge_error_ratio": float(unpenalised_error / test_errors.min())}

    def decay_under_noise_gradients(self, run: Run) -> dict[str, float]:
        """Two weights whose gradients are pure noise, with a large and a small standard deviation."""
        scales = torch.tensor([100.0, 0.01], dtype=torch.float64)
        factories: dict[str, OptimizerFactory] = {
            "penalty": partial(Adam, lr=1e-3, weight_decay=1.0),
            "decoupled": partial(AdamW, lr=1e-3, weight_decay=1.0),
        }
        trajectories = {
            name: simulate_weights(scales, factory, steps=self.noise_steps) for name, factory in factories.items()
        }
        figure, axes = subplots(1, 2, size=(9.0, 3.4))
        for ax, (name, trajectory) in zip(axes[0], trajectories.items(), strict=True):
            for weight, label in enumerate(("large gradients", "small gradients")):
                ax.plot(trajectory[:, weight], color=PALETTE[weight], label=label)
            ax.plot(
                torch.exp(-1e-3 * torch.arange(len(trajectory))),
                color=INK,
                linestyle="--",
                linewidth=1,
                label="exp(−ηλt)",
            )
            ax.set(title=name, xlabel="step", ylabel="weight", ylim=(-0.1, 1.2))
        axes[0, 1].legend()
        run.figure(
            "Adam with pure noise gradients",
            figure,
            "Gradients are pure noise with standard deviation 100 for one weight and 0.01 for the other, so only "
            "weight decay should move them. An L² penalty shrinks only the weight with small gradients; decoupled "
            "weight decay shrinks both.",
        )
        difference = {
            name: float((each[-500:, 0] - each[-500:, 1]).mean().abs()) for name, each in trajectories.items()
        }
        return {f"{name}_difference": value for name, value in difference.items()}

    def train_digit_networks(self, run: Run) -> dict[str, float]:
        """Test accuracy of networks trained on few digits, by kind and strength of the decay."""
        digits = load_digits().to(run.device)
        train, labels = digits.train.take(self.num_images), check_labels(digits.test.y, 10)
        decays = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)

        def test_accuracy(optimizer_class: Callable[..., Optimizer], decay: float) -> float:
            torch.manual_seed(run.seed)  # the same initialisation for every network
            model = dense_classifier(64, 10, hidden=(256,)).to(run.device)
            optimizer = optimizer_class(weight_decay_groups(model, decay), lr=3e-3)
            for x, y in train.pairs(50, self.steps):
                run.update(optimizer, model.loss(x, y))
            return evaluate(model, digits.test.x, labels).accuracy

        accuracies = {
            "penalty": [test_accuracy(Adam, each) for each in decays],
            "decoupled": [test_accuracy(AdamW, each) for each in decays],
        }
        baseline = test_accuracy(Adam, 0.0)
        lines: dict[str, tuple[Sequence[float], Sequence[float]]] = {
            name: (decays, values) for name, values in accuracies.items()
        }
        lines["none"] = (decays, [baseline] * len(decays))
        run.figure(
            "networks on few digits",
            curves(lines, x_label="weight decay λ", y_label="test accuracy", log_x=True),
            f"Networks trained on {self.num_images} digits with Adam or AdamW; biases do not decay. The same λ has "
            "different effects: in an L² penalty it is part of the normalised gradient, decoupled it is the rate of "
            "shrinkage.",
        )
        return {
            "accuracy_without": baseline,
            "accuracy_penalty": max(accuracies["penalty"]),
            "accuracy_decoupled": max(accuracies["decoupled"]),
        }


def shrinkage_by_penalty(curvature: float, alphas: Tensor) -> list[float]:
    return [float(shrinkage_factors(torch.tensor(curvature), float(alpha))) for alpha in alphas]


def simulate_weights(scales: Tensor, factory: OptimizerFactory, *, steps: int) -> Tensor:
    weights = nn.Parameter(torch.ones(2, dtype=torch.float64))
    optimizer = factory([weights])
    trajectory = [weights.detach().clone()]
    for _ in range(steps):
        weights.grad = scales * torch.randn(2, dtype=torch.float64)
        optimizer.step()
        trajectory.append(weights.detach().clone())
    return torch.stack(trajectory)


def plot_contours(hessian: Tensor, optimum: Tensor, path: Tensor, alphas: Tensor) -> "Figure":
    figure, axes = subplots(size=(5.6, 5.0))
    ax = axes[0, 0]
    x, y = (
        torch.linspace(-2.2, 1.2, 120, dtype=torch.float64),
        torch.linspace(-0.8, 3.2, 120, dtype=torch.float64),
    )
    grid = torch.stack(torch.meshgrid(x, y, indexing="xy"), -1)
    offset = grid - optimum
    ax.contour(
        x,
        y,
        torch.einsum("...i,ij,...j", offset, hessian, offset),
        levels=[0.05, 0.3, 1, 2.5, 5, 9],
        colors=PALETTE[0],
        linewidths=0.9,
    )
    ax.contour(
        x,
        y,
        grid.square().sum(-1),
        levels=[0.1, 0.5, 1.2, 2.2, 3.5],
        colors=FAINT,
        linewidths=0.8,
        linestyles="--",
    )
    ax.plot(path[:, 0], path[:, 1], color=PALETTE[1], linewidth=2.2)
    for alpha in (0.1, 1.0, 10.0):
        point = path[int((alphas - alpha).abs().argmin())]
        ax.scatter(*point, color=PALETTE[1], s=28, zorder=3)
        ax.annotate(f"α = {alpha:g}", tuple(point.tolist()), xytext=(7, 2), textcoords="offset points")
    for point, name in ((optimum, "θ*"), (torch.zeros(2), "0")):
        ax.scatter(*point, color=INK, s=36, zorder=3)
        ax.annotate(name, tuple(point.tolist()), xytext=(-16, 4), textcoords="offset points")
    ax.set(xlabel="θ₁", ylabel="θ₂")
    ax.set_aspect("equal")
    return figure


def plot_ridge_regression(
    penalties: Tensor, train_errors: Tensor, test_errors: Tensor, parameter_counts: Tensor, path: Tensor
) -> "Figure":
    figure, axes = subplots(1, 3, size=(11.0, 3.4))
    best = int(test_errors.argmin())
    errors, count, coefficients = axes[0]
    errors.plot(penalties, train_errors, color=PALETTE[0], label="training")
    errors.plot(penalties, test_errors, color=PALETTE[1], label="test")
    errors.scatter(penalties[best], test_errors[best], color=PALETTE[1], s=30, zorder=3)
    errors.set(title="mean squared error", yscale="log")
    errors.legend()
    count.plot(penalties, parameter_counts, color=PALETTE[2])
    count.set(title="effective parameters", ylim=(0, None))
    coefficients.plot(penalties, path[:, 3:], color=FAINT, linewidth=0.8)
    for index in range(3):
        coefficients.plot(penalties, path[:, index], color=PALETTE[index])
    coefficients.set(title="coefficients")
    for ax in axes[0]:
        ax.set(xscale="log", xlabel="penalty λ")
    return figure

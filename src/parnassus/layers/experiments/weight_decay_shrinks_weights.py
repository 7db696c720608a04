"""Weight decay: where it leads, what it is good for, and why Adam needs its own kind (book ex. 2.3)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Adam, AdamW, Optimizer

from parnassus.data import load_digits
from parnassus.data.toy import linear
from parnassus.layers import (
    dense_classifier,
    effective_parameters,
    evaluate,
    linear_model,
    require_labels,
    ridge_path,
    ridge_regression,
)
from parnassus.losses import mean_squared_error
from parnassus.optim import decay_groups, gradient_descent, l2_penalty, penalised_minimiser, shrinkage
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.train import Run, at_least, at_most, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B2.2-9", "Z3.15")
expected = {
    "descent_to_formula": at_most(1e-8, "distance of where descent ends from (H + αI)⁻¹Hθ*"),
    "ridge_gain": at_least(1.5, "error of least squares on new rows over that of the best penalty"),
    "penalty_spread": at_least(0.5, "difference of two weights after Adam with a penalty; both should have shrunk"),
    "decoupled_spread": at_most(0.1, "the same with decoupled decay"),
    "accuracy_without": reported("share of test digits right without decay"),
    "accuracy_penalty": reported("the best with a penalty under Adam"),
    "accuracy_decoupled": reported("the best with decoupled decay"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 5, "wandering": 600}, "gpu": {}}

Factory = Callable[[Iterable[nn.Parameter]], Optimizer]


@dataclass(frozen=True)
class Experiment:
    steep: float = 4.0  # larger curvature of the bowl
    flat: float = 0.3  # smaller curvature
    rows: int = 30  # examples of the ridge regression
    features: int = 25  # its features
    images: int = 150  # digits the networks learn
    steps: int = 300  # steps of each network
    wandering: int = 3_000  # steps of two weights whose gradients are noise

    def __call__(self, run: Run) -> dict[str, float]:
        numbers = self.bowl(run) | self.ridge(run) | self.two_weights(run) | self.networks(run)
        run.note(
            "what to see",
            "The penalty pulls hardest where the loss is flat: the path bends towards the steep axis before it goes "
            f"to 0. With few rows and many features that is a help: the best penalty divides the error on new rows by "
            f"{numbers['ridge_gain']:.1f}.\n\nInside Adam the penalty's gradient is divided by the size of all "
            "gradients, so a weight with large gradients is hardly decayed at all. Decoupled decay shrinks the weight "
            "itself, beside the step: both weights end alike.",
        )
        return numbers

    def bowl(self, run: Run) -> dict[str, float]:
        """The path of minimisers on a quadratic, and what is left of each component."""
        turn = torch.tensor([[0.8, -0.6], [0.6, 0.8]], dtype=torch.float64)
        hessian = turn @ torch.diag(torch.tensor([self.steep, self.flat], dtype=torch.float64)) @ turn.T
        best = turn @ torch.tensor([1.0, 2.0], dtype=torch.float64)
        alphas = torch.logspace(-3, 3, 61, dtype=torch.float64)
        path = torch.stack([penalised_minimiser(hessian, best, float(alpha)) for alpha in alphas])
        run.figure(
            "path of the minimiser",
            contours(hessian, best, path, alphas),
            "Contours of the loss (ellipses) and of the penalty (circles). As α grows the minimiser wanders from θ* to "
            "0, giving up the flat direction first.",
        )
        kept = {f"λ = {each:g}": (alphas, shrink(each, alphas)) for each in (self.steep, 1.0, self.flat)}
        run.figure(
            "what is kept",
            curves(kept, x_label="penalty α", y_label="share kept, λ/(λ + α)", log_x=True),
            "Along an eigenvector of curvature λ, half of θ* is gone when α = λ.",
        )

        def penalised(theta: Tensor) -> Tensor:
            return (theta - best) @ hessian @ (theta - best) / 2 + l2_penalty(theta, 1.0)

        end = gradient_descent(penalised, torch.zeros_like(best), rate=0.2, steps=400)[-1]
        return {"descent_to_formula": float((end - penalised_minimiser(hessian, best, 1.0)).norm())}

    def ridge(self, run: Run) -> dict[str, float]:
        """Errors on seen and new rows over the penalty, with far fewer true slopes than features."""
        slopes = (1.0, -1.0, 0.5) + (0.0,) * (self.features - 3)
        seen, fresh = (
            linear(n, slopes, 0.0, noise=1.0, seed=2 * run.seed + i) for i, n in ((0, self.rows), (1, 4_000))
        )
        assert seen.y is not None
        assert fresh.y is not None
        x, y = seen.x.double(), seen.y.double()
        penalties = torch.logspace(-3, 2, 51, dtype=torch.float64)
        models = [ridge_regression(x, y, penalty=float(each)) for each in penalties]
        trained = torch.stack([mean_squared_error(model.predict(x), y) for model in models])
        unseen = torch.stack(
            [mean_squared_error(model.predict(fresh.x.double()), fresh.y.double()) for model in models]
        )
        free = torch.stack([effective_parameters(x, penalty=float(each)) for each in penalties])
        path = ridge_path(x, y, penalties=penalties)
        run.figure(
            "ridge regression",
            ridge_figure(penalties, trained, unseen, free, path),
            f"{self.rows} rows, {self.features} features, of which three matter (in colour). Left: errors; the least "
            "on new rows is marked. Middle: how many slopes are in effect free. Right: the slopes shrink together.",
        )
        plain = ridge_regression(x, y, penalty=0.0)
        without = mean_squared_error(linear_model(fresh.x.double(), plain.w, plain.b), fresh.y.double())
        return {"ridge_gain": float(without / unseen.min())}

    def two_weights(self, run: Run) -> dict[str, float]:
        """Two weights whose gradients are noise, large for one and small for the other."""
        sizes = torch.tensor([100.0, 0.01], dtype=torch.float64)
        kinds: dict[str, Factory] = {
            "penalty": partial(Adam, lr=1e-3, weight_decay=1.0),
            "decoupled": partial(AdamW, lr=1e-3, weight_decay=1.0),
        }
        ways = {name: wander(sizes, factory, steps=self.wandering) for name, factory in kinds.items()}
        figure, axes = subplots(1, 2, size=(9.0, 3.4))
        for ax, (name, way) in zip(axes[0], ways.items(), strict=True):
            for weight, label in enumerate(("large gradients", "small gradients")):
                ax.plot(way[:, weight], color=PALETTE[weight], label=label)
            ax.plot(
                torch.exp(-1e-3 * torch.arange(len(way))), color=INK, linestyle="--", linewidth=1, label="exp(−ηλt)"
            )
            ax.set(title=name, xlabel="step", ylabel="weight", ylim=(-0.1, 1.2))
        axes[0, 1].legend()
        run.figure(
            "Adam and two weights",
            figure,
            "Gradients are pure noise, a hundred for one weight, a hundredth for the other: only decay should move "
            "them. As a penalty in the gradient it moves one of them alone; decoupled, both as it should.",
        )
        spread = {name: float((way[-500:, 0] - way[-500:, 1]).mean().abs()) for name, way in ways.items()}
        return {f"{name}_spread": each for name, each in spread.items()}

    def networks(self, run: Run) -> dict[str, float]:
        """Test accuracy of a network on few digits over the strength of either decay."""
        digits = load_digits().to(run.device)
        few, labels = digits.train.take(self.images), require_labels(digits.test.y, 10)
        decays = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)

        def accuracy(kind: Callable[..., Optimizer], decay: float) -> float:
            torch.manual_seed(run.seed)  # every network from the same start
            net = dense_classifier(64, 10, hidden=(256,)).to(run.device)
            optimizer = kind(decay_groups(net, decay), lr=3e-3)
            for x, y in few.pairs(50, self.steps):
                run.update(optimizer, net.loss(x, y))
            return evaluate(net, digits.test.x, labels).accuracy

        found = {
            "penalty": [accuracy(Adam, each) for each in decays],
            "decoupled": [accuracy(AdamW, each) for each in decays],
        }
        without = accuracy(Adam, 0.0)
        lines = {name: (decays, values) for name, values in found.items()} | {"none": (decays, [without] * len(decays))}
        run.figure(
            "networks on few digits",
            curves(lines, x_label="decay λ", y_label="share of test digits right", log_x=True),
            f"One network, {self.images} digits, Adam, biases spared. The same λ means different things: as a penalty "
            "it competes with the scaled gradient and soon wins over it, decoupled it is a rate of shrinking.",
        )
        return {
            "accuracy_without": without,
            "accuracy_penalty": max(found["penalty"]),
            "accuracy_decoupled": max(found["decoupled"]),
        }


def shrink(curvature: float, alphas: Tensor) -> list[float]:
    return [float(shrinkage(torch.tensor(curvature), float(alpha))) for alpha in alphas]


def wander(sizes: Tensor, factory: Factory, *, steps: int) -> Tensor:
    weights = nn.Parameter(torch.ones(2, dtype=torch.float64))
    optimizer = factory([weights])
    way = [weights.detach().clone()]
    for _ in range(steps):
        weights.grad = sizes * torch.randn(2, dtype=torch.float64)
        optimizer.step()
        way.append(weights.detach().clone())
    return torch.stack(way)


def contours(hessian: Tensor, best: Tensor, path: Tensor, alphas: Tensor) -> "Figure":
    figure, axes = subplots(size=(5.6, 5.0))
    ax = axes[0, 0]
    across, up = (
        torch.linspace(-2.2, 1.2, 120, dtype=torch.float64),
        torch.linspace(-0.8, 3.2, 120, dtype=torch.float64),
    )
    grid = torch.stack(torch.meshgrid(across, up, indexing="xy"), -1)
    away = grid - best
    ax.contour(
        across,
        up,
        torch.einsum("...i,ij,...j", away, hessian, away),
        levels=[0.05, 0.3, 1, 2.5, 5, 9],
        colors=PALETTE[0],
        linewidths=0.9,
    )
    ax.contour(
        across,
        up,
        grid.square().sum(-1),
        levels=[0.1, 0.5, 1.2, 2.2, 3.5],
        colors=FAINT,
        linewidths=0.8,
        linestyles="--",
    )
    ax.plot(path[:, 0], path[:, 1], color=PALETTE[1], linewidth=2.2)
    for alpha in (0.1, 1.0, 10.0):
        place = path[int((alphas - alpha).abs().argmin())]
        ax.scatter(*place, color=PALETTE[1], s=28, zorder=3)
        ax.annotate(f"α = {alpha:g}", tuple(place.tolist()), xytext=(7, 2), textcoords="offset points")
    for place, name in ((best, "θ*"), (torch.zeros(2), "0")):
        ax.scatter(*place, color=INK, s=36, zorder=3)
        ax.annotate(name, tuple(place.tolist()), xytext=(-16, 4), textcoords="offset points")
    ax.set(xlabel="θ₁", ylabel="θ₂")
    ax.set_aspect("equal")
    return figure


def ridge_figure(penalties: Tensor, trained: Tensor, unseen: Tensor, free: Tensor, path: Tensor) -> "Figure":
    figure, axes = subplots(1, 3, size=(11.0, 3.4))
    least = int(unseen.argmin())
    errors, count, slopes = axes[0]
    errors.plot(penalties, trained, color=PALETTE[0], label="rows fitted")
    errors.plot(penalties, unseen, color=PALETTE[1], label="new rows")
    errors.scatter(penalties[least], unseen[least], color=PALETTE[1], s=30, zorder=3)
    errors.set(title="mean squared error", yscale="log")
    errors.legend()
    count.plot(penalties, free, color=PALETTE[2])
    count.set(title="effective parameters", ylim=(0, None))
    slopes.plot(penalties, path[:, 3:], color=FAINT, linewidth=0.8)
    for index in range(3):
        slopes.plot(penalties, path[:, index], color=PALETTE[index])
    slopes.set(title="slopes")
    for ax in axes[0]:
        ax.set(xscale="log", xlabel="penalty λ")
    return figure

"""Linear flows whiten data: maximum likelihood recovers the Gaussian of mean and covariance (book sec. 13.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import log, pi
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.benchmark import Timer

from parnassus.data import DataError, Dataset, TableSettings, standardise_features
from parnassus.flows import (
    ActNorm,
    Chain,
    DenseMatrix,
    Flow,
    GaussianBase,
    HouseholderMatrix,
    InverseTransform,
    LinearFlow,
    PLUMatrix,
    TriangularMatrix,
    random_rotation,
)
from parnassus.optim import Adam
from parnassus.report import PALETTE, curves, subplots
from parnassus.report.style import DIVERGING
from parnassus.setting_types import TableData
from parnassus.train import ModelCollection, Positive, Run, at_least, at_most, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B13.1-12",)
expected = {
    "excess/dense": at_most(1e-4, "mean NLL above the minimum over Gaussians, in nats: dense W"),
    "excess/triangular": at_most(1e-4, "mean NLL above the minimum over Gaussians, in nats: triangular W"),
    "excess/plu": at_most(1e-4, "mean NLL above the minimum over Gaussians, in nats: W = PLU"),
    "excess/reflections": at_most(
        5e-3, "mean NLL above the minimum over Gaussians, in nats: W = scale · product of reflections"
    ),
    "excess/rotation": at_least(
        0.5, "mean NLL above the minimum over Gaussians, in nats: orthogonal W, on which the likelihood does not depend"
    ),
    "min_nll": no_band("minimum NLL over Gaussians: ½ D (log 2π + 1) + ½ log det Σ̂"),
    "covariance_error": at_most(1e-3, "largest entry of |Cov z − I| for the latents of the PLU flow"),
    "alignment": at_least(0.9, "mean |cos| between the axes of the reflection flow and the principal components"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 50, "max_dim": 64},
    "gpu": {"data": "breast_cancer", "steps": 20_000, "max_dim": 2_048},
}
NAMES = {
    "dense": "dense",
    "triangular": "triangular",
    "plu": "PLU",
    "reflections": "reflections and scale",
    "rotation": "reflections only",
}


@dataclass(frozen=True)
class Experiment(TableSettings):
    data: TableData = "wine"  # table: name of a data set, or path of a .csv file
    steps: Positive[int] = 1_000  # full-batch gradient steps
    learning_rate: Positive[float] = 0.02  # maximum learning rate of Adam
    max_dim: Positive[int] = 512  # largest dimension in the comparison of costs

    def model(self, features: int) -> ModelCollection[Flow]:
        """Each flow parametrises the map from data to noise, z = W x + b, so that training needs no solves."""
        reflections = partial(torch.randn, features, features)
        transforms = {
            "dense": LinearFlow(DenseMatrix(random_rotation(features))),
            "triangular": LinearFlow(TriangularMatrix(torch.eye(features))),
            "plu": LinearFlow(PLUMatrix(random_rotation(features))),
            "reflections": Chain([LinearFlow(HouseholderMatrix(reflections())), ActNorm(features)]),
            "rotation": LinearFlow(HouseholderMatrix(reflections())),
        }
        return ModelCollection(
            {name: Flow(InverseTransform(each), GaussianBase((features,))) for name, each in transforms.items()}
        )

    def __call__(self, run: Run) -> dict[str, float]:
        rows = load_rows(self.load_data()).to(run.device)
        features = rows.shape[1]
        covariance = torch.cov(rows.double().mT, correction=0)
        min_nll = float((features * (log(2 * pi) + 1) + torch.logdet(covariance)) / 2)
        model, optimizer, schedule = run.prepare(
            run.build(self.model, features=features),
            partial(Adam, lr=self.learning_rate),
            partial(OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1),
        )

        def excess(name: str) -> float:
            with torch.no_grad():
                return float(model.model(name).loss(rows)) - min_nll

        for step, _ in run.steps(self.steps):
            run.update(optimizer, model.loss(rows))
            schedule.step()
            if step % 10 == 0:
                run.record(step, **{f"excess/{name}": max(excess(name), 1e-6) for name in model})

        with torch.no_grad():
            latents = {name: flow.transform.inverse(rows)[0] for name, flow in model.named_models()}
        run.figure("negative log-likelihood", plot_training(run, list(model)), TRAINING)
        run.figure("covariances", plot_covariances(rows, latents["plu"], latents["rotation"]), COVARIANCES)
        run.figure("most correlated columns", plot_pair(rows, latents["plu"]), PAIR)
        self.plot_costs(run)
        return {
            **{f"excess/{name}": excess(name) for name in model},
            "min_nll": min_nll,
            "covariance_error": float(
                (torch.cov(latents["plu"].mT, correction=0) - torch.eye(features).to(rows)).abs().max()
            ),
            "alignment": principal_alignment(model.model("reflections"), covariance),
        }

    def plot_costs(self, run: Run) -> None:
        """Time of log |det W| and its gradient by dimension."""
        sizes = [size for size in (8, 16, 32, 64, 128, 256, 512, 1_024, 2_048) if size <= self.max_dim]
        lines: dict[str, tuple[list[int], list[float]]] = {}
        for name, form in (("dense, slogdet", DenseMatrix), ("PLU, diagonal", PLUMatrix)):
            times = []
            for size in sizes:
                timer = Timer("w.log_abs_det().backward()", globals={"w": form(random_rotation(size)).to(run.device)})
                times.append(1_000 * min(timer.blocked_autorange(min_run_time=0.05).times))
            lines[name] = sizes, times
        figure = curves(
            lines, x_label="dimension D", y_label="time of log |det W| and its gradient (ms)", log_x=True, log_y=True
        )
        run.figure("time by dimension", figure, COSTS)


@dataclass(frozen=True)
class Sample:
    flow: Literal["plu", "dense", "triangular", "reflections", "rotation"] = "plu"  # flow to sample from
    num_samples: Positive[int] = 200  # number of rows

    def __call__(self, model: ModelCollection[Flow]) -> Tensor:
        return model.model(self.flow).sample(self.num_samples)


TRAINING = (
    "Mean NLL of each flow above the minimum over Gaussians, clipped at 10⁻⁶ (rounding). Four parametrisations reach "
    "the minimum; an orthogonal W preserves volumes and distances from the mean, so the likelihood does not depend on "
    "it."
)
COVARIANCES = "Covariances of the standardised data, of the latents of the PLU flow, and of the latents of a rotation."
PAIR = "The two most correlated columns before and after whitening by the PLU flow."
COSTS = (
    "According to the book flows other than autoregressive ones have no convenient Jacobian. That of a linear flow is "
    "constant, and in PLU form the log-determinant is a sum of D terms."
)


def load_rows(data: Dataset) -> Tensor:
    """All rows, standardised; degenerate tables, for which no Gaussian has a density, raise an error."""
    if len(data.shape) != 1:
        raise DataError(f"{data.name} must be a numeric table; got examples of shape {data.shape}.")
    scaled = standardise_features(data)
    rows = torch.cat([scaled.train.x, scaled.test.x])
    rank = int(torch.linalg.matrix_rank(rows - rows.mean(0)))
    if rank < rows.shape[1]:
        raise DataError(f"the columns of {data.name} must be linearly independent; got {rows.shape[1]} of rank {rank}")
    return rows


def principal_alignment(flow: Flow, covariance: Tensor) -> float:
    """Mean |cos| between each principal component and the nearest axis of the flow."""
    with torch.no_grad():
        features = len(covariance)
        zero = torch.zeros(1, features, device=covariance.device)
        origin = flow.transform.inverse(zero)[0]
        matrix = (flow.transform.inverse(torch.eye(features, device=covariance.device))[0] - origin).mT.double()
    axes = matrix / matrix.norm(dim=1, keepdim=True)
    cosines = (axes @ torch.linalg.eigh(covariance).eigenvectors).abs()
    return float(cosines.amax(0).mean())


def plot_training(run: Run, names: Sequence[str]) -> "Figure":
    lines = {NAMES[name]: run.curve(f"excess/{name}") for name in names}
    return curves(lines, x_label="step", y_label="NLL above the minimum (nats)", log_y=True)


def plot_covariances(rows: Tensor, plu_latents: Tensor, rotation_latents: Tensor) -> "Figure":
    figure, axes = subplots(1, 3, size=(10.0, 3.6))
    for ax, (name, points) in zip(
        axes[0], {"data": rows, "PLU flow": plu_latents, "rotation": rotation_latents}.items(), strict=True
    ):
        image = ax.imshow(torch.cov(points.mT, correction=0).cpu().numpy(), cmap=DIVERGING, vmin=-1.5, vmax=1.5)
        ax.set(title=name, xticks=[], yticks=[])
        ax.grid(visible=False)
    figure.colorbar(image, ax=list(axes[0]), shrink=0.8).outline.set_visible(False)
    return figure


def plot_pair(rows: Tensor, latents: Tensor) -> "Figure":
    """The two most correlated columns, before and after the flow."""
    correlations = torch.corrcoef(rows.mT).abs().fill_diagonal_(0)
    first, second = divmod(int(correlations.argmax()), rows.shape[1])
    figure, axes = subplots(1, 2, size=(8.4, 4.0))
    for ax, (name, points), colour in zip(axes[0], {"x": rows, "z": latents}.items(), PALETTE, strict=False):
        shown = points.cpu()
        ax.scatter(shown[:, first], shown[:, second], s=12, color=colour, linewidths=0, alpha=0.8)
        ax.set(xlabel=f"{name}_{first + 1}", ylabel=f"{name}_{second + 1}", xlim=(-4, 4), ylim=(-4, 4), aspect="equal")
    return figure

"""Linear flows whiten: training finds the Gaussian that mean and covariance name at once (book sec. 13.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import log, pi
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.benchmark import Timer

from parnassus.data import DataError, Dataset, open_data, standardised
from parnassus.flows import (
    ActNorm,
    Chain,
    DenseMatrix,
    Flow,
    GaussianBase,
    HouseholderMatrix,
    Inverted,
    LinearFlow,
    PLUMatrix,
    TriangularMatrix,
    random_rotation,
)
from parnassus.optim import Adam
from parnassus.report import PALETTE, curves, subplots
from parnassus.report.ink import DIVERGING
from parnassus.train import Run, SideBySide, at_least, at_most, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B13.1-12",)
expected = {
    "excess/dense": at_most(1e-4, "mean NLL above the least that a Gaussian can have, in nats: W with D² free numbers"),
    "excess/triangular": at_most(1e-4, "the same, W triangular"),
    "excess/plu": at_most(1e-4, "the same, W = PLU"),
    "excess/reflections": at_most(5e-3, "the same, W a scale after a product of reflections"),
    "excess/rotation": at_least(0.5, "the same, W orthogonal: no rotation of N(0, I) is likelier than another"),
    "least": reported("the least: ½ D (log 2π + 1) + ½ log det Σ̂"),
    "whitened": at_most(1e-3, "largest entry of |Cov z − I| of the data carried to noise by the PLU flow"),
    "principal": at_least(0.9, "mean |cos| between the axes that the reflections found and the principal components"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 50, "largest": 64},
    "gpu": {"data": "breast_cancer", "steps": 20_000, "largest": 2_048},
}
NAMES = {
    "dense": "dense",
    "triangular": "triangular",
    "plu": "PLU",
    "reflections": "reflections and scale",
    "rotation": "reflections alone",
}


@dataclass(frozen=True)
class Experiment:
    data: str = "wine"  # a table of numbers: wine, breast_cancer, iris, diabetes, or a CSV file of yours
    steps: int = 1_000  # gradient steps, each on all rows
    lr: float = 0.02  # Adam's largest learning rate
    largest: int = 512  # most coordinates in the comparison of costs

    def model(self, features: int) -> SideBySide[Flow]:
        """Each learns the way from data to noise, z = W x + b, where no equation has to be solved."""
        reflections = partial(torch.randn, features, features)
        ways = {
            "dense": LinearFlow(DenseMatrix(random_rotation(features))),
            "triangular": LinearFlow(TriangularMatrix(torch.eye(features))),
            "plu": LinearFlow(PLUMatrix(random_rotation(features))),
            "reflections": Chain([LinearFlow(HouseholderMatrix(reflections())), ActNorm(features)]),
            "rotation": LinearFlow(HouseholderMatrix(reflections())),
        }
        return SideBySide({name: Flow(Inverted(way), GaussianBase((features,))) for name, way in ways.items()})

    def __call__(self, run: Run) -> dict[str, float]:
        rows = table(open_data(self.data)).to(run.device)
        features = rows.shape[1]
        covariance = torch.cov(rows.double().mT, correction=0)
        least = float((features * (log(2 * pi) + 1) + torch.logdet(covariance)) / 2)
        model, optimizer = run.prepare(run.build(self.model, features=features), partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1)
        run.keep("warming", warming)

        def excess(name: str) -> float:
            with torch.no_grad():
                return float(model.one(name).loss(rows)) - least

        for step, _ in run.steps(self.steps):
            run.update(optimizer, model.loss(rows))
            warming.step()
            if step % 10 == 0:
                run.record(step, **{f"excess/{name}": max(excess(name), 1e-6) for name in model})

        with torch.no_grad():
            noise = {name: flow.transform.inverse(rows)[0] for name, flow in model.every()}
        run.figure("descent", descent(run, list(model)), DESCENT)
        run.figure("covariances", covariances(rows, noise["plu"], noise["rotation"]), COVARIANCES)
        run.figure("pairs", pairs(rows, noise["plu"]), PAIRS)
        self.show_costs(run)
        return {
            **{f"excess/{name}": excess(name) for name in model},
            "least": least,
            "whitened": float((torch.cov(noise["plu"].mT, correction=0) - torch.eye(features).to(rows)).abs().max()),
            "principal": alignment(model.one("reflections"), covariance),
        }

    def show_costs(self, run: Run) -> None:
        """Time of log |det W| and its gradient, by the size of W."""
        sizes = [size for size in (8, 16, 32, 64, 128, 256, 512, 1_024, 2_048) if size <= self.largest]
        lines: dict[str, tuple[list[int], list[float]]] = {}
        for name, form in (("dense, by slogdet", DenseMatrix), ("PLU, by its diagonal", PLUMatrix)):
            times = []
            for size in sizes:
                timer = Timer("w.log_abs_det().backward()", globals={"w": form(random_rotation(size)).to(run.device)})
                times.append(1_000 * min(timer.blocked_autorange(min_run_time=0.05).times))
            lines[name] = sizes, times
        figure = curves(
            lines, x_label="coordinates D", y_label="ms for log |det W| and its gradient", log_x=True, log_y=True
        )
        run.figure("costs", figure, COSTS)


@dataclass(frozen=True)
class Sample:
    flow: Literal["plu", "dense", "triangular", "reflections", "rotation"] = "plu"  # which of them
    count: int = 200  # how many rows

    def __call__(self, model: SideBySide[Flow]) -> Tensor:
        return model.one(self.flow).sample(self.count)


DESCENT = (
    "How far each flow is above the least mean NLL that any Gaussian has. Four ways to hold W reach it; an orthogonal "
    "W alone has nothing to learn, for it changes neither volumes nor distances from the mean. "
    "What is below 10⁻⁶ is rounding and drawn there."
)
COVARIANCES = (
    "Covariances of the standardised data, of the data carried to noise by the PLU flow, and by a rotation alone."
)
PAIRS = "The two most correlated columns, before and after: the flow makes of the cloud one without a direction."
COSTS = (
    "The book expects no convenient Jacobian of flows that are not autoregressive. A linear flow has one: the same "
    "matrix everywhere, and in PLU form the logarithm of its determinant is a sum of D numbers."
)


def table(data: Dataset) -> Tensor:
    """All rows, standardised; what no Gaussian has a density for is refused."""
    if len(data.shape) != 1:
        raise DataError(f"{data.name} must be a table of numbers; its examples have shape {data.shape}.")
    scaled = standardised(data)
    rows = torch.cat([scaled.train.x, scaled.test.x])
    rank = int(torch.linalg.matrix_rank(rows - rows.mean(0)))
    if rank < rows.shape[1]:
        raise DataError(
            f"{data.name} has {rows.shape[1]} columns but only {rank} independent ones: the best Gaussian is flat."
        )
    return rows


def alignment(flow: Flow, covariance: Tensor) -> float:
    """Mean |cos| between each eigenvector and the nearest of the axes that reflections and scale have found."""
    with torch.no_grad():
        features = len(covariance)
        still = torch.zeros(1, features, device=covariance.device)
        origin = flow.transform.inverse(still)[0]
        matrix = (flow.transform.inverse(torch.eye(features, device=covariance.device))[0] - origin).mT.double()
    axes = matrix / matrix.norm(dim=1, keepdim=True)
    cosines = (axes @ torch.linalg.eigh(covariance).eigenvectors).abs()
    return float(cosines.amax(0).mean())


def descent(run: Run, names: Sequence[str]) -> "Figure":
    lines = {NAMES[name]: run.curve(f"excess/{name}") for name in names}
    return curves(lines, x_label="step", y_label="nats above the least NLL", log_y=True)


def covariances(rows: Tensor, whitened: Tensor, turned: Tensor) -> "Figure":
    figure, axes = subplots(1, 3, size=(10.0, 3.6))
    for ax, (name, cloud) in zip(
        axes[0], {"data": rows, "PLU flow": whitened, "rotation": turned}.items(), strict=True
    ):
        picture = ax.imshow(torch.cov(cloud.mT, correction=0).cpu().numpy(), cmap=DIVERGING, vmin=-1.5, vmax=1.5)
        ax.set(title=name, xticks=[], yticks=[])
        ax.grid(visible=False)
    figure.colorbar(picture, ax=list(axes[0]), shrink=0.8).outline.set_visible(False)
    return figure


def pairs(rows: Tensor, whitened: Tensor) -> "Figure":
    """The two columns that go together most closely."""
    together = torch.corrcoef(rows.mT).abs().fill_diagonal_(0)
    first, second = divmod(int(together.argmax()), rows.shape[1])
    figure, axes = subplots(1, 2, size=(8.4, 4.0))
    for ax, (name, cloud), colour in zip(axes[0], {"x": rows, "z": whitened}.items(), PALETTE, strict=False):
        shown = cloud.cpu()
        ax.scatter(shown[:, first], shown[:, second], s=12, color=colour, linewidths=0, alpha=0.8)
        ax.set(xlabel=f"{name}_{first + 1}", ylabel=f"{name}_{second + 1}", xlim=(-4, 4), ylim=(-4, 4), aspect="equal")
    return figure

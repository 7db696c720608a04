"""Four ways to tell a denoiser the class, on one data set, beside not telling it (book sec. 13.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import DataError, Dataset, open_data, standardised
from parnassus.diffusion.conditioning import (
    Concatenation,
    ConditionedMLP,
    CrossAttention,
    FiLM,
    Mechanism,
    Multiplication,
)
from parnassus.diffusion.ddpm import DDPM
from parnassus.diffusion.denoisers import TimeMLP
from parnassus.diffusion.samplers import ddim, even_grid
from parnassus.diffusion.schedules import linear_schedule
from parnassus.optim import Adam
from parnassus.probability.energy_distance import energy_distance
from parnassus.report import PALETTE, bars, subplots
from parnassus.train import Run, SideBySide, at_least, at_most, between, descend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B13.3-3",)
expected = {
    "accuracy/concatenation": at_least(0.9, "share of samples whose nearest real point has the class asked for"),
    "accuracy/multiplication": at_least(0.9, "the same with a factor for each feature"),
    "accuracy/modulation": at_least(0.9, "the same with a scale and a shift for each feature"),
    "accuracy/attention": at_least(0.9, "the same with attention to the tokens of the class"),
    "accuracy/not_told": between(0.42, 0.58, "the same with the null label: chance"),
    "distance/concatenation": at_most(0.05, "energy distance of samples and unseen points of their class"),
    "distance/multiplication": at_most(0.05, "the same with a factor for each feature"),
    "distance/modulation": at_most(0.05, "the same with a scale and a shift for each feature"),
    "distance/attention": at_most(0.05, "the same with attention to the tokens of the class"),
    "distance/not_told": at_least(0.15, "the same with the null label"),
}
profiles = {"smoke": {"steps": 4, "width": 16, "chain": 10, "draws": 3, "count": 40}}

MECHANISMS: dict[str, Mechanism] = {
    "concatenation": Concatenation,
    "multiplication": Multiplication,
    "modulation": FiLM,
    "attention": CrossAttention,
}


@dataclass(frozen=True)
class Experiment:
    data: str = "spirals"  # points in the plane by class: moons, rings, spirals, eight_gaussians, or a CSV of yours
    steps: int = 1_500  # gradient steps
    batch: int = 256  # points a step
    width: int = 64  # hidden units of the denoiser, which is alike for all but for the mechanism
    chain: int = 100  # diffusion steps T
    lr: float = 3e-3  # Adam's largest learning rate, reached after a tenth of the steps
    draws: int = 25  # DDIM steps that draw a sample
    count: int = 500  # samples of each mechanism

    def model(self, features: int, classes: int) -> SideBySide[DDPM]:
        def told(mechanism: Mechanism) -> DDPM:
            denoiser = ConditionedMLP(TimeMLP(features, self.width), classes, mechanism)
            return DDPM(
                denoiser,
                (features,),
                schedule=linear_schedule(self.chain, 0.1 / self.chain, min(20 / self.chain, 0.9)),
                classes=classes,
            )

        return SideBySide({name: told(mechanism) for name, mechanism in MECHANISMS.items()})

    def __call__(self, run: Run) -> dict[str, float]:
        data = points_by_class(self.data).to(run.device)
        models = run.build(self.model, features=data.shape[0], classes=len(data.classes))
        models, optimizer = run.prepare(models, partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False)
        run.keep("warming", warming)
        for step, loss in descend(run, models, optimizer, data.train.pairs(self.batch, self.steps)):
            warming.step()
            run.log(step, loss=loss / len(MECHANISMS))

        wished = torch.arange(self.count, device=run.device) % len(data.classes)
        null = torch.full_like(wished, len(data.classes))
        drawn = {name: self.draw(models.one(name), wished) for name in MECHANISMS}
        drawn["not_told"] = self.draw(models.one("modulation"), null)
        accuracies = {name: accuracy(x, wished, data) for name, x in drawn.items()}
        distances = {name: distance(x, wished, data) for name, x in drawn.items()}

        run.figure(
            "drawn",
            clouds(drawn, wished, data),
            "What each mechanism drew, coloured by the class asked for; the last was told the null label.",
        )
        chance = ("chance", 1 / len(data.classes))
        told = {name.replace("_", " "): value for name, value in accuracies.items()}
        run.figure(
            "accuracy", bars(told, x_label="share that fell where they should", reference=chance), ABOUT_ACCURACY
        )
        sizes = {name: sum(p.numel() for p in models.one(name).parameters()) for name in MECHANISMS}
        rows: list[dict[str, str | float]] = [
            {"mechanism": name, "parameters": sizes[name], "accuracy": accuracies[name], "distance": distances[name]}
            for name in MECHANISMS
        ]
        run.table("mechanisms", rows, "One denoiser, four ways in; the rest of the network is alike.")
        return {
            **{f"accuracy/{name}": value for name, value in accuracies.items()},
            **{f"distance/{name}": value for name, value in distances.items()},
        }

    def draw(self, model: DDPM, label: Tensor) -> Tensor:
        grid = even_grid(self.chain, min(self.draws, self.chain))
        return model.sample(len(label), label, sampler=partial(ddim, grid=grid))


ABOUT_ACCURACY = (
    "The nearest real point of a sample should be of the class that was asked for. Told nothing, the model draws all "
    "classes alike; one network learns both, since a tenth of its labels were hidden in training."
)


def points_by_class(name: str) -> Dataset:
    data = standardised(open_data(name))
    if len(data.shape) != 1 or len(data.classes) < 2:
        raise DataError(f"{name} must hold points by class; its examples have shape {data.shape}.")
    return data


def accuracy(x: Tensor, wished: Tensor, data: Dataset) -> float:
    """The share of points whose nearest training point has the wished class."""
    assert data.train.y is not None
    nearest = torch.cdist(x, data.train.x).argmin(1)
    return float((data.train.y[nearest] == wished).double().mean())


def distance(x: Tensor, wished: Tensor, data: Dataset) -> float:
    """The energy distance to unseen points of the same class, a mean over classes."""
    return float(
        torch.stack(
            [energy_distance(x[wished == k], data.test.x[data.test.y == k]) for k in range(len(data.classes))]
        ).mean()
    )


def clouds(drawn: dict[str, Tensor], wished: Tensor, data: Dataset) -> "Figure":
    """A panel for the data and one for each mechanism, in the same colours."""
    assert data.test.y is not None
    panels: Sequence[tuple[str, Tensor, Tensor]] = [
        ("unseen data", data.test.x, data.test.y),
        *((name.replace("_", " "), x, wished) for name, x in drawn.items()),
    ]
    figure, axes = subplots(2, 3, size=(9.0, 6.2))
    for ax, (name, x, label) in zip(axes.flat, panels, strict=True):
        for kind in range(len(data.classes)):
            points = x[label == kind].cpu().numpy()
            ax.scatter(
                points[:, 0], points[:, 1], s=5, color=PALETTE[kind % len(PALETTE)], linewidths=0, rasterized=True
            )
        ax.set(title=name, xlim=(-2.6, 2.6), ylim=(-2.6, 2.6), aspect="equal", xticks=[], yticks=[])
    return figure

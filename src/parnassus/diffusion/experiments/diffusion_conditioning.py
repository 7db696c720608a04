"""Class conditioning of diffusion by concatenation, multiplication, modulation and attention (book sec. 13.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import DataError, Dataset, open_data, standardise_features
from parnassus.diffusion.chain.schedules import linear_schedule
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.diffusion.networks.conditioning import (
    Concatenation,
    ConditionedMLP,
    CrossAttention,
    FiLM,
    Mechanism,
    Multiplication,
)
from parnassus.diffusion.networks.mlp_denoisers import TimeMLP
from parnassus.diffusion.samplers.ddim import ddim
from parnassus.diffusion.samplers.time_steps import evenly_spaced_steps
from parnassus.optim import Adam
from parnassus.probability.divergences.energy_distance import energy_distance
from parnassus.report import PALETTE, bar_chart, subplots
from parnassus.setting_types import PlaneData
from parnassus.train import ModelCollection, NonNegative, Positive, Run, at_least, at_most, between, descend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B13.3-3",)
expected = {
    "accuracy/concatenation": at_least(
        0.9, "fraction of samples in the requested class (that of the nearest data point), concatenation"
    ),
    "accuracy/multiplication": at_least(0.9, "fraction of samples in the requested class, factor per feature"),
    "accuracy/modulation": at_least(
        0.9, "fraction of samples in the requested class, scale and shift per feature (FiLM)"
    ),
    "accuracy/attention": at_least(0.9, "fraction of samples in the requested class, cross-attention to class tokens"),
    "accuracy/unconditional": between(
        0.42, 0.58, "fraction of samples in the requested class, null label: chance level"
    ),
    "distance/concatenation": at_most(
        0.05, "energy distance between samples and test points of their class, concatenation"
    ),
    "distance/multiplication": at_most(
        0.05, "energy distance between samples and test points of their class, factor per feature"
    ),
    "distance/modulation": at_most(
        0.05, "energy distance between samples and test points of their class, scale and shift per feature (FiLM)"
    ),
    "distance/attention": at_most(
        0.05, "energy distance between samples and test points of their class, cross-attention to class tokens"
    ),
    "distance/unconditional": at_least(
        0.15, "energy distance between samples and test points of their class, null label"
    ),
}
profiles = {"smoke": {"steps": 4, "width": 16, "num_train_timesteps": 10, "num_inference_steps": 3, "num_samples": 40}}

MechanismName = Literal["concatenation", "multiplication", "modulation", "attention"]
MECHANISMS: dict[str, Mechanism] = {
    "concatenation": Concatenation,
    "multiplication": Multiplication,
    "modulation": FiLM,
    "attention": CrossAttention,
}


@dataclass(frozen=True)
class Experiment:
    data: PlaneData = "spirals"  # points in the plane by class: name of a data set, or path of a .csv file
    steps: Positive[int] = 1_500  # gradient steps
    batch_size: Positive[int] = 256  # points per gradient step
    width: Positive[int] = 64  # hidden units of the denoiser
    num_train_timesteps: Positive[int] = 100  # number of diffusion steps T
    learning_rate: Positive[float] = 3e-3  # peak learning rate of Adam, reached after 10 % of the steps
    num_inference_steps: Positive[int] = 25  # DDIM steps per sample
    num_samples: Positive[int] = 500  # number of samples per mechanism

    def model(self, features: int, classes: int) -> ModelCollection[DDPM]:
        def build_model(mechanism: Mechanism) -> DDPM:
            denoiser = ConditionedMLP(TimeMLP(features, self.width), classes, mechanism)
            return DDPM(
                denoiser,
                (features,),
                schedule=linear_schedule(
                    self.num_train_timesteps, 0.1 / self.num_train_timesteps, min(20 / self.num_train_timesteps, 0.9)
                ),
                classes=classes,
            )

        return ModelCollection({name: build_model(mechanism) for name, mechanism in MECHANISMS.items()})

    def __call__(self, run: Run) -> dict[str, float]:
        data = load_points(self.data).to(run.device)
        models = run.build(self.model, features=data.shape[0], classes=len(data.classes))
        models, optimizer, scheduler = run.prepare(
            models,
            partial(Adam, lr=self.learning_rate),
            partial(
                OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False
            ),
        )
        for step, loss in descend(run, models, optimizer, data.train.pairs(self.batch_size, self.steps)):
            scheduler.step()
            run.log(step, loss=loss / len(MECHANISMS))

        label = torch.arange(self.num_samples, device=run.device) % len(data.classes)
        null = torch.full_like(label, len(data.classes))
        samples = {name: ddim_points(models.model(name), label, self.num_inference_steps) for name in MECHANISMS}
        samples["unconditional"] = ddim_points(models.model("modulation"), null, self.num_inference_steps)
        accuracies = {name: class_accuracy(x, label, data) for name, x in samples.items()}
        distances = {name: class_distance(x, label, data) for name, x in samples.items()}

        run.figure(
            "samples",
            plot_samples_by_class(samples, label, data),
            "Samples with each conditioning mechanism, coloured by the requested class; the unconditional samples use "
            "the null label.",
        )
        chance = ("chance", 1 / len(data.classes))
        run.figure(
            "accuracy",
            bar_chart(accuracies, x_label="class accuracy of samples", reference=chance),
            "Fraction of samples whose nearest data point has the requested class. One network is trained for both "
            "conditional and unconditional sampling, by replacing a tenth of the labels with the null label.",
        )
        sizes = {name: sum(p.numel() for p in models.model(name).parameters()) for name in MECHANISMS}
        rows: list[dict[str, str | float]] = [
            {"mechanism": name, "parameters": sizes[name], "accuracy": accuracies[name], "distance": distances[name]}
            for name in MECHANISMS
        ]
        run.table("mechanisms", rows, "The networks differ in the conditioning mechanism only.")
        return {
            **{f"accuracy/{name}": value for name, value in accuracies.items()},
            **{f"distance/{name}": value for name, value in distances.items()},
        }


@dataclass(frozen=True)
class Sample:
    mechanism: MechanismName = "modulation"  # conditioning mechanism of the model to sample from
    label: NonNegative[int] | None = None  # index of the class; by default all classes in turn
    guidance_scale: NonNegative[float] = 1.0  # 0 ignores the class, 1 is the conditional model, larger amplifies it
    num_inference_steps: Positive[int] = 25  # DDIM steps per sample; all steps if the chain is shorter
    num_samples: Positive[int] = 500  # number of points

    def __call__(self, models: ModelCollection[DDPM]) -> Tensor:
        """Points in the standardised plane."""
        model = models.model(self.mechanism)
        if self.label is not None and self.label >= model.classes:
            raise DataError(f"label must lie between 0 and {model.classes - 1}; got label={self.label}")
        in_turn = torch.arange(self.num_samples, device=next(model.parameters()).device) % model.classes
        label = in_turn if self.label is None else torch.full_like(in_turn, self.label)
        return ddim_points(model, label, self.num_inference_steps, self.guidance_scale)


def ddim_points(model: DDPM, label: Tensor, steps: int, guidance_scale: float = 1.0) -> Tensor:
    """Samples with these labels by at most `steps` steps of DDIM."""
    grid = evenly_spaced_steps(len(model.schedule), min(steps, len(model.schedule)))
    return model.sample(len(label), label, guidance_scale=guidance_scale, sampler=partial(ddim, grid=grid))


def load_points(name: str) -> Dataset:
    """Standardised points in the plane by class."""
    data = standardise_features(open_data(name))
    if len(data.shape) != 1 or len(data.classes) < 2:
        raise DataError(
            f"data must be points of at least 2 classes; {name} has examples of shape {data.shape} and "
            f"{len(data.classes)} classes"
        )
    return data


def class_accuracy(x: Tensor, label: Tensor, data: Dataset) -> float:
    """The fraction of points whose nearest training point has their label."""
    assert data.train.y is not None
    nearest = torch.cdist(x, data.train.x).argmin(1)
    return float((data.train.y[nearest] == label).double().mean())


def class_distance(x: Tensor, label: Tensor, data: Dataset) -> float:
    """The energy distance to test points of the same class, averaged over classes."""
    return float(
        torch.stack(
            [energy_distance(x[label == k], data.test.x[data.test.y == k]) for k in range(len(data.classes))]
        ).mean()
    )


def plot_samples_by_class(samples: dict[str, Tensor], label: Tensor, data: Dataset) -> "Figure":
    """A panel for the data and one for each mechanism, in the same colours."""
    assert data.test.y is not None
    panels: Sequence[tuple[str, Tensor, Tensor]] = [
        ("test data", data.test.x, data.test.y),
        *((name, x, label) for name, x in samples.items()),
    ]
    figure, axes = subplots(2, 3, size=(9.0, 6.2))
    for ax, (name, x, classes) in zip(axes.flat, panels, strict=True):
        for index in range(len(data.classes)):
            points = x[classes == index].cpu().numpy()
            ax.scatter(
                points[:, 0], points[:, 1], s=5, color=PALETTE[index % len(PALETTE)], linewidths=0, rasterized=True
            )
        ax.set(title=name, xlim=(-2.6, 2.6), ylim=(-2.6, 2.6), aspect="equal", xticks=[], yticks=[])
    return figure

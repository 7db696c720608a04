"""Bits per pixel of the likelihood bound of diffusion models of digits, under four objectives (book sec. 13.2.3)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import log
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import Dataset, Split, open_data
from parnassus.data.preparation.signed_pixels import signed_labelled_images
from parnassus.diffusion.chain.elbo import DiffusionElboTerms, elbo_terms, pixel_decoder
from parnassus.diffusion.chain.forward_process import forward_variance
from parnassus.diffusion.chain.gaussian_posterior import posterior_variance
from parnassus.diffusion.chain.learned_variance import hybrid_objective, learned_variance_elbo_terms, optimal_variance
from parnassus.diffusion.chain.objectives import bound_weight, error_by_step, simple_objective, weighted_objective
from parnassus.diffusion.chain.predictions import VELOCITY, NoisePredictor
from parnassus.diffusion.chain.schedules import Schedule, linear_schedule
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.diffusion.networks.mlp_denoisers import ResidualMLP
from parnassus.diffusion.samplers.image_sampling import to_pixels
from parnassus.flows.images.dequantisation import independent_bits
from parnassus.optim import Adam
from parnassus.report import PALETTE, curves, subplots
from parnassus.report.formulas import to_mathtext
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, at_least, at_most, descend, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B13.2.3-1", "B13.2.4-3", "B13.2.4-4")
expected = {
    "bits_simple": no_band("bits per pixel with the simple loss and the posterior variance Σ_q"),
    "bits_velocity": no_band("bits per pixel with v-prediction and the posterior variance Σ_q"),
    "bits_bound": no_band("bits per pixel with the weights of the bound and the posterior variance Σ_q"),
    "bits_hybrid": no_band("bits per pixel with the simple loss for the mean and the bound for a learned variance"),
    "best_bits": at_most(2.9, "smallest bits per pixel over all objectives and variances"),
    "gain_of_the_variance": at_least(0.2, "bits per pixel saved by the measured variance instead of Σ_q, simple loss"),
    "independent_pixels": no_band("bits per pixel of a model of independent pixels with training frequencies"),
}
profiles = {
    "smoke": {"steps": 10, "width": 32, "num_train_timesteps": 20, "num_test": 20},
    "gpu": {
        "data": "mnist",
        "grey_levels": 256,
        "steps": 20_000,
        "batch_size": 512,
        "width": 1_536,
        "num_blocks": 6,
        "num_train_timesteps": 1_000,
    },
}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    grey_levels: Positive[int] = 17  # number of grey levels; digits have 17, other images 256
    steps: Positive[int] = 800  # gradient steps for each objective
    batch_size: Positive[int] = 128  # images per gradient step
    width: Positive[int] = 192  # hidden units of the denoiser
    num_blocks: Positive[int] = 3  # residual blocks of the denoiser
    num_train_timesteps: Positive[int] = 100  # number of diffusion steps T
    learning_rate: Positive[float] = 2e-3  # peak learning rate of Adam, reached after 10 % of the steps
    num_test: Positive[int] = 300  # test images on which the bound is evaluated

    def __call__(self, run: Run) -> dict[str, float]:
        data = quantise_images(signed_labelled_images(open_data(self.data, size=self.image_size)), self.grey_levels).to(
            run.device
        )
        first = (1 / (self.grey_levels - 1)) ** 2  # standard deviation of half a grey level
        schedule = linear_schedule(self.num_train_timesteps, first, min(20 / self.num_train_timesteps, 0.9))
        network = partial(ResidualMLP, data.shape, self.width, blocks=self.num_blocks)
        model = partial(DDPM, shape=data.shape, schedule=schedule)
        fraction = VarianceFraction(network())
        models = {
            "simple": model(network(), objective=simple_objective),
            "velocity": model(
                NoisePredictor(network(), VELOCITY, schedule), objective=weighted_objective(VELOCITY.weight)
            ),
            "bound": model(network(), objective=weighted_objective(bound_weight)),
            "hybrid": model(network(), objective=hybrid_objective(fraction)),
        }
        models["hybrid"].add_module("fraction", fraction)  # registers its parameters with the optimiser
        models = {name: self.train(run, name, each, data) for name, each in models.items()}
        x = data.test.x[: self.num_test]
        with torch.no_grad():
            elbos = self.evaluate_elbos(models, fraction, schedule, x)
        independent = independent_bits(to_pixels(data.train.x), to_pixels(data.test.x), levels=self.grey_levels)
        self.plot_results(run, elbos, independent)
        bits = {name: float(terms.bits_per_dimension.mean()) for name, terms in elbos.items()}
        return {
            "bits_simple": bits["simple, Σ_q"],
            "bits_velocity": bits["velocity, Σ_q"],
            "bits_bound": bits["bound, Σ_q"],
            "bits_hybrid": bits["hybrid, learned"],
            "best_bits": min(bits.values()),
            "gain_of_the_variance": bits["simple, Σ_q"] - bits["simple, measured"],
            "independent_pixels": independent,
        }

    def train(self, run: Run, name: str, model: DDPM, data: Dataset) -> DDPM:
        """Train one network with its objective."""
        model, optimizer, scheduler = run.prepare(
            model,
            partial(Adam, lr=self.learning_rate),
            partial(
                OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False
            ),
        )
        for step, loss in descend(run, model, optimizer, data.train.batches(self.batch_size, self.steps)):
            scheduler.step()
            run.log(step, **{f"loss/{name}": loss})
        return model

    def evaluate_elbos(
        self, models: dict[str, DDPM], fraction: nn.Module, schedule: Schedule, x: Tensor
    ) -> dict[str, DiffusionElboTerms]:
        """The bound on test images, for every network and every reverse variance."""
        decoder = pixel_decoder(float((1 - schedule.alpha[0]).sqrt()), self.grey_levels)
        elbos = {}
        for name in ("simple", "velocity", "bound"):
            errors = error_by_step(models[name].denoiser, schedule, x).double().cpu()
            measured = optimal_variance(schedule, errors)
            tables = {"Σ_q": posterior_variance(schedule), "1 − α": forward_variance(schedule), "measured": measured}
            for kind, table in tables.items():
                torch.manual_seed(0)  # the same noise for all
                variance: Callable[[Schedule], Tensor] = partial(fixed_variance, table)
                elbos[f"{name}, {kind}"] = elbo_terms(
                    models[name].denoiser, schedule, x, variance=variance, decoder=decoder
                )
        torch.manual_seed(0)
        elbos["hybrid, learned"] = learned_variance_elbo_terms(
            models["hybrid"].denoiser, fraction, schedule, x, decoder=decoder
        )
        return elbos

    def plot_results(self, run: Run, elbos: dict[str, DiffusionElboTerms], independent: float) -> None:
        """The terms of the bound as bars, the matching terms along the chain, and a table."""
        run.figure(
            "bits per pixel",
            plot_elbo_terms(elbos, independent),
            "Bits per pixel of test images: the matching terms of all steps, and the reconstruction term of the last "
            "step. The prior term is too small to be visible. Under a uniform distribution a pixel costs "
            f"log₂ {self.grey_levels} = {log(self.grey_levels) / log(2):.2f} bits.",
        )
        chosen = ("simple, Σ_q", "simple, measured", "bound, measured", "hybrid, learned")
        lines = {
            name: (
                torch.arange(2, self.num_train_timesteps + 1),
                bits_per_pixel(elbos[name].matching.mean(0), elbos[name]),
            )
            for name in chosen
        }
        run.figure(
            "bound by step",
            curves(lines, x_label="step t", y_label="bits per pixel", log_y=True),
            "The matching term of each step. Steps near the data contribute most: there the variance Σ_q is too small.",
        )
        best = min(elbos, key=lambda name: float(elbos[name].bits_per_dimension.mean()))
        best_bits = float(elbos[best].bits_per_dimension.mean())
        run.note(
            "objective and variance",
            "The reverse variance matters more than the objective: Σ_q is the variance given x₀, which is not "
            f"an input of the network. The smallest bound is {best_bits:.2f} bits per pixel ({best}). A model of "
            f"independent pixels with the frequencies of the training images needs {independent:.2f} bits per pixel"
            + ("." if best_bits < independent else ", which this short training does not reach."),
        )
        rows: list[dict[str, str | float]] = [
            {
                "network, variance": name,
                "matching": float(bits_per_pixel(terms.matching.sum(1).mean(), terms)),
                "reconstruction": float(bits_per_pixel(-terms.reconstruction.mean(), terms)),
                "prior": float(bits_per_pixel(terms.prior.mean(), terms)),
                "total": float(terms.bits_per_dimension.mean()),
            }
            for name, terms in elbos.items()
        ]
        run.table(
            "terms of the bound in bits",
            rows,
            "Bits per pixel, term by term; the total is an upper bound on the code length.",
        )


class VarianceFraction(nn.Module):
    """A network with outputs in [0, 1]: the position of log Σ_θ between log Σ_q and log(1 − α_t), per pixel."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        logits: Tensor = self.network(x, t)
        return logits.sigmoid()


def fixed_variance(table: Tensor, _: Schedule) -> Tensor:
    """A precomputed variance per step, independent of the schedule."""
    return table


def quantise_images(data: Dataset, levels: int) -> Dataset:
    """Pixels rounded to `levels` equally spaced values from −1 to 1."""

    def quantise_split(split: Split) -> Split:
        return Split(((split.x + 1) / 2 * (levels - 1)).round() / (levels - 1) * 2 - 1, split.y)

    return replace(data, train=quantise_split(data.train), test=quantise_split(data.test))


def bits_per_pixel(nats: Tensor, terms: DiffusionElboTerms) -> Tensor:
    return nats / (terms.dimensions * log(2))


def plot_elbo_terms(elbos: dict[str, DiffusionElboTerms], independent: float) -> "Figure":
    """A stacked bar for each network and variance: matching terms, then the reconstruction term."""
    figure, axes = subplots(size=(7.6, 4.2))
    ax = axes[0, 0]
    for index, (plain, terms) in enumerate(elbos.items()):
        matching = float(bits_per_pixel(terms.matching.sum(1).mean(), terms))
        reconstruction = float(bits_per_pixel(-terms.reconstruction.mean(), terms))
        first, name = index == 0, to_mathtext(plain)
        ax.barh(name, matching, color=PALETTE[0], height=0.65, label="matching, t = 2 … T" if first else None)
        label = "reconstruction" if first else None
        ax.barh(name, reconstruction, left=matching, color=PALETTE[1], height=0.65, label=label)
        ax.text(matching + reconstruction, name, f" {matching + reconstruction:.2f}", va="center")
    ax.axvline(
        independent, color=PALETTE[2], linestyle="--", linewidth=1.4, label=f"independent pixels, {independent:.2f}"
    )
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("bits per pixel")
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, 1.13), ncols=3)
    return figure

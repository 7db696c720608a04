"""What a diffusion model pays for a digit, term by term in bits a pixel, under four objectives (book sec. 13.2.3)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import log
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import Dataset, Split, open_data
from parnassus.diffusion.ddpm import DDPM
from parnassus.diffusion.denoisers import ResidualMLP
from parnassus.diffusion.elbo import ElboTerms, elbo_terms, pixel_decoder
from parnassus.diffusion.experiments.diffusion_on_digits import centred, visible
from parnassus.diffusion.learned_variance import hybrid, learned_elbo_terms, optimal_variance
from parnassus.diffusion.objectives import bound_weight, error_by_step, simple, weighted
from parnassus.diffusion.predictions import VELOCITY, AsNoise
from parnassus.diffusion.process import forward_variance, posterior_variance
from parnassus.diffusion.schedules import Schedule, linear_schedule
from parnassus.flows.dequantisation import independent_bits
from parnassus.optim import Adam
from parnassus.report import PALETTE, curves, subplots
from parnassus.report.formulas import with_scripts
from parnassus.train import Run, at_least, at_most, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B13.2.3-1", "B13.2.4-3", "B13.2.4-4")
expected = {
    "bits_simple": reported("bits a pixel with the simple loss and the posterior's variance Σ_q"),
    "bits_velocity": reported("the same, trained to predict v"),
    "bits_bound": reported("the same, trained with the bound's own weights"),
    "bits_hybrid": reported("the simple loss for the mean, the bound for a learned variance"),
    "best_bits": at_most(2.9, "the least of all, over objectives and variances"),
    "gain_of_the_variance": at_least(0.2, "bits a pixel that the measured variance saves over Σ_q, simple loss"),
    "independent_pixels": reported("bits a pixel when each pixel is told by itself, from the training frequencies"),
}
profiles = {
    "smoke": {"steps": 10, "width": 32, "chain": 20, "count": 20},
    "gpu": {"data": "mnist", "levels": 256, "steps": 20_000, "batch": 512, "width": 1_536, "blocks": 6, "chain": 1_000},
}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # images by class with so many levels of grey: digits, mnist_mini, mnist, or a folder of yours
    levels: int = 17  # levels of grey; digits have 17, other images 256
    steps: int = 800  # gradient steps for each objective
    batch: int = 128  # images a step
    width: int = 192  # hidden units of the denoiser
    blocks: int = 3  # its residual blocks
    chain: int = 100  # diffusion steps T
    lr: float = 2e-3  # Adam's largest learning rate, reached after a tenth of the steps
    count: int = 300  # unseen images that are told

    def __call__(self, run: Run) -> dict[str, float]:
        data = on_levels(centred(open_data(self.data)), self.levels).to(run.device)
        first = (1 / (self.levels - 1)) ** 2  # noise of half a grey level: finer levels are left to the decoder
        schedule = linear_schedule(self.chain, first, min(20 / self.chain, 0.9))
        network = partial(ResidualMLP, data.shape, self.width, blocks=self.blocks)
        model = partial(DDPM, shape=data.shape, schedule=schedule)
        share = Shared(network())
        models = {
            "simple": model(network(), objective=simple),
            "velocity": model(AsNoise(network(), VELOCITY, schedule), objective=weighted(VELOCITY.weight)),
            "bound": model(network(), objective=weighted(bound_weight)),
            "hybrid": model(network(), objective=hybrid(share)),
        }
        models["hybrid"].add_module("share", share)  # so that both are trained
        models = {name: self.learn(run, name, each, data) for name, each in models.items()}
        x = data.test.x[: self.count]
        with torch.no_grad():
            bills = self.bills(models, share, schedule, x)
        alone = independent_bits(visible(data.train.x), visible(data.test.x), levels=self.levels)
        self.explain(run, bills, alone)
        bits = {name: float(terms.bits_per_dimension.mean()) for name, terms in bills.items()}
        return {
            "bits_simple": bits["simple, Σ_q"],
            "bits_velocity": bits["velocity, Σ_q"],
            "bits_bound": bits["bound, Σ_q"],
            "bits_hybrid": bits["hybrid, learned"],
            "best_bits": min(bits.values()),
            "gain_of_the_variance": bits["simple, Σ_q"] - bits["simple, measured"],
            "independent_pixels": alone,
        }

    def learn(self, run: Run, name: str, model: DDPM, data: Dataset) -> DDPM:
        """One network trained with its objective."""
        model, optimizer = run.prepare(model, partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False)
        run.keep(f"warming {name}", warming)
        for step, loss in descend(run, model, optimizer, data.train.batches(self.batch, self.steps)):
            warming.step()
            run.log(step, **{f"loss/{name}": loss})
        return model

    def bills(self, models: dict[str, DDPM], share: nn.Module, schedule: Schedule, x: Tensor) -> dict[str, ElboTerms]:
        """The bound on unseen images, for every network and every variance it may be given."""
        decoder = pixel_decoder(float((1 - schedule.alpha[0]).sqrt()), self.levels)
        bills = {}
        for name in ("simple", "velocity", "bound"):
            errors = error_by_step(models[name].denoiser, schedule, x).double().cpu()
            measured = optimal_variance(schedule, errors)
            tables = {"Σ_q": posterior_variance(schedule), "1 − α": forward_variance(schedule), "measured": measured}
            for kind, table in tables.items():
                torch.manual_seed(0)  # the same noise for all: differences are not luck
                variance: Callable[[Schedule], Tensor] = partial(given, table)
                bills[f"{name}, {kind}"] = elbo_terms(
                    models[name].denoiser, schedule, x, variance=variance, decoder=decoder
                )
        torch.manual_seed(0)
        bills["hybrid, learned"] = learned_elbo_terms(models["hybrid"].denoiser, share, schedule, x, decoder=decoder)
        return bills

    def explain(self, run: Run, bills: dict[str, ElboTerms], alone: float) -> None:
        """The bill as bars, term by term; where along the chain the bits are spent; and all numbers in a table."""
        run.figure(
            "bill",
            draw_bills(bills, alone),
            "Bits a pixel of unseen images: the matching terms of all steps, and the last step that rounds to grey "
            f"levels. The prior's term is invisible. Told at random a pixel costs log₂ {self.levels} = "
            f"{log(self.levels) / log(2):.2f} bits.",
        )
        chosen = ("simple, Σ_q", "simple, measured", "bound, measured", "hybrid, learned")
        lines = {
            name: (torch.arange(2, self.chain + 1), bits(bills[name].matching.mean(0), bills[name])) for name in chosen
        }
        run.figure(
            "by step",
            curves(lines, x_label="step t", y_label="bits a pixel", log_y=True),
            "What each step of the chain costs. Most is paid near the data, where Σ_q is too small a variance.",
        )
        best = min(bills, key=lambda name: float(bills[name].bits_per_dimension.mean()))
        least = float(bills[best].bits_per_dimension.mean())
        run.note(
            "what to see",
            "The objective hardly matters here, the variance much: Σ_q knows x₀, the network does not, and every step "
            f"pays for the difference. The least is {least:.2f} bits a pixel ({best}). Pixels told by themselves, with "
            f"the frequencies of the training images, cost {alone:.2f}: "
            + (
                "the chain has learned more than that."
                if least < alone
                else "so short a training has not learned as much, whatever its samples look like."
            ),
        )
        rows: list[dict[str, str | float]] = [
            {
                "network, variance": name,
                "matching": float(bits(terms.matching.sum(1).mean(), terms)),
                "reconstruction": float(bits(-terms.reconstruction.mean(), terms)),
                "prior": float(bits(terms.prior.mean(), terms)),
                "total": float(terms.bits_per_dimension.mean()),
            }
            for name, terms in bills.items()
        ]
        run.table("bits", rows, "Bits a pixel, term by term; an upper bound on what a perfect coder would pay.")


class Shared(nn.Module):
    """A network's answer in [0, 1], as a share for every pixel."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        answer: Tensor = self.network(x, t)
        return answer.sigmoid()


def given(table: Tensor, _: Schedule) -> Tensor:
    """A variance that was worked out before, whatever the schedule."""
    return table


def on_levels(data: Dataset, levels: int) -> Dataset:
    """Pixels on `levels` equally spaced values from −1 to 1: a bound in bits counts them."""

    def rounded(split: Split) -> Split:
        return Split(((split.x + 1) / 2 * (levels - 1)).round() / (levels - 1) * 2 - 1, split.y)

    return replace(data, train=rounded(data.train), test=rounded(data.test))


def bits(nats: Tensor, terms: ElboTerms) -> Tensor:
    return nats / (terms.dimensions * log(2))


def draw_bills(bills: dict[str, ElboTerms], alone: float) -> "Figure":
    """A bar for each network and variance: matching terms first, then what rounding costs."""
    figure, axes = subplots(size=(7.6, 4.2))
    ax = axes[0, 0]
    for index, (plain, terms) in enumerate(bills.items()):
        matching = float(bits(terms.matching.sum(1).mean(), terms))
        rounding = float(bits(-terms.reconstruction.mean(), terms))
        first, name = index == 0, with_scripts(plain)
        ax.barh(name, matching, color=PALETTE[0], height=0.65, label="matching, t = 2 … T" if first else None)
        ax.barh(name, rounding, left=matching, color=PALETTE[1], height=0.65, label="reconstruction" if first else None)
        ax.text(matching + rounding, name, f" {matching + rounding:.2f}", va="center")
    ax.axvline(alone, color=PALETTE[2], linestyle="--", linewidth=1.4, label=f"pixels by themselves, {alone:.2f}")
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("bits a pixel")
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, 1.13), ncols=3)
    return figure

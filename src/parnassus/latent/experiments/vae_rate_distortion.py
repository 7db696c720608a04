"""Rate-distortion curve of β-VAEs of digits (book sec. 6.4).

One network per weight β of the rate, all trained side by side; their rates and distortions after training trace the
rate-distortion curve.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.data import DataError, open_grey_images
from parnassus.latent.autoencoders.dense_networks import mlp_decoder, mlp_encoder
from parnassus.latent.variational.aggregated_posterior import CodeInformation, active_units, code_information
from parnassus.latent.variational.decoders import BernoulliDecoder
from parnassus.latent.variational.elbo import NegativeELBO, mean_rate_and_distortion
from parnassus.latent.variational.vae import VAE
from parnassus.report import FAINT, INK, PALETTE, image_grid, subplots
from parnassus.setting_types import GreyImageData
from parnassus.train import ModelCollection, NonNegative, Positive, Run, at_least, at_most, between, descend, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = (
    "B6.4-1", "B6.4-2", "B6.4-3", "B6.4-4", "B6.4-5", "B6.4-7", "B6.4-11",
)  # fmt: skip
expected = {
    "rate_min_beta": at_least(28.0, "rate at the smallest β, nats"),
    "rate_max_beta": at_most(0.1, "rate at the largest β, nats"),
    "distortion_min_beta": no_band("distortion of test images at the smallest β, nats"),
    "distortion_max_beta": no_band("distortion of test images at the largest β, nats"),
    "rate_decreases": at_least(1.0, "fraction of steps to the next β at which the rate decreases"),
    "distortion_increases": at_least(1.0, "fraction of steps to the next β at which the training distortion increases"),
    "best_elbo_beta": between(0.6, 1.7, "β with the smallest negative ELBO on test images; 1 in theory"),
    "information": no_band("I(X, Z) at β = 1 over the test images, nats"),
    "prior_gap": no_band("KL(q(z) ‖ p(z)) at β = 1, nats"),
    "identity_error": at_most(0.1, "|R − I(X, Z) − KL(q(z) ‖ p(z))| at β = 1, nats; sampling error"),
}
profiles = {
    "smoke": {"steps": 10, "width": 16},
    "gpu": {
        "data": "mnist",
        "steps": 20_000,
        "batch_size": 256,
        "width": 1_024,
        "latent_dim": 32,
        "learning_rate": 5e-4,
    },
}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    betas: tuple[NonNegative[float], ...] = (0.03, 0.1, 0.3, 0.6, 1.0, 1.7, 4.0)  # weights β of the rate, increasing
    steps: Positive[int] = 700  # gradient steps
    batch_size: Positive[int] = 128  # images per gradient step
    latent_dim: Positive[int] = 12  # dimension of the code
    width: Positive[int] = 128  # hidden units
    learning_rate: Positive[float] = 3e-3  # Adam's learning rate

    def model(self, shape: Sequence[int]) -> ModelCollection[VAE]:
        """One network per β, named by its index, because a module name must not contain a dot."""
        return ModelCollection({str(index): self.build_vae(shape, beta) for index, beta in enumerate(self.betas)})

    def build_vae(self, shape: Sequence[int], beta: float) -> VAE:
        encoder = mlp_encoder(shape, 2 * self.latent_dim, width=self.width)
        decoder = BernoulliDecoder(mlp_decoder(self.latent_dim, shape, width=self.width))
        return VAE(encoder, decoder, self.latent_dim, objective=NegativeELBO(beta))

    def __call__(self, run: Run) -> dict[str, float]:
        if sorted(self.betas) != list(self.betas) or 1.0 not in self.betas:
            raise DataError(f"betas must be increasing and contain 1; got betas={self.betas}")
        data = open_grey_images(self.data, self.image_size).to(run.device)
        train, test = (torch.bernoulli(split.x[:2_000]) for split in (data.train, data.test))
        model = run.build(self.model, shape=data.shape)
        model, optimizer = run.prepare(model, partial(Adam, lr=self.learning_rate))
        batches = data.train.batches(self.batch_size, self.steps).map(torch.bernoulli)
        for step, loss in descend(run, model, optimizer, batches):
            run.log(step, loss=loss / len(self.betas))

        vaes = [vae for _, vae in model.named_models()]
        rows, train_rows = ([mean_rate_and_distortion(vae, x) for vae in vaes] for x in (test, train))
        mean, log_variance = posterior_parameters(vaes[self.betas.index(1.0)], test)
        information = code_information(mean, log_variance, num_draws=20)
        run.figure("rate_distortion", plot_rate_distortion(self.betas, rows), RATE_DISTORTION)
        run.figure("negative_elbo", plot_negative_elbo(self.betas, rows), NEGATIVE_ELBO)
        run.figure("reconstructions", plot_reconstructions(self.betas, vaes, test[:10]), RECONSTRUCTIONS)
        run.table(
            "metrics", tabulate_metrics(self.betas, rows, vaes, test), "Test images, in nats; I(X, Z) is at most log n."
        )
        run.note("decomposition", describe_decomposition(information, rows[self.betas.index(1.0)], len(test)))
        rates, distortions = zip(*rows, strict=True)
        decreases = torch.tensor(rates).diff() < 0
        increases = torch.tensor([row[1] for row in train_rows]).diff() > 0
        sums = [rate + distortion for rate, distortion in rows]
        return {
            "rate_min_beta": rates[0],
            "rate_max_beta": rates[-1],
            "distortion_min_beta": distortions[0],
            "distortion_max_beta": distortions[-1],
            "rate_decreases": float(decreases.float().mean()),
            "distortion_increases": float(increases.float().mean()),
            "best_elbo_beta": self.betas[sums.index(min(sums))],
            "information": information.information,
            "prior_gap": information.prior_gap,
            "identity_error": abs(information.rate - information.information - information.prior_gap),
        }


@dataclass(frozen=True)
class Sample:
    network: Positive[int] = 5  # number of the network to sample from, starting from 1, in order of β
    num_samples: Positive[int] = 64  # number of samples

    def __call__(self, model: ModelCollection[VAE]) -> Tensor:
        if not 1 <= self.network <= len(model):
            raise DataError(f"network must be between 1 and {len(model)}; got network={self.network}")
        vae = model.model(str(self.network - 1))
        return vae.decode(vae.prior().sample((self.num_samples,)))


RATE_DISTORTION = (
    "Rate and distortion of each network on test images. Rate + distortion is constant along a dashed line; the curve "
    "has the slope −β, so that β = 1 minimises the sum."
)
NEGATIVE_ELBO = "Rate and distortion of test images at each β; their sum is the negative ELBO, smallest near β = 1."
RECONSTRUCTIONS = (
    "Test images (first row) and their reconstructions from the posterior mean; the rate decreases downwards."
)


@torch.no_grad()
def posterior_parameters(vae: VAE, x: Tensor) -> tuple[Tensor, Tensor]:
    return vae.posterior_parameters(x)


def plot_rate_distortion(betas: Sequence[float], rows: Sequence[tuple[float, float]]) -> "Figure":
    """Rate and distortion at each β, with lines of equal sum."""
    figure, axes = subplots(size=(6.4, 4.8))
    ax = axes[0, 0]
    rates, distortions = (list(column) for column in zip(*rows, strict=True))
    right, bottom, top = 1.18 * max(rates), min(distortions), max(distortions)
    bottom, top = bottom - 0.12 * (top - bottom), top + 0.08 * (top - bottom)
    best = min(rate + distortion for rate, distortion in rows)
    for number in range(1, 12):
        total = best + number * right / 10
        ax.plot([0, right], [total, total - right], color=FAINT, linestyle="--", linewidth=0.8, zorder=1)
    ax.plot(
        [0, right], [best, best - right], color=INK, linewidth=1.2, zorder=1, label=f"smallest sum, {best:.1f} nats"
    )
    ax.plot(rates, distortions, color=PALETTE[0], marker="o", markersize=6, label="networks")
    for beta, rate, distortion in zip(betas, rates, distortions, strict=True):
        ax.annotate(f"β = {beta:g}", (rate, distortion), xytext=(7, 5), textcoords="offset points")
    ax.set(xlabel="rate R (nats)", ylabel="distortion D (nats)", xlim=(0, right), ylim=(bottom, top))
    ax.legend(loc="upper right")
    return figure


def plot_negative_elbo(betas: Sequence[float], rows: Sequence[tuple[float, float]]) -> "Figure":
    """Stacked bars of rate and distortion at each β."""
    figure, axes = subplots(size=(6.8, 0.9 + 0.34 * len(betas)))
    ax = axes[0, 0]
    names = [f"β = {beta:g}" for beta in betas]
    rates, distortions = (list(column) for column in zip(*rows, strict=True))
    ax.barh(names, rates, color=PALETTE[1], height=0.65, label="rate")
    bars = ax.barh(names, distortions, left=rates, color=PALETTE[0], height=0.65, label="distortion")
    ax.bar_label(bars, [f"{sum(row):.1f}" for row in rows], padding=3)
    ax.margins(x=0.1)
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("nats per test image")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


@torch.no_grad()
def plot_reconstructions(betas: Sequence[float], vaes: Sequence[VAE], x: Tensor) -> "Figure":
    reconstructions = [vae.reconstruct(x) for vae in vaes]
    names = ["image", *(f"β = {beta:g}" for beta in betas)]
    return image_grid(torch.cat([x, *reconstructions]), columns=len(x), row_labels=names)


def tabulate_metrics(
    betas: Sequence[float], rows: Sequence[tuple[float, float]], vaes: Sequence[VAE], x: Tensor
) -> list[dict[str, str | float]]:
    """Rate, distortion, mutual information and active coordinates of each network."""
    table: list[dict[str, str | float]] = []
    for beta, (rate, distortion), vae in zip(betas, rows, vaes, strict=True):
        mean, log_variance = posterior_parameters(vae, x)
        information = code_information(mean, log_variance)
        table.append(
            {
                "β": beta,
                "rate": rate,
                "distortion": distortion,
                "−ELBO": rate + distortion,
                "I(X, Z)": information.information,
                "KL(q(z), p(z))": information.prior_gap,
                "active coordinates": float(active_units(mean).sum()),
            }
        )
    return table


def describe_decomposition(information: CodeInformation, row: tuple[float, float], count: int) -> str:
    """The decompositions of the negative ELBO and of the rate, with the values at β = 1."""
    log_n = float(torch.tensor(float(count)).log())
    return (
        f"At β = 1 the rate is {row[0]:.2f} nats and the distortion {row[1]:.2f} nats; their sum is the negative "
        f"ELBO, {sum(row):.2f}.\n\n"
        f"The rate has two parts. The mutual information I(X, Z) = {information.information:.2f} nats is at most "
        f"log {count} = {log_n:.2f} for {count} images, a bound that codes attain if they identify every image. "
        f"KL(q(z) ‖ p(z)) = {information.prior_gap:.2f} nats because the aggregated posterior differs from the prior. "
        f"Estimated separately, the two sum to {information.information + information.prior_gap:.2f}; the rate is "
        f"{information.rate:.2f}. The negative ELBO is I + D only if q(z) = p(z)."
    )

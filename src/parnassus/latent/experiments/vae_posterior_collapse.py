"""Posterior collapse of VAEs of digits, and five remedies (book sec. 6.4).

With a large noise variance of the decoder the optimal posterior is the prior. The remedies change the weight of the
rate, the noise variance or the schedule; only those that change the optimum prevent the collapse.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.data import open_grey_images
from parnassus.latent.autoencoders.dense_networks import mlp_decoder, mlp_encoder
from parnassus.latent.commands.evaluate_vae import VAEEvaluate
from parnassus.latent.variational.aggregated_posterior import active_units, code_information, rate_per_unit
from parnassus.latent.variational.decoders import GaussianDecoder
from parnassus.latent.variational.elbo import NegativeELBO, Objective
from parnassus.latent.variational.posterior_collapse import FreeBits, linear_kl_annealing
from parnassus.latent.variational.vae import VAE
from parnassus.report import PALETTE, curves, image_grid, subplots
from parnassus.setting_types import GreyImageData
from parnassus.train import ModelCollection, NonNegative, Positive, Run, at_least, at_most, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B6.4-3", "B6.4-7", "B6.3-6")
expected = {
    "rate_collapsed": at_most(0.05, "rate with a large fixed standard deviation of the decoder, nats"),
    "rate_annealed": at_most(0.05, "rate after annealing β from 0 to 1, nats"),
    "rate_peak_annealed": at_least(1.0, "maximum rate during the annealing, nats"),
    "rate_free_bits": at_least(5.0, "rate with free bits, nats"),
    "rate_small_beta": at_least(7.0, "rate with β < 1, nats"),
    "rate_narrow": at_least(8.0, "rate with a smaller fixed standard deviation of the decoder, nats"),
    "rate_learned": at_least(2.0, "rate with a learned standard deviation of the decoder, nats"),
    "learned_std": no_band("the learned standard deviation, in grey values"),
    "error_collapsed": no_band("squared error per pixel of test images for the collapsed VAE"),
    "error_learned": at_most(0.04, "squared error per pixel of test images with a learned standard deviation"),
}
profiles = {
    "smoke": {"steps": 10, "width": 16},
    "gpu": {"data": "mnist", "steps": 10_000, "batch_size": 256, "width": 512, "latent_dim": 32, "learning_rate": 1e-3},
}
NAMES = ("collapsed", "annealed", "free bits", "small β", "narrow", "learned")


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    steps: Positive[int] = 800  # gradient steps
    batch_size: Positive[int] = 128  # images per gradient step
    latent_dim: Positive[int] = 8  # dimension of the code
    width: Positive[int] = 128  # hidden units
    learning_rate: Positive[float] = 2e-3  # Adam's learning rate
    wide_decoder_std: Positive[float] = 1.5  # standard deviation of the collapsing decoder, in grey values
    narrow_decoder_std: Positive[float] = 0.2  # standard deviation of the narrow decoder
    beta: NonNegative[float] = 0.02  # weight of the rate for the remedy "small β"
    free_bits: NonNegative[float] = 1.0  # rate per coordinate that is not penalised, nats

    def model(self, shape: Sequence[int]) -> ModelCollection[VAE]:
        regimes: dict[str, tuple[Objective, float, bool]] = {
            "collapsed": (NegativeELBO(), self.wide_decoder_std, False),
            "annealed": (NegativeELBO(), self.wide_decoder_std, False),
            "free bits": (FreeBits(self.free_bits), self.wide_decoder_std, False),
            "small β": (NegativeELBO(self.beta), self.wide_decoder_std, False),
            "narrow": (NegativeELBO(), self.narrow_decoder_std, False),
            "learned": (NegativeELBO(), self.wide_decoder_std, True),
        }
        return ModelCollection({name: self.build_vae(shape, *regimes[name]) for name in NAMES})

    def build_vae(self, shape: Sequence[int], objective: Objective, std: float, learned: bool) -> VAE:  # noqa: FBT001 - data
        encoder = mlp_encoder(shape, 2 * self.latent_dim, width=self.width)
        network = mlp_decoder(self.latent_dim, shape, width=self.width)
        return VAE(encoder, GaussianDecoder(network, std=std, learned=learned), self.latent_dim, objective=objective)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_grey_images(self.data, self.image_size).to(run.device)
        train, test = data.train.x[:1_000], data.test.x[:1_000]
        model, optimizer = run.prepare(run.build(self.model, shape=data.shape), partial(Adam, lr=self.learning_rate))
        for step, x in run.steps(data.train.batches(self.batch_size, self.steps)):
            model.model("annealed").objective = NegativeELBO(linear_kl_annealing(step, max(1, self.steps // 2)))
            with run.autocast():
                loss = model.loss(x)
            run.update(optimizer, loss)
            run.log(step, loss=loss)
            if step % max(1, self.steps // 50) == 0:
                run.record(
                    step, **{f"rate/{name}": rate_per_coordinate(model.model(name), train).sum() for name in NAMES}
                )

        self.plot_results(run, model, test)
        final = {name: float(rate_per_coordinate(model.model(name), test).sum()) for name in NAMES}
        return {
            "rate_collapsed": final["collapsed"],
            "rate_annealed": final["annealed"],
            "rate_peak_annealed": max(run.curve("rate/annealed")[1]),
            "rate_free_bits": final["free bits"],
            "rate_small_beta": final["small β"],
            "rate_narrow": final["narrow"],
            "rate_learned": final["learned"],
            "learned_std": float(model.model("learned").get_parameter("decoder.log_std").detach().exp()),
            "error_collapsed": reconstruction_error(model.model("collapsed"), test),
            "error_learned": reconstruction_error(model.model("learned"), test),
        }

    def plot_results(self, run: Run, model: ModelCollection[VAE], test: Tensor) -> None:
        lines = {name: run.curve(f"rate/{name}") for name in NAMES}
        run.figure("rate", curves(lines, x_label="step", y_label="rate (nats)"), RATES)
        rates = {name: rate_per_coordinate(model.model(name), test) for name in NAMES}
        run.figure("coordinates", plot_coordinate_rates(rates), COORDINATES)
        with torch.no_grad():
            images = torch.cat([test[:10], *(model.model(name).reconstruct(test[:10]) for name in NAMES)])
        run.figure("reconstructions", image_grid(images, columns=10, row_labels=["image", *NAMES]), RECONSTRUCTIONS)
        rows: list[dict[str, str | float]] = []
        for name in NAMES:
            with torch.no_grad():
                mean, log_variance = model.model(name).posterior_parameters(test)
            rows.append(
                {
                    "regime": name,
                    "rate": float(rate_per_unit(mean, log_variance).sum()),
                    "I(X, Z)": code_information(mean, log_variance).information,
                    "active coordinates": float(active_units(mean).sum()),
                    "squared error per pixel": reconstruction_error(model.model(name), test),
                }
            )
        run.table("regimes", rows, "Test images; rate and information in nats.")
        run.note("posterior collapse", EXPLANATION)


@dataclass(frozen=True)
class Evaluate(VAEEvaluate):
    """Log-likelihood, rate and distortion of the test images of a data set under each VAE."""

    data: GreyImageData = "digits"  # images: name of a data set, or path of a folder


RATES = (
    "Rate during training. With annealing the rate is positive while β is small and falls to 0 long before β = 1, "
    "reached after half of the steps: with this decoder the collapsed posterior is the global optimum."
)
COORDINATES = "Rate of each coordinate on test images after training, in decreasing order."
RECONSTRUCTIONS = "Test images and their reconstructions; a collapsed code is decoded to the mean image."
EXPLANATION = (
    "A coordinate with a rate of r nats must reduce the distortion by at least r nats. With a decoder of standard "
    "deviation s the reduction is ‖improvement‖²/2s², which is small for a large s; in a linear model exactly the "
    "directions with a variance below β s² collapse. A smaller β, a smaller s or a learned s therefore prevent the "
    "collapse, and so do free bits, which do not penalise the first nats. Annealing helps against another cause, "
    "collapse early in training before the decoder uses the code; where collapse is the optimum it only delays it."
)


@torch.no_grad()
def rate_per_coordinate(vae: VAE, x: Tensor) -> Tensor:
    return rate_per_unit(*vae.posterior_parameters(x))


@torch.no_grad()
def reconstruction_error(vae: VAE, x: Tensor) -> float:
    return float((vae.reconstruct(x) - x).square().mean())


def plot_coordinate_rates(rates: dict[str, Tensor]) -> "Figure":
    """The rate of every coordinate in decreasing order, one panel per regime."""
    figure, axes = subplots(1, len(rates), size=(1.75 * len(rates), 2.3))
    top = max(float(each.max()) for each in rates.values())
    for index, (name, each) in enumerate(rates.items()):
        ax = axes[0, index]
        ax.bar(range(1, len(each) + 1), each.sort(descending=True).values.tolist(), color=PALETTE[0])
        ax.set(ylim=(0, 1.05 * top), xlabel="coordinate", ylabel="nats" if index == 0 else "")
        ax.set_title(name)
        ax.set_xticks([1, len(each)])
        ax.grid(visible=False, axis="x")
        if index:
            ax.set_yticklabels([])
    return figure

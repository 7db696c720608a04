"""Variational autoencoder (VAE) of digits: samples, log-likelihood, rate and distortion (book secs. 6.3, 6.4).

Images are binarised at random at every step: a pixel is white with a probability equal to its grey value.
`--use-gaussian-decoder` keeps the grey values, with a Gaussian decoder of learned standard deviation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite, log

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import DataError, Dataset, open_images
from parnassus.latent.autoencoders.convolutional_networks import image_networks
from parnassus.latent.commands.evaluate_vae import VAEEvaluate, evaluate_terms
from parnassus.latent.commands.sample_vae import VAESample
from parnassus.latent.figures import plot_rate_and_distortion, plot_rate_distortion_trajectory
from parnassus.latent.latent_space import interpolation
from parnassus.latent.likelihood_estimation.importance_sampling import importance_likelihood
from parnassus.latent.variational.aggregated_posterior import ACTIVE_RATE, model_rate_per_unit
from parnassus.latent.variational.decoders import BernoulliDecoder, GaussianDecoder
from parnassus.latent.variational.vae import VAE
from parnassus.optim import Adam
from parnassus.report import image_grid
from parnassus.setting_types import GreyImageData
from parnassus.train import NonNegative, Positive, Run, at_least, at_most, between, descend, no_band

covers = ("B5.2-1", "B5.2-4", "B6.2-1", "B6.3-5", "B6.3-10", "B6.4-2", "B6.4-3", "B6.4-4", "D6.0.19", "D6.0.21")
expected = {
    "test_nll": at_most(107.0, "−log p(x) of a test image by importance sampling, nats"),
    "nll_error": no_band("standard error of `test_nll` due to the finite number of importance samples"),
    "effective_samples": no_band("median effective sample size of the importance samples"),
    "negative_elbo": no_band("distortion + rate of test images, nats"),
    "distortion": no_band("−log p(x|z) of test images given their code, nats"),
    "rate": between(21.0, 26.0, "KL(q(z|x) ‖ p(z)) of test images, nats"),
    "active_units": at_least(12, "coordinates of the code with a rate above 0.05 nats"),
    "independent_pixels": no_band("−log p(x) of a test image under independent pixels, nats"),
}
profiles = {
    "smoke": {"steps": 10, "width": 16, "num_examples": 200, "num_importance_samples": 10},
    "gpu": {
        "data": "mnist", "steps": 15_000, "batch_size": 256, "width": 32, "num_blocks": 2, "latent_dim": 40,
        "learning_rate": 1e-3, "num_examples": 60_000, "num_importance_samples": 1_000,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "mnist_mini"  # images: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # height and width to which images of a folder are resized
    steps: Positive[int] = 3_000  # gradient steps
    batch_size: Positive[int] = 100  # images per gradient step
    latent_dim: Positive[int] = 16  # dimension of the code
    width: Positive[int] = 400  # hidden units, or channels of a convolutional network, doubled per downsampling
    num_blocks: NonNegative[int] = 0  # residual blocks per resolution of a convolutional network; 0: dense layers
    learning_rate: Positive[float] = 2e-3  # peak learning rate of Adam, reached after 10 % of the steps
    use_gaussian_decoder: bool | None = None  # Gaussian decoder instead of binarised images; by default for colour
    num_examples: Positive[int] = 10_000  # maximum number of training images, and of test images
    num_importance_samples: Positive[int] = 200  # importance samples per image in the estimate of its likelihood

    def model(self, shape: Sequence[int]) -> VAE:
        if self.num_blocks and (shape[1] % 4 or shape[2] % 4):
            raise DataError(
                "height and width must be divisible by 4 for convolutions; "
                f"got {shape[1]} × {shape[2]}; `--image-size 32` resizes the images of a folder"
            )
        encoder, network = image_networks(shape, self.latent_dim, width=self.width, blocks=self.num_blocks)
        decoder = GaussianDecoder(network) if self.is_gaussian(shape) else BernoulliDecoder(network)
        return VAE(encoder, decoder, self.latent_dim)

    def is_gaussian(self, shape: Sequence[int]) -> bool:
        """Whether pixels are Gaussian: as requested, by default for colour images."""
        return shape[0] > 1 if self.use_gaussian_decoder is None else self.use_gaussian_decoder

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_images(self.data, self.image_size).to(run.device)
        is_gaussian = self.is_gaussian(data.shape)
        binarise = torch.clone if is_gaussian else torch.bernoulli
        x = binarise(data.test.x[: self.num_examples])
        model = run.build(self.model, shape=data.shape)
        model, optimizer, scheduler = run.prepare(
            model,
            partial(Adam, lr=self.learning_rate),
            partial(
                OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False
            ),
        )

        batches = data.train.take(self.num_examples).batches(self.batch_size, self.steps).map(binarise)
        for step, loss in descend(run, model, optimizer, batches):
            scheduler.step()
            run.log(step, loss=loss)
            if step % max(1, self.steps // 40) == 0:
                terms = evaluate_terms(model, x[:1_000])
                run.record(step, distortion=terms.distortion.mean(), rate=terms.rate.mean())

        terms = evaluate_terms(model, x)
        likelihood = importance_likelihood(model, x, samples=self.num_importance_samples)
        independent = float("nan") if is_gaussian else independent_pixels_nll(data.train.x, x)
        distortion, rate = float(terms.distortion.mean()), float(terms.rate.mean())
        with torch.no_grad():
            self.report_elbo_terms(run, distortion, rate, likelihood.nll, independent)
            coordinate_rates = model_rate_per_unit(model, x)
            plot_partial_codes(run, model, x, coordinate_rates)
            plot_images(run, model, data, x, coordinate_rates)
        metrics = {
            "test_nll": likelihood.nll,
            "nll_error": likelihood.nll_error,
            "effective_samples": float(likelihood.effective_sample_size.median()),
            "negative_elbo": distortion + rate,
            "distortion": distortion,
            "rate": rate,
            "active_units": float((coordinate_rates > ACTIVE_RATE).sum()),
        }
        return {**metrics, "independent_pixels": independent}

    def report_elbo_terms(self, run: Run, distortion: float, rate: float, nll: float, independent: float) -> None:
        """The decomposition of the negative ELBO after and during training."""
        if isfinite(independent):
            figure = plot_rate_and_distortion(
                {"independent pixels": (0.0, independent), "VAE": (rate, distortion)}, nll
            )
            run.figure("negative_elbo", figure, "Code length of a test image in nats (1 nat = 1.44 bits).")
        run.note(
            "rate and distortion",
            f"The negative ELBO, {distortion + rate:.1f} nats, is the sum of two terms. The rate, {rate:.1f} nats, is "
            "the cost of transmitting a code when sender and receiver share the prior. The distortion, "
            f"{distortion:.1f} nats, is the cost of transmitting the image given its code when they share the "
            "decoder.\n\n"
            "A higher rate permits a lower distortion. The sum is bounded below by −log p(x), here about "
            f"{nll:.1f} nats; the difference of {distortion + rate - nll:.1f} nats is KL(q(z|x) ‖ p(z|x)), the error "
            "of the approximate posterior.",
        )
        run.figure(
            "rate_distortion",
            plot_rate_distortion_trajectory(run.curve("rate")[1], run.curve("distortion")[1], nll),
            "Rate and distortion of test images during training. Their sum is constant along a dashed line and is "
            "bounded below by −log p(x).",
        )


class Sample(VAESample):
    """Samples, interpolations, traversals or reconstructions."""


class Evaluate(VAEEvaluate):
    """Log-likelihood, rate and distortion of the test images of a data set."""


def independent_pixels_nll(train: Tensor, x: Tensor) -> float:
    """The mean of −log p(x) under independent pixels with the frequencies of the training images, in nats."""
    p = train.mean(0).clamp(1e-3, 1 - 1e-3)
    return -float((x * p.log() + (1 - x) * (-p).log1p()).flatten(1).sum(1).mean())


def plot_partial_codes(run: Run, model: VAE, x: Tensor, coordinate_rates: Tensor) -> None:
    """Images decoded from increasing numbers of coordinates, those with the largest rates first."""
    order = coordinate_rates.argsort(descending=True)
    x = x[:6]
    mean = model.encode(x)
    sizes = sorted({min(size, model.latent_dim) for size in (0, 1, 2, 4, 8, model.latent_dim)})
    columns, titles = [x], ["image"]
    for size in sizes:
        kept = torch.zeros_like(mean)
        kept[:, order[:size]] = mean[:, order[:size]]
        columns.append(model.decode(kept))
        titles.append(f"{float(coordinate_rates[order[:size]].sum()):.1f} nats")
    grid = image_grid(torch.stack(columns, 1).flatten(0, 1), columns=len(titles), titles=titles)
    run.figure(
        "partial_codes",
        grid,
        f"Test images decoded from {', '.join(map(str, sizes))} coordinates of their code with the largest rates, the "
        "others set to 0; column titles are the sums of these rates.",
    )


def plot_images(run: Run, model: VAE, data: Dataset, x: Tensor, coordinate_rates: Tensor) -> None:
    """Reconstructions, samples, interpolations and traversals."""
    shown = x[:10]
    reconstructions = image_grid(
        torch.cat([data.test.x[:10], shown, model.reconstruct(shown)]),
        columns=len(shown),
        row_labels=["image", "model input", "reconstruction"],
    )
    run.figure(
        "reconstructions", reconstructions, "Test images, model inputs and reconstructions from the posterior mean."
    )
    samples = model.decode(model.prior().sample((64,)))
    run.figure("samples", image_grid(samples), "Means decoded from 64 samples of the prior.")
    codes = model.encode(x[:6])
    paths = [
        interpolation.spherical_interpolation(a, b, count=9) for a, b in zip(codes, codes.roll(-1, 0), strict=True)
    ]
    caption = "Spherical interpolation between the codes of two test images."
    run.figure("interpolations", image_grid(model.decode(torch.cat(paths)), columns=9), caption)
    units = coordinate_rates.argsort(descending=True)[:8].tolist()
    lines = [interpolation.latent_traversal(codes.new_zeros(model.latent_dim), unit) for unit in units]
    names = [f"z_{unit + 1}, {float(coordinate_rates[unit]):.1f} nats" for unit in units]
    grid = image_grid(model.decode(torch.cat(lines)), columns=9, row_labels=names)
    run.figure("traversals", grid, "The coordinates with the largest rates, varied from −3 to 3 with the others at 0.")
    rows: list[dict[str, str | float]] = [
        {"coordinate": f"z_{unit + 1}", "rate": float(coordinate_rates[unit])} for unit in units
    ]
    run.table("rates", rows, "Mean rate of the coordinates with the largest rates, in nats.")
    if data.train.x.min() >= 0 and len(shown):
        run.note(
            "pixels",
            f"A uniform distribution over binary images of {shown[0].numel()} pixels has an entropy of "
            f"{shown[0].numel() * log(2):.0f} nats.",
        )

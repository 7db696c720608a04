"""A variational autoencoder learns to draw digits, and what its code costs (book secs. 6.3, 6.4).

Every pixel is a coin that shows white with a chance equal to its grey value, tossed anew at every step, so that the
likelihood is one of black and white images. `--grey` keeps the grey values and gives the decoder a learned deviation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import log
from typing import Literal

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import DataError, Dataset, open_images
from parnassus.latent import walks
from parnassus.latent.aggregate import rate_by_unit
from parnassus.latent.convolutional import conv_decoder, conv_encoder
from parnassus.latent.decoders import BernoulliDecoder, GaussianDecoder
from parnassus.latent.dense import flat_decoder, flat_encoder
from parnassus.latent.likelihood import importance_likelihood
from parnassus.latent.vae import VAE, Terms
from parnassus.optim import Adam
from parnassus.report import image_grid
from parnassus.report.rate_and_distortion import draw_bill, draw_plane
from parnassus.train import Run, at_least, at_most, between, descend, reported

covers = ("B5.2-1", "B5.2-4", "B6.2-1", "B6.3-5", "B6.3-10", "B6.4-2", "B6.4-3", "B6.4-4", "D6.0.19", "D6.0.21")
expected = {
    "test_nll": at_most(107.0, "−log p(x) of an unseen image in nats, by importance sampling"),
    "nll_error": reported("standard error of that number from the finite number of codes drawn"),
    "effective_samples": reported("median effective number of codes that carry it"),
    "negative_elbo": reported("distortion + rate on unseen images, in nats"),
    "distortion": reported("nats to correct the image once the code is known"),
    "rate": between(21.0, 26.0, "nats that the code says of the image"),
    "active_units": at_least(12, "coordinates of the code that say more than 0.05 nats"),
    "pixels_alone": reported("nats an image when every pixel is told by itself, without a code"),
}
profiles = {
    "smoke": {"steps": 10, "width": 16, "examples": 200, "draws": 10},
    "gpu": {
        "data": "mnist", "steps": 15_000, "batch": 256, "width": 32, "blocks": 2, "latent": 40, "lr": 1e-3,
        "examples": 60_000, "draws": 1_000,
    },
}  # fmt: skip

ACTIVE = 0.05
"""Nats a coordinate must say of an image, on average, to count as used."""


@dataclass(frozen=True)
class Experiment:
    data: str = "mnist_mini"  # images: mnist_mini, digits, mnist, fashion_mnist, or a folder of yours
    size: int | None = None  # resize the pictures of a folder to this height and width
    steps: int = 3_000  # gradient steps
    batch: int = 100  # images a step
    latent: int = 16  # numbers in a code
    width: int = 400  # hidden units; of a convolutional network the channels at first, doubled at each halving
    blocks: int = 0  # residual blocks at each size of a convolutional network; 0: dense layers
    lr: float = 2e-3  # Adam's largest learning rate, reached after a tenth of the steps
    grey: bool = False  # keep grey values, with a Gaussian decoder, instead of tossing a coin for each pixel
    examples: int = 10_000  # images used at most
    draws: int = 200  # codes drawn for each image to estimate its likelihood

    def model(self, shape: Sequence[int]) -> VAE:
        encoder, network = networks(shape, self.latent, width=self.width, blocks=self.blocks)
        return VAE(encoder, GaussianDecoder(network) if self.grey else BernoulliDecoder(network), self.latent)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_images(self.data, self.size).to(run.device)
        toss = torch.clone if self.grey else torch.bernoulli
        unseen = toss(data.test.x[: self.examples])
        model = run.build(self.model, shape=data.shape)
        model, optimizer = run.prepare(model, partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False)
        run.keep("warming", warming)

        batches = data.train.take(self.examples).batches(self.batch, self.steps).map(toss)
        for step, loss in descend(run, model, optimizer, batches):
            warming.step()
            run.log(step, loss=loss)
            if step % max(1, self.steps // 40) == 0:
                terms = mean_terms(model, unseen[:1_000])
                run.record(step, distortion=terms.distortion.mean(), rate=terms.rate.mean())

        terms = mean_terms(model, unseen)
        likelihood = importance_likelihood(model, unseen, samples=self.draws)
        alone = pixels_alone(data.train.x, unseen) if not self.grey else float("nan")
        distortion, rate = float(terms.distortion.mean()), float(terms.rate.mean())
        with torch.no_grad():
            self.explain(run, distortion, rate, likelihood.nll, alone)
            per_unit = mean_rates(model, unseen)
            show_what_the_code_buys(run, model, unseen, per_unit)
            show_pictures(run, model, data, unseen, per_unit)
        numbers = {
            "test_nll": likelihood.nll,
            "nll_error": likelihood.nll_error,
            "effective_samples": float(likelihood.effective.median()),
            "negative_elbo": distortion + rate,
            "distortion": distortion,
            "rate": rate,
            "active_units": float((per_unit > ACTIVE).sum()),
        }
        return {**numbers, "pixels_alone": alone}

    def explain(self, run: Run, distortion: float, rate: float, nll: float, alone: float) -> None:
        """Rate and distortion as the two halves of a telephone bill, and the way training took between them."""
        if not self.grey:
            figure = draw_bill({"every pixel by itself": (0.0, alone), "by a code": (rate, distortion)}, nll)
            run.figure("bill", figure, "What it costs to tell an unseen image, in nats (1 nat = 1.44 bits).")
        run.note(
            "rate and distortion",
            "Tell an unseen image over the telephone. Both sides know the decoder. First you read out a code, roughly "
            f"enough for the other side to guess the image: that costs the rate, {rate:.1f} nats. Then you correct "
            f"what the guess got wrong: that costs the distortion, {distortion:.1f} nats. Together they are the "
            f"negative ELBO, {distortion + rate:.1f} nats, and training makes this sum small.\n\n"
            "A longer code saves corrections, a shorter one leaves more of them: rate buys distortion. No code can "
            f"make the bill smaller than −log p(x), here about {nll:.1f} nats; the difference of "
            f"{distortion + rate - nll:.1f} nats is KL(q(z|x) ‖ p(z|x)), the price of an encoder that guesses which "
            "codes belong to an image instead of knowing it.",
        )
        run.figure(
            "plane",
            draw_plane(run.curve("rate")[1], run.curve("distortion")[1], nll),
            "The way training took on unseen images. Along a line the sum of both is the same number of nats; "
            "training goes down across the lines, towards one that it cannot cross.",
        )


@dataclass(frozen=True)
class Sample:
    show: Literal["means", "draws", "walks", "traversals", "copies"] = "means"  # what to draw with the model
    count: int = 64  # how many images; of walks and traversals how many rows
    images: str = "mnist_mini"  # images to copy, and to walk between: a data set, or a folder of yours
    size: int | None = None  # resize the pictures of a folder to this height and width

    def __call__(self, model: VAE) -> Tensor:
        device = next(model.parameters()).device
        if self.show == "draws":
            return model.sample(self.count)
        if self.show == "means":
            return model.decode(model.prior().sample((self.count,)))
        if self.show == "traversals":
            code = torch.zeros(model.latent, device=device)
            return model.decode(
                torch.cat([walks.traverse(code, unit) for unit in range(min(self.count, model.latent))])
            )
        x = self.given(model).to(device)
        if self.show == "copies":
            return torch.stack([x, model.reconstruct(x)], 1).flatten(0, 1)
        codes = model.encode(x)
        return model.decode(
            torch.cat([walks.great_circle(a, b) for a, b in zip(codes, codes.roll(-1, 0), strict=True)])
        )

    @property
    def columns(self) -> int | None:
        """Images a row of the picture: a walk, a traversal, five pairs of image and copy."""
        return {"walks": 8, "traversals": 9, "copies": 10}.get(self.show)

    def given(self, model: VAE) -> Tensor:
        """The images named, as long as they have the shape the model knows."""
        x = open_images(self.images, self.size).test.x[: self.count]
        wanted = tuple(model.decode(model.prior().sample((1,))).shape[1:])
        if x.shape[1:] != wanted:
            raise DataError(f"the model knows images of shape {wanted}; those of {self.images} are {(*x.shape[1:],)}")
        return x


def networks(shape: Sequence[int], latent: int, *, width: int, blocks: int) -> tuple[nn.Module, nn.Module]:
    """An encoder and the network of a decoder: dense with one hidden layer, or convolutional with residual blocks."""
    if blocks == 0:
        return flat_encoder(shape, 2 * latent, width=width), flat_decoder(latent, shape, width=width)
    if shape[1] % 4 or shape[2] % 4:
        raise DataError(
            f"height and width must divide by 4 for convolutions; got {shape[1]} and {shape[2]}: "
            "`--size 32` resizes the pictures of a folder"
        )
    encoder = conv_encoder(shape, 2 * latent, width=width, blocks=blocks)
    return encoder, conv_decoder(latent, shape, width=width, blocks=blocks)


@torch.no_grad()
def mean_terms(model: VAE, x: Tensor) -> Terms:
    """Distortion and rate of every row, a part at a time."""
    parts = [model.terms(part) for part in x.split(1_000)]
    return Terms(torch.cat([part.distortion for part in parts]), torch.cat([part.rate for part in parts]))


@torch.no_grad()
def mean_rates(model: VAE, x: Tensor) -> Tensor:
    """The nats that each coordinate of the code says of an image, on average."""
    mean, log_variance = (torch.cat(part) for part in zip(*(model.moments(p) for p in x.split(1_000)), strict=True))
    return rate_by_unit(mean, log_variance)


def pixels_alone(train: Tensor, unseen: Tensor) -> float:
    """Nats an unseen image costs when each pixel is told by itself, with the frequencies of the training images."""
    chance = train.mean(0).clamp(1e-3, 1 - 1e-3)
    return -float((unseen * chance.log() + (1 - unseen) * (-chance).log1p()).flatten(1).sum(1).mean())


def show_what_the_code_buys(run: Run, model: VAE, unseen: Tensor, per_unit: Tensor) -> None:
    """Images decoded from more and more of their code, the most telling coordinates first."""
    order = per_unit.argsort(descending=True)
    x = unseen[:6]
    mean = model.encode(x)
    sizes = sorted({min(size, model.latent) for size in (0, 1, 2, 4, 8, model.latent)})
    columns, titles = [x], ["image"]
    for size in sizes:
        kept = torch.zeros_like(mean)
        kept[:, order[:size]] = mean[:, order[:size]]
        columns.append(model.decode(kept))
        titles.append(f"{float(per_unit[order[:size]].sum()):.1f} nats")
    grid = image_grid(torch.stack(columns, 1).flatten(0, 1), columns=len(titles), titles=titles)
    run.figure(
        "bought",
        grid,
        f"What the code buys: unseen images decoded from {', '.join(map(str, sizes))} coordinates of their code, the "
        "most telling first, the others left at 0; above each column the rate spent so far.",
    )


def show_pictures(run: Run, model: VAE, data: Dataset, unseen: Tensor, per_unit: Tensor) -> None:
    """Copies, new images, walks from one to another, and one coordinate at a time."""
    shown = unseen[:10]
    copies = image_grid(
        torch.cat([data.test.x[:10], shown, model.reconstruct(shown)]),
        columns=len(shown),
        row_labels=["original", "as seen", "copy"],
    )
    run.figure("copies", copies, "Unseen images, as tossed for the model, and decoded from the middle of their codes.")
    run.figure("samples", image_grid(model.decode(model.prior().sample((64,)))), "New images: the means of 64 draws.")
    codes = model.encode(unseen[:6])
    path = [walks.great_circle(a, b, count=9) for a, b in zip(codes, codes.roll(-1, 0), strict=True)]
    run.figure("walks", image_grid(model.decode(torch.cat(path)), columns=9), "Walks from one unseen image to another.")
    units = per_unit.argsort(descending=True)[:8].tolist()
    lines = [walks.traverse(codes.new_zeros(model.latent), unit) for unit in units]
    names = [f"z_{unit + 1}, {float(per_unit[unit]):.1f} nats" for unit in units]
    grid = image_grid(model.decode(torch.cat(lines)), columns=9, row_labels=names)
    run.figure("traversals", grid, "One coordinate from −3 to 3, the others at 0; the most telling coordinates first.")
    nats: list[dict[str, str | float]] = [
        {"coordinate": f"z_{unit + 1}", "rate": float(per_unit[unit])} for unit in units
    ]
    run.table("rate", nats, "Nats that the most telling coordinates say of an image, on average.")
    if data.train.x.min() >= 0 and len(shown):
        run.note(
            "pixels", f"An image has {shown[0].numel()} pixels: told as coins, {shown[0].numel() * log(2):.0f} nats."
        )

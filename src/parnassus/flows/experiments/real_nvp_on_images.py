"""Real NVP, or Glow, learns images: exact densities, draws in one pass, walks between images (book sec. 13.1).

Grey values are whole numbers; noise as wide as a cell makes them continuous, and every term of the bill is counted:
log-determinants, the logit, the width of a cell. What is reported is then an upper bound on the bits of the images.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log, prod
from typing import Literal

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import DataError, Dataset, Split, open_images
from parnassus.flows.dequantisation import Dequantised, dequantise, grey_levels, independent_bits, quantise
from parnassus.flows.image_flow import glow_step, image_flow, real_nvp_step
from parnassus.flows.multiscale import Multiscale
from parnassus.latent.walks import great_circle
from parnassus.optim import AdamW
from parnassus.report import histograms, image_grid
from parnassus.train import Run, at_least, at_most, between, descend, reported

covers = ("B13.1-1", "B13.1-4", "B13.1-5", "B13.1-6", "B13.1-10")
expected = {
    "test_bits": at_most(2.12, "bits a dimension of an unseen image, every term counted"),
    "train_bits": reported("the same on the training images"),
    "independent_bits": reported("the same when each pixel has a law of its own, counted on the training images"),
    "bits_gained": at_least(0.3, "what the pixels say of each other, in bits a dimension"),
    "round_trip": at_most(1e-3, "largest error of an unseen image carried to its latent and back, in grey values"),
    "latent_radius": between(1.0, 1.15, "‖z‖/√D of unseen images, 1 for N(0, I)"),
}
profiles = {
    "smoke": {"steps": 4, "width": 8, "samples": 10},
    "gpu": {
        "data": "cifar10", "steps": 8_000, "batch": 256, "scales": 3, "depth": 4, "width": 128, "blocks": 3,
        "lr": 1e-3,
    },
}  # fmt: skip

TEMPERATURES = (0.25, 0.5, 0.7, 0.85, 1.0)


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # images: digits, mnist_mini, mnist, fashion_mnist, cifar10, or a folder of yours
    size: int | None = None  # resize the pictures of a folder to this height and width
    levels: int | None = None  # grey values that are told apart; unless told, as many as the images have
    step: Literal["real_nvp", "glow"] = "real_nvp"  # four couplings with fixed halves, or one after a learned mixture
    steps: int = 700  # gradient steps
    batch: int = 64  # images a step
    scales: int = 2  # times the image is squeezed and, but for the last, halved
    depth: int = 1  # steps of the flow at each scale
    width: int = 48  # channels of the networks inside
    blocks: int = 1  # their residual blocks
    lr: float = 6e-3  # AdamW's largest learning rate, reached after a tenth of the steps
    samples: int = 50  # images drawn

    def model(self, shape: Sequence[int], levels: int) -> Dequantised:
        channels, height, width = shape
        step = {"real_nvp": real_nvp_step, "glow": glow_step}[self.step]
        flow = image_flow(
            (channels, height, width),
            partial(step, width=self.width, blocks=self.blocks),
            scales=self.scales,
            steps=self.depth,
        )
        return Dequantised(flow, (channels, height, width), levels=levels)

    def __call__(self, run: Run) -> dict[str, float]:
        data, levels = whole_greys(self.data, self.size, self.levels, scales=self.scales)
        data = data.to(run.device)
        model = run.build(self.model, shape=data.shape, levels=levels).to(run.device)
        with torch.no_grad():
            model.loss(data.train.x[:512])  # the normalisations begin with the spread of these
        model, optimizer = run.prepare(model, partial(AdamW, lr=self.lr, weight_decay=0.01))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1)
        run.keep("warming", warming)
        every, few = max(1, self.steps // 30), data.test.x[:1_000]
        for step, loss in descend(run, model, optimizer, data.train.batches(self.batch, self.steps)):
            warming.step()
            run.log(step, **{"bits a dimension/train": loss})
            if step % every == 0 or step + 1 == self.steps:
                run.record(step, **{"bits a dimension/test": mean_bits(model, few)})

        model.eval()
        dimensions, unseen = prod(data.shape), data.test.x
        test, independent = mean_bits(model, unseen), independent_bits(data.train.x, unseen, levels=levels)
        radius, round_trip = there_and_back(model, unseen[:500])
        show_draws(run, model, data, self.samples)
        show_walks(run, model, unseen)
        show_scales(run, model)
        show_radii(run, model, data)
        run.note(
            "the bill",
            f"An image has {dimensions} numbers of {levels} grey values each, {log(levels) / log(2):.2f} bits if all "
            f"were alike. Told one by one with the frequencies of each place they cost {independent:.3f} bits; the "
            f"flow needs {test:.3f}. This bounds the true bits of its law from above, for the noise within a cell is "
            "paid too; the density itself is exact.",
        )
        return {
            "test_bits": test,
            "train_bits": mean_bits(model, data.train.x[:5_000]),
            "independent_bits": independent,
            "bits_gained": independent - test,
            "round_trip": round_trip,
            "latent_radius": radius,
        }


@dataclass(frozen=True)
class Sample:
    temperature: float = 1.0  # deviation of the latents; below 1 the typical
    count: int = 100  # how many

    def __call__(self, model: Dequantised) -> Tensor:
        return model.eval().sample(self.count, temperature=self.temperature)


def whole_greys(name: str, size: int | None, levels: int | None, *, scales: int) -> tuple[Dataset, int]:
    """The images named, with whole grey values and sides that can be halved, and how many values there are."""
    data = open_images(name, size)
    if data.shape[0] not in (1, 3):
        raise DataError(f"images must have 1 or 3 channels to be drawn; those of {name} have {data.shape[0]}")
    if data.shape[1] % 2**scales or data.shape[2] % 2**scales:
        raise DataError(
            f"height and width must be multiples of {2**scales} for {scales} scales; got {data.shape[1]} and "
            f"{data.shape[2]}: `--scales 2` asks for less, `--size 32` resizes the pictures of a folder"
        )
    told = levels or grey_levels(data.train.x[:1_000])
    train, test = (Split(quantise(split.x, levels=told), split.y) for split in (data.train, data.test))
    return replace(data, train=train, test=test), told


@torch.no_grad()
def mean_bits(model: Dequantised, images: Tensor) -> float:
    """Mean bits a dimension, a part at a time, with the weights as they are in drawing."""
    was_training = model.training
    model.eval()
    total = sum(float(model.bits(part).sum()) for part in images.split(500))
    model.train(was_training)
    return total / len(images)


@torch.no_grad()
def there_and_back(model: Dequantised, images: Tensor) -> tuple[float, float]:
    """‖z‖/√D of the images, and the largest error with which they come back, in grey values."""
    cube = dequantise(images, torch.rand_like(images), levels=model.levels)
    z, _ = model.flow.transform.inverse(cube)
    back, _ = model.flow.transform(z)
    return float(radii(z).mean()), float((back - cube).abs().max()) * model.levels


def radii(z: Tensor) -> Tensor:
    """‖z‖/√D of each latent."""
    return z.square().mean(1).sqrt()


def show_draws(run: Run, model: Dequantised, data: Dataset, count: int) -> None:
    columns = 10
    run.figure("real", image_grid(data.test.x[:count], columns=columns), "Unseen images.")
    drawn = model.sample(count)
    run.figure("samples", image_grid(drawn, columns=columns), "Drawn: one pass from N(0, I) each, nothing is iterated.")
    z: Tensor = model.flow.base().sample((columns,))
    rows = torch.cat([model.decode(temperature * z) for temperature in TEMPERATURES])
    names = [f"τ = {temperature:g}" for temperature in TEMPERATURES]
    run.figure(
        "temperature",
        image_grid(rows, columns=columns, row_labels=names),
        "The same ten latents, shrunk by the temperature τ: near 0 all images become the most typical one.",
    )
    flat = data.train.x.flatten(1)
    nearest = data.train.x[torch.cdist(drawn[:columns].flatten(1), flat).argmin(1)]
    pairs = image_grid(torch.cat([drawn[:columns], nearest]), columns=columns, row_labels=("drawn", "nearest real"))
    run.figure("nearest", pairs, "Draws above the training images most like them: alike, not copied.")


@torch.no_grad()
def show_walks(run: Run, model: Dequantised, images: Tensor) -> None:
    z = model.encode(images[:6])
    walks = torch.cat([great_circle(a, b, count=9) for a, b in zip(z, z.roll(-1, 0), strict=True)])
    run.figure(
        "walks",
        image_grid(model.decode(walks), columns=9),
        "From one unseen image (left) to another (right), by turning its latent; both ends are exact, for nothing is "
        "lost on the way to the latent and back.",
    )


@torch.no_grad()
def show_scales(run: Run, model: Dequantised) -> None:
    """The coarse latents kept, the finer ones drawn anew: what each scale decides."""
    multiscale = next(module for module in model.flow.modules() if isinstance(module, Multiscale))
    if len(multiscale.shapes) < 2:
        return
    columns = 10
    z: Tensor = model.flow.base().sample((columns,))
    rows, names, kept = [model.decode(z)], ["drawn"], z.shape[1]
    start = 0
    for depth, shape in enumerate(multiscale.shapes[:-1]):
        start += prod(shape)
        other = z.clone()
        other[:, :start] = torch.randn_like(other[:, :start])
        rows.append(model.decode(other))
        names.append(f"{(kept - start) / kept:.0%} kept" if depth else f"coarsest {(kept - start) / kept:.0%} kept")
    run.figure(
        "scales",
        image_grid(torch.cat(rows), columns=columns, row_labels=names),
        "Draws, and draws that share only their coarse latents with them; the latents set aside first are drawn anew.",
    )


@torch.no_grad()
def show_radii(run: Run, model: Dequantised, data: Dataset) -> None:
    """Where on the shell of N(0, I) images lie, and how far from it images whose pixels were shuffled."""

    def found(images: Tensor) -> Tensor:
        cube = dequantise(images, torch.rand_like(images), levels=model.levels)
        return radii(model.flow.transform.inverse(cube)[0])

    unseen = data.test.x[:1_000]
    places = torch.randperm(prod(data.shape), device=unseen.device)
    shuffled = found(unseen.flatten(1)[:, places].reshape(unseen.shape)).median()
    sets = {
        "N(0, I)": radii(torch.randn(1_000, prod(data.shape))),
        "training images": found(data.train.x[:1_000]),
        "unseen images": found(unseen),
    }
    run.figure(
        "radii",
        histograms(sets, x_label="‖z‖/√D"),
        "How far latents lie from the origin: the flow spreads images as N(0, I) is spread. Unseen images whose pixels "
        f"were shuffled, all alike, lie at {float(shuffled):.3g} (median): what never was an image lands far away.",
    )

"""Real NVP or Glow on images: bits per dimension, samples, latent interpolation (book sec. 13.1).

Discrete grey values are dequantised with uniform noise. The reported bits per dimension include all terms (the
log-determinants, the logit transform, the width of a grey level) and are an upper bound of the bits of the images.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log, prod
from typing import Literal, cast

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import DataError, Dataset, Split, open_images
from parnassus.flows.images.dequantisation import (
    DequantisedFlow,
    count_grey_levels,
    dequantise,
    independent_bits,
    quantise,
)
from parnassus.flows.images.multiscale import MultiscaleTransform
from parnassus.flows.images.real_nvp_and_glow import glow_step, image_flow, real_nvp_step
from parnassus.latent.latent_space.interpolation import spherical_interpolation
from parnassus.layers.evaluation_mode import evaluation_mode
from parnassus.optim import AdamW
from parnassus.report import histograms, image_grid
from parnassus.setting_types import ImageData
from parnassus.train import Positive, Run, at_least, at_most, between, descend, no_band
from parnassus.train.sample_predict_evaluate import ResultRow
from parnassus.train.trained import TrainedRun

covers = ("B13.1-1", "B13.1-4", "B13.1-5", "B13.1-6", "B13.1-10")
expected = {
    "test_bits": at_most(2.12, "bits per dimension of test images"),
    "train_bits": no_band("bits per dimension of training images"),
    "independent_bits": no_band("bits per dimension of test images under independent pixels with training frequencies"),
    "bits_gained": at_least(0.3, "difference between independent_bits and test_bits"),
    "round_trip": at_most(1e-3, "largest error |T(T⁻¹(x)) − x| over test images, in grey levels"),
    "latent_radius": between(1.0, 1.15, "mean ‖z‖/√D of test images, about 1 for N(0, I)"),
}
profiles = {
    "smoke": {"steps": 4, "width": 8, "num_samples": 10},
    "gpu": {
        "data": "cifar10", "steps": 8_000, "batch_size": 256, "num_scales": 3, "steps_per_scale": 4, "width": 128,
        "num_blocks": 3, "learning_rate": 1e-3,
    },
}  # fmt: skip

TEMPERATURES = (0.25, 0.5, 0.7, 0.85, 1.0)


@dataclass(frozen=True)
class Experiment:
    data: ImageData = "digits"  # images: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # height and width to which the images of a folder are resized
    grey_levels: Positive[int] | None = None  # number of grey levels; by default that of the images
    architecture: Literal["real_nvp", "glow"] = "real_nvp"  # four couplings per step; or one and a 1×1 convolution
    steps: Positive[int] = 700  # gradient steps
    batch_size: Positive[int] = 64  # images per gradient step
    num_scales: Positive[int] = 2  # scales of the multiscale architecture
    steps_per_scale: Positive[int] = 1  # flow steps at each scale
    width: Positive[int] = 48  # channels of the coupling networks
    num_blocks: Positive[int] = 1  # residual blocks of the coupling networks
    learning_rate: Positive[float] = 6e-3  # maximum learning rate of AdamW, reached after 10 % of the steps
    num_samples: Positive[int] = 50  # images to sample

    def model(self, shape: Sequence[int], levels: int) -> DequantisedFlow:
        channels, height, width = shape
        step = {"real_nvp": real_nvp_step, "glow": glow_step}[self.architecture]
        flow = image_flow(
            (channels, height, width),
            partial(step, width=self.width, blocks=self.num_blocks),
            num_scales=self.num_scales,
            steps_per_scale=self.steps_per_scale,
        )
        return DequantisedFlow(flow, (channels, height, width), levels=levels)

    def __call__(self, run: Run) -> dict[str, float]:
        data, levels = open_quantised_images(self.data, self.image_size, self.grey_levels, num_scales=self.num_scales)
        data = data.to(run.device)
        model = run.build(self.model, shape=data.shape, levels=levels).to(run.device)
        with torch.no_grad():
            model.loss(data.train.x[:512])  # initialises the ActNorm layers
        model, optimizer, schedule = run.prepare(
            model,
            partial(AdamW, lr=self.learning_rate, weight_decay=0.01),
            partial(OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1),
        )
        log_interval, subset = max(1, self.steps // 30), data.test.x[:1_000]
        for step, loss in descend(run, model, optimizer, data.train.batches(self.batch_size, self.steps)):
            schedule.step()
            run.log(step, **{"bits per dimension/train": loss})
            if step % log_interval == 0 or step + 1 == self.steps:
                run.record(step, **{"bits per dimension/test": mean_bits(model, subset)})

        model.eval()
        dimensions, x = prod(data.shape), data.test.x
        test, independent = mean_bits(model, x), independent_bits(data.train.x, x, levels=levels)
        radius, round_trip = latent_radius_and_round_trip(model, x[:500])
        plot_samples(run, model, data, self.num_samples)
        plot_interpolations(run, model, x)
        plot_scales(run, model)
        plot_radii(run, model, data)
        run.note(
            "bits per dimension",
            f"Images of {dimensions} values with {levels} grey levels have {log(levels) / log(2):.2f} bits per "
            f"dimension under a uniform distribution, {independent:.3f} under independent pixels with training "
            f"frequencies, and {test:.3f} under the flow. The last value is an upper bound of −log₂ P(x)/D, because of "
            "the uniform dequantisation noise; the density itself is exact.",
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
    temperature: Positive[float] = 1.0  # standard deviation of the latents
    num_samples: Positive[int] = 100  # number of images

    def __call__(self, model: DequantisedFlow) -> Tensor:
        return model.eval().sample(self.num_samples, temperature=self.temperature)


@dataclass(frozen=True)
class Evaluate:
    """Bits per dimension of test images, quantised to the grey levels of the run."""

    data: ImageData | None = None  # images to evaluate on: name or path; by default the data of the run

    def __call__(self, runs: Sequence[TrainedRun]) -> list[ResultRow]:
        return [self.evaluate(trained) for trained in runs]

    def evaluate(self, trained: TrainedRun) -> ResultRow:
        """Bits per dimension of one run, with a fixed seed for the dequantisation noise."""
        model = cast("DequantisedFlow", trained.model)
        name = self.data or cast("Experiment", trained.experiment).data
        data = open_images(name, model.shape[1])
        if data.shape != model.shape:
            raise DataError(
                f"{name} must have images of the shape of the run; got {data.shape}, expected {model.shape}"
            )
        data = quantise_images(data, model.levels)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            bits = mean_bits(model, data.test.x)
        return {
            "run": trained.folder.path.name,
            "data": name,
            "images": len(data.test),
            "bits_per_dimension": bits,
            "independent_bits": independent_bits(data.train.x, data.test.x, levels=model.levels),
        }


def open_quantised_images(
    name: str, image_size: int | None, grey_levels: int | None, *, num_scales: int
) -> tuple[Dataset, int]:
    """Images rounded to their grey levels, and the number of these; sides must be divisible by 2**num_scales."""
    data = open_images(name, image_size)
    if data.shape[0] not in (1, 3):
        raise DataError(f"images must have 1 or 3 channels; those of {name} have {data.shape[0]}")
    if data.shape[1] % 2**num_scales or data.shape[2] % 2**num_scales:
        raise DataError(
            f"height and width must be multiples of {2**num_scales} for {num_scales} scales; got {data.shape[1]} and "
            f"{data.shape[2]}. Use fewer scales, such as `--num-scales 2`, or resize the images of a folder, as in "
            "`--image-size 32`"
        )
    levels = grey_levels or count_grey_levels(data.train.x[:1_000])
    return quantise_images(data, levels), levels


def quantise_images(data: Dataset, levels: int) -> Dataset:
    train, test = (Split(quantise(split.x, levels=levels), split.y) for split in (data.train, data.test))
    return replace(data, train=train, test=test)


@torch.no_grad()
def mean_bits(model: DequantisedFlow, images: Tensor) -> float:
    """Mean bits per dimension, in evaluation mode and in batches of 500."""
    with evaluation_mode(model):
        total = sum(float(model.bits(part).sum()) for part in images.split(500))
    return total / len(images)


@torch.no_grad()
def latent_radius_and_round_trip(model: DequantisedFlow, images: Tensor) -> tuple[float, float]:
    """Mean ‖z‖/√D of the images, and the largest round-trip error in grey levels."""
    x = dequantise(images, torch.rand_like(images), levels=model.levels)
    z, _ = model.flow.transform.inverse(x)
    reconstruction, _ = model.flow.transform(z)
    return float(latent_radii(z).mean()), float((reconstruction - x).abs().max()) * model.levels


def latent_radii(z: Tensor) -> Tensor:
    """‖z‖/√D of each latent vector."""
    return z.square().mean(1).sqrt()


def plot_samples(run: Run, model: DequantisedFlow, data: Dataset, count: int) -> None:
    columns = 10
    run.figure("test images", image_grid(data.test.x[:count], columns=columns), "Test images.")
    samples = model.sample(count)
    run.figure("samples", image_grid(samples, columns=columns), "Samples, each by one pass from N(0, I).")
    z: Tensor = model.flow.base().sample((columns,))
    rows = torch.cat([model.decode(temperature * z) for temperature in TEMPERATURES])
    names = [f"τ = {temperature:g}" for temperature in TEMPERATURES]
    run.figure(
        "samples by temperature",
        image_grid(rows, columns=columns, row_labels=names),
        "The same ten latents scaled by the temperature τ: for small τ all samples approach the image of z = 0.",
    )
    flat = data.train.x.flatten(1)
    nearest = data.train.x[torch.cdist(samples[:columns].flatten(1), flat).argmin(1)]
    pairs = image_grid(torch.cat([samples[:columns], nearest]), columns=columns, row_labels=("sample", "nearest"))
    run.figure("nearest training images", pairs, "Samples and the nearest training images.")


@torch.no_grad()
def plot_interpolations(run: Run, model: DequantisedFlow, images: Tensor) -> None:
    z = model.encode(images[:6])
    latents = torch.cat([spherical_interpolation(a, b, count=9) for a, b in zip(z, z.roll(-1, 0), strict=True)])
    run.figure(
        "interpolations",
        image_grid(model.decode(latents), columns=9),
        "Spherical interpolation between the latents of test images (left and right); the end points are reconstructed "
        "exactly.",
    )


@torch.no_grad()
def plot_scales(run: Run, model: DequantisedFlow) -> None:
    """Samples with the same coarse latents and resampled fine latents."""
    multiscale = next(module for module in model.flow.modules() if isinstance(module, MultiscaleTransform))
    if len(multiscale.shapes) < 2:
        return
    columns = 10
    z: Tensor = model.flow.base().sample((columns,))
    rows, names, size = [model.decode(z)], ["sample"], z.shape[1]
    start = 0
    for depth, shape in enumerate(multiscale.shapes[:-1]):
        start += prod(shape)
        resampled = z.clone()
        resampled[:, :start] = torch.randn_like(resampled[:, :start])
        rows.append(model.decode(resampled))
        names.append(f"{(size - start) / size:.0%} kept" if depth else f"coarsest {(size - start) / size:.0%} kept")
    run.figure(
        "resampled fine latents",
        image_grid(torch.cat(rows), columns=columns, row_labels=names),
        "Samples, and samples with the same coarse latents; the latents factored out first are resampled.",
    )


@torch.no_grad()
def plot_radii(run: Run, model: DequantisedFlow, data: Dataset) -> None:
    """Latent radii of images, of samples of N(0, I), and of images with shuffled pixels."""

    def radii_of(images: Tensor) -> Tensor:
        x = dequantise(images, torch.rand_like(images), levels=model.levels)
        return latent_radii(model.flow.transform.inverse(x)[0])

    test = data.test.x[:1_000]
    permutation = torch.randperm(prod(data.shape), device=test.device)
    shuffled = radii_of(test.flatten(1)[:, permutation].reshape(test.shape)).median()
    sets = {
        "N(0, I)": latent_radii(torch.randn(1_000, prod(data.shape))),
        "training images": radii_of(data.train.x[:1_000]),
        "test images": radii_of(test),
    }
    run.figure(
        "latent radii",
        histograms(sets, x_label="‖z‖/√D"),
        "Distances of latents from the origin, for images and for N(0, I). Test images with shuffled pixels, the same "
        f"permutation for all, have the median {float(shuffled):.3g}.",
    )

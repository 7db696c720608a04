"""PixelCNN on binary images: exact likelihood, samples and completions (book sec. 13.1, Diehl sec. 5.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim import AdamW
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import Dataset, open_grey_images
from parnassus.flows.pixels.pixel_model import PixelModel, bits_per_pixel, mean_nll, threshold_pixels
from parnassus.flows.pixels.pixelcnn import pixelcnn
from parnassus.report import heatmap, image_grid
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, UnitInterval, at_least, at_most, descend, no_band

covers = ("B13.1-3", "D5.2.4", "D5.2.2")
expected = {
    "test_nats": at_most(18.3, "mean negative log-likelihood of test images, in nats per image"),
    "test_bits_per_pixel": at_most(0.415, "mean negative log-likelihood of test images, in bits per pixel"),
    "train_nats": no_band("mean negative log-likelihood of training images, in nats per image"),
    "independent_nats": no_band(
        "mean negative log-likelihood of test images under independent pixels, in nats per image"
    ),
    "nats_gained": at_least(6.0, "difference between independent_nats and test_nats"),
}
profiles = {
    "smoke": {"steps": 5, "channels": 8, "num_blocks": 1, "num_samples": 10},
    "gpu": {
        "data": "mnist",
        "steps": 20_000,
        "batch_size": 128,
        "channels": 128,
        "num_blocks": 12,
        "learning_rate": 1e-3,
    },
}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # one-channel images: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    steps: Positive[int] = 1_200  # gradient steps
    batch_size: Positive[int] = 64  # images per gradient step
    channels: Positive[int] = 32  # channels of the residual blocks
    num_blocks: Positive[int] = 4  # residual blocks
    dropout: UnitInterval = 0.1  # dropout probability of the inner channels
    learning_rate: Positive[float] = 3e-3  # maximum learning rate of AdamW, reached after 10 % of the steps
    num_samples: Positive[int] = 50  # images to sample

    def model(self, shape: Sequence[int]) -> PixelModel:
        height, width = shape
        return pixelcnn((height, width), channels=self.channels, blocks=self.num_blocks, dropout=self.dropout)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_grey_images(self.data, self.image_size).map(threshold_pixels).to(run.device)
        model = run.build(self.model, shape=data.shape)
        model, optimizer, schedule = run.prepare(
            model,
            partial(AdamW, lr=self.learning_rate, weight_decay=0.01),
            partial(OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1),
        )
        log_interval, subset = max(1, self.steps // 30), data.test.take(500)
        for step, loss in descend(run, model, optimizer, data.train.batches(self.batch_size, self.steps)):
            schedule.step()
            run.log(step, **{"nats per pixel/train": loss})
            if step % log_interval == 0 or step + 1 == self.steps:
                run.record(step, **{"nats per pixel/test": mean_nll(model, subset.x) / subset.x[0].numel()})

        pixels = data.test.x[0].numel()
        test_nats, train_nats = mean_nll(model, data.test.x), mean_nll(model, data.train.x)
        independent = independent_nats(data)
        model.eval()
        self.plot_samples(run, model, data)
        run.note(
            "results",
            f"The negative log-likelihood of test images is {test_nats:.2f} nats per image, "
            f"{bits_per_pixel(test_nats, pixels):.3f} bits per pixel; under independent pixels it is {independent:.2f} "
            f"nats. These values are exact, not bounds. For training images it is {train_nats:.2f} nats.",
        )
        return {
            "test_nats": test_nats,
            "test_bits_per_pixel": bits_per_pixel(test_nats, pixels),
            "train_nats": train_nats,
            "independent_nats": independent,
            "nats_gained": independent - test_nats,
        }

    def plot_samples(self, run: Run, model: PixelModel, data: Dataset) -> None:
        columns = 10
        real, samples = data.test.x[: self.num_samples], model.sample(self.num_samples)
        run.figure("test images", image_grid(to_images(real), columns=columns), "Binary test images.")
        run.figure("samples", image_grid(to_images(samples), columns=columns), "Samples, generated pixel by pixel.")
        half = data.shape[0] // 2
        start = data.test.x[:columns]
        completed = torch.cat([start] + [model.complete(start, kept_rows=half) for _ in range(4)])
        run.figure(
            "completions",
            image_grid(to_images(completed), columns=columns, row_labels=("test image", *["completion"] * 4)),
            f"Four completions of each test image: the first {half} rows are given, the rest is sampled.",
        )
        with torch.no_grad():
            pixel_nll = -model.log_probs(data.test.x[:2_000]).mean(0)
        run.figure(
            "negative log-likelihood by pixel",
            heatmap(pixel_nll, x_label="column", y_label="row"),
            "Mean negative log-likelihood of each pixel over test images, in nats.",
        )


@dataclass(frozen=True)
class Sample:
    temperature: Positive[float] = 1.0  # temperature of the softmax
    num_samples: Positive[int] = 100  # number of images

    def __call__(self, model: PixelModel) -> Tensor:
        return to_images(model.eval().sample(self.num_samples, temperature=self.temperature))


def to_images(x: Tensor) -> Tensor:
    """Pixels 0 and 1 as one-channel images."""
    return x[:, None].float()


def independent_nats(data: Dataset) -> float:
    """Mean NLL of test images under independent Bernoulli pixels with add-one smoothing, in nats per image."""
    probability = (data.train.x.sum(0) + 1) / (len(data.train) + 2)
    distribution = torch.distributions.Bernoulli(probability)
    return -float(distribution.log_prob(data.test.x.float()).sum((1, 2)).mean())

"""PixelRNN, PixelCNN and gated PixelCNN compared: likelihood, training and sampling time (book sec. 13.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import Dataset, open_grey_images
from parnassus.flows.pixels.gated_pixelcnn import gated_pixelcnn
from parnassus.flows.pixels.pixel_model import PixelModel, bits_per_pixel, mean_nll, threshold_pixels
from parnassus.flows.pixels.pixel_rnn import pixel_rnn
from parnassus.flows.pixels.pixelcnn import pixelcnn
from parnassus.layers.dense import count_parameters
from parnassus.optim import AdamW
from parnassus.report import PALETTE, image_grid, subplots
from parnassus.report.style import SEQUENTIAL
from parnassus.setting_types import GreyImageData
from parnassus.train import ModelCollection, Positive, Run, at_least, at_most, descend, no_band
from parnassus.train.timing import measure_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B13.1-2", "B13.1-3")
expected = {
    "pixel_rnn_nats": at_most(21.0, "mean NLL of test images in nats per image, PixelRNN"),
    "pixelcnn_nats": at_most(19.8, "mean NLL of test images in nats per image, PixelCNN"),
    "gated_nats": at_most(18.0, "mean NLL of test images in nats per image, gated PixelCNN"),
    "gated_gain": at_least(0.8, "NLL of PixelCNN minus NLL of gated PixelCNN, in nats per image"),
    "pixel_rnn_step_ms": no_band("milliseconds per gradient step, PixelRNN"),
    "pixelcnn_step_ms": no_band("milliseconds per gradient step, PixelCNN"),
    "gated_step_ms": no_band("milliseconds per gradient step, gated PixelCNN"),
    "pixel_rnn_sample_ms": no_band("milliseconds per sampled image, PixelRNN"),
    "pixelcnn_sample_ms": no_band("milliseconds per sampled image, PixelCNN"),
    "gated_sample_ms": no_band("milliseconds per sampled image, gated PixelCNN"),
}
profiles = {
    "smoke": {"steps": 3, "width": 8, "num_layers": 1, "num_samples": 10},
    "gpu": {"data": "mnist", "steps": 6_000, "batch_size": 128, "width": 96, "num_layers": 8, "learning_rate": 2e-3},
}

TITLES = {"pixel_rnn": "PixelRNN", "pixelcnn": "PixelCNN", "gated": "gated PixelCNN"}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # one-channel images: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    steps: Positive[int] = 350  # gradient steps of each model
    batch_size: Positive[int] = 64  # images per gradient step
    width: Positive[int] = 24  # channels of the gated stacks; twice as many for PixelCNN, four times for the LSTM
    num_layers: Positive[int] = 4  # residual blocks of PixelCNN, gated layers of gated PixelCNN
    learning_rate: Positive[float] = 5e-3  # maximum learning rate of AdamW, reached after 10 % of the steps
    num_samples: Positive[int] = 20  # images to sample from each model

    def model(self, shape: Sequence[int]) -> ModelCollection[PixelModel]:
        height, width = shape
        size = (height, width)
        return ModelCollection(
            {
                "pixel_rnn": pixel_rnn(size, hidden_size=4 * self.width),
                "pixelcnn": pixelcnn(size, channels=2 * self.width, blocks=self.num_layers, first_kernel_size=3),
                "gated": gated_pixelcnn(size, channels=self.width, num_layers=self.num_layers, kernel_size=3),
            }
        )

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_grey_images(self.data, self.image_size).map(threshold_pixels).to(run.device)
        collection, optimizer, schedule = run.prepare(
            run.build(self.model, shape=data.shape),
            partial(AdamW, lr=self.learning_rate, weight_decay=0.01),
            partial(OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1),
        )
        log_interval, subset = max(1, self.steps // 14), data.test.x[:500]
        for step, _ in descend(run, collection, optimizer, data.train.batches(self.batch_size, self.steps)):
            schedule.step()
            if step % log_interval == 0 or step + 1 == self.steps:
                run.record(
                    step,
                    **{f"test nats/{TITLES[name]}": mean_nll(collection.model(name), subset) for name in TITLES},
                )

        models = {name: collection.model(name) for name in TITLES}
        costs = {name: measure_cost(model, data, self.batch_size) for name, model in models.items()}
        nlls = {name: mean_nll(model, data.test.x) for name, model in models.items()}
        plot_samples(run, models, data, self.num_samples)
        run.table(
            "models",
            [summarise(name, models[name], nlls[name], costs[name]) for name in TITLES],
            "Likelihood of test images, and cost of training and sampling.",
        )
        run.note(
            "results",
            "All three models are products of conditionals, so their likelihoods are comparable. In training the "
            "convolutions process all pixels in parallel, the LSTM sequentially. Sampling takes one step per pixel in "
            "all models; a step of the LSTM is the cheapest, since it keeps a state, while the others process the "
            "image again.",
        )
        return {
            **{f"{name}_nats": value for name, value in nlls.items()},
            "gated_gain": nlls["pixelcnn"] - nlls["gated"],
            **{f"{name}_step_ms": 1e3 * cost.step for name, cost in costs.items()},
            **{f"{name}_sample_ms": 1e3 * cost.sample for name, cost in costs.items()},
        }


@dataclass(frozen=True)
class Sample:
    network: Literal["gated", "pixelcnn", "pixel_rnn"] = "gated"  # model to sample from
    temperature: Positive[float] = 1.0  # temperature of the softmax
    num_samples: Positive[int] = 100  # number of images

    def __call__(self, models: ModelCollection[PixelModel]) -> Tensor:
        return models.model(self.network).sample(self.num_samples, temperature=self.temperature)[:, None].float()


class PixelModelCost(NamedTuple):
    """Minimum times in seconds over several repetitions."""

    step: float  # per gradient step
    sample: float  # per sampled image


def measure_cost(model: PixelModel, data: Dataset, batch_size: int) -> PixelModelCost:
    x = data.train.x[:batch_size]

    def step() -> None:
        model.zero_grad(set_to_none=True)
        model.loss(x).backward()

    sample = measure_seconds(lambda: model.sample(batch_size), x.device, repeats=2)
    return PixelModelCost(measure_seconds(step, x.device, repeats=5), sample / batch_size)


def summarise(name: str, model: PixelModel, nll: float, cost: PixelModelCost) -> dict[str, str | float]:
    return {
        "model": TITLES[name],
        "parameters": count_parameters(model),
        "NLL (nats per image)": nll,
        "NLL (bits per pixel)": bits_per_pixel(nll, model.shape[0] * model.shape[1]),
        "time per step (ms)": 1e3 * cost.step,
        "time per sample (ms)": 1e3 * cost.sample,
    }


def plot_samples(run: Run, models: Mapping[str, PixelModel], data: Dataset, count: int) -> None:
    columns = 10
    for name, model in models.items():
        run.figure(
            f"samples, {TITLES[name]}",
            image_grid(model.sample(count)[:, None].float(), columns=columns),
            f"Samples of {TITLES[name]}.",
        )
    start, half = data.test.x[:columns], data.shape[0] // 2
    completed = torch.cat([start, *(model.complete(start, kept_rows=half) for model in models.values())])
    run.figure(
        "completions",
        image_grid(completed[:, None].float(), columns=columns, row_labels=["test image", *TITLES.values()]),
        f"Completions: the first {half} rows are given, the rest is sampled.",
    )
    run.figure(
        "receptive fields",
        plot_receptive_fields({TITLES[name]: input_gradient(model) for name, model in models.items()}),
        "Gradient of the logits of the marked pixel with respect to the pixels before it (logarithmic colour scale; "
        "hatched: 0). Stacks of masked 3 × 3 filters have a blind spot to the upper right and a limited range; the two "
        "stacks of gated PixelCNN and the LSTM have no blind spot.",
    )


def marked_pixel(height: int, width: int) -> tuple[int, int]:
    """The pixel whose receptive field is shown: in the lower left, with pixels to its upper right."""
    return 2 * height // 3, width // 3


def input_gradient(model: PixelModel) -> Tensor:
    """|∂ logits/∂ grey| of the marked pixel for every pixel of a medium grey image."""
    row, column = marked_pixel(*model.shape)
    grey = torch.zeros(1, 1, *model.shape, device=next(model.parameters()).device).requires_grad_()
    logits = model.network(grey)[0, :, row, column]
    (gradient,) = torch.autograd.grad(logits[1] - logits[0], grey)
    return gradient[0, 0].abs().cpu()


def plot_receptive_fields(gradients: Mapping[str, Tensor]) -> "Figure":
    """Gradients on a logarithmic scale; pixels before the marked one with gradient 0 are hatched."""
    from matplotlib.patches import Rectangle

    figure, axes = subplots(1, len(gradients), size=(3.0 * len(gradients), 3.2))
    for ax, (title, gradient) in zip(axes.flat, gradients.items(), strict=True):
        row, column = marked_pixel(*gradient.shape)
        log_gradient = gradient.clamp(min=1e-6).log10()
        ax.imshow(log_gradient.numpy(), cmap=SEQUENTIAL, vmin=-6, vmax=float(log_gradient.max()))
        order = torch.arange(gradient.numel()).reshape(gradient.shape)
        square = partial(Rectangle, width=1, height=1, fill=False, edgecolor=PALETTE[1])
        for r, c in ((order < order[row, column]) & (gradient == 0)).nonzero().tolist():
            ax.add_patch(square((c - 0.5, r - 0.5), hatch="////", linewidth=0))
        ax.add_patch(square((column - 0.5, row - 0.5), linewidth=2))
        ax.set_title(title)
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
    return figure

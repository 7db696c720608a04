"""PixelRNN, PixelCNN and gated PixelCNN on the same digits: nats, time to train and to draw (book sec. 13.1)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import Dataset, open_data
from parnassus.flows.experiments.pixelcnn_on_digits import black_and_white, nats
from parnassus.flows.gated_pixelcnn import gated_pixelcnn
from parnassus.flows.pixel_model import PixelModel, bits_per_pixel
from parnassus.flows.pixel_rnn import pixel_rnn
from parnassus.flows.pixelcnn import pixelcnn
from parnassus.layers.dense import parameter_count
from parnassus.optim import AdamW
from parnassus.report import PALETTE, image_grid, subplots
from parnassus.report.ink import SEQUENTIAL
from parnassus.train import Run, SideBySide, at_least, at_most, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B13.1-2", "B13.1-3")
expected = {
    "pixel_rnn_nats": at_most(21.0, "nats of an unseen image, PixelRNN"),
    "pixelcnn_nats": at_most(19.8, "nats of an unseen image, PixelCNN"),
    "gated_nats": at_most(18.0, "nats of an unseen image, gated PixelCNN"),
    "gated_saves": at_least(0.8, "nats that gates and the sight of all pixels save against PixelCNN"),
    "pixel_rnn_step_ms": reported("milliseconds a gradient step, PixelRNN"),
    "pixelcnn_step_ms": reported("milliseconds a gradient step, PixelCNN"),
    "gated_step_ms": reported("milliseconds a gradient step, gated PixelCNN"),
    "pixel_rnn_draw_ms": reported("milliseconds to draw an image, PixelRNN"),
    "pixelcnn_draw_ms": reported("milliseconds to draw an image, PixelCNN"),
    "gated_draw_ms": reported("milliseconds to draw an image, gated PixelCNN"),
}
profiles = {
    "smoke": {"steps": 3, "width": 8, "depth": 1, "samples": 10},
    "gpu": {"data": "mnist", "steps": 6_000, "batch": 128, "width": 96, "depth": 8, "lr": 2e-3},
}

TITLES = {"pixel_rnn": "PixelRNN", "pixelcnn": "PixelCNN", "gated": "gated PixelCNN"}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # images of one channel: digits, mnist_mini, mnist, fashion_mnist, or a folder of yours
    steps: int = 350  # gradient steps of each model
    batch: int = 64  # images a step
    width: int = 24  # channels of the gated stacks; twice as many of PixelCNN, four times as many units of the LSTM
    depth: int = 4  # residual blocks, gated layers
    lr: float = 5e-3  # AdamW's largest learning rate, reached after a tenth of the steps
    samples: int = 20  # images drawn of each model

    def models(self, shape: tuple[int, int]) -> Mapping[str, PixelModel]:
        return {
            "pixel_rnn": pixel_rnn(shape, width=4 * self.width),
            "pixelcnn": pixelcnn(shape, channels=2 * self.width, blocks=self.depth, first=3),
            "gated": gated_pixelcnn(shape, channels=self.width, layers=self.depth, size=3),
        }

    def __call__(self, run: Run) -> dict[str, float]:
        data = black_and_white(open_data(self.data)).to(run.device)
        height, width = data.shape
        side, optimizer = run.prepare(
            SideBySide[PixelModel](self.models((height, width))), partial(AdamW, lr=self.lr, weight_decay=0.01)
        )
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1)
        run.keep("warming", warming)
        every, few = max(1, self.steps // 14), data.test.x[:500]
        for step, _ in descend(run, side, optimizer, data.train.batches(self.batch, self.steps)):
            warming.step()
            if step % every == 0 or step + 1 == self.steps:
                run.record(step, **{f"test nats/{TITLES[name]}": nats(side.one(name), few) for name in TITLES})

        models = {name: side.one(name) for name in TITLES}
        costs = {name: cost_of(model, data, self.batch) for name, model in models.items()}
        shown = {name: nats(model, data.test.x) for name, model in models.items()}
        show(run, models, data, self.samples)
        run.table("models", [row(name, models[name], shown[name], costs[name]) for name in TITLES], "Unseen images.")
        run.note(
            "what to see",
            "All three are the same product of laws, so their nats compare exactly. In training the convolutions see "
            "all pixels at once, while the LSTM walks through them; in drawing all need a step for every pixel, and "
            "the LSTM's step is the cheapest, for it carries its state on where the others look at the image anew.",
        )
        return {
            **{f"{name}_nats": value for name, value in shown.items()},
            "gated_saves": shown["pixelcnn"] - shown["gated"],
            **{f"{name}_step_ms": 1e3 * cost.step for name, cost in costs.items()},
            **{f"{name}_draw_ms": 1e3 * cost.draw for name, cost in costs.items()},
        }


class Cost(NamedTuple):
    """Seconds, the quickest of a few tries."""

    step: float  # of one gradient step
    draw: float  # to draw a batch, for each of its images


def cost_of(model: PixelModel, data: Dataset, batch: int) -> Cost:
    x = data.train.x[:batch]

    def step() -> None:
        model.zero_grad(set_to_none=True)
        model.loss(x).backward()

    draw = seconds(lambda: model.sample(batch), tries=2, device=x.device)
    return Cost(seconds(step, tries=5, device=x.device), draw / batch)


def seconds(action: Callable[[], object], *, tries: int, device: torch.device) -> float:
    """How long it takes, the quickest of some tries."""
    best = inf
    for _ in range(tries):
        start = perf_counter()
        action()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = min(best, perf_counter() - start)
    return best


def row(name: str, model: PixelModel, found: float, cost: Cost) -> dict[str, str | float]:
    return {
        "model": TITLES[name],
        "weights": parameter_count(model),
        "nats": found,
        "bits a pixel": bits_per_pixel(found, model.shape[0] * model.shape[1]),
        "ms a step": 1e3 * cost.step,
        "ms to draw": 1e3 * cost.draw,
    }


def show(run: Run, models: Mapping[str, PixelModel], data: Dataset, count: int) -> None:
    columns = 10
    for name, model in models.items():
        run.figure(name, image_grid(model.sample(count)[:, None].float(), columns=columns), f"Drawn by {TITLES[name]}.")
    start, half = data.test.x[:columns], data.shape[0] // 2
    completed = torch.cat([start, *(model.complete(start, rows=half) for model in models.values())])
    run.figure(
        "completed",
        image_grid(completed[:, None].float(), columns=columns, row_labels=["real", *TITLES.values()]),
        f"The first {half} rows given, the rest drawn.",
    )
    run.figure(
        "seen",
        draw_sight({TITLES[name]: sight(model) for name, model in models.items()}),
        "What the law of the marked pixel depends on, by its slope in every pixel before it (brighter is more, on a "
        "logarithmic scale; hatched is 0). 3 × 3 filters with a mask leave a blind spot to the upper right, however "
        "many are stacked, beside what is too many rows away for them; two stacks, and the LSTM, have none.",
    )


def marked(height: int, width: int) -> tuple[int, int]:
    """The pixel whose sight is shown: in the lower left, so that there is something to its upper right."""
    return 2 * height // 3, width // 3


def sight(model: PixelModel) -> Tensor:
    """|∂ logits/∂ grey| of the marked pixel, in every pixel of an image of middle grey."""
    row, column = marked(*model.shape)
    grey = torch.zeros(1, 1, *model.shape, device=next(model.parameters()).device).requires_grad_()
    logits = model.network(grey)[0, :, row, column]
    (slope,) = torch.autograd.grad(logits[1] - logits[0], grey)
    return slope[0, 0].abs().cpu()


def draw_sight(slopes: Mapping[str, Tensor]) -> "Figure":
    """Slopes on a logarithmic scale; what comes before the marked pixel and has none is hatched."""
    from matplotlib.patches import Rectangle

    figure, axes = subplots(1, len(slopes), size=(3.0 * len(slopes), 3.2))
    for ax, (title, slope) in zip(axes.flat, slopes.items(), strict=True):
        row, column = marked(*slope.shape)
        seen = slope.clamp(min=1e-6).log10()
        ax.imshow(seen.numpy(), cmap=SEQUENTIAL, vmin=-6, vmax=float(seen.max()))
        order = torch.arange(slope.numel()).reshape(slope.shape)
        square = partial(Rectangle, width=1, height=1, fill=False, edgecolor=PALETTE[1])
        for r, c in ((order < order[row, column]) & (slope == 0)).nonzero().tolist():
            ax.add_patch(square((c - 0.5, r - 0.5), hatch="////", linewidth=0))
        ax.add_patch(square((column - 0.5, row - 0.5), linewidth=2))
        ax.set_title(title)
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
    return figure

"""PixelCNN learns black-and-white digits pixel by pixel, with exact likelihoods (book sec. 13.1, Diehl sec. 5.2)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch.optim import AdamW
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import DataError, Dataset, Split, open_data
from parnassus.flows.pixel_model import PixelModel, bits_per_pixel
from parnassus.flows.pixelcnn import pixelcnn
from parnassus.report import heatmap, image_grid
from parnassus.train import Run, at_least, at_most, descend, reported

covers = ("B13.1-3", "D5.2.4", "D5.2.2")
expected = {
    "test_nats": at_most(18.3, "negative log-likelihood of an unseen picture, in nats"),
    "test_bits_per_pixel": at_most(0.415, "the same in bits a pixel"),
    "train_nats": reported("the same on the training pictures"),
    "independent_nats": reported("the same on unseen pictures, of a model whose pixels are independent"),
    "nats_gained": at_least(6.0, "what looking at the pixels before is worth, in nats a picture"),
}
profiles = {
    "smoke": {"steps": 5, "channels": 8, "blocks": 1, "samples": 10},
    "gpu": {"data": "mnist", "steps": 20_000, "batch": 128, "channels": 128, "blocks": 12, "lr": 1e-3},
}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # pictures of one channel: digits, mnist_mini, mnist, fashion_mnist, or a folder of yours
    steps: int = 1_200  # gradient steps
    batch: int = 64  # pictures a step
    channels: int = 32  # width of the network
    blocks: int = 4  # residual blocks
    dropout: float = 0.1  # share of inner channels dropped in training
    lr: float = 3e-3  # AdamW's largest learning rate, reached after a tenth of the steps
    samples: int = 50  # pictures drawn

    def model(self, shape: Sequence[int]) -> PixelModel:
        height, width = shape
        return pixelcnn((height, width), channels=self.channels, blocks=self.blocks, dropout=self.dropout)

    def __call__(self, run: Run) -> dict[str, float]:
        data = black_and_white(open_data(self.data)).to(run.device)
        model = run.build(self.model, shape=data.shape)
        model, optimizer = run.prepare(model, partial(AdamW, lr=self.lr, weight_decay=0.01))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1)
        run.keep("warming", warming)
        every, few = max(1, self.steps // 30), data.test.take(500)
        for step, loss in descend(run, model, optimizer, data.train.batches(self.batch, self.steps)):
            warming.step()
            run.log(step, **{"nats a pixel/train": loss})
            if step % every == 0 or step + 1 == self.steps:
                run.record(step, **{"nats a pixel/test": nats(model, few.x) / few.x[0].numel()})

        pixels = data.test.x[0].numel()
        test, train = nats(model, data.test.x), nats(model, data.train.x)
        independent = independent_nats(data)
        model.eval()
        self.show(run, model, data)
        run.note(
            "what to see",
            f"An unseen picture costs {test:.2f} nats, {bits_per_pixel(test, pixels):.3f} bits a pixel; if pixels were "
            f"independent it would cost {independent:.2f}. These are exact numbers, no bounds: the model is a product "
            f"of laws that each sum to one. Training pictures cost {train:.2f}.",
        )
        return {
            "test_nats": test,
            "test_bits_per_pixel": bits_per_pixel(test, pixels),
            "train_nats": train,
            "independent_nats": independent,
            "nats_gained": independent - test,
        }

    def show(self, run: Run, model: PixelModel, data: Dataset) -> None:
        columns = 10
        real, drawn = data.test.x[: self.samples], model.sample(self.samples)
        run.figure("real", image_grid(visible(real), columns=columns), "Unseen pictures, in black and white.")
        run.figure("samples", image_grid(visible(drawn), columns=columns), "Drawn pixel by pixel from nothing.")
        half = data.shape[0] // 2
        start = data.test.x[:columns]
        completed = torch.cat([start] + [model.complete(start, rows=half) for _ in range(4)])
        run.figure(
            "completed",
            image_grid(visible(completed), columns=columns, row_labels=("real", *["drawn"] * 4)),
            f"The first {half} rows kept, the rest drawn four times: what the upper half leaves open.",
        )
        with torch.no_grad():
            surprise = -model.log_probs(data.test.x[:2_000]).mean(0)
        run.figure(
            "surprise",
            heatmap(surprise, x_label="column", y_label="row"),
            "Nats spent on each pixel, on average over unseen pictures: most where a stroke may turn.",
        )


@dataclass(frozen=True)
class Sample:
    temperature: float = 1.0  # below 1 the likely becomes likelier
    count: int = 100  # how many

    def __call__(self, model: PixelModel) -> Tensor:
        return visible(model.eval().sample(self.count, temperature=self.temperature))


def black_and_white(data: Dataset) -> Dataset:
    """Pixels above one half become 1, the others 0; the channel goes."""
    if len(data.shape) != 3 or data.shape[0] != 1:
        raise DataError(f"{data.name} must be pictures of one channel; its examples have shape {data.shape}.")
    train, test = (Split((split.x[:, 0] > 0.5).long(), split.y) for split in (data.train, data.test))
    return replace(data, train=train, test=test)


def visible(pictures: Tensor) -> Tensor:
    return pictures[:, None].float()


@torch.no_grad()
def nats(model: PixelModel, pictures: Tensor) -> float:
    """Mean negative log-likelihood of a picture, without dropout."""
    was_training = model.training
    model.eval()
    total = sum(float(model.log_prob(part).sum()) for part in pictures.split(500))
    model.train(was_training)
    return -total / len(pictures)


def independent_nats(data: Dataset) -> float:
    """What unseen pictures cost if every pixel is a coin of its own, with one imagined picture of each kind."""
    share = (data.train.x.sum(0) + 1) / (len(data.train) + 2)
    law = torch.distributions.Bernoulli(share)
    return -float(law.log_prob(data.test.x.float()).sum((1, 2)).mean())

"""A judge of images: a network in whose features samples are compared with the real thing, named on every number."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import interpolate

from parnassus.convolution.augmentation import random_affine
from parnassus.convolution.residual import basic_block, resnet, small_stem
from parnassus.optim.adam import AdamW
from parnassus.optim.schedules import one_cycle_rate
from parnassus.probability.sample_quality import (
    Coverage,
    KernelDistance,
    frechet_distance,
    inception_score,
    kernel_distance,
    precision_recall,
)

PART = 500  # images read at a time


@dataclass(frozen=True, eq=False)
class Features:
    """What one judge sees in a set of images."""

    judge: str
    rows: Float[Tensor, "count features"]
    log_probs: Float[Tensor, "count classes"]


@dataclass(frozen=True)
class SampleQuality:
    """The distances of drawn images to real ones, and whose features they are in: other judges give other numbers."""

    judge: str
    real: int
    drawn: int
    frechet: float
    kernel: KernelDistance
    coverage: Coverage
    score: float

    def table(self) -> list[dict[str, str | float]]:
        """Rows for a report."""
        return [
            {"measure": "Fréchet distance", "value": self.frechet, "best": "0"},
            {"measure": "kernel distance", "value": self.kernel.value, "best": "0"},
            {"measure": "its standard error", "value": self.kernel.error, "best": ""},
            {"measure": "precision", "value": self.coverage.precision, "best": "1"},
            {"measure": "recall", "value": self.coverage.recall, "best": "1"},
            {"measure": "classifier score", "value": self.score, "best": "number of classes"},
        ]

    def __str__(self) -> str:
        return (
            f"Fréchet distance {self.frechet:.3g}, kernel distance {self.kernel.value:.2g} ± {self.kernel.error:.1g}, "
            f"precision {self.coverage.precision:.3f}, recall {self.coverage.recall:.3f}, score {self.score:.2f}; "
            f"{self.drawn:,} drawn and {self.real:,} real images, features of {self.judge}"
        )


@dataclass(frozen=True, eq=False)
class FeatureNetwork:
    """A network cut before its last layer: `body` gives features, `head` the logits of classes."""

    name: str
    body: Callable[[Tensor], Tensor]
    head: Callable[[Tensor], Tensor]

    @classmethod
    def fit(
        cls,
        x: Float[Tensor, "count channels height width"],
        label: Int[Tensor, " count"],
        *,
        name: str,
        steps: int = 400,
        batch: int = 128,
        width: int = 8,
        seed: int = 0,
    ) -> "FeatureNetwork":
        """A small residual network trained here on real images in [0, 1], which learn to be moved a little.

        `name` should say on what, such as "a ResNet trained on digits": numbers from two judges do not compare.
        """
        if len(x) == 0:
            raise ValueError("there are no images to learn from")
        classes = int(label.max()) + 1
        with torch.random.fork_rng(devices=[x.device] if x.is_cuda else []):
            torch.manual_seed(seed)
            stem = small_stem(x.shape[1], width)
            widths = (width, 2 * width, 4 * width)
            model = resnet(stem, classes, block=basic_block, counts=(1, 1, 1), widths=widths, inputs=width).to(x.device)
            optimizer = AdamW(model.parameters(), weight_decay=1e-2)
            for step in range(steps):
                for group in optimizer.param_groups:
                    group["lr"] = one_cycle_rate(step, steps, peak=5e-3)
                some = torch.randint(len(x), (batch,), device=x.device)
                moved = random_affine(x[some], shift=x.shape[-1] / 16, turn=5.0, scale=0.05)
                optimizer.zero_grad()
                model.loss(moved, label[some]).backward()
                optimizer.step()
        layers = list(model.eval().network.children())
        return cls(name, nn.Sequential(*layers[:-1]), layers[-1])

    @torch.no_grad()
    def __call__(self, x: Float[Tensor, "count channels height width"]) -> Features:
        """What this judge sees in images with pixels in [0, 1]."""
        if len(x) == 0:
            raise ValueError("there are no images to judge")
        rows = torch.cat([self.body(part) for part in x.split(PART)])
        return Features(self.name, rows, self.head(rows).log_softmax(1))

    def accuracy(self, x: Float[Tensor, "count channels height width"], label: Int[Tensor, " count"]) -> float:
        """The share of images in which the judge sees the class they should have."""
        return float((self(x).log_probs.argmax(1) == label).double().mean())


def sample_quality(real: Features, drawn: Features) -> SampleQuality:
    """All measures of `parnassus.probability.sample_quality`, in the features of one judge."""
    if real.judge != drawn.judge:
        raise ValueError(f"features of two judges do not compare; got those of {real.judge} and of {drawn.judge}")
    return SampleQuality(
        real.judge,
        len(real.rows),
        len(drawn.rows),
        frechet_distance(real.rows, drawn.rows),
        kernel_distance(real.rows, drawn.rows),
        precision_recall(real.rows, drawn.rows),
        inception_score(drawn.log_probs),
    )


def inception(weights: Path) -> FeatureNetwork:
    """Inception-v3 with torchvision's weights from a file on this machine; nothing is downloaded.

    The numbers of papers come from an older port of the network with other weights: near these, not equal to them.
    """
    if not weights.is_file():
        raise ValueError(
            f"{weights} is no file; Inception needs its weights on this machine, a state_dict of torchvision"
        )
    try:
        from torchvision.models import inception_v3
    except ImportError:
        raise ValueError("Inception needs torchvision, which is not installed here: pip install torchvision") from None
    network = inception_v3(weights=None, init_weights=False)
    network.load_state_dict(torch.load(weights, weights_only=True))
    head, network.fc = network.fc, nn.Identity()
    network.eval()

    def body(x: Tensor) -> Tensor:
        colour = x.expand(-1, 3, -1, -1)
        large = interpolate(colour, (299, 299), mode="bilinear", antialias=True, align_corners=False)
        rows: Tensor = network.to(x.device)(2 * large - 1)
        return rows

    return FeatureNetwork("Inception-v3 (torchvision)", body, lambda rows: head.to(rows.device)(rows))

"""Feature networks: classifiers in whose features samples are compared with real images."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import interpolate

from parnassus.arrays import accepts_arrays
from parnassus.convolution.augmentation import random_affine
from parnassus.convolution.residual import basic_block, resnet, small_stem
from parnassus.errors import check_same_shape
from parnassus.optim.optimisers.adam import AdamW
from parnassus.optim.training.learning_rate_schedules import one_cycle_rate
from parnassus.short_repr import short_repr

CHUNK = 500  # images evaluated at a time


@dataclass(frozen=True, eq=False)
class Features:
    """Features and class probabilities of a set of images, with the name of the network that computed them.

    >>> Features("a network", torch.zeros(5, 64), torch.zeros(5, 10)).rows.shape
    torch.Size([5, 64])
    """

    network: str
    rows: Float[Tensor, "count features"]
    log_probs: Float[Tensor, "count classes"]


@dataclass(frozen=True, eq=False)
class FeatureNetwork:
    """A classifier split before its last layer: `body` computes features, `head` the class logits.

    >>> network = FeatureNetwork("flat pixels", nn.Flatten(), nn.Linear(64, 10))
    >>> network(torch.zeros(5, 1, 8, 8)).rows.shape
    torch.Size([5, 64])
    """

    name: str
    body: Callable[[Tensor], Tensor]
    head: Callable[[Tensor], Tensor]

    __repr__ = short_repr

    @classmethod
    @accepts_arrays
    def fit(
        cls,
        x: Float[Tensor, "count channels height width"],
        labels: Int[Tensor, " count"],
        *,
        name: str,
        steps: int = 400,
        batch_size: int = 128,
        width: int = 8,
        seed: int = 0,
    ) -> "FeatureNetwork":
        """Train a small residual network on real images in [0, 1], augmented by small affine transforms.

        `name` should describe network and data, such as "a ResNet trained on digits": values from different networks
        are not comparable.
        """
        if len(x) == 0:
            raise ValueError("training needs at least one image; got none")
        classes = int(labels.max()) + 1
        with torch.random.fork_rng(devices=[x.device] if x.is_cuda else []):
            torch.manual_seed(seed)
            widths = (width, 2 * width, 4 * width)
            with x.device:
                stem = small_stem(x.shape[1], width)
                model = resnet(stem, classes, block=basic_block, counts=(1, 1, 1), widths=widths, inputs=width).to(x)
            optimizer = AdamW(model.parameters(), weight_decay=1e-2)
            for step in range(steps):
                for group in optimizer.param_groups:
                    group["lr"] = one_cycle_rate(step, steps, peak=5e-3)
                indices = torch.randint(len(x), (batch_size,), device=x.device)
                augmented = random_affine(x[indices], translate=x.shape[-1] / 16, degrees=5.0, scale=0.05)
                optimizer.zero_grad()
                model.loss(augmented, labels[indices]).backward()
                optimizer.step()
        layers = list(model.eval().network.children())
        return cls(name, nn.Sequential(*layers[:-1]), layers[-1])

    @torch.no_grad()
    def __call__(self, x: Float[Tensor, "count channels height width"]) -> Features:
        """Features of images with pixels in [0, 1]."""
        if len(x) == 0:
            raise ValueError("features need at least one image; got none")
        rows = torch.cat([self.body(chunk) for chunk in x.split(CHUNK)])
        return Features(self.name, rows, self.head(rows).log_softmax(1))

    def accuracy(self, x: Float[Tensor, "count channels height width"], labels: Int[Tensor, " count"]) -> float:
        """Fraction of the images that are classified correctly."""
        predicted = self(x).log_probs.argmax(1)
        check_same_shape(predictions=predicted, labels=labels)
        return float((predicted == labels).double().mean())


def inception(weights: Path) -> FeatureNetwork:
    """Inception-v3 with torchvision's weights, loaded from a local file; nothing is downloaded.

    Published FID values use an older port with other weights, so values are close to these but not equal.
    """
    if not weights.is_file():
        raise ValueError(
            f"Inception needs a local file with its weights, a state_dict of torchvision; not a file: {weights}"
        )
    try:
        from torchvision.models import inception_v3
    except ImportError:
        raise ValueError("Inception needs torchvision, which is not installed: pip install torchvision") from None
    network = inception_v3(weights=None, init_weights=False)
    network.load_state_dict(torch.load(weights, weights_only=True))
    head, network.fc = network.fc, nn.Identity()
    network.eval()

    def body(x: Tensor) -> Tensor:
        rgb = x.expand(-1, 3, -1, -1)
        resized = interpolate(rgb, (299, 299), mode="bilinear", antialias=True, align_corners=False)
        rows: Tensor = network.to(x.device)(2 * resized - 1)
        return rows

    return FeatureNetwork("Inception-v3 (torchvision)", body, lambda rows: head.to(rows.device)(rows))

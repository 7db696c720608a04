"""A transformer that knows seven digits learns three others from a few images each, five ways (book sec. 10.1.2)."""

from copy import deepcopy
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from parnassus.attention.vit import VisionTransformer, vit
from parnassus.data import DataError, Dataset, Split, open_data
from parnassus.layers.dense import parameter_count
from parnassus.optim import Adam
from parnassus.report import curves, image_grid
from parnassus.train import Run, SideBySide, at_least, descend, reported
from parnassus.transfer.freezing import Tuned, freeze, thaw
from parnassus.transfer.reprogramming import Reprogrammed

covers = ("B10.1.2-1", "B10.1.2-2", "B10.1.2-3")
expected = {
    "old_classes": at_least(0.9, "accuracy of the trained transformer on the classes it was trained on"),
    "few/new_head": reported("accuracy on the new classes with the fewest images: only a new head is trained"),
    "few/last_block": reported("the same with the last block tuned too"),
    "few/all": reported("the same with everything tuned"),
    "few/reprogrammed": reported("the same with nothing trained but a map of the pixels in front of it"),
    "few/scratch": reported("the same for a transformer that begins anew"),
    "many/new_head": at_least(0.6, "accuracy with the most images: only a new head"),
    "many/last_block": at_least(0.6, "the same with the last block"),
    "many/all": at_least(0.75, "the same with everything"),
    "many/reprogrammed": reported("the same with a map of the pixels only"),
    "many/scratch": reported("the same begun anew"),
}
profiles = {"smoke": {"steps": 4, "tuning": 3, "shots": (1, 4), "width": 16, "depth": 1}}

NAMES = {
    "new_head": "frozen, new head",
    "last_block": "last block tuned",
    "all": "all tuned",
    "reprogrammed": "reprogrammed",
    "scratch": "from scratch",
}


class PixelMap(nn.Module):
    """x̃ = A x + b over all pixels, the identity at first: what reprogramming may learn."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape
        size = int(torch.tensor(shape).prod())
        self.map = nn.Linear(size, size)
        nn.init.eye_(self.map.weight)
        nn.init.zeros_(self.map.bias)

    def forward(self, x: Tensor) -> Tensor:
        mapped: Tensor = self.map(x.flatten(1))
        return mapped.view(-1, *self.shape)


class Body(nn.Module):
    """A vision transformer without its head."""

    def __init__(self, model: VisionTransformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model.pool(self.model.tokens(x))


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # images by class: digits, mnist_mini, mnist, fashion_mnist, or a folder of yours
    known: int = 7  # classes that it learns first, from all their images; the others are new
    steps: int = 300  # gradient steps on these
    tuning: int = 120  # gradient steps on the new classes, in each way and for each number of images
    shots: tuple[int, ...] = (1, 3, 10, 30)  # images of each new class
    batch: int = 64  # images a step
    patch: int = 2  # pixels along the side of a patch
    width: int = 48  # numbers for each patch, in every layer
    depth: int = 3  # blocks
    lr: float = 2e-3  # of Adam
    head_lr: float = 3e-2  # of Adam, for new heads

    def model(self, shape: tuple[int, int, int], classes: int) -> VisionTransformer:
        return vit(shape, classes, patch=self.patch, width=self.width, depth=self.depth)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        classes = len(data.classes)
        if len(data.shape) != 3 or not classes:
            raise DataError(f"{self.data} must hold images by class; its examples have shape {data.shape}.")
        if not classes / 2 <= self.known <= classes - 2:
            raise ValueError(
                f"known must leave two of the {classes} classes, and be at least half of them; got {self.known}"
            )
        old, new = part(data, 0, self.known), part(data, self.known, classes)
        trained = run.build(self.model, shape=data.shape, classes=self.known)
        trained, optimizer = run.prepare(trained, partial(Adam, lr=self.lr))
        for step, loss in descend(run, trained, optimizer, old.train.pairs(self.batch, self.steps)):
            run.log(step, **{"loss/old classes": loss})

        found: dict[str, list[float]] = {name: [] for name in NAMES}
        for count in self.shots:
            ways = self.ways(trained, len(new.classes))
            ways, optimizer = run.prepare(ways, partial(self.optimiser, ways))
            few = first_of_each(new.train, count)
            for step, loss in descend(run, ways, optimizer, few.pairs(min(self.batch, len(few)), self.tuning)):
                run.log(step, **{f"loss/{count} of each": loss / len(NAMES)})
            for name, way in ways.every():
                found[name].append(accuracy(way, new.test))
        self.show(run, new, found, self.ways(trained, len(new.classes)))
        return {
            "old_classes": accuracy(trained, old.test),
            **{f"few/{name}": shares[0] for name, shares in found.items()},
            **{f"many/{name}": shares[-1] for name, shares in found.items()},
        }

    def ways(self, trained: VisionTransformer, classes: int) -> SideBySide[nn.Module]:
        """The five ways to learn the new classes, each from a copy of what was trained."""
        heads = {name: nn.Linear(self.width, classes) for name in ("new_head", "last_block", "all", "scratch")}
        bodies = {name: Body(deepcopy(trained)) for name in heads}
        freeze(bodies["new_head"])
        thaw(nn.ModuleList([freeze(bodies["last_block"]).model.blocks[-1], bodies["last_block"].model.norm]))
        shape = trained.patches.shape
        bodies["scratch"] = Body(self.model((shape[0], shape[1], shape[2]), classes))
        tuned: dict[str, nn.Module] = {name: Tuned(bodies[name], head) for name, head in heads.items()}
        tuned["reprogrammed"] = Reprogrammed(deepcopy(trained), PixelMap(shape), torch.arange(classes))
        return SideBySide({name: tuned[name] for name in NAMES})

    def optimiser(self, ways: SideBySide[nn.Module], _: object) -> Adam:
        """New heads know nothing and may learn quickly; what was trained before moves with care."""
        heads = [weight for name, weight in ways.named_parameters() if ".head." in name and ".model." not in name]
        others = [
            weight for name, weight in ways.named_parameters() if not (".head." in name and ".model." not in name)
        ]
        return Adam([{"params": heads, "lr": self.head_lr}, {"params": others, "lr": self.lr}])

    def show(self, run: Run, new: Dataset, found: dict[str, list[float]], ways: SideBySide[nn.Module]) -> None:
        lines = {NAMES[name]: (list(self.shots), shares) for name, shares in found.items()}
        run.figure(
            "accuracy",
            curves(lines, x_label="images of each new class", y_label="accuracy on unseen images", log_x=True),
            f"{len(new.classes)} new classes from a few images each, after {self.known} others were learned from all "
            "their images. With one image of each the luck of that image decides.",
        )
        rows: list[dict[str, str | float]] = [
            {
                "way": NAMES[name],
                "numbers trained": parameter_count(way),
                **{f"{count} of each": share for count, share in zip(self.shots, found[name], strict=True)},
            }
            for name, way in ways.every()
        ]
        run.table("ways", rows)
        shown = first_of_each(new.train, 4).x
        run.figure("images", image_grid(shown.clamp(0, 1).cpu(), columns=4), "Four images of each new class.")


def part(data: Dataset, first: int, last: int) -> Dataset:
    """The classes from `first` to before `last`, counted from 0."""

    def chosen(split: Split) -> Split:
        assert split.y is not None
        kept = (split.y >= first) & (split.y < last)
        return Split(split.x[kept], split.y[kept] - first)

    return Dataset(data.name, chosen(data.train), chosen(data.test), data.classes[first:last], data.about)


def first_of_each(split: Split, count: int) -> Split:
    """The first `count` images of every class."""
    assert split.y is not None
    places = torch.cat([(split.y == label).nonzero()[:count, 0] for label in split.y.unique()])
    return Split(split.x[places], split.y[places])


@torch.no_grad()
def accuracy(model: nn.Module, split: Split) -> float:
    assert split.y is not None
    return float((model.eval()(split.x).argmax(1) == split.y).double().mean())

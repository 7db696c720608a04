"""A transformer that knows seven digits learns three others from a few images each, five ways (book sec. 10.1.2).

Which few images are drawn matters much, so that every number is a mean over several draws, and the spread is shown.
"""

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Float
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
    "many/all": at_least(0.72, "the same with everything"),
    "many/reprogrammed": reported("the same with a map of the pixels only"),
    "many/scratch": reported("the same begun anew"),
    "gain_of_transfer": at_least(
        0.0, "accuracy with everything tuned less that begun anew, mean over numbers of images"
    ),
}
profiles = {"smoke": {"steps": 4, "tuning": 3, "shots": (1, 4), "draws": 2, "width": 16, "depth": 1}}

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
    tuning: int = 100  # gradient steps on the new classes, in each way and for each number of images
    shots: tuple[int, ...] = (1, 3, 10)  # images of each new class
    draws: int = 4  # draws of these images, over which accuracies are averaged
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

        found = {count: self.tune(run, trained, new, count) for count in self.shots}
        self.show(run, new, found, self.ways(trained, len(new.classes)))
        few, many = found[self.shots[0]], found[self.shots[-1]]
        gains = torch.stack([shares["all"] - shares["scratch"] for shares in found.values()])
        return {
            "old_classes": accuracy(trained, old.test),
            **{f"few/{name}": float(shares.mean()) for name, shares in few.items()},
            **{f"many/{name}": float(shares.mean()) for name, shares in many.items()},
            "gain_of_transfer": float(gains.mean()),
        }

    def tune(self, run: Run, trained: VisionTransformer, new: Dataset, count: int) -> dict[str, Float[Tensor, " draw"]]:
        """Accuracy on unseen images of each way, learned from `count` images of each new class, for every draw."""
        found: dict[str, list[float]] = {name: [] for name in NAMES}
        for draw in range(self.draws):
            ways = self.ways(trained, len(new.classes))
            ways, optimizer = run.prepare(ways, partial(self.optimiser, ways))
            few = drawn(new.train, count, seed=run.seed + 1_000 * draw)
            for step, loss in descend(run, ways, optimizer, few.pairs(min(self.batch, len(few)), self.tuning)):
                if draw == 0:
                    run.log(step, **{f"loss/{count} of each": loss / len(NAMES)})
            for name, way in ways.every():
                found[name].append(accuracy(way, new.test))
        return {name: torch.tensor(shares) for name, shares in found.items()}

    def ways(self, trained: VisionTransformer, classes: int) -> SideBySide[nn.Module]:
        """The five ways to learn the new classes, each from a copy of what was trained."""
        heads = {name: blank(nn.Linear(self.width, classes)) for name in ("new_head", "last_block", "all", "scratch")}
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

    def show(
        self,
        run: Run,
        new: Dataset,
        found: dict[int, dict[str, Float[Tensor, " draw"]]],
        ways: SideBySide[nn.Module],
    ) -> None:
        shares = {name: torch.stack([found[count][name] for count in self.shots]) for name in NAMES}
        mean = {NAMES[name]: each.mean(1) for name, each in shares.items()}
        error = {NAMES[name]: each.std(1, correction=0) / self.draws**0.5 for name, each in shares.items()}
        run.figure(
            "accuracy",
            curves(
                {name: (list(self.shots), line) for name, line in mean.items()},
                x_label="images of each new class",
                y_label="accuracy on unseen images",
                log_x=True,
                bands={name: (mean[name] - error[name], mean[name] + error[name]) for name in mean},
            ),
            f"{len(new.classes)} new classes from a few images each, after {self.known} others were learned from all "
            f"their images: means over {self.draws} draws of the few, shaded by the error of the mean.",
        )
        rows: list[dict[str, str | float]] = [
            {
                "way": NAMES[name],
                "numbers trained": parameter_count(way),
                **{
                    f"{count} of each": f"{float(found[count][name].mean()):.2f} "
                    f"({float(found[count][name].min()):.2f} to {float(found[count][name].max()):.2f})"
                    for count in self.shots
                },
            }
            for name, way in ways.every()
        ]
        run.table("ways", rows, f"Accuracy on unseen images: mean (least to most) over {self.draws} draws.")
        shown = drawn(new.train, 4, seed=run.seed).x
        run.figure("images", image_grid(shown.clamp(0, 1).cpu(), columns=4), "Four images of each new class.")


def part(data: Dataset, first: int, last: int) -> Dataset:
    """The classes from `first` to before `last`, counted from 0."""

    def chosen(split: Split) -> Split:
        assert split.y is not None
        kept = (split.y >= first) & (split.y < last)
        return Split(split.x[kept], split.y[kept] - first)

    return replace(data, train=chosen(data.train), test=chosen(data.test), classes=data.classes[first:last])


def drawn(split: Split, count: int, *, seed: int) -> Split:
    """`count` random images of every class."""
    assert split.y is not None
    order = torch.randperm(len(split), generator=torch.Generator().manual_seed(seed)).to(split.y.device)
    places = torch.cat([order[split.y[order] == label][:count] for label in split.y.unique()])
    return Split(split.x[places], split.y[places])


def blank(head: nn.Linear) -> nn.Linear:
    """All weights zero: what a few images cannot correct of a random start would stay as noise."""
    for parameter in head.parameters():
        nn.init.zeros_(parameter)
    return head


@torch.no_grad()
def accuracy(model: nn.Module, split: Split) -> float:
    assert split.y is not None
    return float((model.eval()(split.x).argmax(1) == split.y).double().mean())

"""Few-shot transfer of a vision transformer by freezing, fine-tuning and reprogramming (book sec. 10.1.2).

Results depend strongly on the sampled images, so accuracies are means over several draws, with their range.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.attention.models.vit import VisionTransformer, vit
from parnassus.data import Dataset, Split, open_labelled_images
from parnassus.layers.commands.image_classifiers import PredictImages as Predict  # noqa: F401 - declares `parnassus predict`
from parnassus.layers.dense import count_parameters
from parnassus.optim import Adam
from parnassus.report import curves, image_grid
from parnassus.setting_types import GreyImageData
from parnassus.train import ModelCollection, Positive, Run, at_least, descend, no_band
from parnassus.transfer.freezing import TransferClassifier, freeze, unfreeze
from parnassus.transfer.reprogramming import ReprogrammedModel

covers = ("B10.1.2-1", "B10.1.2-2", "B10.1.2-3")
expected = {
    "old_classes": at_least(0.9, "test accuracy of the pretrained transformer on its classes"),
    "few/new_head": no_band("test accuracy on the new classes with the fewest images: frozen body, new head"),
    "few/last_block": no_band("test accuracy on the new classes with the fewest images: last block fine-tuned"),
    "few/all": no_band("test accuracy on the new classes with the fewest images: all layers fine-tuned"),
    "few/reprogrammed": no_band(
        "test accuracy on the new classes with the fewest images: reprogramming by a linear map of the pixels"
    ),
    "few/scratch": no_band("test accuracy on the new classes with the fewest images: trained from scratch"),
    "many/new_head": at_least(0.6, "test accuracy on the new classes with the most images: frozen body, new head"),
    "many/last_block": at_least(0.6, "test accuracy on the new classes with the most images: last block fine-tuned"),
    "many/all": at_least(0.72, "test accuracy on the new classes with the most images: all layers fine-tuned"),
    "many/reprogrammed": no_band(
        "test accuracy on the new classes with the most images: reprogramming by a linear map of the pixels"
    ),
    "many/scratch": no_band("test accuracy on the new classes with the most images: trained from scratch"),
    "gain_of_transfer": at_least(
        0.0, "accuracy of fine-tuning all layers minus training from scratch, mean over numbers of images"
    ),
}
profiles = {"smoke": {"steps": 4, "finetune_steps": 3, "shots": (1, 4), "num_draws": 2, "width": 16, "num_layers": 1}}

NAMES = {
    "new_head": "frozen body, new head",
    "last_block": "last block fine-tuned",
    "all": "all layers fine-tuned",
    "reprogrammed": "reprogrammed",
    "scratch": "from scratch",
}


class PixelMap(nn.Module):
    """x̃ = A x + b over all pixels, initially the identity."""

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
    data: GreyImageData = "digits"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    num_known_classes: Positive[int] = 7  # classes for pretraining; the others are new
    steps: Positive[int] = 300  # gradient steps of pretraining
    finetune_steps: Positive[int] = 100  # gradient steps on the new classes
    shots: tuple[Positive[int], ...] = (1, 3, 10)  # training images per new class
    num_draws: Positive[int] = 4  # random draws of these images
    batch_size: Positive[int] = 64  # images per gradient step
    patch_size: Positive[int] = 2  # side of a patch in pixels
    width: Positive[int] = 48  # channels of the transformer
    num_layers: Positive[int] = 3  # transformer blocks
    learning_rate: Positive[float] = 2e-3  # learning rate of Adam
    head_learning_rate: Positive[float] = 3e-2  # learning rate of Adam for new heads

    def model(self, shape: Sequence[int], classes: Sequence[str]) -> VisionTransformer:
        """The transformer for the known classes."""
        return self.build_transformer(shape, len(classes))

    def build_transformer(self, shape: Sequence[int], classes: int) -> VisionTransformer:
        return vit(shape, classes, patch=self.patch_size, width=self.width, depth=self.num_layers)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_labelled_images(self.data, self.image_size).to(run.device)
        classes = len(data.classes)
        if not classes / 2 <= self.num_known_classes <= classes - 2:
            raise ValueError(
                f"num_known_classes must be at least half of the {classes} classes and leave two; "
                f"got num_known_classes={self.num_known_classes}"
            )
        old, new = (
            select_classes(data, 0, self.num_known_classes),
            select_classes(data, self.num_known_classes, classes),
        )
        trained = run.build(self.model, shape=old.shape, classes=old.classes)
        trained, optimizer = run.prepare(trained, partial(Adam, lr=self.learning_rate))
        for step, loss in descend(run, trained, optimizer, old.train.pairs(self.batch_size, self.steps)):
            run.log(step, **{"loss/pretraining": loss})

        accuracies = {count: self.tune(run, trained, new, count) for count in self.shots}
        self.plot_results(run, new, accuracies, self.build_models(trained, len(new.classes)))
        few, many = accuracies[self.shots[0]], accuracies[self.shots[-1]]
        gains = torch.stack([values["all"] - values["scratch"] for values in accuracies.values()])
        return {
            "old_classes": accuracy(trained, old.test),
            **{f"few/{name}": float(values.mean()) for name, values in few.items()},
            **{f"many/{name}": float(values.mean()) for name, values in many.items()},
            "gain_of_transfer": float(gains.mean()),
        }

    def tune(self, run: Run, trained: VisionTransformer, new: Dataset, count: int) -> dict[str, Float[Tensor, " draw"]]:
        """Test accuracy of each method with `count` training images per new class, for every draw."""
        accuracies: dict[str, list[float]] = {name: [] for name in NAMES}
        for draw in range(self.num_draws):
            models = self.build_models(trained, len(new.classes))
            models, optimizer = run.prepare(models, partial(self.build_optimizer, models))
            few = sample_images(new.train, count, seed=run.seed + 1_000 * draw)
            for step, loss in descend(
                run, models, optimizer, few.pairs(min(self.batch_size, len(few)), self.finetune_steps)
            ):
                if draw == 0:
                    run.log(step, **{f"loss/{count} per class": loss / len(NAMES)})
            for name, model in models.named_models():
                accuracies[name].append(accuracy(model, new.test))
        return {name: torch.tensor(values) for name, values in accuracies.items()}

    def build_models(self, trained: VisionTransformer, classes: int) -> ModelCollection[nn.Module]:
        """A model for each of the five methods, from copies of the pretrained one."""
        heads = {
            name: zero_weights(nn.Linear(self.width, classes)) for name in ("new_head", "last_block", "all", "scratch")
        }
        bodies = {name: Body(deepcopy(trained)) for name in heads}
        freeze(bodies["new_head"])
        unfreeze(nn.ModuleList([freeze(bodies["last_block"]).model.blocks[-1], bodies["last_block"].model.norm]))
        shape = trained.patches.shape
        bodies["scratch"] = Body(self.build_transformer(shape, classes))
        tuned: dict[str, nn.Module] = {name: TransferClassifier(bodies[name], head) for name, head in heads.items()}
        tuned["reprogrammed"] = ReprogrammedModel(deepcopy(trained), PixelMap(shape), torch.arange(classes))
        return ModelCollection({name: tuned[name] for name in NAMES})

    def build_optimizer(self, models: ModelCollection[nn.Module], _: object) -> Adam:
        """Adam with a larger learning rate for new heads than for pretrained weights."""
        heads = [weight for name, weight in models.named_parameters() if ".head." in name and ".model." not in name]
        others = [
            weight for name, weight in models.named_parameters() if not (".head." in name and ".model." not in name)
        ]
        return Adam([{"params": heads, "lr": self.head_learning_rate}, {"params": others, "lr": self.learning_rate}])

    def plot_results(
        self,
        run: Run,
        new: Dataset,
        accuracies: dict[int, dict[str, Float[Tensor, " draw"]]],
        models: ModelCollection[nn.Module],
    ) -> None:
        values = {name: torch.stack([accuracies[count][name] for count in self.shots]) for name in NAMES}
        mean = {NAMES[name]: each.mean(1) for name, each in values.items()}
        standard_error = {NAMES[name]: each.std(1, correction=0) / self.num_draws**0.5 for name, each in values.items()}
        run.figure(
            "accuracy",
            curves(
                {name: (list(self.shots), line) for name, line in mean.items()},
                x_label="number of training images per new class",
                y_label="test accuracy",
                log_x=True,
                bands={name: (mean[name] - standard_error[name], mean[name] + standard_error[name]) for name in mean},
            ),
            f"Test accuracy on {len(new.classes)} new classes after pretraining on {self.num_known_classes} others: "
            f"means over {self.num_draws} draws of the training images; bands: standard error of the mean.",
        )
        rows: list[dict[str, str | float]] = [
            {
                "method": NAMES[name],
                "trained parameters": count_parameters(model),
                **{
                    f"{count} per class": f"{float(accuracies[count][name].mean()):.2f} "
                    f"({float(accuracies[count][name].min()):.2f} to {float(accuracies[count][name].max()):.2f})"
                    for count in self.shots
                },
            }
            for name, model in models.named_models()
        ]
        run.table("methods", rows, f"Test accuracy: mean (minimum to maximum) over {self.num_draws} draws.")
        images = sample_images(new.train, 4, seed=run.seed).x
        run.figure(
            "images of the new classes",
            image_grid(images.clamp(0, 1).cpu(), columns=4),
            "Four images of each new class.",
        )


def select_classes(data: Dataset, first: int, last: int) -> Dataset:
    """The classes from `first` up to, not including, `last`."""

    def select(split: Split) -> Split:
        assert split.y is not None
        selected = (split.y >= first) & (split.y < last)
        return Split(split.x[selected], split.y[selected] - first)

    return replace(data, train=select(data.train), test=select(data.test), classes=data.classes[first:last])


def sample_images(split: Split, count: int, *, seed: int) -> Split:
    """`count` random images of every class."""
    assert split.y is not None
    order = torch.randperm(len(split), generator=torch.Generator().manual_seed(seed)).to(split.y.device)
    indices = torch.cat([order[split.y[order] == label][:count] for label in split.y.unique()])
    return Split(split.x[indices], split.y[indices])


def zero_weights(head: nn.Linear) -> nn.Linear:
    """Set all weights to zero: few images would not remove the noise of a random initialisation."""
    for parameter in head.parameters():
        nn.init.zeros_(parameter)
    return head


@torch.no_grad()
def accuracy(model: nn.Module, split: Split) -> float:
    assert split.y is not None
    return float((model.eval()(split.x).argmax(1) == split.y).double().mean())

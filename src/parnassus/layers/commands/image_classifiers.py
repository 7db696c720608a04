"""`parnassus predict` and `parnassus evaluate` for runs that trained classifiers of images.

The experiment builds its model with `run.build(self.model, shape=data.shape, classes=data.classes)`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import ClassVar, NamedTuple, Protocol, cast

import torch
from torch import Tensor, nn

from parnassus.data import DataError, Split, open_data
from parnassus.data.files.image_folder import read_image
from parnassus.layers.classifier import Evaluation, check_labels, evaluate
from parnassus.setting_types import ImageData, Positive
from parnassus.train.sample_predict_evaluate import Input, ResultRow
from parnassus.train.trained import TrainedRun

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")


class HasData(Protocol):
    """An experiment with the name of its data set."""

    @property
    def data(self) -> str: ...


class ImageFormat(NamedTuple):
    """Shape and classes of the images that a run was trained on."""

    shape: tuple[int, int, int]
    classes: tuple[str, ...]

    @classmethod
    def of_run(cls, trained: TrainedRun) -> "ImageFormat":
        facts = cast("dict[str, list[int] | list[str]]", trained.folder.read_json("model.json"))
        shape = cast("list[int]", facts["shape"])
        if len(shape) != 3:
            raise DataError(
                f"{trained.folder.path.name} was trained on examples of shape {tuple(shape)}, not on images"
            )
        return cls((shape[0], shape[1], shape[2]), tuple(cast("list[str]", facts["classes"])))


def predict_images(
    logits: Callable[[Tensor], Tensor], trained: TrainedRun, inputs: Sequence[Input], *, top_k: int
) -> Iterator[ResultRow]:
    """The `top_k` most probable classes of each image, resized to the size of the training images.

    `logits` maps a batch of images to the logits of their classes.
    """
    (channels, height, width), classes = ImageFormat.of_run(trained)
    for each in inputs:
        image = read_image(each.path or BytesIO(each.read_bytes()), size=(height, width), channels=channels)
        with torch.no_grad():
            best = logits(image[None])[0].softmax(0).topk(min(top_k, len(classes)))
        for index, probability in zip(best.indices.tolist(), best.values.tolist(), strict=True):
            yield {"image": each.name, "class": classes[index], "probability": probability}


def evaluate_split(model: nn.Module, split: Split) -> Evaluation:
    """Accuracy and cross-entropy of a classifier on labelled examples."""
    assert split.y is not None
    return evaluate(model, split.x, split.y)


def evaluate_images(models: Mapping[str, nn.Module], trained: TrainedRun, data: str | None) -> ResultRow:
    """Accuracy and cross-entropy of models of one run on test images, by default those of its own data.

    The keys of `models` are prefixes of the columns.
    """
    shape, classes = ImageFormat.of_run(trained)
    name = data or cast("HasData", trained.experiment).data
    found = open_data(name, size=(shape[1], shape[2]))
    if tuple(found.shape) != shape or tuple(found.classes) != classes:
        raise DataError(
            f"{name} must have the shape and the classes of the training data; got shape={tuple(found.shape)} and "
            f"classes {', '.join(found.classes)}, trained on shape={shape} and classes {', '.join(classes)}"
        )
    labels = check_labels(found.test.y, len(classes))
    row: dict[str, str | float] = {"run": trained.folder.path.name, "data": name, "images": len(labels)}
    for prefix, model in models.items():
        evaluation = evaluate(model, found.test.x, labels)
        row |= {f"{prefix}accuracy": evaluation.accuracy, f"{prefix}loss": evaluation.loss}
    return row


@dataclass(frozen=True)
class PredictImages:
    suffixes: ClassVar[tuple[str, ...]] = IMAGE_SUFFIXES
    top_k: Positive[int] = 3  # classes reported for each image

    def __call__(self, trained: TrainedRun, inputs: Sequence[Input]) -> Iterator[ResultRow]:
        return predict_images(trained.model, trained, inputs, top_k=self.top_k)


@dataclass(frozen=True)
class EvaluateImages:
    data: ImageData | None = None  # labelled images of the same classes; by default the run's own test images

    def __call__(self, runs: Sequence[TrainedRun]) -> list[ResultRow]:
        return [evaluate_images({"": trained.model}, trained, self.data) for trained in runs]

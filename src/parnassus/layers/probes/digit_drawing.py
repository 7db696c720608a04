"""Interactive classification of a drawn digit, with hidden activations (book sec. 1.4)."""

from math import ceil, sqrt
from typing import Annotated, Protocol, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad

from parnassus.atlas.decorators import probe
from parnassus.data import Dataset, open_data
from parnassus.layers.classifier import Classifier, check_labels
from parnassus.layers.dense import Dense, layer_outputs
from parnassus.layers.image_alignment import ImageAlignment
from parnassus.losses import softmax
from parnassus.train.trained import TrainedRun
from parnassus.widgets import Answer, Bars, DrawingPad, Images, IntSlider

NUM_TOP_IMAGES = 5  # training images shown for a hidden unit
NUM_CANDIDATES = 10_000  # training images they are selected from


class _Settings(Protocol):
    data: str
    image_size: int | None


def _data(trained: TrainedRun) -> Dataset:
    settings = cast("_Settings", trained.experiment)
    data = open_data(settings.data, size=settings.image_size)
    if len(data.shape) != 3 or data.shape[0] != 1:
        raise ValueError(
            f"the run must use greyscale images; got examples of shape {data.shape} in {data.name} "
            "(run classifier_on_digits with --data digits or mnist_mini)"
        )
    return data


def _image_size(trained: TrainedRun) -> tuple[int, int]:
    _, height, width = trained.compute_once(_data).shape
    return height, width


def _examples(trained: TrainedRun) -> list[tuple[str, Tensor]]:
    """The first test image of each class."""
    data = trained.compute_once(_data)
    labels = check_labels(data.test.y, len(data.classes))
    first = [(name, (labels == index).nonzero()) for index, name in enumerate(data.classes)]
    return [(name, data.test.x[int(rows[0]), 0]) for name, rows in first if len(rows)]


def _alignment(trained: TrainedRun) -> ImageAlignment:
    return ImageAlignment.fit(trained.compute_once(_data).train.x)


def _network(trained: TrainedRun) -> nn.Sequential:
    return cast("nn.Sequential", cast("Classifier", trained.model).network)


def _hidden_activations(trained: TrainedRun, images: Tensor) -> list[Tensor]:
    """The activations of each hidden layer: all layers but the initial flattening and the logits."""
    return layer_outputs(trained.compute_once(_network), images)[1:-1]


def _num_units(trained: TrainedRun) -> int:
    """The number of hidden units in all layers."""
    return sum(h.shape[1] for h in _hidden_activations(trained, trained.compute_once(_data).test.x[:1]))


def _top_images(trained: TrainedRun) -> tuple[Tensor, Tensor]:
    """Largest activations (rank, unit) of each hidden unit, and the indices of those training images."""
    images = trained.compute_once(_data).train.x[:NUM_CANDIDATES]
    activations = torch.cat([torch.cat(_hidden_activations(trained, part), 1) for part in images.split(1_000)])
    top = activations.topk(min(NUM_TOP_IMAGES, len(images)), dim=0)
    return top.values, top.indices


def _max_activation(trained: TrainedRun) -> Tensor:
    """The activation shown as white: each unit's maximum, but at least a tenth of the maximum over all units."""
    largest = trained.compute_once(_top_images)[0][0]
    return largest.clamp(min=max(float(largest.max()) / 10, 1e-9))


@probe("classifier_on_digits")
@torch.no_grad()
def draw_a_digit(
    trained: TrainedRun,
    drawing: Annotated[Float[Tensor, "height width"], DrawingPad("drawing", _image_size, _examples)],
    unit: Annotated[int, IntSlider("hidden unit (0: the one with the largest relative activation)", 0, _num_units)] = 0,
) -> list[Answer]:
    """Draw a digit and see class probabilities and hidden activations (book sec. 1.4).

    Start from a test image and change it into another digit: close the gap of a 3, add a bar to a 1. Draw something
    that is not a digit: the network still predicts a class, often with high confidence.
    """
    image = trained.compute_once(_alignment).transform(drawing[None, None])  # size and position of the training images
    hidden = _hidden_activations(trained, image)
    activations = torch.cat(hidden, 1)[0]
    brightness = (activations / trained.compute_once(_max_activation)).clamp(0, 1)
    selected = unit - 1 if unit else int(brightness.argmax())
    return [
        _class_probabilities(trained, image),
        *_activation_images(brightness, hidden),
        _unit_images(trained, image, activations, selected),
    ]


def _class_probabilities(trained: TrainedRun, image: Tensor) -> Bars:
    probabilities = softmax(trained.model(image))[0]
    predicted, names = int(probabilities.argmax()), trained.compute_once(_data).classes
    about = f"Predicted class: {names[predicted]}, with probability {float(probabilities[predicted]):.0%}."
    return Bars("Class probabilities", names, probabilities, marked=predicted, about=about)


def _activation_images(brightness: Tensor, hidden: list[Tensor]) -> list[Images]:
    """One image for each hidden layer, one pixel for each unit."""
    images = []
    for number, units in enumerate(brightness.split([h.shape[1] for h in hidden]), 1):
        columns = ceil(sqrt(2 * len(units)))
        grid = pad(units, (0, -len(units) % columns)).view(1, 1, -1, columns)
        title = "Hidden activations" if len(hidden) == 1 else f"Activations of hidden layer {number}"
        about = "One pixel per unit, row by row: black is 0, white the unit's maximum over the training images."
        images.append(Images(title, grid, [f"{int((units > 0).sum())} of {len(units)} units are active"], about=about))
    return images


def _unit_images(trained: TrainedRun, image: Tensor, activations: Tensor, selected: int) -> Images:
    """The input, the weights of one hidden unit, and the training images with its largest activations."""
    data, (values, rows) = trained.compute_once(_data), trained.compute_once(_top_images)
    first = cast("Dense", trained.compute_once(_network)[1]).weight
    images, captions = [image], [f"drawing: {float(activations[selected]):.2f}"]
    if selected < first.shape[1]:  # units of later layers have no weights on pixels
        weights = first[:, selected].view_as(image)
        images.append(0.5 + 0.5 * weights / weights.abs().max().clamp(min=1e-9))
        captions.append("weights")
    candidates = data.train.take(NUM_CANDIDATES)
    images.append(candidates.x[rows[:, selected]])
    labels = check_labels(candidates.y, len(data.classes))[rows[:, selected]].tolist()
    top = zip(labels, values[:, selected].tolist(), strict=True)
    captions += [f"{data.classes[label]}: {value:.2f}" for label, value in top]
    about = (
        f"Unit {selected + 1} of {len(activations)}{_output_weights(trained, selected, len(activations))}. Captions "
        "are its activations; the last images are the training images with the largest ones. White weights are "
        "positive, black negative, grey 0."
    )
    return Images("One hidden unit", torch.cat(images), captions, about=about)


def _output_weights(trained: TrainedRun, selected: int, units: int) -> str:
    """The classes with the largest and the smallest output weight of a unit of the last hidden layer."""
    last = cast("Dense", trained.compute_once(_network)[-1]).weight
    within = selected - (units - last.shape[0])
    if within < 0:
        return ""
    names = trained.compute_once(_data).classes
    weights = last[within]
    return f" (largest output weight: class {names[int(weights.argmax())]}, smallest: {names[int(weights.argmin())]})"

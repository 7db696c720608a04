"""A network that reads your drawing (book sec. 1.4)."""

from math import ceil, sqrt
from typing import Annotated, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad

from parnassus.atlas.marks import probe
from parnassus.data import Dataset, open_data
from parnassus.layers.classifier import Classifier, require_labels
from parnassus.layers.dense import Dense, layer_outputs
from parnassus.layers.experiments.classifier_on_digits import Experiment
from parnassus.layers.placement import Placement
from parnassus.losses import softmax
from parnassus.touch import Answer, Bars, Drawing, Images, Whole
from parnassus.train.trained import Trained

FAVOURITES = 5  # training images that show what a unit likes
LOOKED_AT = 10_000  # training images they are chosen from


def _data(trained: Trained) -> Dataset:
    data = open_data(cast("Experiment", trained.experiment).data)
    if len(data.shape) != 3 or data.shape[0] != 1:
        raise ValueError(
            f"drawing needs a run on grey pictures; the examples of {data.name} have shape {data.shape}: "
            "run classifier_on_digits with --data digits or mnist_mini"
        )
    return data


def _paper(trained: Trained) -> tuple[int, int]:
    _, height, width = trained.once(_data).shape
    return height, width


def _examples(trained: Trained) -> list[tuple[str, Tensor]]:
    """The first unseen image of each class that has one."""
    data = trained.once(_data)
    labels = require_labels(data.test.y, len(data.classes))
    first = [(name, (labels == kind).nonzero()) for kind, name in enumerate(data.classes)]
    return [(name, data.test.x[int(rows[0]), 0]) for name, rows in first if len(rows)]


def _placement(trained: Trained) -> Placement:
    return Placement.fit(trained.once(_data).train.x)


def _network(trained: Trained) -> nn.Sequential:
    return cast("nn.Sequential", cast("Classifier", trained.model).network)


def _hidden(trained: Trained, images: Tensor) -> list[Tensor]:
    """The activations of each hidden layer: all but the flattening at the beginning and the logits at the end."""
    return layer_outputs(trained.once(_network), images)[1:-1]


def _units(trained: Trained) -> int:
    """How many hidden units there are, all layers together."""
    return sum(h.shape[1] for h in _hidden(trained, trained.once(_data).test.x[:1]))


def _favourites(trained: Trained) -> tuple[Tensor, Tensor]:
    """What excites each hidden unit most: activations (rank, unit) and the rows of those training images."""
    images = trained.once(_data).train.x[:LOOKED_AT]
    activations = torch.cat([torch.cat(_hidden(trained, part), 1) for part in images.split(1_000)])
    best = activations.topk(min(FAVOURITES, len(images)), dim=0)
    return best.values, best.indices


def _most(trained: Trained) -> Tensor:
    """The activation that shows as white: a unit's own largest, and no less than a tenth of anybody's."""
    largest = trained.once(_favourites)[0][0]
    return largest.clamp(min=max(float(largest.max()) / 10, 1e-9))


@probe("classifier_on_digits")
@torch.no_grad()
def draw_a_digit(
    trained: Trained,
    drawing: Annotated[Float[Tensor, "height width"], Drawing("your drawing", _paper, _examples)],
    unit: Annotated[int, Whole("hidden unit to look at (0: the one your drawing excites most)", 0, _units)] = 0,
) -> list[Answer]:
    """Draw, and see what the network takes it for and which hidden units light up (book sec. 1.4).

    Begin with an image the network has never seen, then turn it into another: close the gap of a 3, put a bar through
    a 1. Watch how sure the network stays when the drawing means nothing at all: it must name a class, whatever it sees.
    """
    image = trained.once(_placement).apply(drawing[None, None])  # as large and as central as the training images
    hidden = _hidden(trained, image)
    excited = torch.cat(hidden, 1)[0]
    light = (excited / trained.once(_most)).clamp(0, 1)
    chosen = unit - 1 if unit else int(light.argmax())
    return [_named(trained, image), *_lights(light, hidden), _liking(trained, image, excited, chosen)]


def _named(trained: Trained, image: Tensor) -> Bars:
    shares = softmax(trained.model(image))[0]
    winner, names = int(shares.argmax()), trained.once(_data).classes
    about = f"The network says {names[winner]}, with {100 * float(shares[winner]):.0f} %."
    return Bars("What the network takes it for", names, shares, marked=winner, about=about)


def _lights(light: Tensor, hidden: list[Tensor]) -> list[Images]:
    """Each hidden layer as a picture, a pixel a unit."""
    pictures = []
    for number, share in enumerate(light.split([h.shape[1] for h in hidden]), 1):
        columns = ceil(sqrt(2 * len(share)))
        grid = pad(share, (0, -len(share) % columns)).view(1, 1, -1, columns)
        title = "The hidden units" if len(hidden) == 1 else f"The units of hidden layer {number}"
        about = "A pixel is a unit, in reading order: black is silent, white as excited as by the image it likes best."
        pictures.append(Images(title, grid, [f"{int((share > 0).sum())} of {len(share)} units are on"], about=about))
    return pictures


def _liking(trained: Trained, image: Tensor, excited: Tensor, chosen: int) -> Images:
    """What one hidden unit makes of the drawing, its weights, and the training images that excite it most."""
    data, (values, rows) = trained.once(_data), trained.once(_favourites)
    first = cast("Dense", trained.once(_network)[1]).weight
    pictures, captions = [image], [f"your drawing: {float(excited[chosen]):.2f}"]
    if chosen < first.shape[1]:  # a unit of a later layer has no weights on pixels
        weights = first[:, chosen].view_as(image)
        pictures.append(0.5 + 0.5 * weights / weights.abs().max().clamp(min=1e-9))
        captions.append("its weights")
    liked = data.train.take(LOOKED_AT)
    pictures.append(liked.x[rows[:, chosen]])
    kinds = [data.classes[kind] for kind in require_labels(liked.y, len(data.classes))[rows[:, chosen]].tolist()]
    captions += [f"{kind}: {value:.2f}" for kind, value in zip(kinds, values[:, chosen].tolist(), strict=True)]
    about = (
        f"Unit {chosen + 1} of {len(excited)}{_votes(trained, chosen, len(excited))}. Numbers are its activations; the "
        "last pictures are the training images it likes best. White weights add, black take away, grey do nothing."
    )
    return Images("What one hidden unit likes", torch.cat(pictures), captions, about=about)


def _votes(trained: Trained, chosen: int, units: int) -> str:
    """The classes that a unit of the last hidden layer speaks for and against most."""
    last = cast("Dense", trained.once(_network)[-1]).weight
    within = chosen - (units - last.shape[0])
    if within < 0:
        return ""
    names = trained.once(_data).classes
    return f": it speaks most for {names[int(last[within].argmax())]}, against {names[int(last[within].argmin())]}"

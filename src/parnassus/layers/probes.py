"""Things to touch: a network that reads your drawing, one that learns before your eyes, and what they are made of."""

from collections.abc import Callable
from math import ceil, sqrt
from typing import Annotated, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import interpolate, pad

from parnassus.atlas.marks import probe
from parnassus.data import Dataset, Split, open_data
from parnassus.data.toy import eight_gaussians, moons, rings, spirals
from parnassus.layers.classifier import Classifier, require_labels
from parnassus.layers.decision_maps import dotted, plane, tinted
from parnassus.layers.dense import Dense, layer_outputs
from parnassus.layers.experiments.activations_compared import SHOWN
from parnassus.layers.experiments.classifier_on_digits import Experiment
from parnassus.layers.placement import Placement
from parnassus.layers.playground import Networks, Penalty, train_adam
from parnassus.losses import accuracy, cross_entropy, softmax
from parnassus.touch import Answer, Bars, Curves, Drawing, Film, Images, Numbers, Pick, Real, Whole
from parnassus.train.trained import Trained

FAVOURITES = 5  # training images that show what a unit likes
LOOKED_AT = 10_000  # training images they are chosen from

POINTS = 150  # of the plane to learn from, and as many unseen ones
MOMENTS = [
    round(500 * (frame / 40) ** 2) for frame in range(41) if frame != 1
]  # steps: dense at first, when most happens
FRAMES = 18  # moments that are drawn
FINE, COARSE = 160, 64  # pixels along a side of a picture, and of the raster on which the network is asked
TWO = torch.tensor([[0.0, 0.447, 0.698], [0.835, 0.369, 0.0]])  # a colour for each class
PALE = 1 - 0.6 * (1 - TWO)  # the same behind the points


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


@probe()
def look_at_an_activation(
    activation: Annotated[int, Pick("activation", tuple(SHOWN))] = 5,
    place: Annotated[float, Real("where, x", -6.0, 6.0)] = 1.0,
    layers: Annotated[int, Whole("layers on top of each other", 1, 50)] = 10,
) -> list[Answer]:
    """A nonlinearity, its slope, and what is left of a gradient after many of them (book sec. 1.2).

    Move x outwards and see where each function goes flat. A gradient on its way back is multiplied by one slope a
    layer: with the sigmoid, whose slope is ¼ at best, ten layers leave less than a millionth of it.
    """
    name, (function, slope) = list(SHOWN.items())[activation]
    x, here = torch.linspace(-6, 6, 241), torch.tensor([place])
    steepness = float(slope(here))
    lines = {label: (x.tolist(), part(x).tolist()) for label, part in (("σ(x)", function), ("σ′(x)", slope))}
    numbers: dict[str, float | str] = {
        "σ(x)": float(function(here)),
        "σ′(x)": steepness,
        f"σ′(x) to the power of {layers}": steepness**layers,
    }
    return [
        Curves(f"{name} and its slope", lines, x_label="x", y_label="", marked=place),
        Numbers(
            "At x", numbers, about=f"The last is the share of a gradient that passes {layers} such units in a row."
        ),
    ]


def _quarters(count: int, *, noise: float, seed: int) -> Split:
    """The square [−1, 1]² by quarters: class 1 where the coordinates have the same sign, as in XOR."""
    source = torch.Generator().manual_seed(seed)
    x = 2 * torch.rand(count, 2, generator=source) - 1
    return Split(x + noise * torch.randn(count, 2, generator=source), (x.prod(1) > 0).long())


def _clumps(count: int, *, noise: float, seed: int) -> Split:
    """Eight clumps on a circle, the two classes in turns."""
    around = eight_gaussians(count, noise=0.15 + noise, seed=seed)
    return Split(around.x, require_labels(around.y, 8) % 2)


PLANES: dict[str, Callable[..., Split]] = {
    "two moons": moons,
    "rings": lambda count, noise, seed: rings(count, noise=noise / 2, seed=seed),
    "spirals": lambda count, noise, seed: spirals(count, noise=noise / 5, seed=seed),
    "quarters, as XOR": _quarters,
    "eight clumps": _clumps,
}
PENALTIES: dict[str, Callable[[float], Penalty]] = {
    "none": lambda _: torch.zeros_like,
    "L1": lambda strength: lambda weight: strength * weight.sign(),
    "L2": lambda strength: lambda weight: strength * weight,
}


@probe()
@torch.no_grad()
def train_a_classifier_under_your_eyes(
    *,
    data: Annotated[int, Pick("data", tuple(PLANES))] = 0,
    noise: Annotated[float, Real("noise of the data", 0.0, 0.5)] = 0.2,
    layers: Annotated[int, Whole("hidden layers", 0, 4)] = 2,
    units: Annotated[int, Whole("units in each", 1, 16)] = 8,
    activation: Annotated[int, Pick("activation", tuple(SHOWN))] = 4,
    rate: Annotated[float, Real("learning rate of Adam", 1e-3, 0.3, log=True)] = 0.03,
    regulariser: Annotated[int, Pick("regulariser", tuple(PENALTIES))] = 0,
    strength: Annotated[float, Real("its strength", 1e-4, 0.1, log=True)] = 3e-3,
    seed: Annotated[int, Whole("seed of data and start", 0, 99)] = 0,
) -> list[Answer]:
    """A small network learns two classes of points; play its 500 steps and see the boundary bend (Zhao sec. 5).

    Take the hidden layers away: a straight cut is all that is left. Try the spirals with ReLU and with a sigmoid, one
    layer and three. Then raise the noise and give it units to spare: the boundary begins to run around single points,
    the loss on unseen ones rises, and a regulariser calms it.
    """
    source, penalty = list(PLANES.values())[data], list(PENALTIES.values())[regulariser](strength)
    both = source(2 * POINTS, noise=noise, seed=seed)
    x, y = both.x - both.x.mean(0), require_labels(both.y, 2)
    x = x / x.std()
    torch.manual_seed(seed)
    start = Networks.fresh((2, *[units] * layers, 2), *list(SHOWN.values())[activation])
    trained = train_adam(start, x[:POINTS], y[:POINTS], rate=rate, moments=MOMENTS, penalty=penalty)
    seen, unseen = trained.values(x)[-1].split(POINTS, dim=1)
    return [
        _film(trained, x, y),
        *_progress(seen, unseen, y),
        *_what_units_see(trained, float(x.abs().max())),
    ]


def _film(trained: Networks, x: Tensor, y: Tensor) -> Film:
    """What the network says over the plane, moment by moment, with the points it learns from and with unseen ones."""
    every = [round(frame * (len(MOMENTS) - 1) / (FRAMES - 1)) for frame in range(FRAMES)]
    shown = Networks(trained.sizes, trained.activation, trained.slope, trained.theta[every])
    reach = 1.1 * float(x.abs().max())
    share = softmax(shown.values(plane(reach, COARSE))[-1])[..., 1].view(FRAMES, 1, COARSE, COARSE)
    surface = tinted(interpolate(share, FINE, mode="bilinear")[:, 0], PALE)
    pictures = [
        dotted(surface, x[part], y[part], colours=TWO, reach=reach) for part in (slice(POINTS), slice(POINTS, None))
    ]
    return Film(
        "The boundary",
        torch.stack(pictures, 1),
        [f"after {MOMENTS[each]} steps" for each in every],
        about="Left the points it learns from, right unseen ones. The paler the colour, the less sure it is.",
    )


def _progress(seen: Tensor, unseen: Tensor, y: Tensor) -> list[Answer]:
    """Loss and accuracy, moment by moment; logits are (moment, point, class)."""
    steps = [float(step) for step in MOMENTS]
    parts = {"training points": (seen, y[:POINTS]), "unseen points": (unseen, y[POINTS:])}
    losses = {name: cross_entropy(z, label.expand(len(z), -1)).mean(1) for name, (z, label) in parts.items()}
    right = {name: torch.stack([accuracy(each, label) for each in z]) for name, (z, label) in parts.items()}
    numbers: dict[str, float | str] = {}
    for name in parts:
        numbers[f"loss, {name}"] = float(losses[name][-1])
        numbers[f"right, {name}"] = f"{100 * float(right[name][-1]):.0f} %"
    best = int(losses["unseen points"].argmin())
    numbers["unseen loss was least after"] = f"{MOMENTS[best]} steps"
    return [
        Curves("Loss", {name: (steps, loss.tolist()) for name, loss in losses.items()}, "step", "cross-entropy"),
        Curves("Accuracy", {name: (steps, share.tolist()) for name, share in right.items()}, "step", "share right"),
        Numbers("At the end", numbers),
    ]


def _what_units_see(trained: Networks, reach: float) -> list[Images]:
    """The activation of each unit of the last hidden layer over the plane; nothing where there is no hidden layer."""
    values = trained.values(plane(1.1 * reach, COARSE))
    if len(values) == 1:
        return []
    last = values[-2][-1].T.view(-1, COARSE, COARSE)
    largest = last.abs().amax((1, 2), keepdim=True).clamp(min=1e-9)
    silent = int((last.abs().amax((1, 2)) == 0).sum())
    about = "At the end, over the same plane: orange where a unit is above 0, blue where below, white at 0."
    if silent:
        about += f" Silent everywhere: {silent} of {len(last)}."
    pictures = tinted(0.5 + 0.5 * last / largest, TWO)
    return [Images("What the units of the last hidden layer see", pictures, about=about)]

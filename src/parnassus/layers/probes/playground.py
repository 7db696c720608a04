"""A small network that learns two classes of points before your eyes (Zhao sec. 5)."""

from collections.abc import Callable
from typing import Annotated

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from parnassus.atlas.marks import probe
from parnassus.data import Split
from parnassus.data.toy import eight_gaussians, moons, rings, spirals
from parnassus.layers.classifier import require_labels
from parnassus.layers.decision_maps import dotted, plane, tinted
from parnassus.layers.experiments.activations_compared import SHOWN
from parnassus.layers.playground import Networks, Penalty, train_adam
from parnassus.losses import accuracy, cross_entropy, softmax
from parnassus.touch import Answer, Curves, Film, Images, Numbers, Pick, Real, Whole

POINTS = 150  # of the plane to learn from, and as many unseen ones
MOMENTS = [
    round(500 * (frame / 40) ** 2) for frame in range(41) if frame != 1
]  # steps: dense at first, when most happens
FRAMES = 18  # moments that are drawn
FINE, COARSE = 160, 64  # pixels along a side of a picture, and of the raster on which the network is asked
TWO = torch.tensor([[0.0, 0.447, 0.698], [0.835, 0.369, 0.0]])  # a colour for each class
PALE = 1 - 0.6 * (1 - TWO)  # the same behind the points


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

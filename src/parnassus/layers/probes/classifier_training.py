"""Interactive training of a small network on two classes of points (Zhao sec. 5)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from parnassus.atlas.decorators import probe
from parnassus.data import Split
from parnassus.data.built_in.toy import eight_gaussians, moons, rings, spirals
from parnassus.layers.activations import ACTIVATIONS
from parnassus.layers.classifier import check_labels
from parnassus.layers.decision_regions import diverging_colours, draw_points, pixel_grid
from parnassus.layers.mlp_training import MLPSnapshots, PenaltyGradient, train_adam
from parnassus.losses import accuracy, cross_entropy, softmax
from parnassus.widgets import Animation, Answer, Curves, FloatSlider, Images, IntSlider, Numbers, Select

NUM_POINTS = 150  # training points, and as many test points
CHECKPOINTS = [
    round(500 * (index / 40) ** 2) for index in range(41) if index != 1
]  # steps: dense at first, when most changes
NUM_FRAMES = 18  # checkpoints shown in the animation
IMAGE_SIDE, GRID_SIDE = 160, 64  # pixels of an image, and of the grid on which the network is evaluated
CLASS_COLOURS = torch.tensor([[0.0, 0.447, 0.698], [0.835, 0.369, 0.0]])
LIGHT_COLOURS = 1 - 0.6 * (1 - CLASS_COLOURS)  # of the decision regions, behind the points


def _xor_quadrants(count: int, *, noise: float, seed: int) -> Split:
    """The square [−1, 1]²: class 1 where the coordinates have the same sign, as in XOR."""
    generator = torch.Generator().manual_seed(seed)
    x = 2 * torch.rand(count, 2, generator=generator) - 1
    return Split(x + noise * torch.randn(count, 2, generator=generator), (x.prod(1) > 0).long())


def _alternating_clusters(count: int, *, noise: float, seed: int) -> Split:
    """Eight clusters on a circle, with alternating classes."""
    clusters = eight_gaussians(count, noise=0.15 + noise, seed=seed)
    return Split(clusters.x, check_labels(clusters.y, 8) % 2)


DATASETS: dict[str, Callable[..., Split]] = {
    "two moons": moons,
    "rings": lambda count, noise, seed: rings(count, noise=noise / 2, seed=seed),
    "spirals": lambda count, noise, seed: spirals(count, noise=noise / 5, seed=seed),
    "XOR quadrants": _xor_quadrants,
    "eight clusters": _alternating_clusters,
}
PENALTIES: dict[str, Callable[[float], PenaltyGradient]] = {
    "none": lambda _: torch.zeros_like,
    "L1": lambda strength: lambda weight: strength * weight.sign(),
    "L2": lambda strength: lambda weight: strength * weight,
}


@probe()
@torch.no_grad()
def train_classifier(
    *,
    data: Annotated[int, Select("data", tuple(DATASETS))] = 0,
    noise: Annotated[float, FloatSlider("noise of the data", 0.0, 0.5)] = 0.2,
    layers: Annotated[int, IntSlider("hidden layers", 0, 4)] = 2,
    units: Annotated[int, IntSlider("units per hidden layer", 1, 16)] = 8,
    activation: Annotated[int, Select("activation", tuple(ACTIVATIONS))] = 4,
    learning_rate: Annotated[float, FloatSlider("learning rate of Adam", 1e-3, 0.3, log=True)] = 0.03,
    regulariser: Annotated[int, Select("regulariser", tuple(PENALTIES))] = 0,
    strength: Annotated[float, FloatSlider("regularisation strength", 1e-4, 0.1, log=True)] = 3e-3,
    seed: Annotated[int, IntSlider("seed of data and initialisation", 0, 99)] = 0,
) -> list[Answer]:
    """Train a small network on two classes of points and play the 500 steps of its decision boundary (Zhao sec. 5).

    Without hidden layers the decision boundary is a straight line. Compare ReLU and sigmoid, one layer and three, on
    the spirals. Then increase the noise and the number of units: the boundary fits single points and the test loss
    rises (overfitting); a regulariser reduces it.
    """
    dataset, penalty = list(DATASETS.values())[data], list(PENALTIES.values())[regulariser](strength)
    points = dataset(2 * NUM_POINTS, noise=noise, seed=seed)
    x, y = points.x - points.x.mean(0), check_labels(points.y, 2)
    x = x / x.std()
    torch.manual_seed(seed)
    start = MLPSnapshots.initialise((2, *[units] * layers, 2), *list(ACTIVATIONS.values())[activation])
    snapshots = train_adam(
        start,
        x[:NUM_POINTS],
        y[:NUM_POINTS],
        learning_rate=learning_rate,
        checkpoints=CHECKPOINTS,
        penalty=penalty,
    )
    train_logits, test_logits = snapshots.layer_outputs(x)[-1].split(NUM_POINTS, dim=1)
    return [
        _decision_animation(snapshots, x, y),
        *_learning_curves(train_logits, test_logits, y),
        *_hidden_unit_maps(snapshots, float(x.abs().max())),
    ]


def _decision_animation(snapshots: MLPSnapshots, x: Tensor, y: Tensor) -> Animation:
    """Class probabilities over the plane at several checkpoints, with training and test points."""
    frames = [round(frame * (len(CHECKPOINTS) - 1) / (NUM_FRAMES - 1)) for frame in range(NUM_FRAMES)]
    shown = replace(snapshots, theta=snapshots.theta[frames])
    limit = 1.1 * float(x.abs().max())
    probability = softmax(shown.layer_outputs(pixel_grid(limit, GRID_SIDE))[-1])[..., 1]
    probability = probability.view(NUM_FRAMES, 1, GRID_SIDE, GRID_SIDE)
    regions = diverging_colours(interpolate(probability, IMAGE_SIDE, mode="bilinear")[:, 0], LIGHT_COLOURS)
    images = [
        draw_points(regions, x[part], y[part], colours=CLASS_COLOURS, limit=limit)
        for part in (slice(NUM_POINTS), slice(NUM_POINTS, None))
    ]
    return Animation(
        "Decision boundary",
        torch.stack(images, 1),
        [f"after {CHECKPOINTS[frame]} steps" for frame in frames],
        about="Left: training points, right: test points. Colours show the predicted class, white a probability of ½.",
    )


def _learning_curves(train_logits: Tensor, test_logits: Tensor, y: Tensor) -> list[Answer]:
    """Loss and accuracy at every checkpoint; logits are (checkpoint, point, class)."""
    steps = [float(step) for step in CHECKPOINTS]
    parts = {"training": (train_logits, y[:NUM_POINTS]), "test": (test_logits, y[NUM_POINTS:])}
    losses = {name: cross_entropy(z, label.expand(len(z), -1)).mean(1) for name, (z, label) in parts.items()}
    accuracies = {name: torch.stack([accuracy(each, label) for each in z]) for name, (z, label) in parts.items()}
    values: dict[str, float | str] = {}
    for name in parts:
        values[f"{name} loss"] = float(losses[name][-1])
        values[f"{name} accuracy"] = f"{100 * float(accuracies[name][-1]):.0f} %"
    best = int(losses["test"].argmin())
    values["lowest test loss after"] = f"{CHECKPOINTS[best]} steps"
    return [
        Curves("Loss", {name: (steps, loss.tolist()) for name, loss in losses.items()}, "step", "cross-entropy"),
        Curves("Accuracy", {name: (steps, line.tolist()) for name, line in accuracies.items()}, "step", "accuracy"),
        Numbers("Final values", values),
    ]


def _hidden_unit_maps(snapshots: MLPSnapshots, limit: float) -> list[Images]:
    """The final activation of each unit of the last hidden layer over the plane; empty without hidden layers."""
    outputs = snapshots.layer_outputs(pixel_grid(1.1 * limit, GRID_SIDE))
    if len(outputs) == 1:
        return []
    last = outputs[-2][-1].T.view(-1, GRID_SIDE, GRID_SIDE)
    largest = last.abs().amax((1, 2), keepdim=True).clamp(min=1e-9)
    dead = int((last.abs().amax((1, 2)) == 0).sum())
    about = "Activations after training over the same plane: orange is positive, blue negative, white 0."
    if dead:
        about += f" Dead units (0 everywhere): {dead} of {len(last)}."
    images = diverging_colours(0.5 + 0.5 * last / largest, CLASS_COLOURS)
    return [Images("Units of the last hidden layer", images, about=about)]

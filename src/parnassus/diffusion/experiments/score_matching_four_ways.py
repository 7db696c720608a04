"""One score field learned four ways, with the price of each (book secs. 13.2.6, 13.2.8)."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from parnassus.diffusion.energy_score import EnergyScore
from parnassus.diffusion.fields import asymmetry
from parnassus.diffusion.mixture import RoundMixture
from parnassus.diffusion.score_matching import (
    Score,
    denoising_matching,
    explicit_matching,
    implicit_matching,
    sliced_matching,
)
from parnassus.diffusion.score_networks import plain_energy, plain_score
from parnassus.flows.traces import random_signs
from parnassus.optim import Adam
from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.train import Run, SideBySide, at_most, reported

if TYPE_CHECKING:
    from matplotlib.axes import Axes

covers = ("B13.2.6-1", "B13.2.6-2", "B13.2.6-3", "B13.2.8-1")
expected = {
    "error_explicit": at_most(0.02, "E‖s − ∇log p‖² over E‖∇log p‖² on fresh points, taught by the true score"),
    "error_implicit": at_most(0.06, "the same, taught by points alone with the exact divergence"),
    "error_sliced": at_most(0.06, "the same with a random probe of the divergence"),
    "error_denoising": at_most(0.07, "the same for the score of the noisy density, taught by noisy points"),
    "error_denoising_of_the_clean": reported("the error of that field as a score of the clean data"),
    "error_energy": at_most(0.03, "that of an energy's slope, taught by noisy points"),
    "curl_free_network": reported("median ‖J − Jᵀ‖/‖J + Jᵀ‖ of the network taught by noisy points"),
    "curl_energy": at_most(1e-4, "the same of the energy's slope, which can have none"),
    "cost_ratio": reported("time of a step in 64 dimensions, exact divergence over probed one"),
}
profiles = {"smoke": {"steps": 10, "width": 16, "dimensions": (2, 4)}}
WAYS = ("explicit", "implicit", "sliced", "denoising", "energy")
REACH = 3.2


def mixture(device: torch.device) -> RoundMixture:
    """Three Gaussians, near enough to each other that the field between them matters."""
    means = torch.tensor([[-1.5, -0.6], [1.5, -0.6], [0.0, 1.4]], device=device)
    return RoundMixture.of(means, means.new_tensor([0.5, 0.6, 0.4]), means.new_tensor([0.3, 0.5, 0.2]))


class Matched(nn.Module):
    """A score network with the loss that teaches it."""

    def __init__(self, score: nn.Module, matching: Callable[[Score, Tensor], Tensor]) -> None:
        super().__init__()
        self.score = score
        self.matching = matching

    def loss(self, x: Tensor) -> Tensor:
        return self.matching(self.score, x).mean()


@dataclass(frozen=True)
class Experiment:
    steps: int = 1_500  # gradient steps
    batch: int = 256  # fresh points a step
    width: int = 64  # hidden units in each of two layers
    noise: float = 0.3  # deviation σ of the noise in denoising score matching
    lr: float = 2e-3  # Adam's learning rate at first; it falls to 0
    dimensions: tuple[int, ...] = (2, 4, 8, 16, 32, 64)  # where the time of a step is taken

    def __call__(self, run: Run) -> dict[str, float]:
        truth = mixture(run.device)
        noisy = partial(truth.score, noise=self.noise)
        ways = self.ways(truth.score)
        models = SideBySide[Matched]({name: Matched(self.network(name), matching) for name, matching in ways.items()})
        models, optimizer = run.prepare(models, partial(Adam, lr=self.lr))
        targets = {name: noisy if name in ("denoising", "energy") else truth.score for name in WAYS}
        unseen, _ = truth.draw(4_000)
        places = {name: unseen + self.noise * torch.randn_like(unseen) * (targets[name] is noisy) for name in WAYS}

        for step, _ in run.steps(self.steps):
            optimizer.param_groups[0]["lr"] = self.lr * (1 - step / self.steps)
            x, _ = truth.draw(self.batch)
            run.update(optimizer, models.loss(x))
            if step % max(1, self.steps // 50) == 0:
                now = {name: error(models.one(name).score, targets[name], places[name]) for name in WAYS}
                run.record(step, **{f"error/{name}": value for name, value in now.items()})

        fields = {name: models.one(name).score for name in WAYS}
        self.show_fields(run, truth, fields)
        lines = {name: run.curve(f"error/{name}") for name in WAYS}
        figure = curves(lines, x_label="step", y_label="relative squared error", log_y=True)
        run.figure(
            "errors", figure, "E‖s − truth‖² over E‖truth‖² on fresh points while training; the last two learn p_σ."
        )
        halves = ("implicit", "sliced")  # these losses are half as large as the others
        scatter = {
            name: gradient_noise(ways[name], fields[name], truth, self.batch, 2.0 if name in halves else 1.0)
            for name in WAYS
        }
        run.table(
            "price",
            [
                {
                    "way": name,
                    "needs": NEEDS[name],
                    "error": error(fields[name], targets[name], places[name]),
                    "noise of a gradient": scatter[name] / scatter["explicit"],
                }
                for name in WAYS
            ],
            f"Noise: RMS distance of the gradient of {self.batch} points from its mean, that of the explicit way as 1. "
            "Told the truth at each point, nothing is left to chance where the fit is good; the others stay noisy.",
        )
        ratio = self.show_cost(run, ways)
        final = {f"error_{name}": error(fields[name], targets[name], places[name]) for name in WAYS}
        return {
            **final,
            "error_denoising_of_the_clean": error(fields["denoising"], truth.score, unseen),
            "curl_free_network": float(asymmetry(fields["denoising"], unseen[:500]).median().detach()),
            "curl_energy": float(asymmetry(fields["energy"], unseen[:500]).max().detach()),
            "cost_ratio": ratio,
        }

    def network(self, name: str) -> nn.Module:
        return EnergyScore(plain_energy(2, self.width)) if name == "energy" else plain_score(2, self.width)

    def ways(self, truth: Score) -> dict[str, Callable[[Score, Tensor], Tensor]]:
        def denoise(score: Score, x: Tensor) -> Tensor:
            return denoising_matching(score, x, torch.randn_like(x), std=self.noise)

        return {
            "explicit": lambda score, x: explicit_matching(score, truth, x),
            "implicit": implicit_matching,
            "sliced": lambda score, x: sliced_matching(score, x, random_signs(x)[0]),
            "denoising": denoise,
            "energy": denoise,
        }

    def show_fields(self, run: Run, truth: RoundMixture, fields: dict[str, nn.Module]) -> None:
        figure, axes = subplots(2, 3, size=(11, 7.4))
        panels: dict[str, Score] = {"∇ log p, the truth": truth.score, **{TITLES[name]: fields[name] for name in WAYS}}
        for ax, (title, field) in zip(axes.flat, panels.items(), strict=True):
            draw_field(ax, truth, field)
            ax.set_title(title)
        run.figure(
            "fields",
            figure,
            "Arrows: the learned score (blue) over the true one of the clean data (grey), √length drawn. They agree "
            "where data lie; between the modes and outside, where nothing was ever seen, they part. The last two have "
            "learned the blurred density, whose score is shorter.",
        )

    def show_cost(self, run: Run, ways: dict[str, Callable[[Score, Tensor], Tensor]]) -> float:
        """The time of a training step against the dimension, with the exact trace and with one probe."""
        lines: dict[str, tuple[list[int], list[float]]] = {}
        names = {"implicit": "implicit, exact trace", "sliced": "sliced, one probe", "denoising": "denoising"}
        for way, name in names.items():
            seconds = [step_seconds(Matched(plain_score(d, self.width), ways[way]), d) for d in self.dimensions]
            lines[name] = list(self.dimensions), [1e3 * value for value in seconds]
        figure = curves(lines, x_label="dimensions", y_label="milliseconds a step", log_x=True, log_y=True)
        run.figure(
            "cost", figure, "The exact divergence takes a backward pass a dimension; a random probe takes one in all."
        )
        exact, probed, _ = (line[1][-1] for line in lines.values())
        return exact / probed


NEEDS = {
    "explicit": "the true score",
    "implicit": "points, and d backward passes",
    "sliced": "points, and one backward pass",
    "denoising": "points and noise",
    "energy": "points and noise",
}
TITLES = {
    "explicit": "explicit: told the truth",
    "implicit": "implicit: points alone",
    "sliced": "sliced: points and a probe",
    "denoising": "denoising: noisy points",
    "energy": "denoising, slope of an energy",
}


def error(score: Score, truth: Score, x: Tensor) -> float:
    """E‖s − truth‖² / E‖truth‖² at these points."""
    with torch.no_grad():
        wrong = explicit_matching(score, truth, x).mean()
        return float(wrong / explicit_matching(torch.zeros_like, truth, x).mean())


def gradient_noise(
    matching: Callable[[Score, Tensor], Tensor], score: nn.Module, truth: RoundMixture, batch: int, scale: float
) -> float:
    """The root mean square distance of one batch's gradient from its mean, where training ended."""
    gradients = []
    for _ in range(40):
        x, _ = truth.draw(batch)
        slopes = torch.autograd.grad(scale * matching(score, x).mean(), list(score.parameters()), allow_unused=True)
        gradients.append(torch.cat([slope.flatten() for slope in slopes if slope is not None]))
    return float(torch.stack(gradients).var(0).sum().sqrt())


def step_seconds(model: Matched, dimensions: int, repeats: int = 5) -> float:
    """The median time of a loss and its gradient on 256 points."""
    x = torch.randn(256, dimensions)
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        model.loss(x).backward()
        times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2]


def draw_field(ax: "Axes", truth: RoundMixture, field: Score, *, reach: float = REACH, noise: float = 0.0) -> None:
    """A field as arrows over the true one, and level lines of the true density."""
    line = torch.linspace(-reach, reach, 17)
    grid = torch.cartesian_prod(line, line).flip(1)
    places = grid.to(truth.means)
    fine = torch.linspace(-reach, reach, 80)
    density = truth.log_prob(torch.cartesian_prod(fine, fine).flip(1).to(places), 1.0, noise).view(80, 80).cpu()
    top = float(density.max())
    ax.contour(
        fine,
        fine,
        density,
        levels=[top - d for d in (8.0, 4.5, 2.0, 0.5)],
        colors=FAINT,
        linewidths=0.7,
        linestyles="solid",
    )
    with torch.no_grad():
        right, learned = truth.score(places, 1.0, noise).cpu(), field(places).cpu()
    longest = right.norm(dim=1).max().sqrt()
    for arrows, colour, width in ((right, FAINT, 0.006), (learned, PALETTE[0], 0.004)):
        length = arrows.norm(dim=1, keepdim=True).clamp(min=1e-6)
        drawn = arrows / length.sqrt() / longest  # square roots, or the far ones would cover the rest
        ax.quiver(grid[:, 0], grid[:, 1], drawn[:, 0], drawn[:, 1], color=colour, angles="xy", width=width, scale=11.0)
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[], aspect="equal")
    ax.grid(visible=False)

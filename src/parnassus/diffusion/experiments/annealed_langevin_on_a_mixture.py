"""Annealed Langevin dynamics, DDPM and DDIM draw from one network and from exact scores (book secs. 13.2.7, 13.2.8)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice

import torch
from torch import Tensor

from parnassus.diffusion.annealed_langevin import annealed_langevin, annealed_langevin_path
from parnassus.diffusion.denoisers import TimeMLP
from parnassus.diffusion.experiments.score_matching_four_ways import draw_field
from parnassus.diffusion.langevin import langevin
from parnassus.diffusion.mixture import RoundMixture
from parnassus.diffusion.noise_levels import alpha_bar_of, geometric_levels
from parnassus.diffusion.process import Denoiser
from parnassus.diffusion.samplers import ddim, ddim_path, ddpm
from parnassus.diffusion.schedules import Schedule
from parnassus.diffusion.score_matching import LevelledScore
from parnassus.diffusion.score_model import ScoreModel
from parnassus.optim import Adam
from parnassus.probability import energy_distance
from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.train import Run, at_most, between, reported

covers = ("B13.2.7-3", "B13.2.7-4", "B13.2.8-3")
expected = {
    "share_exact": between(0.72, 0.83, "share of annealed walks on exact scores in the mode of weight 0.8"),
    "share_learned": between(0.70, 0.86, "the same on learned scores"),
    "share_plain": between(0.44, 0.56, "the same of plain walks on the exact score of the data"),
    "distance_exact": reported("energy distance of the annealed samples to the data, exact scores"),
    "distance_learned": at_most(0.02, "the same, learned scores"),
    "distance_ddpm": at_most(0.02, "the same for DDPM with the same network"),
    "distance_ddim": at_most(0.02, "the same for DDIM with the same network"),
    "data_to_data": reported("the same between two draws of the data: less is luck"),
}
profiles = {"smoke": {"steps": 10, "width": 16, "count": 100, "walk": 3, "counts": (2, 5)}}
REACH = 1.8


def uneven(device: torch.device) -> RoundMixture:
    """A fifth and four fifths of the points around (−1, −1) and (1, 1), each of deviation 0.2."""
    means = torch.tensor([[-1.0, -1.0], [1.0, 1.0]], device=device)
    return RoundMixture.of(means, means.new_full((2,), 0.2), means.new_tensor([0.2, 0.8]))


@dataclass(frozen=True)
class Experiment:
    steps: int = 2_000  # gradient steps
    batch: int = 256  # fresh points a step
    width: int = 64  # hidden units of the network
    lr: float = 2e-3  # Adam's learning rate at first; it falls to 0
    levels: int = 40  # noise levels T
    smallest: float = 0.01  # the last blur, σ_1
    largest: float = 10.0  # the first blur, σ_T: wider than the data
    walk: int = 25  # Langevin steps at each level
    factor: float = 0.1  # step c_t over σ_t²
    count: int = 2_000  # samples
    counts: tuple[int, ...] = (2, 3, 5, 8, 12, 20)  # numbers of levels that are compared

    def model(self) -> ScoreModel:
        return ScoreModel(TimeMLP(2, self.width), (2,), geometric_levels(self.levels, self.smallest, self.largest))

    def __call__(self, run: Run) -> dict[str, float]:
        truth = uneven(run.device)
        model, optimizer = run.prepare(run.build(self.model), partial(Adam, lr=self.lr))
        for step, _ in run.steps(self.steps):
            optimizer.param_groups[0]["lr"] = self.lr * (1 - step / self.steps)
            loss = model.loss(truth.draw(self.batch)[0])
            run.update(optimizer, loss)
            run.log(step, loss=loss.detach())

        with torch.no_grad():
            result = self.compare(run, model, truth)
            self.show_levels(run, model, truth)
            self.show_counts(run, truth)
        explain(run)
        return result

    def exact(self, truth: RoundMixture, levels: Tensor) -> LevelledScore:
        return lambda x, t: truth.score(x, 1.0, levels.to(x)[t][:, None])

    def compare(self, run: Run, model: ScoreModel, truth: RoundMixture) -> dict[str, float]:
        """Five ways to draw: shares of the heavy mode, distance to the data, calls of the network."""
        start = 3.2 * torch.rand(self.count, 2, device=run.device) - 1.6
        levels, annealing = model.levels, partial(annealed_langevin, steps=self.walk, factor=self.factor)
        chain, network = chain_of(geometric_levels(self.levels, self.smallest, self.largest)), model.network
        noise = torch.randn(self.count, 2, device=run.device)
        ways: dict[str, tuple[Callable[[], Tensor], int]] = {
            "plain Langevin, exact": (
                lambda: langevin(truth.score, start, step=0.2 * 0.04, steps=self.walk * self.levels),
                self.walk * self.levels,
            ),
            "annealed, exact": (
                lambda: annealing(self.exact(truth, levels), levels, start), self.walk * self.levels
            ),
            "annealed, learned": (lambda: annealing(model.score, levels, start), self.walk * self.levels),
            "DDPM, learned": (lambda: ddpm(network, chain, noise), self.levels),
            "DDIM, learned": (lambda: ddim(network, chain, noise), self.levels),
            "DDIM and Langevin": (lambda: corrected(network, chain, noise, factor=self.factor), 2 * self.levels),
        }  # fmt: skip
        real, other = truth.draw(self.count)[0], truth.draw(self.count)[0]
        drawn = {name: draw() for name, (draw, _) in ways.items()}
        far = {name: float(energy_distance(x, real)) for name, x in drawn.items()}
        figure, axes = subplots(2, 3, size=(10.5, 7.2))
        for ax, (name, points) in zip(axes.flat, drawn.items(), strict=True):
            cloud = points.cpu()
            ax.scatter(cloud[:, 0], cloud[:, 1], s=3, color=PALETTE[0], linewidths=0, alpha=0.6, rasterized=True)
            ax.set(title=f"{name}: {heavy(cloud):.0%}", xlim=(-REACH, REACH), ylim=(-REACH, REACH), aspect="equal")
            ax.set(xticks=[], yticks=[])
            ax.axline((0, 0), slope=-1, color=FAINT, linewidth=0.8, linestyle="--")
        run.figure(
            "samples", figure,
            "Samples of a mixture whose upper mode has 80 % of the mass, with the share that each way gives it. The "
            "learned scores are of one network; DDPM and DDIM read it as a denoiser.",
        )  # fmt: skip
        run.table(
            "ways",
            [
                {
                    "way": name,
                    "calls": calls,
                    "share of the heavy mode": heavy(drawn[name]),
                    "energy distance": far[name],
                }
                for name, (_, calls) in ways.items()
            ],
            "Calls of the score; distances to a fresh draw of the data, which has "
            f"{float(energy_distance(other, real)):.2g} to another.",
        )
        return {
            "share_exact": heavy(drawn["annealed, exact"]),
            "share_learned": heavy(drawn["annealed, learned"]),
            "share_plain": heavy(drawn["plain Langevin, exact"]),
            "distance_exact": far["annealed, exact"],
            "distance_learned": far["annealed, learned"],
            "distance_ddpm": far["DDPM, learned"],
            "distance_ddim": far["DDIM, learned"],
            "data_to_data": float(energy_distance(other, real)),
        }

    def show_levels(self, run: Run, model: ScoreModel, truth: RoundMixture) -> None:
        """Walkers on learned scores at five levels, over the field they follow."""
        start = 3.2 * torch.rand(400, 2, device=run.device) - 1.6
        path = list(annealed_langevin_path(model.score, model.levels, start, steps=self.walk, factor=self.factor))
        shown = torch.linspace(0.25, 1, 5).mul(self.levels).round().long().tolist()
        figure, axes = subplots(1, 5, size=(13, 3.1))
        for ax, stage in zip(axes[0], shown, strict=True):
            number = self.levels - stage
            sigma = float(model.levels[number])
            draw_field(ax, truth, partial(at_level, model.score, number), reach=2.0, noise=sigma)
            cloud = path[stage].cpu()
            ax.scatter(cloud[:, 0], cloud[:, 1], s=5, color=PALETTE[1], linewidths=0, alpha=0.8, rasterized=True)
            ax.set_title(f"σ = {sigma:.2g}")
        run.figure(
            "levels", figure,
            "Annealing on learned scores: walkers (orange) at the end of a level, its learned field (blue) over "
            "the exact one (grey). Wide blurs send all to one place, then the field splits.",
        )  # fmt: skip

    def show_counts(self, run: Run, truth: RoundMixture) -> None:
        """How many levels it takes, with exact scores and the same number of steps in all."""
        total = self.walk * self.levels
        start = 3.2 * torch.rand(self.count, 2, device=run.device) - 1.6
        shares = []
        for count in self.counts:
            levels = geometric_levels(count, self.smallest, self.largest)
            walk = max(1, total // count)
            end = annealed_langevin(self.exact(truth, levels), levels, start, steps=walk, factor=self.factor)
            shares.append(heavy(end))
        lines = {"annealed": (self.counts, shares), "the weight": (self.counts, [0.8] * len(self.counts))}
        figure = curves(lines, x_label="noise levels", y_label="share of the heavy mode")
        run.figure(
            "counts", figure, f"Exact scores, {total} steps in all: with too few levels the blurs are too far apart."
        )


@dataclass(frozen=True)
class Sample:
    steps: int = 25  # Langevin steps at each level
    factor: float = 0.1  # step over σ²
    count: int = 2_000  # how many points

    def __call__(self, model: ScoreModel) -> Tensor:
        return model.sample(self.count, steps=self.steps, factor=self.factor)


def chain_of(levels: Tensor) -> Schedule:
    """The chain of diffusion whose steps have these blurs, each scaled to unit variance."""
    alpha_bar = alpha_bar_of(levels)
    before = torch.cat([alpha_bar.new_ones(1), alpha_bar[:-1]])
    return Schedule(alpha_bar / before, alpha_bar, before)


def corrected(denoiser: Denoiser, schedule: Schedule, start: Tensor, *, factor: float) -> Tensor:
    """DDIM with a step of Langevin dynamics at each level it reaches, c = factor · (1 − ᾱ) as annealing has it."""
    x, left = start, (1 - schedule.alpha_bar).tolist()
    path = range(len(schedule) - 1, 0, -1)
    for step in path:
        x = next(islice(ddim_path(denoiser, schedule, x, grid=torch.tensor([step - 1, step])), 1, None))
        noise = denoiser(x, torch.full((len(x),), step - 1, device=x.device))
        x = x - factor * left[step - 1] ** 0.5 * noise + (2 * factor * left[step - 1]) ** 0.5 * torch.randn_like(x)
    return ddim(denoiser, schedule, x, grid=torch.tensor([0]))


def at_level(score: LevelledScore, number: int, x: Tensor) -> Tensor:
    return score(x, torch.full((len(x),), number, device=x.device))


def heavy(x: Tensor) -> float:
    """The share of points on the side of the heavy mode."""
    return float((x.sum(1) > 0).float().mean())


def explain(run: Run) -> None:
    """The comparison of the three families, in the words of the text (book sec. 13.2.8)."""
    run.table(
        "side by side",
        [
            {
                "": "score matching",
                "model": "s_θ(x, t) ≈ ∇ log p_{σ_t}(x)",
                "estimation": "implicit, sliced or denoising score matching",
                "sampling": "Langevin dynamics, annealed over the levels",
                "what is hard": "data on a manifold, empty regions, weights of modes: all need many levels",
            },
            {
                "": "DDPM",
                "model": "ε_θ(x_t, t) = −√(1 − ᾱ_t) s_θ",
                "estimation": "L_γ, a weighted bound; with γ = 1 the simple loss",
                "sampling": "the reverse chain, a fresh noise at each step",
                "what is hard": "many steps a sample",
            },
            {
                "": "DDIM",
                "model": "the same network",
                "estimation": "the same loss",
                "sampling": "the same steps without noise, and few of them",
                "what is hard": "no noise mends an error; but the way can be run backwards",
            },
        ],
        "Three names for one network: what it estimates, how it is taught and how one draws with it.",
    )

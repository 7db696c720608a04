"""Where plain score matching and Langevin sampling fail, and what blurring mends (book sec. 13.2.7)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from parnassus.atlas import exponent
from parnassus.diffusion.annealed_langevin import annealed_langevin_path
from parnassus.diffusion.experiments.score_matching_four_ways import Matched, draw_field
from parnassus.diffusion.langevin import langevin_path
from parnassus.diffusion.mixture import RoundMixture
from parnassus.diffusion.noise_levels import geometric_levels
from parnassus.diffusion.score_matching import Score, denoising_matching, implicit_matching
from parnassus.diffusion.score_networks import plain_score
from parnassus.optim import Adam
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.train import Run, SideBySide, at_least, at_most, between, reported

covers = ("B13.2.7-2", "B13.2.7-4")
expected = {
    "circle_exponent": between(-2.2, -1.8, "power of σ by which the least denoising loss on a circle grows"),
    "circle_implicit_loss": at_most(-10.0, "implicit loss on the circle itself, which has no least value"),
    "error_dense": at_most(0.3, "median error of the score over its length, where nine tenths of the data lie"),
    "error_empty": at_least(0.5, "the same between the two modes, where next to nothing lies"),
    "share_plain": between(0.44, 0.56, "share of plain Langevin walks in the mode of weight 0.8"),
    "share_annealed": between(0.70, 0.84, "the same of annealed walks"),
    "share_true": reported("the weight of that mode"),
}
profiles = {"smoke": {"steps": 10, "width": 16, "walkers": 50, "walk": 5}}
SIGMAS = (0.4, 0.2, 0.1, 0.05)
REACH = 9.0


@dataclass(frozen=True)
class Experiment:
    steps: int = 1_200  # gradient steps of each network
    batch: int = 256  # points a step
    width: int = 64  # hidden units in each of two layers
    lr: float = 2e-3  # Adam's learning rate
    weight: float = 0.8  # share of the heavy mode
    walkers: int = 2_000  # samples drawn
    walk: int = 300  # steps of plain Langevin dynamics

    def __call__(self, run: Run) -> dict[str, float]:
        result = self.circle(run)
        means = torch.tensor([[-5.0, -5.0], [5.0, 5.0]], device=run.device)
        uneven = RoundMixture.of(means, means.new_ones(2), means.new_tensor([1 - self.weight, self.weight]))
        result |= self.empty(run, uneven)
        result |= self.weights(run, uneven)
        run.note(
            "what blurring does",
            "All three have one remedy. Blurred by noise, data on a curve fill the plane and have a score everywhere; "
            "the empty land between two modes is filled with blurred points that teach the network; and under a wide "
            "blur the modes touch, so that walks go where the weight is before the blur is taken off.",
        )
        return result

    def circle(self, run: Run) -> dict[str, float]:
        """Data on a circle: the least loss grows as 1/σ², and without noise it has none."""
        networks = {f"σ = {sigma:g}": Matched(Scaled(self.width, sigma), Noised(sigma)) for sigma in SIGMAS}
        networks["no noise"] = Matched(plain_score(2, self.width), implicit_matching)
        models, optimizer = run.prepare(
            SideBySide[Matched]({str(index): model for index, model in enumerate(networks.values())}),
            partial(Adam, lr=self.lr),
        )
        for step, _ in run.steps(self.steps):
            x = on_circle(self.batch, run.device)
            losses = {name: models.one(str(index)).loss(x) for index, name in enumerate(networks)}
            run.update(optimizer, torch.stack([*losses.values()]).sum())
            run.log(step, **{f"circle/{name}": loss for name, loss in losses.items()})
        with torch.no_grad():
            x = on_circle(20_000, run.device)
            found = [float(models.one(str(index)).loss(x)) for index in range(len(SIGMAS))]
        lines = {"learned": (SIGMAS, found), "1/σ²": (SIGMAS, [sigma**-2 for sigma in SIGMAS])}
        figure = curves(lines, x_label="noise σ", y_label="denoising loss", log_x=True, log_y=True)
        run.figure(
            "circle_loss", figure,
            "Data on a circle. The way along it can be guessed from no noisy point, and that alone costs 1/σ²: without "
            "noise there is no score to learn.",
        )  # fmt: skip
        steps, bottomless = run.curve("circle/no noise")
        figure = curves({"": (steps, bottomless)}, x_label="step", y_label="implicit loss", smooth=True)
        run.figure(
            "circle_implicit", figure,
            "Implicit score matching on the circle itself: across the curve the field may pull as hard as it likes, "
            "and the loss falls without end.",
        )  # fmt: skip
        ends = (SIGMAS[0], SIGMAS[-1]), (found[0], found[-1])
        return {"circle_exponent": exponent(*ends), "circle_implicit_loss": min(bottomless)}

    def empty(self, run: Run, uneven: RoundMixture) -> dict[str, float]:
        """A score learned from points of two far modes, and its error where there are none."""
        model, optimizer = run.prepare(
            Matched(Standardised(plain_score(2, self.width), 5.0), implicit_matching), partial(Adam, lr=self.lr)
        )
        for step, _ in run.steps(self.steps):
            optimizer.param_groups[0]["lr"] = self.lr * (1 - step / self.steps)
            x, _ = uneven.draw(self.batch)
            loss = model.loss(x)
            run.update(optimizer, loss)
            run.log(step, **{"two modes": loss.detach()})
        line = torch.linspace(-REACH, REACH, 81)
        grid = torch.cartesian_prod(line, line).flip(1).to(run.device)
        with torch.no_grad():
            truth = uneven.score(grid)
            far = (model.score(grid) - truth).norm(dim=1) / truth.norm(dim=1).clamp(min=0.5)
        figure, axes = subplots(1, 2, size=(10.5, 4.6))
        draw_field(axes[0, 0], uneven, model.score, reach=REACH)
        axes[0, 0].set_title("learned (blue) over true (grey)")
        picture = axes[0, 1].imshow(
            far.view(81, 81).clamp(max=1).cpu().numpy(),
            extent=(-REACH, REACH, -REACH, REACH),
            origin="lower",
            vmin=0,
            vmax=1,
        )
        density = uneven.log_prob(grid).view(81, 81).cpu()
        axes[0, 1].contour(
            line, line, density, levels=[-12.0, -7.0, -4.0], colors="white", linewidths=0.8, linestyles="solid"
        )
        axes[0, 1].set(title="error over length", xticks=[], yticks=[])
        axes[0, 1].grid(visible=False)
        figure.colorbar(picture, ax=axes[0, 1]).outline.set_visible(False)
        run.figure(
            "empty", figure,
            "A score learned from points of two modes (level lines: their density). It is right where points lie and "
            "wrong between, where a walk has to find its way.",
        )  # fmt: skip
        x, _ = uneven.draw(4_000)
        dense = x[uneven.log_prob(x) > uneven.log_prob(x).quantile(0.1)]
        between_modes = (2 * torch.rand_like(x) - 1) * 2
        return {
            "error_dense": relative_error(model.score, uneven.score, dense),
            "error_empty": relative_error(model.score, uneven.score, between_modes),
        }

    def weights(self, run: Run, uneven: RoundMixture) -> dict[str, float]:
        """Walks on the exact scores: plain ones forget the weights of the modes, annealed ones do not."""
        start = 16 * torch.rand(self.walkers, 2, device=run.device) - 8
        plain = list(langevin_path(uneven.score, start, step=0.2, steps=self.walk))
        levels = geometric_levels(10, 0.01, 20.0)
        annealed = list(
            annealed_langevin_path(
                lambda x, t: uneven.score(x, 1.0, levels.to(x)[t][:, None]), levels, start, steps=self.walk // 3
            )
        )
        shares = [float(heavy(x)) for x in plain]
        figure, axes = subplots(1, 3, size=(11, 3.9))
        panels = {
            f"drawn: {self.weight:.0%} in the heavy mode": uneven.draw(self.walkers)[0],
            f"plain Langevin: {shares[-1]:.0%}": plain[-1],
            f"annealed: {float(heavy(annealed[-1])):.0%}": annealed[-1],
        }
        for ax, (title, drawn), colour in zip(axes[0], panels.items(), (INK, *PALETTE), strict=False):
            cloud = drawn.cpu()
            ax.scatter(cloud[:, 0], cloud[:, 1], s=4, color=colour, linewidths=0, alpha=0.6, rasterized=True)
            ax.set(title=title, xlim=(-9, 9), ylim=(-9, 9), aspect="equal", xticks=[], yticks=[])
            ax.axline((0, 0), slope=-1, color=FAINT, linewidth=0.8, linestyle="--")
        run.figure(
            "weights", figure,
            "Walks from a uniform start, with exact scores. A plain walk ends in the mode on whose side of the dashed "
            "line it began; an annealed one chooses while the blur still joins the modes.",
        )  # fmt: skip
        return {
            "share_plain": shares[-1],
            "share_annealed": float(heavy(annealed[-1])),
            "share_true": self.weight,
        }


class Scaled(nn.Module):
    """A network's answer over σ: the size a score of noisy data has."""

    def __init__(self, width: int, sigma: float) -> None:
        super().__init__()
        self.network = plain_score(2, width)
        self.sigma = sigma

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.network(x)
        return out / self.sigma


class Standardised(nn.Module):
    """A field whose network sees x / scale."""

    def __init__(self, network: nn.Module, scale: float) -> None:
        super().__init__()
        self.network = network
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.network(x / self.scale)
        return out


@dataclass(frozen=True)
class Noised:
    """Denoising score matching at one σ."""

    sigma: float

    def __call__(self, score: Score, x: Tensor) -> Tensor:
        return denoising_matching(score, x, torch.randn_like(x), std=self.sigma)


def on_circle(count: int, device: torch.device) -> Tensor:
    angle = 2 * torch.pi * torch.rand(count, device=device)
    return torch.stack([angle.cos(), angle.sin()], 1)


def heavy(x: Tensor) -> Tensor:
    """The share of points on the side of the heavy mode."""
    return (x.sum(1) > 0).float().mean()


@torch.no_grad()
def relative_error(score: Score, truth: Score, x: Tensor) -> float:
    """The median of ‖s − truth‖ / ‖truth‖, a length of at least ½ taken."""
    right = truth(x)
    return float(((score(x) - right).norm(dim=1) / right.norm(dim=1).clamp(min=0.5)).median())

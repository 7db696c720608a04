"""A GAN learns eight clouds on a ring: a forger and a judge train each other (Diehl sec. 5.2)."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.adversarial.gan import GAN
from parnassus.data.toy import eight_gaussians
from parnassus.layers import leaky_relu, mlp
from parnassus.probability import energy_distance
from parnassus.report import PALETTE, curves, subplots
from parnassus.train import Run, at_least, at_most, between, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D5.2.3", "D5.2.2")
expected = {
    "energy_distance": at_most(0.05, "energy distance of forgeries to unseen data"),
    "energy_distance_at_first": reported("the same before training"),
    "data_to_data": reported("the same between two halves of the data: less is luck"),
    "clouds_found": at_least(6, "clouds of eight that hold at least a fifth of their share of the forgeries"),
    "near_a_cloud": at_least(0.7, "share of forgeries within four standard deviations of a cloud's middle"),
    "judge_on_data": between(0.4, 0.7, "mean of D(x) over unseen data; ½ for perfect forgeries"),
}
profiles = {"smoke": {"steps": 20, "width": 16, "count": 200}}
NOISE = 0.1  # standard deviation of a cloud


@dataclass(frozen=True)
class Experiment:
    steps: int = 4_000  # steps of each of the two players
    batch: int = 256  # points a step
    width: int = 64  # hidden units of both networks
    noise: int = 8  # numbers of noise from which a point is made
    lr: float = 1e-3  # Adam's learning rate at first; it falls to 0 along a line
    count: int = 2_000  # points that are compared

    def model(self) -> GAN:
        sizes = (self.width, self.width)
        generator = mlp((self.noise, *sizes, 2), activation=leaky_relu)
        return GAN(generator, mlp((2, *sizes, 1), activation=leaky_relu), noise=self.noise)

    def __call__(self, run: Run) -> dict[str, float]:
        data = eight_gaussians(20_000, noise=NOISE, seed=run.seed).to(run.device)
        real, other = data.x[: self.count], data.x[self.count : 2 * self.count]
        gan = run.build(self.model)
        adam = partial(Adam, lr=self.lr, betas=(0.5, 0.99))
        gan.generator, forger = run.prepare(gan.generator, adam)
        gan.discriminator, judge = run.prepare(gan.discriminator, adam)
        moments = [round(self.steps * share) for share in (0.0, 0.02, 0.1, 0.4, 1.0)]
        gallery = nn.Module()
        gallery.register_buffer("clouds", torch.zeros(len(moments), self.count, 2))
        run.keep("gallery", gallery)
        clouds = gallery.get_buffer("clouds")

        for step, batch in run.steps(data.batches(self.batch, self.steps)):
            if step in moments:
                clouds[moments.index(step)] = gan.sample(self.count).cpu()
            for optimizer in (forger, judge):
                optimizer.param_groups[0]["lr"] = self.lr * (1 - step / self.steps)
            judge_loss = gan.discriminator_loss(batch)
            run.update(judge, judge_loss)
            forger_loss = gan.generator_loss(len(batch))
            run.update(forger, forger_loss)
            run.log(step, **{"loss/judge": judge_loss.detach(), "loss/forger": forger_loss.detach()})
            if step % max(1, self.steps // 40) == 0:
                run.record(step, distance=energy_distance(gan.sample(self.count), real))

        run.publish(gan)
        forged = gan.sample(self.count)
        clouds[-1] = forged.cpu()
        with torch.no_grad():
            judged = float(gan.logits(other).sigmoid().mean())
        floor = float(energy_distance(real, other))
        found, near = coverage(forged)
        run.figure(
            "forgeries",
            draw_moments(dict(zip(moments, clouds, strict=True)), other.cpu()),
            "What the forger makes after so many steps, and the data. It spreads, runs after clouds and finds them; a "
            "few points are left on the ways between, for its map is continuous and the clouds are apart.",
        )
        run.figure(
            "the judge",
            draw_judge(gan, forged.cpu()),
            "D(x) over the plane after training, and the forgeries. Where forgeries lie as densely as the data D is ½; "
            "near 1 it tells of data that the forger has missed. Far from both it is asked nothing.",
        )
        steps, far = run.curve("distance")
        run.figure(
            "distance",
            curves(
                {"forgeries to data": (steps, far), "data to data": (steps, [floor] * len(steps))},
                x_label="step",
                y_label="energy distance",
                log_y=True,
            ),
            "How far the forgeries are from the data. Neither player's loss says so; the distance does.",
        )
        return {
            "energy_distance": float(energy_distance(forged, other)),
            "energy_distance_at_first": float(energy_distance(clouds[0], other.cpu())),
            "data_to_data": floor,
            "clouds_found": found,
            "near_a_cloud": near,
            "judge_on_data": judged,
        }


@dataclass(frozen=True)
class Sample:
    count: int = 2_000  # how many points

    def __call__(self, model: GAN) -> Tensor:
        return model.sample(self.count)


def coverage(points: Tensor) -> tuple[float, float]:
    """How many clouds hold a fifth of their share, and what share of the points lies in some cloud."""
    angle = torch.arange(8, device=points.device) * torch.pi / 4
    distance, cloud = torch.cdist(points, 2 * torch.stack([angle.cos(), angle.sin()], 1)).min(1)
    near = distance < 4 * NOISE
    held = torch.bincount(cloud[near], minlength=8)
    return float((held >= len(points) / 40).sum()), float(near.float().mean())


def draw_moments(clouds: dict[int, Tensor], real: Tensor) -> "Figure":
    figure, axes = subplots(1, len(clouds) + 1, size=(12.5, 2.4))
    named = {**{f"step {step:,}": cloud for step, cloud in clouds.items()}, "data": real}
    for ax, (title, cloud) in zip(axes[0], named.items(), strict=True):
        colour = PALETTE[0] if title == "data" else PALETTE[1]
        ax.scatter(cloud[:, 0], cloud[:, 1], s=2, color=colour, linewidths=0, alpha=0.6, rasterized=True)
        ax.set(xlim=(-3, 3), ylim=(-3, 3), xticks=[], yticks=[], title=title)
        ax.set_aspect("equal")
    return figure


@torch.no_grad()
def draw_judge(gan: GAN, forged: Tensor) -> "Figure":
    side = torch.linspace(-3, 3, 121)
    plane = torch.cartesian_prod(side, side).flip(1)  # rows run upwards
    device = next(gan.parameters()).device
    judged = gan.logits(plane.to(device)).sigmoid().reshape(121, 121).cpu()
    figure, axes = subplots(size=(5.4, 4.4))
    ax = axes[0, 0]
    picture = ax.imshow(judged.numpy(), origin="lower", extent=(-3, 3, -3, 3), vmin=0, vmax=1, cmap="PuOr")
    ax.scatter(forged[:, 0], forged[:, 1], s=2, color="#111111", linewidths=0, alpha=0.5, rasterized=True)
    ax.grid(visible=False)
    figure.colorbar(picture, ax=ax, label="D(x)").outline.set_visible(False)
    return figure

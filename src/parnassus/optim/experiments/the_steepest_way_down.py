"""Which way is down: the slope in every direction, and what a handful of examples says of it (Diehl sec. 1.5)."""

from collections.abc import Callable
from dataclasses import dataclass
from math import pi

import torch
from torch import Tensor
from torch.func import grad

from parnassus.atlas import exponent
from parnassus.optim import (
    gradient_descent,
    per_sample_gradients,
    reshuffle,
    steepest_descent,
    stochastic_gradient_descent,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Run, at_most, between

covers = ("D1.5.2", "D1.5.3", "D1.5.5", "Z3.4")
expected = {
    "steepest_angle_off": at_most(0.6, "degrees between the lowest of the sampled directions and −∇C"),
    "lowest_slope_over_norm": between(-1.0, -0.9999, "the least slope of a sampled direction over ‖∇C‖"),
    "variance_exponent": between(-1.1, -0.9, "power of the batch size with which the variance of its gradient falls"),
    "bias_in_standard_errors": at_most(4.5, "distance of the mean of all batch gradients from the full gradient"),
    "floor_exponent": between(0.8, 1.2, "power of η with which the squared distance from the minimum stays"),
    "floor_exponent_reshuffled": between(1.3, 2.2, "the same when batches are dealt out, not drawn anew"),
    "full_batch_apart": at_most(1e-12, "distance of SGD with one batch of everything from gradient descent"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"epochs": 4, "batches": 200, "chains": 20}, "gpu": {}}

SIZES = (1, 4, 16, 64)
START = (-1.0, 0.6)
RATES = (0.02, 0.04, 0.08, 0.16)


Deal = Callable[[int, int, torch.Generator], Tensor]
"""The rows that each of so many chains takes in an epoch, one after the other."""


def drawn_anew(chains: int, count: int, source: torch.Generator) -> Tensor:
    return torch.randint(count, (chains, count), generator=source)


def reshuffled(chains: int, count: int, source: torch.Generator) -> Tensor:
    return torch.rand(chains, count, generator=source).argsort(1)


DEALS: dict[str, Deal] = {"drawn anew": drawn_anew, "reshuffled": reshuffled}


def error(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return (x @ theta - y).square() / 2


@dataclass(frozen=True)
class Experiment:
    examples: int = 256  # rows of the regression
    directions: int = 720  # unit directions whose slope is measured
    batches: int = 2_000  # batches drawn of each size
    epochs: int = 20  # passes of each stochastic descent
    chains: int = 200  # stochastic descents of each rate

    def __call__(self, run: Run) -> dict[str, float]:
        source = torch.Generator().manual_seed(run.seed)
        x = torch.randn(self.examples, 2, generator=source, dtype=torch.float64) * torch.tensor([1.0, 0.6]).double()
        y = x @ torch.tensor([1.0, -1.0]).double() + 0.7 * torch.randn(self.examples, generator=source).double()
        result = self.slopes(run, x, y) | self.noise(run, x, y, source) | self.floors(run, x, y, source)
        run.note(
            "what to see",
            "In direction u a function falls with slope ⟨u, ∇C⟩ = ‖∇C‖ cos φ: least opposite to the gradient, and "
            "level across it. A batch knows that direction only roughly, but is right on average; four times as many "
            "examples halve its error, and with a fixed rate what is left of it keeps descent from settling.",
        )
        return result

    def slopes(self, run: Run, x: Tensor, y: Tensor) -> dict[str, float]:
        theta = torch.tensor(START, dtype=torch.float64)

        def cost(at: Tensor) -> Tensor:
            return error(at, x, y).mean()

        gradient = grad(cost)(theta)
        angle = torch.linspace(-pi, pi, self.directions + 1, dtype=torch.float64)[:-1]
        unit = torch.stack([angle.cos(), angle.sin()], 1)
        h = 1e-5
        slope = torch.stack([(cost(theta + h * each) - cost(theta - h * each)) / (2 * h) for each in unit])
        down = steepest_descent(gradient)
        lowest = unit[slope.argmin()]
        figure, axes = subplots(1, 2, size=(10.4, 4.0))
        line = torch.linspace(-2.6, 2.6, 81, dtype=torch.float64)
        plane = torch.stack(torch.meshgrid(line, line, indexing="xy"), -1).reshape(-1, 2)
        heights = (plane @ x.T - y).square().mean(1).reshape(81, 81) / 2
        axes[0, 0].contour(line, line, heights, levels=14, colors=[FAINT], linewidths=0.8)
        spots = theta + unit[::12]
        axes[0, 0].scatter(*spots.T, c=slope[::12], cmap="RdBu_r", s=26, zorder=3)
        axes[0, 0].annotate(
            "", tuple(theta + down), tuple(theta), arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 1.6}
        )
        axes[0, 0].set(xlabel="θ₁", ylabel="θ₂", aspect="equal", title="directions around one place")
        degrees = angle.rad2deg()
        axes[0, 1].plot(degrees, slope, color=PALETTE[0], label="slope, by differences")
        axes[0, 1].plot(degrees[::24], (unit @ gradient)[::24], "o", color=PALETTE[1], markersize=4, label="⟨u, ∇C⟩")
        axes[0, 1].axhline(-float(gradient.norm()), color=FAINT, linestyle=":", linewidth=1.4)
        steepest = float(torch.atan2(down[1], down[0]).rad2deg())
        axes[0, 1].axvline(steepest, ymax=0.72, color=INK, linestyle="--", linewidth=1)
        axes[0, 1].set(xlabel="direction in degrees", title="slope by direction", xticks=range(-180, 181, 90))
        axes[0, 1].set_ylim(-1.2 * float(gradient.norm()), 1.9 * float(gradient.norm()))
        axes[0, 1].legend(loc="upper center")
        run.figure(
            "slopes in all directions",
            figure,
            "Left: a cost, a place, and the unit circle around it, red where the way goes up and blue where down; the "
            "arrow is −∇C/‖∇C‖. Right: the slope against the direction is a cosine, least at the arrow (dashed) with "
            "the value −‖∇C‖ (dotted).",
        )
        return {
            "steepest_angle_off": float((lowest @ down).clamp(-1, 1).arccos().rad2deg()),
            "lowest_slope_over_norm": float(((unit @ gradient).min() / gradient.norm()).clamp(min=-1)),
        }

    def noise(self, run: Run, x: Tensor, y: Tensor, source: torch.Generator) -> dict[str, float]:
        theta = torch.tensor(START, dtype=torch.float64)
        each = per_sample_gradients(error, theta, x, y)
        full = each.mean(0)
        figure, axes = subplots(1, 2, size=(10.4, 4.0))
        variances, offs = [], []
        for size, colour in zip(SIZES, PALETTE, strict=False):
            rows = torch.randint(len(x), (self.batches, size), generator=source)
            drawn = each[rows].mean(1)
            axes[0, 0].plot(*drawn[:400].T, "o", color=colour, markersize=2.5, alpha=0.5, label=f"|B| = {size}")
            variances.append(drawn.var(0).sum())
            offs.append(((drawn.mean(0) - full).abs() / (drawn.std(0) / self.batches**0.5)).max())
        axes[0, 0].plot(*full, "+", color=INK, markersize=14, markeredgewidth=2)
        reach = 2.5 * each.std(0)
        axes[0, 0].set(
            xlabel="∂C/∂θ₁",
            ylabel="∂C/∂θ₂",
            title="gradients of batches",
            xlim=(float(full[0] - reach[0]), float(full[0] + reach[0])),
            ylim=(float(full[1] - reach[1]), float(full[1] + reach[1])),
        )
        axes[0, 0].legend(markerscale=2, loc="upper right")
        sizes, found = torch.tensor(SIZES, dtype=torch.float64), torch.stack(variances)
        axes[0, 1].loglog(sizes, found, color=PALETTE[0], marker="o", label="measured")
        axes[0, 1].loglog(sizes, found[0] / sizes, color=INK, linestyle="--", linewidth=1.2, label="∝ 1/|B|")
        axes[0, 1].set(xlabel="examples a batch", title="variance of the gradient", xticks=SIZES)
        axes[0, 1].set_xticklabels([str(size) for size in SIZES])
        axes[0, 1].minorticks_off()
        axes[0, 1].legend()
        run.figure(
            "gradients of batches",
            figure,
            "Left: gradients at one place from batches of several sizes, around the gradient of all examples (cross). "
            "They are right on average. Right: their variance falls as one over the size.",
        )
        return {
            "variance_exponent": exponent(sizes, found),
            "bias_in_standard_errors": float(torch.stack(offs).max()),
        }

    def floors(self, run: Run, x: Tensor, y: Tensor, source: torch.Generator) -> dict[str, float]:
        """Stochastic descents that settle in a cloud about the minimum, the larger the rate the wider."""
        best = torch.linalg.lstsq(x, y[:, None]).solution[:, 0]
        figure, axes = subplots(1, 3, size=(12.5, 3.9))
        left: dict[str, list[Tensor]] = {name: [] for name in DEALS}
        for rate, colour in zip(RATES, PALETTE, strict=False):
            for name, kept in left.items():
                paths = self.wander(x, y, rate, DEALS[name], source)
                distance = (paths - best).square().sum(-1).mean(1)
                kept.append(distance[len(distance) // 2 :].mean())
                if name == "drawn anew":
                    axes[0, 0].semilogy(distance, color=colour, linewidth=1, label=f"η = {rate:g}")
                    axes[0, 1].plot(*paths[-1].T, "o", color=colour, markersize=2.5, alpha=0.6)
        axes[0, 0].set(xlabel="step", title="squared distance, batches drawn anew")
        axes[0, 0].legend(ncols=2)
        axes[0, 1].plot(*best, "+", color=INK, markersize=14, markeredgewidth=2)
        axes[0, 1].set(xlabel="θ₁", ylabel="θ₂", title="where they are in the end", aspect="equal")
        rates = torch.tensor(RATES, dtype=torch.float64)
        exponents = {}
        for (name, kept), colour in zip(left.items(), PALETTE, strict=False):
            exponents[name] = exponent(rates, torch.stack(kept))
            axes[0, 2].loglog(
                rates, torch.stack(kept), color=colour, marker="o", label=f"{name}: η^{exponents[name]:.2f}"
            )
        axes[0, 2].set(xlabel="η", title="squared distance that stays", xticks=RATES)
        axes[0, 2].set_xticklabels([f"{rate:g}" for rate in RATES])
        axes[0, 2].minorticks_off()
        axes[0, 2].legend()
        run.figure(
            "what a fixed rate leaves",
            figure,
            "Stochastic descent in batches of 4 comes near and then wanders about the minimum (cross), for ever. With "
            "batches drawn anew, twice the rate leaves twice the squared distance. Dealt like cards, so that every "
            "epoch sees each example once, much of the noise cancels within an epoch and less is left.",
        )
        start = torch.tensor(START, dtype=torch.float64)
        everything = stochastic_gradient_descent(
            error, start, (x, y), batches=reshuffle(len(x), len(x), epochs=30, generator=source), rate=0.2
        )
        plain = gradient_descent(lambda theta: error(theta, x, y).mean(), start, rate=0.2, steps=30)
        return {
            "floor_exponent": exponents["drawn anew"],
            "floor_exponent_reshuffled": exponents["reshuffled"],
            "full_batch_apart": float((everything - plain).abs().max()),
        }

    def wander(self, x: Tensor, y: Tensor, rate: float, deal: Deal, source: torch.Generator) -> Tensor:
        """Places of many stochastic descents at once, (step, chain, 2)."""
        theta = torch.tensor(START, dtype=torch.float64).repeat(self.chains, 1)
        path = [theta]
        for _ in range(self.epochs):
            for batch in deal(self.chains, len(x), source).split(4, dim=1):
                residual = (x[batch] * theta[:, None]).sum(-1) - y[batch]
                theta = theta - rate * (residual[..., None] * x[batch]).mean(1)
                path.append(theta)
        return torch.stack(path)

"""Nesterov's method: its rate, and the differential equation with a Bessel solution behind it (book sec. 3.2)."""

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.atlas import exponent
from parnassus.optim import (
    accelerated_bound,
    accelerated_worst,
    bowl_solution,
    convex_bound,
    ellipse,
    gradient_descent,
    gradient_flow,
    nesterov_descent,
    nesterov_flow,
    quadratic,
    slowest,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes

covers = ("B3.2-3", "B3.2-4", "B3.2-5", "B3.2-6")
expected = {
    "nesterov_over_bound": at_most(1.0, "excess of φ over 2‖w⁽⁰⁾ − w*‖²/(γ(T + 1)²), at most"),
    "worst_over_exact": between(0.999999, 1.000001, "excess on the slowest function over 2βR²/((T + 2)(T + 3))"),
    "nesterov_over_descent": at_most(0.05, "what is left on a flat quadratic, over that of plain descent"),
    "round_bowl_ratio": at_least(10.0, "the same on a round bowl, where plain descent wins"),
    "flow_exponent": between(0.9, 1.1, "exponent of η in the distance of descent from its flow"),
    "equation_exponent": between(0.47, 0.53, "exponent of γ in the distance of Nesterov's φ from its equation"),
    "equation_factor": between(0.7, 0.8, "that distance over √γ"),
    "hundredth_with_3": between(3.2, 3.4, "time at which f = 0.01 is first reached, r = 3"),
    "hundredth_with_9": between(5.6, 5.8, "the same, r = 9"),
    "late_9_over_3": at_most(1e-4, "largest f on 40 ≤ s ≤ 50 with r = 9, over that with r = 3"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 300, "finest": 1e-3}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    steps: int = 2_000  # steps on the flat quadratic
    finest: float = 1e-5  # least γ that is compared with the equation

    def __call__(self, run: Run) -> dict[str, float]:
        result = self.rates(run) | self.flow(run) | self.equation(run) | self.damping(run)
        run.note(
            "what to see",
            f"The method reaches 1/T² where plain descent has 1/T, and no better: on the slowest function it is at the "
            f"exact worst case. It does not always win: on a round bowl it is {result['round_bowl_ratio']:.0f} times "
            f"higher than plain descent after 150 steps. Its iterates follow a differential equation at time k√γ, "
            f"within {result['equation_factor']:.2f} √γ; the rate γ itself, the time step of plain descent, is not the "
            "time step here.",
        )
        return result

    def rates(self, run: Run) -> dict[str, float]:
        generator = torch.Generator().manual_seed(run.seed)
        flat = quadratic(torch.logspace(-6, 0, 100, dtype=torch.float64), generator=generator)
        bowl = quadratic(torch.logspace(-1, 0, 10, dtype=torch.float64), generator=generator)
        t = torch.arange(1, self.steps + 1, dtype=torch.float64)
        plain = flat.excess(gradient_descent(flat.loss, flat.start, rate=1.0, steps=self.steps))[1:]
        ahead = flat.excess(nesterov_descent(flat.loss, flat.start, rate=1.0, steps=self.steps).phi)[1:]
        bound = accelerated_bound(flat, t, rate=1.0)
        figure, axes = subplots(1, 3, size=(12.0, 4.0))
        left, middle, right = axes[0]
        paired(left, t, plain, ahead)
        left.loglog(t, convex_bound(flat, t, rate=1.0), color=PALETTE[0], linestyle="--", linewidth=1)
        left.loglog(t, bound, color=PALETTE[1], linestyle="--", linewidth=1)
        left.set(title="flat: curvatures from 10⁻⁶ to 1", ylabel="f − f*", xscale="log")

        touched = []
        for length, colour in zip((3, 10, 30, 100), PALETTE[2:], strict=False):
            hard = slowest((length**2 + 5 * length + 2) / 8)
            excess = hard.excess(nesterov_descent(hard.loss, hard.start, rate=1.0, steps=200).phi)[1:]
            middle.loglog(t[:200], excess.clamp(min=1e-7), color=colour, label=f"T = {length}")
            touched.append(excess[length - 1] / accelerated_worst(hard, t[length - 1 : length])[0])
        unit = slowest(0.0)
        middle.loglog(t[:200], accelerated_bound(unit, t[:200], rate=1.0), color=INK, linestyle="--", linewidth=1)
        middle.loglog(t[:200], accelerated_worst(unit, t[:200]), color=INK, linestyle=":", linewidth=1.2)
        middle.set(title="the slowest for T steps", xlabel="step", ylim=(2e-6, 1))
        middle.legend(loc="lower left")

        short = t[:250]
        plain_bowl = bowl.excess(gradient_descent(bowl.loss, bowl.start, rate=1.0, steps=250))[1:]
        ahead_bowl = bowl.excess(nesterov_descent(bowl.loss, bowl.start, rate=1.0, steps=250).phi)[1:]
        paired(right, short, plain_bowl.clamp(min=1e-17), ahead_bowl.clamp(min=1e-17))
        right.set(title="round: curvatures from 0.1 to 1", xlim=(0, 250), ylim=(1e-16, 10))
        run.figure(
            "the rate of Nesterov's method",
            figure,
            "Left: excess and bound (dashed) of plain descent and of Nesterov's method, slopes −1 and −2. Middle: for "
            "every T a Huber loss touches the exact worst case (dotted), which tends to the bound (dashed). Right: "
            "where curvature is nowhere small the method overshoots and ripples, and plain descent wins in the end.",
        )
        return {
            "nesterov_over_bound": float((ahead / bound).max()),
            "worst_over_exact": float(max(touched)),
            "nesterov_over_descent": float(ahead[-1] / plain[-1]),
            "round_bowl_ratio": float(ahead_bowl[149] / plain_bowl[149]),
        }

    def flow(self, run: Run) -> dict[str, float]:
        """Problem 3.1: descent is Euler's method for the flow; its error halves with η."""
        valley = ellipse(8.0)
        figure, axes = subplots(1, 2, size=(10.0, 3.8))
        contours(axes[0, 0])
        for eta, colour in zip((1.85, 0.8), PALETTE, strict=False):
            path = gradient_descent(valley.loss, valley.start, rate=eta, steps=int(24 / eta))
            axes[0, 0].plot(*path.T, color=colour, marker="o", markersize=3, linewidth=1, label=f"descent, η = {eta:g}")
        axes[0, 0].plot(
            *gradient_flow(valley.loss, valley.start, time=24.0, steps=240).T, color=INK, label="gradient flow"
        )
        second = nesterov_flow(valley.loss, valley.start, time=24.0, steps=480)
        axes[0, 0].plot(*second.T, color=PALETTE[2], label="Nesterov's equation")
        axes[0, 0].set(xlabel="w₁", ylabel="w₂", title="paths to the minimum at 0", ylim=(-1.3, 1.9))
        axes[0, 0].legend(fontsize=8, ncols=2, loc="upper left")
        sizes = (20, 40, 80, 160, 320)
        rates = torch.tensor([8.0 / steps for steps in sizes], dtype=torch.float64)
        curvature = torch.tensor([1 / 8, 1.0], dtype=torch.float64)
        errors = []
        for steps in sizes:
            s = torch.linspace(0, 8, steps + 1, dtype=torch.float64)[:, None]
            path = gradient_descent(valley.loss, valley.start, rate=8.0 / steps, steps=steps)
            errors.append((path - valley.start * (-curvature * s).exp()).norm(dim=1).max())
        error = torch.stack(errors)
        axes[0, 1].loglog(rates, error, color=PALETTE[0], marker="o", markersize=4, label="descent")
        axes[0, 1].loglog(rates, rates * error[-1] / rates[-1], color=INK, linestyle="--", linewidth=1, label="slope 1")
        axes[0, 1].set(xlabel="rate η", title="greatest distance from the flow")
        axes[0, 1].legend()
        run.figure(
            "descent and its flow",
            figure,
            "Left: in the limit of small rates zigzags vanish and descent follows dw/ds = −∇f; Nesterov's method "
            "follows an equation of second order, which swings. Right: at time tη descent is off by O(η).",
        )
        return {"flow_exponent": exponent(rates[[0, -1]], error[[0, -1]])}

    def equation(self, run: Run) -> dict[str, float]:
        figure, axes = subplots(1, 2, size=(10.0, 3.8))
        s = torch.linspace(0, 20, 600, dtype=torch.float64)
        axes[0, 0].plot(s, bowl_solution(s), color=INK, label="2 J₁(s)/s")
        for gamma, each, colour in ((0.04, 2, PALETTE[0]), (0.0004, 20, PALETTE[1])):
            phi = iterates(gamma)[::each]
            times = each * sqrt(gamma) * torch.arange(len(phi), dtype=torch.float64)
            axes[0, 0].plot(times, phi, "o", color=colour, markersize=3, label=f"γ = {gamma:g}, s = k√γ")
        printed = iterates(0.04)
        times = 0.04 * torch.arange(len(printed), dtype=torch.float64)
        axes[0, 0].plot(times, printed, color=PALETTE[0], linestyle=":", label="γ = 0.04, s = kγ")
        axes[0, 0].set(xlabel="time s", title="w on f = ½w²")
        axes[0, 0].legend(fontsize=8)
        gammas = torch.logspace(-2, torch.tensor(self.finest).log10(), 7, dtype=torch.float64)
        distance = torch.stack([distance_to_equation(float(gamma)) for gamma in gammas])
        axes[0, 1].loglog(
            gammas, distance, color=PALETTE[0], marker="o", markersize=4, label="greatest distance, s ≤ 20"
        )
        axes[0, 1].loglog(gammas, 0.75 * gammas.sqrt(), color=INK, linestyle="--", linewidth=1, label="0.75 √γ")
        axes[0, 1].set(xlabel="rate γ", title="φ and the equation")
        axes[0, 1].legend()
        run.figure(
            "the equation and its Bessel solution",
            figure,
            "Left: iterates lie on the solution of w″ + (3/s)w′ = −w if iterate k stands at time k√γ; at kγ (dotted) "
            "they do not. Right: the distance falls like √γ.",
        )
        return {
            "equation_exponent": exponent(gammas[[0, -1]], distance[[0, -1]]),
            "equation_factor": float((distance / gammas.sqrt())[-1]),
        }

    def damping(self, run: Run) -> dict[str, float]:
        s = torch.linspace(0, 50, 5_001, dtype=torch.float64)
        f = {r: bowl_solution(s, damping=r).square() / 2 for r in (1.0, 3.0, 9.0, 30.0)}
        figure, axes = subplots(1, 2, size=(10.0, 3.8))
        for (r, values), colour in zip(f.items(), PALETTE, strict=False):
            axes[0, 0].plot(s[s <= 12], values[s <= 12], color=colour, label=f"r = {r:g}")
            axes[0, 1].semilogy(s, values.clamp(min=1e-14), color=colour)
        axes[0, 0].axhline(0.01, color=FAINT, linestyle="--", linewidth=1)
        axes[0, 0].set(xlabel="time s", title="f at first")
        axes[0, 0].legend()
        axes[0, 1].set(xlabel="time s", title="f in the long run", ylim=(1e-14, 1))
        run.figure(
            "other dampings",
            figure,
            "With r in place of 3 the peaks of f fall like s^(−r), so that a larger r wins in the long run (right); at "
            "first it is slower, as the ball hardly gets moving (left; the dashed line is 0.01).",
        )
        late = {r: values[s >= 40].max() for r, values in f.items()}
        return {
            "hundredth_with_3": float(s[f[3.0] < 0.01][0]),
            "hundredth_with_9": float(s[f[9.0] < 0.01][0]),
            "late_9_over_3": float(late[9.0] / late[3.0]),
        }


def paired(ax: "Axes", t: Tensor, plain: Tensor, ahead: Tensor) -> None:
    ax.semilogy(t, plain, color=PALETTE[0], label="gradient descent")
    ax.semilogy(t, ahead, color=PALETTE[1], label="Nesterov's φ")
    ax.set_xlabel("step")
    ax.legend(loc="lower left")


def contours(ax: "Axes") -> None:
    """Levels of the ellipse ½ (w₁²/8 + w₂²)."""
    across, up = torch.linspace(-4, 8.5, 120), torch.linspace(-1.3, 1.9, 60)
    levels = across[None, :].square() / 16 + up[:, None].square() / 2
    ax.contour(across, up, levels, levels=10, colors=FAINT, linewidths=0.6, alpha=0.6)
    ax.grid(visible=False)


def iterates(gamma: float, until: float = 20.0) -> Tensor:
    """φ of Nesterov's method on ½w² from 1, up to time `until`."""
    start = torch.ones(1, dtype=torch.float64)
    return nesterov_descent(lambda w: w.square().sum() / 2, start, rate=gamma, steps=round(until / sqrt(gamma))).phi[
        :, 0
    ]


def distance_to_equation(gamma: float) -> Tensor:
    phi = iterates(gamma)
    return (phi - bowl_solution(sqrt(gamma) * torch.arange(len(phi), dtype=torch.float64))).abs().max()

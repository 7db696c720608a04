"""Nesterov acceleration: rate 1/T², its differential equation and Bessel solution (book sec. 3.2)."""

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.atlas import exponent
from parnassus.optim import (
    accelerated_bound,
    accelerated_worst_case,
    convex_bound,
    ellipse,
    gradient_descent,
    gradient_flow,
    huber_worst_case,
    nesterov_descent,
    nesterov_flow,
    quadratic,
    quadratic_nesterov_flow,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Positive, Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes

covers = ("B3.2-3", "B3.2-4", "B3.2-5", "B3.2-6")
expected = {
    "nesterov_bound_ratio": at_most(1.0, "maximum ratio of the suboptimality of φ to 2‖w⁽⁰⁾ − w*‖²/(γ(T + 1)²)"),
    "worst_case_bound_ratio": between(
        0.999999, 1.000001, "ratio of the suboptimality of the worst-case Huber loss to 2βR²/((T + 2)(T + 3))"
    ),
    "ill_conditioned_ratio": at_most(
        0.05, "ratio of suboptimalities, Nesterov's method to gradient descent, ill-conditioned quadratic"
    ),
    "well_conditioned_ratio": at_least(
        10.0, "ratio of suboptimalities, Nesterov's method to gradient descent, well-conditioned quadratic"
    ),
    "flow_exponent": between(0.9, 1.1, "exponent of η in the distance between gradient descent and gradient flow"),
    "ode_exponent": between(
        0.47, 0.53, "exponent of γ in the distance between Nesterov's φ and the solution of its equation"
    ),
    "ode_factor": between(
        0.7, 0.8, "ratio to √γ of the distance between Nesterov's φ and the solution of its equation"
    ),
    "hitting_time_r_3": between(3.2, 3.4, "time at which f = 0.01 is first reached, r = 3"),
    "hitting_time_r_9": between(5.6, 5.8, "time at which f = 0.01 is first reached, r = 9"),
    "late_maximum_ratio": at_most(1e-4, "ratio of the maxima of f on 40 ≤ s ≤ 50, r = 9 to r = 3"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 300, "min_learning_rate": 1e-3}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    steps: Positive[int] = 2_000  # steps on the ill-conditioned quadratic
    min_learning_rate: Positive[float] = 1e-5  # smallest γ compared with the differential equation

    def __call__(self, run: Run) -> dict[str, float]:
        result = self.compare_rates(run) | self.compare_flow(run) | self.compare_ode(run) | self.compare_dampings(run)
        run.note(
            "results",
            "Nesterov's method converges as 1/T², gradient descent as 1/T; on the worst-case Huber loss it attains the "
            "exact bound. It is not always faster: on a well-conditioned quadratic its suboptimality is "
            f"{result['well_conditioned_ratio']:.0f} times that of gradient descent after 150 steps. Its iterates "
            f"follow a differential equation at time k√γ, within {result['ode_factor']:.2f} √γ; the time step is √γ, "
            "not γ as for gradient descent.",
        )
        return result

    def compare_rates(self, run: Run) -> dict[str, float]:
        generator = torch.Generator().manual_seed(run.seed)
        ill = quadratic(torch.logspace(-6, 0, 100, dtype=torch.float64), generator=generator)
        well = quadratic(torch.logspace(-1, 0, 10, dtype=torch.float64), generator=generator)
        t = torch.arange(1, self.steps + 1, dtype=torch.float64)
        plain = ill.excess(gradient_descent(ill.loss, ill.start, learning_rate=1.0, steps=self.steps))[1:]
        accelerated = ill.excess(nesterov_descent(ill.loss, ill.start, learning_rate=1.0, steps=self.steps).phi)[1:]
        bound = accelerated_bound(ill, t, learning_rate=1.0)
        figure, axes = subplots(1, 3, size=(12.0, 4.0))
        left, middle, right = axes[0]
        plot_pair(left, t, plain, accelerated)
        left.loglog(t, convex_bound(ill, t, learning_rate=1.0), color=PALETTE[0], linestyle="--", linewidth=1)
        left.loglog(t, bound, color=PALETTE[1], linestyle="--", linewidth=1)
        left.set(title="curvatures from 10⁻⁶ to 1", ylabel="f − f*", xscale="log")

        worst_case_ratios = []
        for length, colour in zip((3, 10, 30, 100), PALETTE[2:], strict=False):
            huber = huber_worst_case((length**2 + 5 * length + 2) / 8)
            excess = huber.excess(nesterov_descent(huber.loss, huber.start, learning_rate=1.0, steps=200).phi)[1:]
            middle.loglog(t[:200], excess.clamp(min=1e-7), color=colour, label=f"T = {length}")
            worst_case_ratios.append(excess[length - 1] / accelerated_worst_case(huber, t[length - 1 : length])[0])
        unit = huber_worst_case(0.0)
        middle.loglog(
            t[:200], accelerated_bound(unit, t[:200], learning_rate=1.0), color=INK, linestyle="--", linewidth=1
        )
        middle.loglog(t[:200], accelerated_worst_case(unit, t[:200]), color=INK, linestyle=":", linewidth=1.2)
        middle.set(title="worst-case Huber losses", xlabel="step", ylim=(2e-6, 1))
        middle.legend(loc="lower left")

        short = t[:250]
        plain_well = well.excess(gradient_descent(well.loss, well.start, learning_rate=1.0, steps=250))[1:]
        accelerated_well = well.excess(nesterov_descent(well.loss, well.start, learning_rate=1.0, steps=250).phi)[1:]
        plot_pair(right, short, plain_well.clamp(min=1e-17), accelerated_well.clamp(min=1e-17))
        right.set(title="curvatures from 0.1 to 1", xlim=(0, 250), ylim=(1e-16, 10))
        run.figure(
            "convergence rate of Nesterov's method",
            figure,
            "Left: suboptimality and bound (dashed) of gradient descent and Nesterov's method, with exponents −1 and "
            "−2. Middle: for every T a Huber loss attains the exact worst case (dotted), which approaches the "
            "bound (dashed). Right: on a well-conditioned quadratic Nesterov's method overshoots and oscillates, and "
            "gradient descent is faster.",
        )
        return {
            "nesterov_bound_ratio": float((accelerated / bound).max()),
            "worst_case_bound_ratio": float(max(worst_case_ratios)),
            "ill_conditioned_ratio": float(accelerated[-1] / plain[-1]),
            "well_conditioned_ratio": float(accelerated_well[149] / plain_well[149]),
        }

    def compare_flow(self, run: Run) -> dict[str, float]:
        """Compare gradient descent with gradient flow, whose Euler method it is (book ex. 3.1)."""
        valley = ellipse(8.0)
        figure, axes = subplots(1, 2, size=(10.0, 3.8))
        plot_contours(axes[0, 0])
        for eta, colour in zip((1.85, 0.8), PALETTE, strict=False):
            path = gradient_descent(valley.loss, valley.start, learning_rate=eta, steps=int(24 / eta))
            axes[0, 0].plot(*path.T, color=colour, marker="o", markersize=3, linewidth=1, label=f"η = {eta:g}")
        axes[0, 0].plot(
            *gradient_flow(valley.loss, valley.start, time=24.0, steps=240).T, color=INK, label="gradient flow"
        )
        second = nesterov_flow(valley.loss, valley.start, time=24.0, steps=480)
        axes[0, 0].plot(*second.T, color=PALETTE[2], label="Nesterov's equation")
        axes[0, 0].set(xlabel="w₁", ylabel="w₂", title="trajectories", ylim=(-1.3, 1.9))
        axes[0, 0].legend(fontsize=8, ncols=2, loc="upper left")
        sizes = (20, 40, 80, 160, 320)
        rates = torch.tensor([8.0 / steps for steps in sizes], dtype=torch.float64)
        curvature = torch.tensor([1 / 8, 1.0], dtype=torch.float64)
        errors = []
        for steps in sizes:
            s = torch.linspace(0, 8, steps + 1, dtype=torch.float64)[:, None]
            path = gradient_descent(valley.loss, valley.start, learning_rate=8.0 / steps, steps=steps)
            errors.append((path - valley.start * (-curvature * s).exp()).norm(dim=1).max())
        error = torch.stack(errors)
        axes[0, 1].loglog(rates, error, color=PALETTE[0], marker="o", markersize=4, label="gradient descent")
        axes[0, 1].loglog(rates, rates * error[-1] / rates[-1], color=INK, linestyle="--", linewidth=1, label="slope 1")
        axes[0, 1].set(xlabel="learning rate η", title="maximum distance from gradient flow")
        axes[0, 1].legend()
        run.figure(
            "gradient flow",
            figure,
            "Left: for η → 0 gradient descent follows dw/ds = −∇f without zigzags; Nesterov's method follows an "
            "equation of second order, which oscillates. Right: at time tη the error of gradient descent is O(η).",
        )
        return {"flow_exponent": exponent(rates[[0, -1]], error[[0, -1]])}

    def compare_ode(self, run: Run) -> dict[str, float]:
        figure, axes = subplots(1, 2, size=(10.0, 3.8))
        s = torch.linspace(0, 20, 600, dtype=torch.float64)
        axes[0, 0].plot(s, quadratic_nesterov_flow(s), color=INK, label="2 J₁(s)/s")
        for gamma, stride, colour in ((0.04, 2, PALETTE[0]), (0.0004, 20, PALETTE[1])):
            phi = nesterov_iterates(gamma)[::stride]
            times = stride * sqrt(gamma) * torch.arange(len(phi), dtype=torch.float64)
            axes[0, 0].plot(times, phi, "o", color=colour, markersize=3, label=f"γ = {gamma:g}, s = k√γ")
        printed = nesterov_iterates(0.04)
        times = 0.04 * torch.arange(len(printed), dtype=torch.float64)
        axes[0, 0].plot(times, printed, color=PALETTE[0], linestyle=":", label="γ = 0.04, s = kγ")
        axes[0, 0].set(xlabel="time s", title="w on f = ½w²")
        axes[0, 0].legend(fontsize=8)
        gammas = torch.logspace(-2, torch.tensor(self.min_learning_rate).log10(), 7, dtype=torch.float64)
        distance = torch.stack([distance_to_ode(float(gamma)) for gamma in gammas])
        axes[0, 1].loglog(
            gammas, distance, color=PALETTE[0], marker="o", markersize=4, label="maximum distance, s ≤ 20"
        )
        axes[0, 1].loglog(gammas, 0.75 * gammas.sqrt(), color=INK, linestyle="--", linewidth=1, label="0.75 √γ")
        axes[0, 1].set(xlabel="learning rate γ", title="distance of φ from the equation")
        axes[0, 1].legend()
        run.figure(
            "Nesterov's equation",
            figure,
            "Left: the iterates follow the solution of w″ + (3/s)w′ = −w if iterate k is at time k√γ; at time kγ "
            "(dotted) they do not. Right: the distance decays as √γ.",
        )
        return {
            "ode_exponent": exponent(gammas[[0, -1]], distance[[0, -1]]),
            "ode_factor": float((distance / gammas.sqrt())[-1]),
        }

    def compare_dampings(self, run: Run) -> dict[str, float]:
        s = torch.linspace(0, 50, 5_001, dtype=torch.float64)
        f = {r: quadratic_nesterov_flow(s, damping=r).square() / 2 for r in (1.0, 3.0, 9.0, 30.0)}
        figure, axes = subplots(1, 2, size=(10.0, 3.8))
        for (r, values), colour in zip(f.items(), PALETTE, strict=False):
            axes[0, 0].plot(s[s <= 12], values[s <= 12], color=colour, label=f"r = {r:g}")
            axes[0, 1].semilogy(s, values.clamp(min=1e-14), color=colour)
        axes[0, 0].axhline(0.01, color=FAINT, linestyle="--", linewidth=1)
        axes[0, 0].set(xlabel="time s", title="f initially")
        axes[0, 0].legend()
        axes[0, 1].set(xlabel="time s", title="f asymptotically", ylim=(1e-14, 1))
        run.figure(
            "damping coefficients",
            figure,
            "With damping r in place of 3 the peaks of f decay as s^(−r): a larger r is faster asymptotically (right) "
            "and slower initially (left; the dashed line is 0.01).",
        )
        late_maximum = {r: values[s >= 40].max() for r, values in f.items()}
        return {
            "hitting_time_r_3": float(s[f[3.0] < 0.01][0]),
            "hitting_time_r_9": float(s[f[9.0] < 0.01][0]),
            "late_maximum_ratio": float(late_maximum[9.0] / late_maximum[3.0]),
        }


def plot_pair(ax: "Axes", t: Tensor, plain: Tensor, accelerated: Tensor) -> None:
    ax.semilogy(t, plain, color=PALETTE[0], label="gradient descent")
    ax.semilogy(t, accelerated, color=PALETTE[1], label="Nesterov's φ")
    ax.set_xlabel("step")
    ax.legend(loc="lower left")


def plot_contours(ax: "Axes") -> None:
    """Plot contours of the ellipse ½ (w₁²/8 + w₂²)."""
    w1, w2 = torch.linspace(-4, 8.5, 120), torch.linspace(-1.3, 1.9, 60)
    values = w1[None, :].square() / 16 + w2[:, None].square() / 2
    ax.contour(w1, w2, values, levels=10, colors=FAINT, linewidths=0.6, alpha=0.6)
    ax.grid(visible=False)


def nesterov_iterates(gamma: float, max_time: float = 20.0) -> Tensor:
    """φ of Nesterov's method on ½w² from 1, up to time `max_time`."""
    start = torch.ones(1, dtype=torch.float64)
    return nesterov_descent(
        lambda w: w.square().sum() / 2, start, learning_rate=gamma, steps=round(max_time / sqrt(gamma))
    ).phi[:, 0]


def distance_to_ode(gamma: float) -> Tensor:
    """Maximum distance of φ from the solution of Nesterov's equation."""
    phi = nesterov_iterates(gamma)
    return (phi - quadratic_nesterov_flow(sqrt(gamma) * torch.arange(len(phi), dtype=torch.float64))).abs().max()

"""Policy update sizes on a cliff: gradient ascent, a trust region and a clipped ratio (book sec. 18.5)."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor

from parnassus.reinforcement.agents.surrogate import clipped_surrogate
from parnassus.reinforcement.tabular.grid_world import GridWorld
from parnassus.reinforcement.tabular.policy_gradient import expected_return, policy_gradient, softmax_policy
from parnassus.reinforcement.tabular.trust_region import (
    improvement_lower_bound,
    occupancy_weighted_kl,
    surrogate_return,
    trust_region_step,
)
from parnassus.reinforcement.tabular.value_and_policy_iteration import policy_iteration
from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.train import Positive, Run, at_most, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B18.5-2", "B18.5-3")
expected = {
    "return_gap_trust_region": at_most(0.02, "optimal return − return after all updates, trust region"),
    "return_gap_clipped": at_most(0.02, "optimal return − return after all updates, clipped ratios"),
    "return_gap_gradient_ascent": no_band("optimal return − return after all updates, gradient ascent"),
    "max_kl_trust_region": at_most(
        0.02, "maximum KL divergence of an update with the trust region; the threshold is 0.02"
    ),
    "max_kl_clipped": no_band("maximum KL divergence of an update with clipped ratios, which do not bound it"),
    "num_return_decreases": at_most(0.0, "number of trust-region updates that decreased the return"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_updates": 6}, "gpu": {}}

WORLD = GridWorld(
    "....../....../SCCCCG", step_reward=-0.1, slip_probability=0.0, gamma=0.9, rewards={"G": 1.0, "C": -2.0}
)
"""A short cliff: an update that is good under the old state distribution may be bad under the new one."""
PolicyUpdate: TypeAlias = Callable[[Tensor], Tensor]
"""A function from old to new logits."""


@dataclass(frozen=True)
class Experiment:
    num_updates: Positive[int] = 40  # policy updates
    target_kl: Positive[float] = 0.02  # maximum mean KL divergence of an update with the trust region
    clip_range: Positive[float] = 0.2  # ε of the clipped ratio
    gradient_steps: Positive[int] = 20  # gradient steps on the clipped surrogate per update
    learning_rate: Positive[float] = 5.0  # step size of gradient ascent

    def __call__(self, run: Run) -> dict[str, float]:
        methods: dict[str, PolicyUpdate] = {
            "trust region": lambda logits: (
                trust_region_step(WORLD.process, logits, WORLD.start, target_kl=self.target_kl).logits
            ),
            "clipped ratio": self.clipped_step,
            "gradient ascent": self.gradient_step,
        }
        policies = {name: self.iterate(update) for name, update in methods.items()}
        optimal = float(policy_iteration(WORLD.process).values @ WORLD.start)
        returns = {
            name: torch.stack([expected_return(WORLD.process, policy, WORLD.start) for policy in sequence])
            for name, sequence in policies.items()
        }
        divergences = {
            name: torch.stack(
                [occupancy_weighted_kl(WORLD.process, old, new, WORLD.start) for old, new in pairwise(sequence)]
            )
            for name, sequence in policies.items()
        }
        run.figure(
            "returns",
            curves(
                {name: (range(len(each)), (optimal - each).clamp(min=1e-9)) for name, each in returns.items()},
                x_label="updates",
                y_label="optimal return − return",
                log_y=True,
            ),
            "Optimal return minus the exact return of each policy. The first step of gradient ascent makes some "
            "actions very unlikely, and progress is slow from there; the other two methods limit each update.",
        )
        run.figure(
            "divergence per update",
            curves(
                {name: (range(1, len(each) + 1), each.clamp(min=1e-9)) for name, each in divergences.items()},
                x_label="update",
                y_label="mean KL(old ‖ new)",
                log_y=True,
            ),
            "Mean KL divergence of consecutive policies. The trust region keeps it below its threshold; clipping only "
            "removes the gradient of a ratio that has left its interval, and does not bound it.",
        )
        run.figure("clipped ratio", plot_clipped_surrogate(self.clip_range), CLIPPED_SURROGATE)
        run.figure("along the natural gradient", plot_natural_gradient(self.target_kl), NATURAL_GRADIENT)
        return {
            "return_gap_trust_region": optimal - float(returns["trust region"][-1]),
            "return_gap_clipped": optimal - float(returns["clipped ratio"][-1]),
            "return_gap_gradient_ascent": optimal - float(returns["gradient ascent"][-1]),
            "max_kl_trust_region": float(divergences["trust region"].max()),
            "max_kl_clipped": float(divergences["clipped ratio"].max()),
            "num_return_decreases": float((returns["trust region"].diff() < -1e-12).sum()),
        }

    def iterate(self, update: PolicyUpdate) -> list[Tensor]:
        """The uniform policy and the policies after each update."""
        logits = torch.zeros(WORLD.process.num_states, WORLD.process.num_actions, dtype=torch.float64)
        policies = [softmax_policy(logits, WORLD.process.allowed)]
        for _ in range(self.num_updates):
            logits = update(logits)
            policies.append(softmax_policy(logits, WORLD.process.allowed))
        return policies

    def gradient_step(self, logits: Tensor) -> Tensor:
        policy = softmax_policy(logits, WORLD.process.allowed)
        return logits + self.learning_rate * policy_gradient(WORLD.process, policy, WORLD.start)

    def clipped_step(self, logits: Tensor) -> Tensor:
        """Adam on the exact E[min(ρA, clip(ρ)A)] under the old policy's state distribution."""
        old = softmax_policy(logits, WORLD.process.allowed)
        visits = WORLD.process.occupancy(old, WORLD.start)
        advantages = WORLD.process.advantages(old)
        theta = logits.clone().requires_grad_()
        optimizer = torch.optim.Adam([theta], lr=0.1)
        for _ in range(self.gradient_steps):
            ratio = softmax_policy(theta, WORLD.process.allowed) / old
            objective = (visits[:, None] * old * clipped_surrogate(ratio, advantages, self.clip_range)).sum()
            optimizer.zero_grad()
            (-objective).backward()
            optimizer.step()
        return theta.detach()


CLIPPED_SURROGATE = (
    "min(ρA, clip(ρ)A), with ρA dashed. The objective is flat above 1 + ε for a positive advantage and below 1 − ε for "
    "a negative one; on the other side it keeps its slope, so that a step in the wrong direction is reversed."
)
NATURAL_GRADIENT = (
    "From the uniform policy along the natural gradient. The surrogate assumes the old policy's state distribution and "
    "keeps increasing; the return stops increasing and eventually decreases. They agree only for short steps. The "
    "lower bound of theorem 1 of Schulman et al. guarantees an improvement only for much shorter ones."
)


def plot_clipped_surrogate(clip_range: float) -> "Figure":
    figure, axes = subplots(1, 2, size=(8.4, 3.2))
    ratio = torch.linspace(0.4, 1.6, 241, dtype=torch.float64)
    for ax, advantage in zip(axes[0], (1.0, -1.0), strict=True):
        surrogate = clipped_surrogate(ratio, torch.full_like(ratio, advantage), clip_range)
        ax.plot(ratio, advantage * ratio, color=FAINT, linestyle="--", linewidth=1.2)
        ax.plot(ratio, surrogate, color=PALETTE[0])
        ax.plot(1, advantage, "o", color=PALETTE[1], markersize=5)
        for border in (1 - clip_range, 1 + clip_range):
            ax.axvline(border, color=FAINT, linewidth=0.8, linestyle=":")
        ax.set(xlabel="ratio ρ", title=f"A = {advantage:+g}")
    return figure


def plot_natural_gradient(threshold: float) -> "Figure":
    process, start = WORLD.process, WORLD.start
    logits = torch.zeros(process.num_states, process.num_actions, dtype=torch.float64)
    old = softmax_policy(logits, process.allowed)
    direction = process.advantages(old)  # the natural gradient of a table
    lengths = torch.linspace(0, 8, 81, dtype=torch.float64)
    policies = [softmax_policy(logits + float(length) * direction, process.allowed) for length in lengths]
    kl = torch.stack([occupancy_weighted_kl(process, old, policy, start) for policy in policies])
    border = float(lengths[(kl <= threshold).sum() - 1])
    lines = {
        "return J": (lengths, [float(expected_return(process, policy, start)) for policy in policies]),
        "surrogate L": (lengths, [float(surrogate_return(process, old, policy, start)) for policy in policies]),
        "lower bound": (lengths, [float(improvement_lower_bound(process, old, policy, start)) for policy in policies]),
    }
    figure = curves(lines, x_label="step length", y_label="return", marks={f"KL = {threshold:g}": border})
    low = float(expected_return(process, old, start))
    figure.axes[0].set_ylim(low - 1.0, low + 9.0)
    return figure

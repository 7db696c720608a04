"""Policy update sizes on a cliff: gradient ascent, a trust region and a clipped ratio (book sec. 18.5)."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.reinforcement.agents.surrogate import clipped_surrogate
from parnassus.reinforcement.tabular.grid_world import GridWorld
from parnassus.reinforcement.tabular.planning import policy_iteration
from parnassus.reinforcement.tabular.policy_gradient import expected_return, policy_gradient, softmax_policy
from parnassus.reinforcement.tabular.trust_region import (
    improvement_lower_bound,
    mean_kl,
    surrogate_return,
    trust_region_step,
)
from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.train import Positive, Run, at_most, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B18.5-2", "B18.5-3")
expected = {
    "trust_region_misses": at_most(0.02, "shortfall from the optimal return with a trust region, after all updates"),
    "clipped_misses": at_most(0.02, "shortfall with clipped ratios"),
    "ascent_misses": no_band("shortfall with gradient ascent"),
    "largest_kl": at_most(0.02, "largest KL of an update with the trust region; the threshold is 0.02"),
    "largest_kl_clipped": no_band("largest KL of an update with clipped ratios, which do not bound it"),
    "falls_of_the_return": at_most(0.0, "trust-region updates that lowered the return"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 6}, "gpu": {}}

WORLD = GridWorld("....../....../SCCCCG", step_reward=-0.1, slip=0.0, discount=0.9, rewards={"G": 1.0, "C": -2.0})
"""A short cliff: an update that is good under the old state distribution may be bad under the new one."""
Improve = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Experiment:
    steps: Positive[int] = 40  # policies, one after the other
    target_kl: float = 0.02  # largest mean KL of a step with the trust region
    clip: float = 0.2  # ε of the clipped ratio
    epochs: Positive[int] = 20  # gradient steps on the clipped surrogate of one policy
    rate: Positive[float] = 5.0  # step size of plain ascent

    def __call__(self, run: Run) -> dict[str, float]:
        ways: dict[str, Improve] = {
            "trust region": lambda logits: (
                trust_region_step(WORLD.process, logits, WORLD.start, target_kl=self.target_kl).logits
            ),
            "clipped ratio": self.clipped_step,
            "plain ascent": self.plain_step,
        }
        paths = {name: self.walk(improve) for name, improve in ways.items()}
        best = float(policy_iteration(WORLD.process).values @ WORLD.start)
        returns = {
            name: torch.stack([expected_return(WORLD.process, policy, WORLD.start) for policy in path])
            for name, path in paths.items()
        }
        spent = {
            name: torch.stack([mean_kl(WORLD.process, old, new, WORLD.start) for old, new in pairwise(path)])
            for name, path in paths.items()
        }
        run.figure(
            "returns",
            curves(
                {name: (range(len(each)), (best - each).clamp(min=1e-9)) for name, each in returns.items()},
                x_label="policies",
                y_label="return missed",
                log_y=True,
            ),
            "How much less than the best each policy returns, exactly. Plain ascent begins with a step that is far too "
            "long, and creeps where actions have become unlikely; the other two measure a step by how much the policy "
            "changes.",
        )
        run.figure(
            "divergence of a step",
            curves(
                {name: (range(1, len(each) + 1), each.clamp(min=1e-9)) for name, each in spent.items()},
                x_label="step",
                y_label="mean KL from the policy before",
                log_y=True,
            ),
            "How far each step moved the policy. The trust region keeps its threshold; clipping only stops asking for "
            "more once a ratio has left its interval.",
        )
        run.figure("clipped ratio", draw_clip(self.clip), CLIP)
        run.figure("along one step", draw_along(self.target_kl), ALONG)
        return {
            "trust_region_misses": best - float(returns["trust region"][-1]),
            "clipped_misses": best - float(returns["clipped ratio"][-1]),
            "ascent_misses": best - float(returns["plain ascent"][-1]),
            "largest_kl": float(spent["trust region"].max()),
            "largest_kl_clipped": float(spent["clipped ratio"].max()),
            "falls_of_the_return": float((returns["trust region"].diff() < -1e-12).sum()),
        }

    def walk(self, improve: Improve) -> list[Tensor]:
        """The sequence of policies, starting from the uniform one."""
        logits = torch.zeros(WORLD.process.states, WORLD.process.actions, dtype=torch.float64)
        path = [softmax_policy(logits, WORLD.process.allowed)]
        for _ in range(self.steps):
            logits = improve(logits)
            path.append(softmax_policy(logits, WORLD.process.allowed))
        return path

    def plain_step(self, logits: Tensor) -> Tensor:
        policy = softmax_policy(logits, WORLD.process.allowed)
        return logits + self.rate * policy_gradient(WORLD.process, policy, WORLD.start)

    def clipped_step(self, logits: Tensor) -> Tensor:
        """Ascent on E[min(ρA, clip(ρ)A)] over what the old policy sees, taken as the exact mean; by Adam."""
        old = softmax_policy(logits, WORLD.process.allowed)
        visits = WORLD.process.occupancy(old, WORLD.start)
        advantages = WORLD.process.advantages_of(old)
        theta = logits.clone().requires_grad_()
        optimizer = torch.optim.Adam([theta], lr=0.1)
        for _ in range(self.epochs):
            ratio = softmax_policy(theta, WORLD.process.allowed) / old
            objective = (visits[:, None] * old * clipped_surrogate(ratio, advantages, self.clip)).sum()
            optimizer.zero_grad()
            (-objective).backward()
            optimizer.step()
        return theta.detach()


CLIP = (
    "min(ρA, clip(ρ)A), and ρA dashed. A good action is no longer pushed beyond 1 + ε, a bad one no longer below "
    "1 − ε; in the other direction the slope stays, so that a step too far is taken back."
)
ALONG = (
    "From the uniform policy along the natural gradient. The surrogate believes that the new policy will be where the "
    "old one was, and promises ever more; the return stops growing, and falls in the end. Only for short steps do the "
    "two agree. What theorem 1 of Schulman et al. makes certain holds for much shorter ones still."
)


def draw_clip(clip: float) -> "Figure":
    figure, axes = subplots(1, 2, size=(8.4, 3.2))
    ratio = torch.linspace(0.4, 1.6, 241, dtype=torch.float64)
    for ax, advantage in zip(axes[0], (1.0, -1.0), strict=True):
        height = clipped_surrogate(ratio, torch.full_like(ratio, advantage), clip)
        ax.plot(ratio, advantage * ratio, color=FAINT, linestyle="--", linewidth=1.2)
        ax.plot(ratio, height, color=PALETTE[0])
        ax.plot(1, advantage, "o", color=PALETTE[1], markersize=5)
        for border in (1 - clip, 1 + clip):
            ax.axvline(border, color=FAINT, linewidth=0.8, linestyle=":")
        ax.set(xlabel="ratio ρ", title=f"A = {advantage:+g}")
    return figure


def draw_along(threshold: float) -> "Figure":
    process, start = WORLD.process, WORLD.start
    logits = torch.zeros(process.states, process.actions, dtype=torch.float64)
    old = softmax_policy(logits, process.allowed)
    direction = process.advantages_of(old)  # the natural gradient of a table
    lengths = torch.linspace(0, 8, 81, dtype=torch.float64)
    policies = [softmax_policy(logits + float(length) * direction, process.allowed) for length in lengths]
    kl = torch.stack([mean_kl(process, old, policy, start) for policy in policies])
    border = float(lengths[(kl <= threshold).sum() - 1])
    lines = {
        "return J": (lengths, [float(expected_return(process, policy, start)) for policy in policies]),
        "surrogate L": (lengths, [float(surrogate_return(process, old, policy, start)) for policy in policies]),
        "certain": (lengths, [float(improvement_lower_bound(process, old, policy, start)) for policy in policies]),
    }
    figure = curves(lines, x_label="step length", y_label="return", marks={f"KL = {threshold:g}": border})
    low = float(expected_return(process, old, start))
    figure.axes[0].set_ylim(low - 1.0, low + 9.0)
    return figure

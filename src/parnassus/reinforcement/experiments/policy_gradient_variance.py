"""Policy gradient variance: baselines stay unbiased, critics trade variance for bias (book secs. 18.4, 18.5)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.reinforcement.experience.generalised_advantage import generalised_advantages
from parnassus.reinforcement.tabular.categorical_sampling import sample_categorical
from parnassus.reinforcement.tabular.expected_advantage import expected_advantages
from parnassus.reinforcement.tabular.grid_world import CORNER, GridWorld
from parnassus.reinforcement.tabular.policy_gradient import (
    mean_and_variance,
    optimal_baseline,
    reinforce_estimates,
    return_weights,
)
from parnassus.reinforcement.tabular.rollout import rollout
from parnassus.reinforcement.tabular.trajectories import Trajectories, enumerate_trajectories
from parnassus.reinforcement.textbook.cat import ACTIONS, MOODS, cat_decisions
from parnassus.report import curves
from parnassus.train import Positive, Run, at_least, at_most, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B18.4-1", "B18.4-2", "B18.5-1")
expected = {
    "largest_bias": at_most(1e-9, "bias of the gradient over all episodes, for state baselines"),
    "variance_with_values": at_most(0.9, "variance with b = V(s) over that without a baseline"),
    "variance_with_the_best": at_most(0.9, "variance with the optimal b(s) over that without a baseline"),
    "bias_of_an_action_baseline": at_least(0.01, "bias with the action-dependent baseline b = Q(s, a)"),
    "talks_without": no_band("probability of the optimal action after training without a baseline"),
    "talks_with_the_best": no_band("probability of the optimal action after training with the optimal baseline"),
    "best_decay": between(0.7, 0.95, "λ with the lowest squared error, for an untrained critic"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_learners": 20, "updates": 10, "walks": 200}, "gpu": {}}

DISCOUNT, HORIZON = 0.9, 6
RELAXED, TALK = MOODS.index("relaxed"), ACTIONS.index("talk")
DECAYS = torch.linspace(0, 1, 21, dtype=torch.float64)
TOGETHER = 100  # episodes over which an advantage is averaged


@dataclass(frozen=True)
class Experiment:
    num_learners: Positive[int] = 200  # independent owners who learn from one day after the other
    updates: Positive[int] = 100  # days
    rate: Positive[float] = 0.05  # step size of the ascent
    walks: Positive[int] = 4_000  # walks from which the noise of advantages is measured

    def __call__(self, run: Run) -> dict[str, float]:
        process = cat_decisions(DISCOUNT)
        start = torch.eye(len(MOODS), dtype=torch.float64)[RELAXED]
        paths = enumerate_trajectories(process, start, HORIZON)
        policy = process.uniform_policy()
        baselines = all_baselines(paths, policy)
        probabilities = paths.probabilities(policy)
        moments = {
            name: mean_and_variance(
                probabilities, reinforce_estimates(paths, policy, return_weights(paths, DISCOUNT, baseline))
            )
            for name, baseline in baselines.items()
        }
        gradient, plain = moments["none"]
        rows: list[dict[str, str | float]] = [
            {
                "baseline": name,
                "∂J/∂θ(relaxed, talk)": float(mean[RELAXED, TALK]),
                "bias": float((mean - gradient).abs().max()),
                "variance": float(variance),
                "share": float(variance / plain),
            }
            for name, (mean, variance) in moments.items()
        ]
        run.table(
            "moments",
            rows,
            f"Exact moments of a one-episode estimate, over all {len(probabilities):,} episodes.",
        )
        run.figure(
            "constant baselines",
            draw_constants(paths, policy),
            "Variance of the estimate with one number subtracted from every return: a parabola, lowest near the mean "
            "return. The mean of the estimate is the same all along.",
        )
        talks = {
            name: self.learn(paths, return_weights(paths, DISCOUNT, baselines[name]), run.seed)
            for name in ("none", "value V(s)", "quietest b(s)")
        }
        run.figure(
            "learning",
            draw_learning(talks),
            "Learning to talk to a relaxed cat, and not to stroke it, from one day after the other: median of the "
            "learners, and all but a tenth at either end.",
        )
        error, bias, noise = self.trade(run.seed)
        run.figure(
            "bias and noise",
            curves(
                {"bias²": (DECAYS[:-1], bias[:-1]), "noise": (DECAYS[8:], noise[8:]), "both": (DECAYS, error)},
                x_label="λ",
                y_label="mean squared error of Â",
                log_y=True,
            ),
            f"Advantages in a grid world, means over {TOGETHER} episodes, for an untrained critic: a small λ trusts "
            "it, a large one trusts luck.",
        )
        told = moments["Q(s, a), which is not allowed"][0]
        of_states = [mean for name, (mean, _) in moments.items() if "not allowed" not in name]
        return {
            "largest_bias": float((torch.stack(of_states) - gradient).abs().max()),
            "variance_with_values": float(moments["value V(s)"][1] / plain),
            "variance_with_the_best": float(moments["quietest b(s)"][1] / plain),
            "bias_of_an_action_baseline": float((told - gradient).abs().max()),
            "talks_without": float(talks["none"][-1].mean()),
            "talks_with_the_best": float(talks["quietest b(s)"][-1].mean()),
            "best_decay": float(DECAYS[error.argmin()]),
        }

    def learn(self, paths: Trajectories, weights: Tensor, seed: int) -> Tensor:
        """The probability of talking before each day, for all learners: ascent along one day's estimate.

        Two actions need one number a learner, x = θ(talk) − θ(stroke), which moves by twice what each of them does.
        """
        x = torch.zeros(self.num_learners, dtype=torch.float64)
        chance, talks = torch.Generator().manual_seed(seed), []
        relaxed = paths.live & (paths.states[:, :-1] == RELAXED)
        talked = paths.actions == TALK
        for _ in range(self.updates):
            p = x.sigmoid()[:, None, None]
            talks.append(p[:, 0, 0])
            chosen = torch.where(relaxed, torch.where(talked, p, 1 - p), 1.0).prod(-1)
            day = sample_categorical(paths.environment_probability * chosen, chance)
            score = (talked[day].double() - p[:, 0]) * relaxed[day]
            x = x + 2 * self.rate * (weights[day] * score).sum(1)
        return torch.stack(talks)

    def trade(self, seed: int) -> tuple[Tensor, Tensor, Tensor]:
        """Squared error of the mean of Â over episodes in a grid world, with its bias and variance, for each λ."""
        world = GridWorld(CORNER, discount=0.95)
        process, policy = world.process, world.process.uniform_policy()
        values = process.values_of(policy)
        critic, truth = torch.zeros_like(values), process.advantages_of(policy)
        chance = torch.Generator().manual_seed(seed)
        seen = rollout(process, policy, world.start, steps=150, n_envs=self.walks, generator=chance)
        state, action = seen.states[0], seen.actions[0]
        bias, noise = [], []
        for decay in DECAYS.tolist():
            mean = expected_advantages(process, policy, critic, decay)
            centred = mean - (policy * mean).sum(-1, keepdim=True)  # what is the same for all actions moves no policy
            bias.append((centred - truth)[state, action].square().mean())
            found = generalised_advantages(
                seen.rewards,
                critic[seen.states],
                critic[seen.next_states],
                seen.terminated,
                seen.truncated,
                gamma=process.discount,
                gae_lambda=decay,
            )[0]
            noise.append((found - mean[state, action]).square().mean() / TOGETHER)
        return torch.stack(bias) + torch.stack(noise), torch.stack(bias), torch.stack(noise)


def all_baselines(paths: Trajectories, policy: Tensor) -> dict[str, Tensor | float]:
    """Baselines: none, a constant, one per state, and one that depends on the action."""
    process = cat_decisions(DISCOUNT)
    before, values = paths.states[:, :-1], process.values_of(policy)
    mean = float(paths.probabilities(policy) @ paths.returns(DISCOUNT)[:, 0])
    return {
        "none": 0.0,
        "mean return": mean,
        "value V(s)": values[before],
        "quietest b(s)": optimal_baseline(paths, policy, DISCOUNT)[before],
        "Q(s, a), which is not allowed": process.q_values(values)[before, paths.actions],
    }


def draw_constants(paths: Trajectories, policy: Tensor) -> "Figure":
    probabilities = paths.probabilities(policy)
    numbers = torch.linspace(-6, 14, 81, dtype=torch.float64)
    variances = [
        mean_and_variance(probabilities, reinforce_estimates(paths, policy, return_weights(paths, DISCOUNT, float(b))))[
            1
        ]
        for b in numbers
    ]
    mean = float(probabilities @ paths.returns(DISCOUNT)[:, 0])
    return curves(
        {"variance": (numbers, torch.stack(variances))},
        x_label="number subtracted from every return",
        y_label="variance of the estimate",
        marks={"none": 0.0, "mean return": mean},
    )


def draw_learning(talks: dict[str, Tensor]) -> "Figure":
    days = range(1, 1 + len(next(iter(talks.values()))))
    return curves(
        {f"baseline: {name}": (days, 1 - each.median(1).values) for name, each in talks.items()},
        x_label="days seen",
        y_label="probability of stroking",
        log_y=True,
        bands={
            f"baseline: {name}": (1 - each.quantile(0.9, 1), 1 - each.quantile(0.1, 1)) for name, each in talks.items()
        },
    )

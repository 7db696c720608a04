"""Policy gradient variance: baselines are unbiased, critics trade variance for bias (book secs. 18.4, 18.5)."""

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
from parnassus.reinforcement.tabular.trajectories import TrajectoryDistribution, enumerate_trajectories
from parnassus.reinforcement.textbook.cat import ACTIONS, STATES, cat_decision_process
from parnassus.report import curves
from parnassus.train import Positive, Run, at_least, at_most, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B18.4-1", "B18.4-2", "B18.5-1")
expected = {
    "max_bias": at_most(1e-9, "maximum bias of the gradient over all episodes, for state-dependent baselines"),
    "variance_ratio_value_baseline": at_most(
        0.9, "ratio of the variance with baseline b = V(s) to that without a baseline"
    ),
    "variance_ratio_optimal_baseline": at_most(
        0.9, "ratio of the variance with the optimal baseline b(s) to that without a baseline"
    ),
    "action_baseline_bias": at_least(0.01, "bias of the gradient with the action-dependent baseline b = Q(s, a)"),
    "optimal_action_probability_without_baseline": no_band(
        "probability of the optimal action after training without a baseline"
    ),
    "optimal_action_probability_with_optimal_baseline": no_band(
        "probability of the optimal action after training with the optimal b(s)"
    ),
    "best_gae_lambda": between(0.7, 0.95, "λ with the lowest squared error, for an untrained critic"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"num_learners": 20, "num_updates": 10, "num_rollouts": 200},
    "gpu": {},
}

DISCOUNT, HORIZON = 0.9, 6
RELAXED, TALK = STATES.index("relaxed"), ACTIONS.index("talk")
LAMBDAS = torch.linspace(0, 1, 21, dtype=torch.float64)
EPISODES_PER_ESTIMATE = 100  # episodes over which an advantage is averaged


@dataclass(frozen=True)
class Experiment:
    num_learners: Positive[int] = 200  # independent learners
    num_updates: Positive[int] = 100  # gradient steps per learner, one episode each
    learning_rate: Positive[float] = 0.05  # step size of gradient ascent
    num_rollouts: Positive[int] = 4_000  # rollouts from which the variance of advantage estimates is measured

    def __call__(self, run: Run) -> dict[str, float]:
        process = cat_decision_process(DISCOUNT)
        start = torch.eye(len(STATES), dtype=torch.float64)[RELAXED]
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
        gradient, variance_without = moments["none"]
        rows: list[dict[str, str | float]] = [
            {
                "baseline": name,
                "∂J/∂θ(relaxed, talk)": float(mean[RELAXED, TALK]),
                "bias": float((mean - gradient).abs().max()),
                "variance": float(variance),
                "ratio to no baseline": float(variance / variance_without),
            }
            for name, (mean, variance) in moments.items()
        ]
        run.table(
            "moments",
            rows,
            f"Exact moments of the one-episode gradient estimate, over all {len(probabilities):,} episodes "
            f"of at most {HORIZON} steps.",
        )
        run.figure(
            "constant baselines",
            plot_constant_baselines(paths, policy),
            "Variance of the estimate with a constant baseline: a parabola with its minimum near the mean return. The "
            "mean of the estimate is the same for every constant.",
        )
        training = {
            name: self.train(paths, return_weights(paths, DISCOUNT, baselines[name]), run.seed)
            for name in ("none", "value V(s)", "optimal b(s)")
        }
        run.figure(
            "learning",
            plot_learning(training),
            "Probability of the suboptimal action, stroking a relaxed cat, during training with one episode per "
            "update: median and 10 % to 90 % quantiles of the learners.",
        )
        error, squared_bias, variance = self.advantage_errors(run.seed)
        run.figure(
            "bias and variance",
            curves(
                {
                    "squared bias": (LAMBDAS[:-1], squared_bias[:-1]),
                    "variance": (LAMBDAS[8:], variance[8:]),
                    "mean squared error": (LAMBDAS, error),
                },
                x_label="λ",
                y_label="error of Â",
                log_y=True,
            ),
            f"Generalised advantages in a grid world, means over {EPISODES_PER_ESTIMATE} episodes, with an untrained "
            "critic: as λ increases the bias decreases and the variance increases.",
        )
        action_dependent = moments["Q(s, a), biased"][0]
        state_dependent = [mean for name, (mean, _) in moments.items() if "biased" not in name]
        return {
            "max_bias": float((torch.stack(state_dependent) - gradient).abs().max()),
            "variance_ratio_value_baseline": float(moments["value V(s)"][1] / variance_without),
            "variance_ratio_optimal_baseline": float(moments["optimal b(s)"][1] / variance_without),
            "action_baseline_bias": float((action_dependent - gradient).abs().max()),
            "optimal_action_probability_without_baseline": float(training["none"][-1].mean()),
            "optimal_action_probability_with_optimal_baseline": float(training["optimal b(s)"][-1].mean()),
            "best_gae_lambda": float(LAMBDAS[error.argmin()]),
        }

    def train(self, paths: TrajectoryDistribution, weights: Tensor, seed: int) -> Tensor:
        """Probability of talking before each update of all learners, by gradient ascent with one-episode estimates.

        Two actions need one parameter per learner, x = θ(talk) − θ(stroke), which changes by twice the step of each.
        """
        x = torch.zeros(self.num_learners, dtype=torch.float64)
        generator, history = torch.Generator().manual_seed(seed), []
        is_relaxed = paths.active & (paths.states[:, :-1] == RELAXED)
        is_talk = paths.actions == TALK
        for _ in range(self.num_updates):
            p = x.sigmoid()[:, None, None]
            history.append(p[:, 0, 0])
            path_policy = torch.where(is_relaxed, torch.where(is_talk, p, 1 - p), 1.0).prod(-1)
            episode = sample_categorical(paths.environment_probability * path_policy, generator)
            score = (is_talk[episode].double() - p[:, 0]) * is_relaxed[episode]
            x = x + 2 * self.learning_rate * (weights[episode] * score).sum(1)
        return torch.stack(history)

    def advantage_errors(self, seed: int) -> tuple[Tensor, Tensor, Tensor]:
        """Mean squared error of Â averaged over episodes, its squared bias and its variance, for each λ."""
        world = GridWorld(CORNER, gamma=0.95)
        process, policy = world.process, world.process.uniform_policy()
        values = process.state_values(policy)
        critic, true_advantages = torch.zeros_like(values), process.advantages(policy)
        generator = torch.Generator().manual_seed(seed)
        steps = rollout(process, policy, world.start, steps=150, n_envs=self.num_rollouts, generator=generator)
        state, action = steps.states[0], steps.actions[0]
        squared_bias, variance = [], []
        for gae_lambda in LAMBDAS.tolist():
            mean = expected_advantages(process, policy, critic, gae_lambda)
            centred = mean - (policy * mean).sum(-1, keepdim=True)  # constants per state do not change the gradient
            squared_bias.append((centred - true_advantages)[state, action].square().mean())
            estimate = generalised_advantages(
                steps.rewards,
                critic[steps.states],
                critic[steps.next_states],
                steps.terminated,
                steps.truncated,
                gamma=process.gamma,
                gae_lambda=gae_lambda,
            )[0]
            variance.append((estimate - mean[state, action]).square().mean() / EPISODES_PER_ESTIMATE)
        return torch.stack(squared_bias) + torch.stack(variance), torch.stack(squared_bias), torch.stack(variance)


def all_baselines(paths: TrajectoryDistribution, policy: Tensor) -> dict[str, Tensor | float]:
    """Baselines: none, a constant, two that depend on the state, and one that depends on the action."""
    process = cat_decision_process(DISCOUNT)
    states, values = paths.states[:, :-1], process.state_values(policy)
    mean = float(paths.probabilities(policy) @ paths.returns(DISCOUNT)[:, 0])
    return {
        "none": 0.0,
        "mean return": mean,
        "value V(s)": values[states],
        "optimal b(s)": optimal_baseline(paths, policy, DISCOUNT)[states],
        "Q(s, a), biased": process.q_values(values)[states, paths.actions],
    }


def plot_constant_baselines(paths: TrajectoryDistribution, policy: Tensor) -> "Figure":
    probabilities = paths.probabilities(policy)
    constants = torch.linspace(-6, 14, 81, dtype=torch.float64)
    variances = [
        mean_and_variance(probabilities, reinforce_estimates(paths, policy, return_weights(paths, DISCOUNT, float(b))))[
            1
        ]
        for b in constants
    ]
    mean = float(probabilities @ paths.returns(DISCOUNT)[:, 0])
    return curves(
        {"variance": (constants, torch.stack(variances))},
        x_label="constant baseline b",
        y_label="variance of the estimate",
        marks={"none": 0.0, "mean return": mean},
    )


def plot_learning(training: dict[str, Tensor]) -> "Figure":
    talking = {f"baseline: {name}": probabilities for name, probabilities in training.items()}
    episodes = range(1, 1 + len(next(iter(talking.values()))))
    return curves(
        {name: (episodes, 1 - each.median(1).values) for name, each in talking.items()},
        x_label="episodes",
        y_label="probability of stroking",
        log_y=True,
        bands={name: (1 - each.quantile(0.9, 1), 1 - each.quantile(0.1, 1)) for name, each in talking.items()},
    )

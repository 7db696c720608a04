"""An episode of a trained policy, step by step, with a perturbation of the state."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, Any, NamedTuple, cast

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from parnassus.atlas.decorators import probe
from parnassus.reinforcement.agents.action_distributions import ActionDistribution, Categorical, DiagonalGaussian
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.environments import TENSOR_ENVIRONMENTS, Continuous
from parnassus.reinforcement.evaluation.episode_returns import MultiLearnerExperiment
from parnassus.reinforcement.experience.returns import discounted_returns
from parnassus.reinforcement.figures.classic_control import RENDERERS
from parnassus.reinforcement.tabular.exploration import epsilon_greedy_policy
from parnassus.train.trained import TrainedRun
from parnassus.widgets import Answer, Bars, Curves, FloatSlider, Images, IntSlider, Numbers

MAX_STEPS = 200
ACTIONS = {
    "Acrobot-v1": ("torque −1", "no torque", "torque +1"),
    "CartPole-v1": ("push left", "push right"),
    "MountainCar-v0": ("push left", "no push", "push right"),
}
TERMINATIONS = {
    "Acrobot-v1": "target height reached",
    "CartPole-v1": "pole fell or cart left the track",
    "MountainCar-v0": "goal reached",
}
PERTURBATIONS = {"Acrobot-v1": (2, 4.0), "CartPole-v1": (3, 2.0), "MountainCar-v0": (1, 0.04), "Pendulum-v1": (1, 6.0)}
"""Index of the perturbed state variable, a velocity, and the largest perturbation."""


class RolloutRequest(NamedTuple):
    """The learner and seed of an episode, and size and step of the perturbation."""

    learner: int
    seed: int
    perturbation: float
    perturbation_step: int


@dataclass(frozen=True)
class Episode:
    """The observations before every step and after the last, with the outputs of policy and critic for them.

    For a Q-network, as in DQN, `q` holds the action values; its distribution is the final ε-greedy policy of training,
    and its state value the largest action value.
    """

    observations: Float[Tensor, "states features"]
    distribution: ActionDistribution
    values: Float[Tensor, " states"]
    actions: Shaped[Tensor, "states *action"]
    rewards: Float[Tensor, " steps"]
    terminated: bool
    q: Float[Tensor, "states actions"] | None = None

    def returns(self, gamma: float) -> Float[Tensor, " steps"]:
        """The discounted return from every state, with the last value where the episode was truncated."""
        ended = torch.zeros(len(self.rewards), 1, dtype=torch.bool)
        ended[-1] = self.terminated
        returns = discounted_returns(self.rewards[:, None], ended, gamma=gamma, last_values=self.values[-1:])
        return returns[:, 0]


def _count_learners(trained: TrainedRun) -> int:
    return cast("MultiLearnerExperiment", trained.experiment).num_learners


def _cached_rollout(trained: TrainedRun) -> Callable[[RolloutRequest], Episode]:
    """A function that runs episodes and caches the last few, which the step slider requests again."""
    experiment = cast("MultiLearnerExperiment", trained.experiment)
    if experiment.env not in TENSOR_ENVIRONMENTS:
        known = ", ".join(TENSOR_ENVIRONMENTS)
        raise ValueError(
            f"the state can be perturbed only in {known}; got {experiment.env}: parnassus watch renders its episodes"
        )
    return lru_cache(maxsize=16)(partial(_run_episode, experiment, trained.model))


@probe("ppo", "a2c", "trpo", "reinforce", "dqn")
@torch.no_grad()
def policy_rollout(
    trained: TrainedRun,
    step: Annotated[int, IntSlider("step", 0, MAX_STEPS)] = 42,
    perturbation: Annotated[float, FloatSlider("perturbation, relative to the largest", -1.0, 1.0)] = 0.4,
    *,
    perturbation_step: Annotated[int, IntSlider("step of the perturbation", 0, MAX_STEPS - 1)] = 40,
    learner: Annotated[int, IntSlider("learner", 1, _count_learners)] = 1,
    seed: Annotated[int, IntSlider("seed of the episode", 0, 99)] = 0,
) -> list[Answer]:
    """An episode of a trained policy: state, actions and values at every step (book secs. 18.3, 18.5).

    Move through the steps after the perturbation: the policy prefers one action until the system is stable again.
    Increase the perturbation until it fails, and see whether the critic predicted this: far from the training states
    values can stay high while the pole falls. Without perturbation, compare the values with the observed returns. For
    DQN the action values Q(s, a) are shown too.
    """
    experiment = cast("MultiLearnerExperiment", trained.experiment)
    env = experiment.env
    episode = trained.compute_once(_cached_rollout)(RolloutRequest(learner - 1, seed, perturbation, perturbation_step))
    steps, now = len(episode.rewards), min(step, len(episode.rewards))
    numbers: dict[str, float | str] = {
        "step": f"{now} of {steps}",
        "value of this state": float(episode.values[now]),
        **_certainty(episode, now),
        "return so far": float(episode.rewards[:now].sum()),
        "return of the episode": float(episode.rewards.sum()),
        "end of the episode": _describe_end(env, episode),
    }
    return [
        Images("Environment", _render(env, episode, now), [f"step {now}"], about=LEGEND),
        _action_probabilities(env, episode, now),
        *_action_values(env, episode, now),
        _values(experiment, trained.model, episode, now),
        Numbers("Current step", numbers),
    ]


LEGEND = "Orange: the last action. Actions are the most probable ones, not sampled."


@torch.no_grad()
def _run_episode(experiment: MultiLearnerExperiment, model: nn.Module, request: RolloutRequest) -> Episode:
    env = experiment.env
    dynamics, (variable, largest) = TENSOR_ENVIRONMENTS[env], PERTURBATIONS[env]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(request.seed)
        state = dynamics.sample_initial_states(1, torch.device("cpu"))
    observations, terminated = [dynamics.observe(state)[0].float()], False
    rewards: list[Tensor] = []
    while len(rewards) < MAX_STEPS and not terminated:
        if len(rewards) == request.perturbation_step:
            state[0, variable] += request.perturbation * largest
            observations[-1] = dynamics.observe(state)[0].float()
        outputs = _evaluate(experiment, model, observations[-1:], request.learner)
        result = dynamics.step(state, _clip(outputs.mode, env))
        state, terminated = result.state, bool(result.terminated)
        observations.append(dynamics.observe(state)[0].float())
        rewards.append(result.reward[0])
    distribution, mode, values, q = _evaluate(experiment, model, observations, request.learner)
    actions = _clip(mode, env)
    return Episode(torch.stack(observations), distribution, values, actions, torch.stack(rewards), terminated, q)


class PolicyOutputs(NamedTuple):
    """A learner's policy, most probable action, state value and action values.

    `mode` is the greedy action, also where ε = 1 makes all actions equally likely.
    """

    distribution: ActionDistribution
    mode: Shaped[Tensor, "states *action"]
    values: Float[Tensor, " states"]
    q: Float[Tensor, "states actions"] | None


def _evaluate(
    experiment: MultiLearnerExperiment, model: nn.Module, observations: list[Tensor], learner: int
) -> PolicyOutputs:
    """The outputs of an actor-critic or Q-network for one learner."""
    x = torch.stack(observations).expand(experiment.num_learners, -1, -1)
    if not isinstance(model, ActorCritic):
        q: Tensor = model(x)[learner]
        probabilities = epsilon_greedy_policy(q, _settings(experiment).exploration_final_eps)
        return PolicyOutputs(Categorical(probabilities.log()), q.argmax(-1), q.amax(-1), q)
    distribution, values = model(x)
    policy: ActionDistribution = (
        Categorical(distribution.logits[learner])
        if isinstance(distribution, Categorical)
        else DiagonalGaussian(distribution.mean[learner], distribution.log_std[learner])
    )
    return PolicyOutputs(policy, policy.mode(), values[learner], None)


def _settings(experiment: MultiLearnerExperiment) -> Any:  # each its own kind of settings
    """The settings of training, resolved for the environment where they depend on it."""
    return getattr(experiment, "settings", experiment)


def _clip(action: Tensor, env: str) -> Tensor:
    bounds = TENSOR_ENVIRONMENTS[env].actions
    if not isinstance(bounds, Continuous):
        return action
    return action.clamp(torch.tensor(bounds.low), torch.tensor(bounds.high))


def _render(env: str, episode: Episode, now: int) -> Tensor:
    last_action = float(episode.actions[now - 1].reshape(-1)[0]) if now else None
    pixels = torch.tensor(RENDERERS[env](episode.observations[now].tolist(), last_action))
    return pixels.permute(2, 0, 1)[None].float() / 255


def _values(experiment: MultiLearnerExperiment, model: nn.Module, episode: Episode, now: int) -> Curves:
    """The estimated value of every state and, where rewards were not normalised, the observed return."""
    steps, estimator = len(episode.rewards), "critic" if episode.q is None else "network"
    lines = {"value": (_axis(steps), episode.values.tolist())}
    if getattr(model, "observation_statistics", None) is None:
        returns = episode.returns(_settings(experiment).gamma)
        lines["discounted return"] = (_axis(steps - 1), returns.tolist())
        about = f"Returns of truncated episodes include the {estimator}'s value of the last state."
    else:
        about = "In units of the normalised rewards of training."
    title = f"Values estimated by the {estimator}"
    return Curves(title, lines, x_label="step", y_label="value", marked=float(now), about=about)


def _action_probabilities(env: str, episode: Episode, now: int) -> Answer:
    """Probabilities of actions, or the density of a torque."""
    distribution = episode.distribution
    if isinstance(distribution, Categorical):
        probabilities = distribution.logits[now].softmax(-1)
        about = "" if episode.q is None else "ε-greedy, with the final ε of training."
        marked = int(episode.actions[now])
        return Bars("Action probabilities", ACTIONS[env], probabilities, marked=marked, about=about)
    bounds = cast("Continuous", TENSOR_ENVIRONMENTS[env].actions)
    torques = torch.linspace(bounds.low[0], bounds.high[0], 121)
    gaussian = DiagonalGaussian(distribution.mean[now].expand(121, 1), distribution.log_std)
    density = gaussian.log_prob(torques[:, None]).exp()
    return Curves(
        "Action density",
        {"density of the torque": (torques.tolist(), density.tolist())},
        x_label="torque",
        y_label="density",
        marked=float(episode.actions[now]),
    )


def _describe_end(env: str, episode: Episode) -> str:
    if episode.terminated:
        return TERMINATIONS[env]
    if len(episode.rewards) == TENSOR_ENVIRONMENTS[env].max_episode_steps:
        return "time limit"
    return f"not within {MAX_STEPS} steps"


def _action_values(env: str, episode: Episode, now: int) -> list[Answer]:
    """Q(s, a) of all actions, for a Q-network."""
    if episode.q is None:
        return []
    q = episode.q[now]
    return [Bars("Action values", ACTIONS[env], q, marked=int(q.argmax()), about="Q(s, a).")]


def _certainty(episode: Episode, now: int) -> dict[str, float]:
    """Entropy of the policy, or the gap between the two largest action values."""
    if episode.q is None:
        return {"entropy of the policy": float(episode.distribution.entropy()[now])}
    largest, second = episode.q[now].topk(2).values.tolist()
    return {"gap of the two largest action values": largest - second}


def _axis(steps: int) -> list[float]:
    return [float(step) for step in range(steps + 1)]

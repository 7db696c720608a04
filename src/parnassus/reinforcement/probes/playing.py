"""A trained policy at play, stopped at any step: what it sees, thinks and does, and how it takes a kick."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, Any, NamedTuple, cast

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.environments import SIMULATED, Continuous
from parnassus.reinforcement.evaluation import Learners
from parnassus.reinforcement.laws import ActionLaw, Choice, Spread
from parnassus.reinforcement.returns import discounted_returns
from parnassus.report.worlds import DRAWINGS
from parnassus.touch import Answer, Bars, Curves, Images, Numbers, Real, Whole
from parnassus.train.trained import Trained

LONGEST = 200  # steps that are played
ACTIONS = {
    "Acrobot-v1": ("turn with the clock", "nothing", "turn against it"),
    "CartPole-v1": ("push left", "push right"),
    "MountainCar-v0": ("push left", "nothing", "push right"),
}
ENDS = {"Acrobot-v1": "the tip was up", "CartPole-v1": "the pole fell", "MountainCar-v0": "the car was up"}
SPEEDS = {"Acrobot-v1": (2, 4.0), "CartPole-v1": (3, 2.0), "MountainCar-v0": (1, 0.04), "Pendulum-v1": (1, 6.0)}
"""Which part of a state a kick changes, and by how much at most."""


class Asked(NamedTuple):
    """Who plays which episode, and when a hand comes in how hard."""

    learner: int
    seed: int
    kick: float
    when: int


@dataclass(frozen=True)
class Episode:
    """What was seen before every step and at the end, and what the policy and the critic said of it."""

    seen: Float[Tensor, "states features"]
    law: ActionLaw
    values: Float[Tensor, " states"]
    actions: Shaped[Tensor, "states *action"]
    rewards: Float[Tensor, " steps"]
    terminated: bool

    def followed(self, discount: float) -> Float[Tensor, " steps"]:
        """What really came after every state; where the episode was cut off, the critic has the last word."""
        ended = torch.zeros(len(self.rewards), 1, dtype=torch.bool)
        ended[-1] = self.terminated
        returns = discounted_returns(self.rewards[:, None], ended, discount=discount, after=self.values[-1:])
        return returns[:, 0]


def _learners(trained: Trained) -> int:
    return cast("Learners", trained.experiment).learners


def _player(trained: Trained) -> Callable[[Asked], Episode]:
    """Plays episodes, and remembers the last few: a hand that scrubs through one asks for it again and again."""
    experiment = cast("Learners", trained.experiment)
    if experiment.env not in SIMULATED:
        known = ", ".join(SIMULATED)
        raise ValueError(f"{experiment.env} cannot be stopped and kicked, only {known}; parnassus watch films it")
    return lru_cache(maxsize=16)(partial(_played, cast("ActorCritic", trained.model), experiment.env))


@probe("ppo", "a2c", "trpo", "reinforce")
@torch.no_grad()
def policy_playing(
    trained: Trained,
    step: Annotated[int, Whole("step", 0, LONGEST)] = 42,
    kick: Annotated[float, Real("a kick, as a share of the hardest", -1.0, 1.0)] = 0.4,
    *,
    when: Annotated[int, Whole("step of the kick", 0, LONGEST - 1)] = 40,
    learner: Annotated[int, Whole("learner", 1, _learners)] = 1,
    seed: Annotated[int, Whole("episode", 0, 99)] = 0,
) -> list[Answer]:
    """A trained policy plays: its picture, what it would do, and what it thinks the state is worth (book sec. 18.5).

    Go through the steps after the kick: the policy leans to one action until it has caught itself. Then kick harder,
    until it does not, and see whether the critic knew: far from what it saw in training it may be content while the
    pole falls. Without a kick, compare its values with what really followed.
    """
    experiment = cast("Learners", trained.experiment)
    env = experiment.env
    episode = trained.once(_player)(Asked(learner - 1, seed, kick, when))
    steps, now = len(episode.rewards), min(step, len(episode.rewards))
    numbers: dict[str, float | str] = {
        "step": f"{now} of {steps}",
        "value of this state": float(episode.values[now]),
        "entropy of the policy here": float(episode.law.entropy()[now]),
        "return so far": float(episode.rewards[:now].sum()),
        "return in the end": float(episode.rewards.sum()),
        "how it ended": ENDS[env] if episode.terminated else "not within these steps",
    }
    return [
        Images("The world", _picture(env, episode, now), [f"step {now}"], about=PICTURE),
        _would_do(env, episode, now),
        _worth(experiment, cast("ActorCritic", trained.model), episode, now),
        Numbers("Here", numbers),
    ]


PICTURE = "Orange: what was done in the step before. The likeliest action is always taken; nothing is drawn by lot."


@torch.no_grad()
def _played(model: ActorCritic, env: str, asked: Asked) -> Episode:
    physics, (part, hardest) = SIMULATED[env], SPEEDS[env]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(asked.seed)
        state = physics.start(1, torch.device("cpu"))
    seen, terminated = [physics.observe(state)[0].float()], False
    rewards: list[Tensor] = []
    while len(rewards) < LONGEST and not terminated:
        if len(rewards) == asked.when:
            state[0, part] += asked.kick * hardest
            seen[-1] = physics.observe(state)[0].float()
        moved = physics.move(state, _bounded(model.law(_of_all(seen[-1:], model.learners)).best()[asked.learner], env))
        state, terminated = moved.state, bool(moved.terminated)
        seen.append(physics.observe(state)[0].float())
        rewards.append(moved.reward[0])
    law, values = model(_of_all(seen, model.learners))
    own: ActionLaw = (
        Choice(law.logits[asked.learner])
        if isinstance(law, Choice)
        else Spread(law.mean[asked.learner], law.log_std[asked.learner])
    )
    actions = _bounded(own.best(), env)
    return Episode(torch.stack(seen), own, values[asked.learner], actions, torch.stack(rewards), terminated)


def _of_all(seen: list[Tensor], learners: int) -> Tensor:
    """The same states for every learner."""
    return torch.stack(seen).expand(learners, -1, -1)


def _bounded(action: Tensor, env: str) -> Tensor:
    bounds = SIMULATED[env].actions
    if not isinstance(bounds, Continuous):
        return action
    return action.clamp(torch.tensor(bounds.low), torch.tensor(bounds.high))


def _picture(env: str, episode: Episode, now: int) -> Tensor:
    before = float(episode.actions[now - 1].reshape(-1)[0]) if now else None
    pixels = torch.tensor(DRAWINGS[env](episode.seen[now].tolist(), before))
    return pixels.permute(2, 0, 1)[None].float() / 255


def _worth(experiment: Learners, model: ActorCritic, episode: Episode, now: int) -> Curves:
    """What the critic says of every state, and beside it, where the units are the same, what came."""
    steps = len(episode.rewards)
    lines = {"value": (_axis(steps), episode.values.tolist())}
    if model.seen is None:
        told: Any = getattr(experiment, "settings", experiment)  # some are tuned for their environment
        lines["what followed, discounted"] = (_axis(steps - 1), episode.followed(told.discount).tolist())
        about = "What followed is counted to the end; where there is none, the critic's last word stands for the rest."
    else:
        about = "In the units of its training, where rewards were brought to one scale."
    return Curves("What the critic thinks", lines, x_label="step", y_label="value", marked=float(now), about=about)


def _would_do(env: str, episode: Episode, now: int) -> Answer:
    """Probabilities of actions, or the density of a torque."""
    law = episode.law
    if isinstance(law, Choice):
        chances = law.logits[now].softmax(-1)
        return Bars("What it would do", ACTIONS[env], chances, marked=int(chances.argmax()), about="Its probabilities.")
    bounds = cast("Continuous", SIMULATED[env].actions)
    torques = torch.linspace(bounds.low[0], bounds.high[0], 121)
    density = Spread(law.mean[now].expand(121, 1), law.log_std).log_prob(torques[:, None]).exp()
    return Curves(
        "What it would do",
        {"density of the torque": (torques.tolist(), density.tolist())},
        x_label="torque",
        y_label="density",
        marked=float(episode.actions[now]),
    )


def _axis(steps: int) -> list[float]:
    return [float(step) for step in range(steps + 1)]

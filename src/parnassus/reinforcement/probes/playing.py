"""A trained policy at play, stopped at any step: what it sees, thinks and does, and how it takes a kick."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, Any, NamedTuple, cast

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from parnassus.atlas.marks import probe
from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.environments import SIMULATED, Continuous
from parnassus.reinforcement.evaluation import Learners
from parnassus.reinforcement.exploration import epsilon_greedy
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
    """What was seen before every step and at the end, and what the policy and the critic said of it.

    Who judges actions, as DQN does, says `q`; its law is that of its last steps in training, and its value the best of
    them.
    """

    seen: Float[Tensor, "states features"]
    law: ActionLaw
    values: Float[Tensor, " states"]
    actions: Shaped[Tensor, "states *action"]
    rewards: Float[Tensor, " steps"]
    terminated: bool
    q: Float[Tensor, "states actions"] | None = None

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
    return lru_cache(maxsize=16)(partial(_played, experiment, trained.model))


@probe("ppo", "a2c", "trpo", "reinforce", "dqn")
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
    """A trained policy plays: its picture, what it would do, and what it thinks it is worth (book secs. 18.3, 18.5).

    Go through the steps after the kick: the policy leans to one action until it has caught itself. Then kick harder,
    until it does not, and see whether the critic knew: far from what it saw in training it may be content while the
    pole falls. Without a kick, compare its values with what really followed. A run of DQN shows Q(s, a) too, the values
    of all actions: see before and after the kick how far the best of them is ahead.
    """
    experiment = cast("Learners", trained.experiment)
    env = experiment.env
    episode = trained.once(_player)(Asked(learner - 1, seed, kick, when))
    steps, now = len(episode.rewards), min(step, len(episode.rewards))
    numbers: dict[str, float | str] = {
        "step": f"{now} of {steps}",
        "value of this state": float(episode.values[now]),
        **_sureness(episode, now),
        "return so far": float(episode.rewards[:now].sum()),
        "return in the end": float(episode.rewards.sum()),
        "how it ended": _end(env, episode),
    }
    return [
        Images("The world", _picture(env, episode, now), [f"step {now}"], about=PICTURE),
        _would_do(env, episode, now),
        *_action_values(env, episode, now),
        _worth(experiment, trained.model, episode, now),
        Numbers("Here", numbers),
    ]


PICTURE = "Orange: what was done in the step before. The likeliest action is always taken; nothing is drawn by lot."


@torch.no_grad()
def _played(experiment: Learners, model: nn.Module, asked: Asked) -> Episode:
    env = experiment.env
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
        said = _said(experiment, model, seen[-1:], asked.learner)
        moved = physics.move(state, _bounded(said.best, env))
        state, terminated = moved.state, bool(moved.terminated)
        seen.append(physics.observe(state)[0].float())
        rewards.append(moved.reward[0])
    law, best, values, q = _said(experiment, model, seen, asked.learner)
    return Episode(torch.stack(seen), law, values, _bounded(best, env), torch.stack(rewards), terminated, q)


class Said(NamedTuple):
    """What a learner says of states: what it would do there, what they are worth, and what its actions are.

    `best` is the likeliest action; where all are drawn alike, ε being 1, still that of the largest value.
    """

    law: ActionLaw
    best: Shaped[Tensor, "states *action"]
    values: Float[Tensor, " states"]
    q: Float[Tensor, "states actions"] | None


def _said(experiment: Learners, model: nn.Module, seen: list[Tensor], learner: int) -> Said:
    """An actor and its critic are asked, or a network of action values, which all learners have in one."""
    x = torch.stack(seen).expand(experiment.learners, -1, -1)
    if not isinstance(model, ActorCritic):
        q: Tensor = model(x)[learner]
        return Said(Choice(epsilon_greedy(q, _told(experiment).epsilon).log()), q.argmax(-1), q.amax(-1), q)
    law, values = model(x)
    own: ActionLaw = (
        Choice(law.logits[learner]) if isinstance(law, Choice) else Spread(law.mean[learner], law.log_std[learner])
    )
    return Said(own, own.best(), values[learner], None)


def _told(experiment: Learners) -> Any:  # each its own kind of settings
    """The numbers it learned with: some are tuned for their environment."""
    return getattr(experiment, "settings", experiment)


def _bounded(action: Tensor, env: str) -> Tensor:
    bounds = SIMULATED[env].actions
    if not isinstance(bounds, Continuous):
        return action
    return action.clamp(torch.tensor(bounds.low), torch.tensor(bounds.high))


def _picture(env: str, episode: Episode, now: int) -> Tensor:
    before = float(episode.actions[now - 1].reshape(-1)[0]) if now else None
    pixels = torch.tensor(DRAWINGS[env](episode.seen[now].tolist(), before))
    return pixels.permute(2, 0, 1)[None].float() / 255


def _worth(experiment: Learners, model: nn.Module, episode: Episode, now: int) -> Curves:
    """What the critic says of every state, and beside it, where the units are the same, what came."""
    steps, critic = len(episode.rewards), "critic" if episode.q is None else "network"
    lines = {"value": (_axis(steps), episode.values.tolist())}
    if getattr(model, "seen", None) is None:
        followed = episode.followed(_told(experiment).discount)
        lines["what followed, discounted"] = (_axis(steps - 1), followed.tolist())
        about = f"What followed is counted to the end; where there is none, the {critic}'s last word stands for it."
    else:
        about = "In the units of its training, where rewards were brought to one scale."
    return Curves(f"What the {critic} thinks", lines, x_label="step", y_label="value", marked=float(now), about=about)


def _would_do(env: str, episode: Episode, now: int) -> Answer:
    """Probabilities of actions, or the density of a torque."""
    law = episode.law
    if isinstance(law, Choice):
        chances = law.logits[now].softmax(-1)
        about = "Its probabilities." if episode.q is None else "Its probabilities as it explored in the end, ε-greedy."
        return Bars("What it would do", ACTIONS[env], chances, marked=int(episode.actions[now]), about=about)
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


def _end(env: str, episode: Episode) -> str:
    if episode.terminated:
        return ENDS[env]
    return "its time was up" if len(episode.rewards) == SIMULATED[env].longest else "not within these steps"


def _action_values(env: str, episode: Episode, now: int) -> list[Answer]:
    """Q(s, a) of all actions, where there is a network that says it."""
    if episode.q is None:
        return []
    here = episode.q[now]
    return [Bars("What actions are worth", ACTIONS[env], here, marked=int(here.argmax()), about="Q(s, a).")]


def _sureness(episode: Episode, now: int) -> dict[str, float]:
    """How sure it is of what to do: by its law, or by how far the best action is ahead."""
    if episode.q is None:
        return {"entropy of the policy here": float(episode.law.entropy()[now])}
    best, second = episode.q[now].topk(2).values.tolist()
    return {"best action ahead of the next by": best - second}


def _axis(steps: int) -> list[float]:
    return [float(step) for step in range(steps + 1)]

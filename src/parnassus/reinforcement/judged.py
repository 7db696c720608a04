"""Experience as a learner reads it: actions with their probabilities then, advantages, and what states returned."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.advantage import generalised_advantages
from parnassus.reinforcement.both_heads import Trace
from parnassus.reinforcement.collector import Experience


class Judged(NamedTuple):
    """What actions turned out to be worth, row by row, for each learner.

    `log_probs` are those of the policy that acted, `returns` what the critic should have said: Â + v.
    """

    observations: Float[Tensor, "learners rows features"]
    actions: Shaped[Tensor, "learners rows *action"]
    log_probs: Float[Tensor, "learners rows"]
    advantages: Float[Tensor, "learners rows"]
    returns: Float[Tensor, "learners rows"]

    def rows(self, index: Shaped[Tensor, "learners some"]) -> "Judged":
        """Some rows, others for each learner."""
        learner = torch.arange(len(index), device=index.device)[:, None]
        return Judged(*(part[learner, index] for part in self))


@torch.no_grad()
def judged(
    model: ActorCritic, experience: Experience, trace: Trace | None = None, *, discount: float, decay: float
) -> Judged:
    """Advantages by the critic, over each episode; at a truncation it is asked what was still to come.

    `trace` is what the model says of `visited(experience)`, where it was asked already.
    """
    steps, x = len(experience.rewards), visited(experience)
    trace = model.traced(x) if trace is None else trace
    values = by_step(trace.value.squeeze(-1), steps + 1)
    now, next_values = values[:-1], values[1:]
    cut = experience.truncated.flatten(1)
    if not cut.is_cpu or bool(cut[:-1].any()):  # what was seen next is then of another episode
        ahead = by_step(model.values(by_learner(experience.led_to)), steps)
        next_values = torch.where(cut, ahead, next_values)
    advantages = generalised_advantages(
        experience.rewards.flatten(1), now, next_values, experience.terminated.flatten(1), cut,
        discount=discount, decay=decay,
    )  # fmt: skip
    gained, worth = (by_learner(part.view_as(experience.rewards)) for part in (advantages, advantages + now))
    actions, rows = by_learner(experience.actions), gained.shape[1]
    law, _ = model.said(trace, rows)
    return Judged(x[:, :rows], actions, law.log_prob(actions), gained, worth)


def visited(experience: Experience) -> Float[Tensor, "learners rows features"]:
    """All states in which an action was chosen, then those where the last ones led.

    Where a step led, the next one began: only at the end of an episode not, and there it matters to nobody, unless the
    episode was truncated.
    """
    return by_learner(torch.cat([experience.observations, experience.led_to[-1:]]))


def by_learner(x: Shaped[Tensor, "steps learners copies *rest"]) -> Shaped[Tensor, "learners rows *rest"]:
    """All rows of a learner together."""
    return x.transpose(0, 1).flatten(1, 2)


def by_step(x: Float[Tensor, "learners rows"], steps: int) -> Float[Tensor, "steps envs"]:
    """The other way round, all copies of all learners side by side."""
    return x.view(len(x), steps, -1).transpose(0, 1).flatten(1)


def standardised(advantages: Float[Tensor, "learners rows"]) -> Float[Tensor, "learners rows"]:
    """With mean 0 and deviation 1 for each learner: the scale of the rewards no longer matters."""
    off = advantages - advantages.mean(1, keepdim=True)
    return off / (advantages.std(1, keepdim=True) + 1e-8)

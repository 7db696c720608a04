"""The programs of exported agents: observations to actions, for all learners of a run."""

from typing import cast

import torch
from torch import Tensor, nn

from parnassus.reinforcement.agents.action_distributions import Categorical
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.q_network import DuelingQNetwork, QNetwork
from parnassus.reinforcement.agents.stacked_networks import StackedLinear
from parnassus.train.export import Program, Programs, ProgramsOf
from parnassus.train.trained import TrainedRun


def actor_critic_programs(model: ActorCritic, _: TrainedRun) -> Programs:
    """The most probable action, the distribution of actions, and the value, as (batch, learners, …)."""

    def act(observations: Tensor) -> tuple[Tensor, ...]:
        x = observations.expand(model.num_learners, *observations.shape)
        distribution, value = model(x)
        spread = distribution.logits if isinstance(distribution, Categorical) else distribution.log_std.exp()
        parts = (distribution.mode(), spread.expand(*x.shape[:2], -1), value)
        return tuple(part.transpose(0, 1) for part in parts)

    spread = "std" if model.continuous else "logits"
    about = f"observations → for each learner the best action, the {spread} of the actions and the value of the state"
    inputs = {"observations": torch.randn(2, _first_layer(model).shape[1])}
    return {"act": Program(act, inputs, ("actions", spread, "values"), about)}


def q_network_programs(model: QNetwork | DuelingQNetwork, _: TrainedRun) -> Programs:
    learners, features, _outputs = _first_layer(model).shape

    def act(observations: Tensor) -> tuple[Tensor, Tensor]:
        values = model(observations.expand(learners, *observations.shape)).transpose(0, 1)
        return values.argmax(-1), values

    about = "observations → for each learner the best action and the values of all actions"
    inputs = {"observations": torch.randn(2, features)}
    return {"act": Program(act, inputs, ("actions", "q"), about)}


def _first_layer(model: nn.Module) -> Tensor:
    return next(each for each in model.modules() if isinstance(each, StackedLinear)).weight


PROGRAMS = cast(
    "dict[type[nn.Module], ProgramsOf]",
    {ActorCritic: actor_critic_programs, QNetwork: q_network_programs, DuelingQNetwork: q_network_programs},
)

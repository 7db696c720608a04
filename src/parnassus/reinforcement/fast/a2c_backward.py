"""Hand-written gradient of A2C's loss."""

import torch

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.experience.rollout_batch import RolloutBatch
from parnassus.reinforcement.fast.actor_critic_backward import ActorCriticActivations


@torch.no_grad()
def a2c_backward(
    model: ActorCritic,
    batch: RolloutBatch,
    trace: ActorCriticActivations | None = None,
    *,
    vf_coef: float = 0.5,
    ent_coef: float = 0.0,
) -> None:
    """Write the gradient of `a2c_loss`, summed over learners, into the parameters' `grad`.

        ∂L/∂log π = −Â/n,   ∂L/∂v = 2c_v (v − R)/n,   ∂L/∂H = −c_H/n   for each of n rows

    `trace` is the model's forward pass on these states, possibly with others after them, if there is one already.
    """
    trace = model.forward_with_trace(batch.observations) if trace is None else trace
    rows = batch.returns.shape[1]
    of_value = (trace.values[:, :rows, 0] - batch.returns).mul_(2 * vf_coef / rows)
    model.write_gradients(trace, batch.actions, batch.advantages / -rows, of_value, -ent_coef / rows)

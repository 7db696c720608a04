"""Hand-written gradient of A2C's loss."""

import torch

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.experience.rollout_batch import RolloutBatch
from parnassus.reinforcement.fast.actor_critic_backward import ActorCriticActivations


@torch.no_grad()
def a2c_backward(
    model: ActorCritic,
    batch: RolloutBatch,
    activations: ActorCriticActivations | None = None,
    *,
    vf_coef: float = 0.5,
    ent_coef: float = 0.0,
) -> None:
    """Write the gradient of `a2c_loss`, summed over learners, into the parameters' `grad`.

        ∂L/∂log π = −Â/n,   ∂L/∂v = 2c_v (v − R)/n,   ∂L/∂H = −c_H/n   for each of n rows

    `activations` is the model's forward pass on these states, possibly with others after them, if there is one already.
    """
    activations = model.forward_with_activations(batch.observations) if activations is None else activations
    rows = batch.returns.shape[1]
    grad_value = (activations.values[:, :rows, 0] - batch.returns).mul_(2 * vf_coef / rows)
    model.write_gradients(activations, batch.actions, batch.advantages / -rows, grad_value, -ent_coef / rows)

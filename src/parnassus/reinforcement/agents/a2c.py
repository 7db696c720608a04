"""A2C: one actor-critic step on every new rollout (book sec. 18.5; Mnih et al. 2016)."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.experience.rollout_batch import RolloutBatch
from parnassus.setting_types import NonNegative, Positive, UnitInterval


@dataclass(frozen=True)
class A2CSettings:
    """Hyperparameters of A2C; the defaults are tuned for CartPole."""

    total_timesteps: Positive[int] = 500_000  # environment steps per learner
    n_envs: Positive[int] = 8  # environments per learner
    n_steps: Positive[int] = 5  # steps per environment between updates
    learning_rate: Positive[float] = 7e-4  # initial learning rate of RMSprop; decreases linearly to 0
    gamma: UnitInterval = 0.99  # discount factor
    gae_lambda: UnitInterval = 1.0  # λ of generalised advantage estimation
    vf_coef: NonNegative[float] = 0.5  # value function coefficient of the loss
    ent_coef: NonNegative[float] = 0.0  # entropy coefficient of the loss
    max_grad_norm: Positive[float] = 0.5  # maximum gradient norm of each learner
    normalize: bool = True  # normalise observations and rewards by running statistics


TUNED = {
    "Acrobot-v1": {"n_envs": 16},
    "LunarLander-v3": {
        "total_timesteps": 200_000, "learning_rate": 8.3e-4, "gamma": 0.995, "ent_coef": 1e-5, "normalize": False,
    },
    "MountainCar-v0": {"total_timesteps": 1_000_000, "n_envs": 16},
    "Pendulum-v1": {"total_timesteps": 1_000_000, "n_steps": 8, "gamma": 0.9, "gae_lambda": 0.9},
}  # fmt: skip
"""Overrides of the defaults, tuned for other environments."""


def a2c_loss(
    model: ActorCritic, batch: RolloutBatch, *, vf_coef: float = 0.5, ent_coef: float = 0.0
) -> Float[Tensor, " learners"]:
    """−E[Â log π(a|s)] + c_v E (v(s) − R)² − c_H E H(π), with Â and R held constant (book eqs. 18.11-18.12).

    With λ = 0 they are δ = r + γ v(s') − v(s) and R = v + δ, and the two gradients are the book's: −E[δ ∇log π] for the
    actor, −2c_v E[δ ∇v] for the critic. As in the book they lack the factor γ^t of eq. 18.9, with which the actor's
    would be that of the discounted return (`discounted_td_errors`). The estimate is valid only for actions sampled from
    the current policy: every step needs a new rollout. `fast.a2c_backward` writes the same gradient without autograd.
    """
    distribution, values = model(batch.observations)
    weighted = batch.advantages * distribution.log_prob(batch.actions)
    loss: Tensor = (vf_coef * (values - batch.returns).square() - weighted).mean(1)
    return loss - ent_coef * distribution.entropy().mean(1) if ent_coef else loss

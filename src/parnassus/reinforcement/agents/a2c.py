"""A2C: one actor-critic step on every new rollout (book sec. 18.5; Mnih et al. 2016)."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.experience.rollout_batch import RolloutBatch


@dataclass(frozen=True)
class Settings:
    """Hyperparameters of A2C; the defaults are tuned for CartPole."""

    total_timesteps: int = 500_000
    n_envs: int = 8
    n_steps: int = 5
    learning_rate: float = 7e-4
    gamma: float = 0.99
    gae_lambda: float = 1.0
    ent_coef: float = 0.0
    normalize: bool = True


TUNED = {
    "Acrobot-v1": Settings(500_000, 16, 5, 7e-4, 0.99, 1.0, 0.0, True),
    "LunarLander-v3": Settings(200_000, 8, 5, 8.3e-4, 0.995, 1.0, 1e-5, False),
    "MountainCar-v0": Settings(1_000_000, 16, 5, 7e-4, 0.99, 1.0, 0.0, True),
    "Pendulum-v1": Settings(1_000_000, 8, 8, 7e-4, 0.9, 0.9, 0.0, True),
}
"""Settings tuned for other environments."""


def a2c_loss(
    model: ActorCritic, batch: RolloutBatch, *, vf_coef: float = 0.5, ent_coef: float = 0.0
) -> Float[Tensor, " learners"]:
    """−E[Â log π(a|s)] + c_v E (v(s) − R)² − c_H E H(π), with Â and R held constant (book eqs. 18.11-18.12).

    With λ = 0 they are δ = r + γ v(s') − v(s) and R = v + δ, and the two gradients are the book's: −E[δ ∇log π] for the
    actor, −2c_v E[δ ∇v] for the critic. The estimate holds only for actions sampled from this very policy: every step
    needs a new rollout. `fast.a2c_backward` writes the same gradient without autograd.
    """
    distribution, values = model(batch.observations)
    weighted = batch.advantages * distribution.log_prob(batch.actions)
    loss: Tensor = (vf_coef * (values - batch.returns).square() - weighted).mean(1)
    return loss - ent_coef * distribution.entropy().mean(1) if ent_coef else loss

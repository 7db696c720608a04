"""Base classes of experiments with several learners: environments and actions (book sec. 18.1)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.environments import Environments, make_environments
from parnassus.setting_types import EnvironmentId, NonNegative, Positive


@dataclass(frozen=True)
class MultiLearnerAgent:
    """Independent learners in copies of one environment."""

    env: EnvironmentId = "CartPole-v1"  # Gymnasium id, or module:Name-v0; without a time limit, at most 1,000 steps
    use_gymnasium: bool = False  # use the Gymnasium implementation even if a tensor implementation exists
    num_workers: NonNegative[int] = 0  # worker processes for Gymnasium environments; 0: step them in the main process
    num_learners: Positive[int] = 5  # independent learners (seeds), trained side by side
    n_eval_episodes: Positive[int] = 100  # evaluation episodes per learner after training

    def make_environments(self, n_envs: int, device: torch.device | str = "cpu") -> Environments:
        return make_environments(
            self.env, n_envs, device=device, use_gymnasium=self.use_gymnasium, num_workers=self.num_workers
        )

    def check_single_process(self, processes: int) -> None:
        """Raise a ValueError under torchrun with several processes.

        Hand-written gradients and natural-gradient steps bypass the gradient averaging of distributed training: every
        process would train its own weights, and only those of the first process would be saved.
        """
        if processes > 1:
            raise ValueError(
                f"agents must be trained in one process; got {processes} processes: instead of torchrun use "
                "--num-workers, or tensor environments with a larger --n-envs and --device cuda"
            )


@dataclass(frozen=True)
class MultiLearnerActor(MultiLearnerAgent):
    """Learners whose policy is a distribution over actions."""

    def actor_critic(self, *, normalize_observations: bool = False) -> ActorCritic:
        """An actor-critic network for each learner, of the environment's sizes."""
        environment = self.make_environments(1)
        return ActorCritic(
            environment.features,
            environment.actions,
            num_learners=self.num_learners,
            normalize_observations=normalize_observations,
        )

    def act(
        self, model: ActorCritic, x: Float[Tensor, "learners batch features"], *, sample_actions: bool = False
    ) -> Shaped[Tensor, "learners batch *action"]:
        """Actions of the learners in states x: the most probable ones, or sampled from the policy."""
        distribution = model.distribution(x)
        return distribution.sample() if sample_actions else distribution.mode()


def num_updates(total_timesteps: int, n_envs: int, n_steps: int) -> int:
    """The number of updates of `n_steps` per environment that fit into `total_timesteps`."""
    if total_timesteps < n_envs * n_steps:
        raise ValueError(
            f"one update needs {n_envs} environments × {n_steps} steps; got total_timesteps={total_timesteps:,}: "
            "increase total_timesteps, or decrease n_envs or n_steps"
        )
    return total_timesteps // (n_envs * n_steps)

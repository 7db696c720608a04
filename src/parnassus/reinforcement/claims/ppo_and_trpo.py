"""PPO and TRPO compared at equal numbers of samples (book sec. 18.5)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, greater_equal, less_equal
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.ppo import minibatches
from parnassus.reinforcement.agents.trpo import trust_region_update
from parnassus.reinforcement.environments import CartPole, Discrete, TensorEnvironments
from parnassus.reinforcement.evaluation.episode_returns import episode_returns
from parnassus.reinforcement.experience.collector import Collector
from parnassus.reinforcement.experience.rollout_batch import RolloutBatch, estimate_advantages
from parnassus.reinforcement.fast.flat_adam import FlatAdam
from parnassus.reinforcement.fast.ppo_backward import ppo_backward

NUM_LEARNERS, N_ENVS, N_STEPS, UPDATES = 30, 8, 128, 10


def trained_returns(*, use_trpo: bool, seed: int = 0) -> Float[Tensor, " learners"]:
    """Mean returns of learners on CartPole after 10,240 steps each of TRPO or PPO."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = ActorCritic(4, Discrete(2), num_learners=NUM_LEARNERS)
        optimizer = FlatAdam(model.parameters(), lr=1e-3, eps=1e-5, num_learners=NUM_LEARNERS)
        collector = Collector(TensorEnvironments(CartPole(), NUM_LEARNERS * N_ENVS), NUM_LEARNERS)
        for _ in range(UPDATES):
            experience = collector.collect(lambda x: model.distribution(x).sample(), N_STEPS)
            rollout = estimate_advantages(model, experience, gamma=0.98, gae_lambda=0.98)
            if use_trpo:
                trust_region_update(model, rollout, target_kl=0.01, cg_max_steps=6)
            for batch in minibatches(rollout, 256, 10):
                if use_trpo:
                    critic_backward(model, batch)
                else:
                    ppo_backward(model, batch, clip_range=0.2)
                optimizer.step()
        with torch.no_grad():
            environments = TensorEnvironments(CartPole(), 20 * NUM_LEARNERS)
            return episode_returns(environments, lambda x: model.distribution(x).mode(), NUM_LEARNERS).mean(1)


def critic_backward(model: ActorCritic, batch: RolloutBatch) -> None:
    """Write the gradient of ½ E (v − R)², PPO's value loss; that of the actor is 0."""
    activations, rows = model.forward_with_activations(batch.observations), batch.returns.shape[1]
    grad_value = (activations.values.squeeze(-1) - batch.returns) / rows
    model.write_gradients(activations, batch.actions, torch.zeros_like(grad_value), grad_value)


@claim("B18.5-3", slow=True)
def ppo_and_trpo_reach_similar_returns() -> Evidence:
    """On CartPole PPO's and TRPO's mean returns after 10,240 steps are similar (book sec. 18.5).

    The standard deviation over learners is about 100, so that means of thirty differ by about 26; a random policy has
    22, and the largest return is 500.
    """
    ppo, trpo = (trained_returns(use_trpo=use_trpo).mean() for use_trpo in (False, True))
    return all_of(
        ppo_return=greater_equal(ppo, 330.0),
        trpo_return=greater_equal(trpo, 330.0),
        difference=less_equal((ppo - trpo).abs(), 60.0),
    )

"""A trust region and a clipped ratio at work, with as many samples for each (book sec. 18.5)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim
from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.collector import Collector
from parnassus.reinforcement.environments import CartPole, Discrete, Simulated
from parnassus.reinforcement.evaluation import episode_returns
from parnassus.reinforcement.judged import Judged, judged
from parnassus.reinforcement.lean_adam import LeanAdam
from parnassus.reinforcement.ppo import minibatches, ppo_backward
from parnassus.reinforcement.trpo import natural_step

LEARNERS, COPIES, HORIZON, UPDATES = 10, 8, 128, 10


def returned(*, trusting: bool, seed: int = 0) -> Float[Tensor, " learners"]:
    """What learners on CartPole reach after some ten thousand steps each, by TRPO or by PPO; all else is alike."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = ActorCritic(4, Discrete(2), learners=LEARNERS)
        descent = LeanAdam(model.parameters(), lr=1e-3, eps=1e-5, learners=LEARNERS)
        collector = Collector(Simulated(CartPole(), LEARNERS * COPIES), LEARNERS)
        for _ in range(UPDATES):
            experience = collector.collect(lambda x: model.law(x).draw(), HORIZON)
            seen = judged(model, experience, discount=0.98, decay=0.98)
            if trusting:
                natural_step(model, seen, threshold=0.01, products=6)
            for batch in minibatches(seen, 256, 10):
                if trusting:
                    critic_backward(model, batch)
                else:
                    ppo_backward(model, batch, clip=0.2)
                descent.step()
        with torch.no_grad():
            worlds = Simulated(CartPole(), 20 * LEARNERS)
            return episode_returns(worlds, lambda x: model.law(x).best(), LEARNERS).mean(1)


def critic_backward(model: ActorCritic, batch: Judged) -> None:
    """The gradient of ½ E (v − R)², as PPO weighs it; nothing pulls the actor."""
    trace, rows = model.traced(batch.observations), batch.returns.shape[1]
    of_value = (trace.value.squeeze(-1) - batch.returns) / rows
    model.pull_back(trace, batch.actions, torch.zeros_like(of_value), of_value)


@claim("B18.5-3")
def clipping_learns_as_much_from_as_many_samples() -> Evidence:
    """PPO does about as well as TRPO: on CartPole their mean returns after 10,240 steps are alike (book sec. 18.5).

    Learners of one kind differ by some 100 among themselves, so that means of ten differ by some 45; chance returns 22.
    """
    clipped, trusted = (returned(trusting=trusting).mean() for trusting in (False, True))
    return all_of(
        clipped_has_learned=at_least(clipped, 200.0),
        trusted_has_learned=at_least(trusted, 200.0),
        apart=at_most((clipped - trusted).abs(), 150.0),
    )

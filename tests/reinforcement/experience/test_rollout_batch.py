"""Advantages of each learner: as if it were alone, with a truncated episode going on in the critic's mind."""

import torch

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.environments import CartPole, Discrete, TensorEnvironments
from parnassus.reinforcement.experience.collector import Collector
from parnassus.reinforcement.experience.rollout_batch import estimate_advantages, standardise


def test_learners_are_judged_as_if_alone() -> None:
    torch.manual_seed(0)
    model = ActorCritic(4, Discrete(2), num_learners=2)
    collector = Collector(TensorEnvironments(CartPole(max_episode_steps=12), 6), num_learners=2)
    experience = collector.collect(lambda x: model.distribution(x).sample(), 20)
    assert bool(experience.truncated.any())
    assert bool(experience.terminated.any())
    seen = estimate_advantages(model, experience, gamma=0.9, gae_lambda=0.7)
    with torch.no_grad():
        now, later = (
            model.values(part.transpose(0, 1).flatten(1, 2))
            for part in (experience.observations, experience.next_observations)
        )
    for learner in range(2):
        values, ahead = now[learner].view(20, 3), later[learner].view(20, 3)
        for copy in range(3):
            following, wanted = 0.0, []
            for step in reversed(range(20)):
                ended = bool(experience.terminated[step, learner, copy])
                cut = bool(experience.truncated[step, learner, copy])
                reward = float(experience.rewards[step, learner, copy])
                delta = reward + 0.9 * (0.0 if ended else float(ahead[step, copy])) - float(values[step, copy])
                following = delta + (0.0 if ended or cut else 0.9 * 0.7 * following)
                wanted.append(following)
            found = seen.advantages[learner].view(20, 3)[:, copy]
            assert torch.allclose(found, torch.tensor(wanted[::-1]), atol=1e-4)
        assert torch.allclose(seen.returns[learner], seen.advantages[learner] + values.flatten(), atol=1e-5)
    law = model.distribution(seen.observations)
    assert torch.allclose(seen.log_probs, law.log_prob(seen.actions), atol=1e-6)


def test_rows_of_each_learner() -> None:
    torch.manual_seed(0)
    model = ActorCritic(4, Discrete(2), num_learners=2)
    experience = Collector(TensorEnvironments(CartPole(), 4), num_learners=2).collect(
        lambda x: model.distribution(x).sample(), 5
    )
    seen = estimate_advantages(model, experience, gamma=0.9, gae_lambda=0.9)
    some = seen.select_rows(torch.tensor([[0, 3], [9, 1]]))
    assert torch.equal(some.returns, torch.stack([seen.returns[0, [0, 3]], seen.returns[1, [9, 1]]]))


def test_standardised_for_each_learner() -> None:
    given = torch.randn(2, 50) * torch.tensor([[1.0], [30.0]]) + 4
    found = standardise(given)
    assert torch.allclose(found.mean(1), torch.zeros(2), atol=1e-5)
    assert torch.allclose(found.std(1), torch.ones(2), atol=1e-4)

"""Rollout batches: advantages per learner, row selection and standardisation."""

import torch

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.environments import CartPole, Discrete, TensorEnvironments
from parnassus.reinforcement.experience.collector import Collector
from parnassus.reinforcement.experience.rollout_batch import estimate_advantages, standardise


def test_advantages_of_each_learner_match_the_definition() -> None:
    torch.manual_seed(0)
    model = ActorCritic(4, Discrete(2), num_learners=2)
    collector = Collector(TensorEnvironments(CartPole(max_episode_steps=12), 6), num_learners=2)
    experience = collector.collect(lambda x: model.distribution(x).sample(), 20)
    assert bool(experience.truncated.any())
    assert bool(experience.terminated.any())
    batch = estimate_advantages(model, experience, gamma=0.9, gae_lambda=0.7)
    with torch.no_grad():
        all_values, all_next_values = (
            model.values(states.transpose(0, 1).flatten(1, 2))
            for states in (experience.observations, experience.next_observations)
        )
    for learner in range(2):
        values, next_values = all_values[learner].view(20, 3), all_next_values[learner].view(20, 3)
        for env in range(3):
            advantage, expected = 0.0, []
            for step in reversed(range(20)):
                terminated = bool(experience.terminated[step, learner, env])
                truncated = bool(experience.truncated[step, learner, env])
                reward = float(experience.rewards[step, learner, env])
                delta = reward + 0.9 * (0.0 if terminated else float(next_values[step, env])) - float(values[step, env])
                advantage = delta + (0.0 if terminated or truncated else 0.9 * 0.7 * advantage)
                expected.append(advantage)
            actual = batch.advantages[learner].view(20, 3)[:, env]
            assert torch.allclose(actual, torch.tensor(expected[::-1]), atol=1e-4)
        assert torch.allclose(batch.returns[learner], batch.advantages[learner] + values.flatten(), atol=1e-5)
    distribution = model.distribution(batch.observations)
    assert torch.allclose(batch.log_probs, distribution.log_prob(batch.actions), atol=1e-6)


def test_select_rows_per_learner() -> None:
    torch.manual_seed(0)
    model = ActorCritic(4, Discrete(2), num_learners=2)
    experience = Collector(TensorEnvironments(CartPole(), 4), num_learners=2).collect(
        lambda x: model.distribution(x).sample(), 5
    )
    batch = estimate_advantages(model, experience, gamma=0.9, gae_lambda=0.9)
    selected = batch.select_rows(torch.tensor([[0, 3], [9, 1]]))
    assert torch.equal(selected.returns, torch.stack([batch.returns[0, [0, 3]], batch.returns[1, [9, 1]]]))


def test_standardise_per_learner() -> None:
    values = torch.randn(2, 50) * torch.tensor([[1.0], [30.0]]) + 4
    standardised = standardise(values)
    assert torch.allclose(standardised.mean(1), torch.zeros(2), atol=1e-5)
    assert torch.allclose(standardised.std(1), torch.ones(2), atol=1e-4)

"""Markov decision processes: Bellman equations, occupancy and policies."""

import pytest
import torch

from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess


def random_process(gamma: float = 0.9, seed: int = 0) -> MarkovDecisionProcess:
    """Four states, the last terminal; three actions, one of them not allowed in state 0."""
    generator = torch.Generator().manual_seed(seed)
    transition = torch.rand(4, 3, 4, generator=generator, dtype=torch.float64)
    reward = torch.randn(4, 3, 4, generator=generator, dtype=torch.float64)
    allowed = torch.ones(4, 3, dtype=torch.bool)
    allowed[0, 1] = False
    terminal = torch.tensor([False, False, False, True])
    return MarkovDecisionProcess(transition / transition.sum(-1, keepdim=True), reward, gamma, terminal, allowed)


def test_values_satisfy_the_bellman_equation() -> None:
    mdp = random_process()
    policy = mdp.uniform_policy()
    values = mdp.state_values(policy)
    for s in range(3):
        expected = sum(
            float(policy[s, a] * mdp.transition[s, a, t]) * (float(mdp.reward[s, a, t]) + 0.9 * float(values[t]))
            for a in range(3)
            for t in range(4)
        )
        assert float(values[s]) == pytest.approx(expected)
    assert float(values[3]) == 0
    torch.testing.assert_close(mdp.reward_process(policy).values(), values)


def test_action_values_and_advantages() -> None:
    mdp = random_process()
    policy = mdp.uniform_policy()
    q, advantages = mdp.q_values(mdp.state_values(policy)), mdp.advantages(policy)
    assert float(q[0, 1]) == -torch.inf
    assert q[3].tolist() == [0, 0, 0]
    mean = (policy * torch.where(policy > 0, advantages, 0)).sum(-1)
    torch.testing.assert_close(mean, torch.zeros(4, dtype=torch.float64))


def test_batched_policies_match_single_policies() -> None:
    mdp = random_process()
    policies = torch.stack([mdp.uniform_policy(), mdp.greedy_policy(torch.randn(4, 3, dtype=torch.float64))])
    values, start = mdp.state_values(policies), torch.tensor([0.5, 0.5, 0, 0]).double()
    torch.testing.assert_close(values, torch.stack([mdp.state_values(policy) for policy in policies]))
    torch.testing.assert_close(
        mdp.occupancy(policies, start), torch.stack([mdp.occupancy(policy, start) for policy in policies])
    )
    assert mdp.q_values(values).shape == (2, 4, 3)


def test_occupancy_is_the_discounted_sum_of_marginals() -> None:
    mdp = random_process(0.8)
    policy, start = mdp.uniform_policy(), torch.tensor([0.2, 0.3, 0.5, 0]).double()
    marginals = mdp.reward_process(policy).chain(start).marginals(200)
    expected = (0.8 ** torch.arange(201, dtype=torch.float64)) @ marginals
    expected[3] = 0  # terminal states are not counted
    torch.testing.assert_close(mdp.occupancy(policy, start), expected)
    expected_return = mdp.occupancy(policy, start) @ mdp.reward_process(policy).reward
    torch.testing.assert_close(expected_return, start @ mdp.state_values(policy))


def test_greedy_policy_takes_an_allowed_action() -> None:
    mdp = random_process()
    q = torch.zeros(4, 3, dtype=torch.float64)
    q[0] = torch.tensor([1.0, 5.0, 2.0])
    assert mdp.greedy_policy(q)[0].tolist() == [0, 0, 1]


def test_step_frequencies_match_transition_probabilities() -> None:
    mdp = random_process()
    states, actions = torch.full((50_000,), 2), torch.full((50_000,), 1)
    rewards, next_states = mdp.step(states, actions, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        torch.bincount(next_states, minlength=4) / 50_000, mdp.transition[2, 1].float(), atol=0.01, rtol=0
    )
    torch.testing.assert_close(rewards, mdp.reward[2, 1, next_states])


def test_invalid_arguments_raise_value_error() -> None:
    mdp = random_process()
    forbidden = torch.full((4, 3), 1 / 3, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"in state 0 another one has probability 0\.333"):
        mdp.state_values(forbidden)
    with pytest.raises(ValueError, match=r"states \[1\] have none"):
        MarkovDecisionProcess(
            mdp.transition, mdp.reward, 0.9, mdp.terminal, torch.tensor([[True], [False], [True], [True]]).expand(4, 3)
        )
    with pytest.raises(ValueError, match="must satisfy 0 ≤ γ ≤ 1"):
        mdp.with_discount(-0.1)

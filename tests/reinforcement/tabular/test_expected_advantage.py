"""Expected advantage estimates compared with enumeration."""

import pytest
import torch

from parnassus.reinforcement.experience.generalised_advantage import generalised_advantages
from parnassus.reinforcement.tabular.expected_advantage import expected_advantages
from parnassus.reinforcement.tabular.trajectories import enumerate_trajectories
from parnassus.reinforcement.textbook.cat import cat_decision_process


@pytest.mark.parametrize("decay", [0.0, 0.4, 0.8])
def test_expected_advantages_match_enumerated_trajectories(decay: float) -> None:
    """With γλ ≤ 0.4 the contribution of steps after the twelfth is below 10⁻⁴."""
    process = cat_decision_process(0.5)
    policy, critic = process.uniform_policy(), torch.tensor([1.0, -2.0, 3.0, 0.5, -1.0, 9.0]).double()
    trajectories = enumerate_trajectories(process, torch.tensor([0.0, 0, 0, 1, 0, 0]).double(), 12)
    advantages = generalised_advantages(
        trajectories.rewards.T,
        critic[trajectories.states[:, :-1].T],
        critic[trajectories.states[:, 1:].T],
        process.terminal[trajectories.states[:, 1:].T],
        torch.zeros_like(trajectories.active.T),
        gamma=0.5,
        gae_lambda=decay,
    )[0]
    probabilities = trajectories.probabilities(policy)
    exact = expected_advantages(process, policy, critic, decay)
    for action in (1, 2):
        mask = trajectories.actions[:, 0] == action
        mean = (probabilities[mask] @ advantages[mask]) / probabilities[mask].sum()
        assert float(mean) == pytest.approx(float(exact[3, action]), abs=1e-3)
    assert float(exact[3, 0]) == -torch.inf


def test_exact_critic_or_lambda_one_gives_unbiased_advantages() -> None:
    process = cat_decision_process(0.9)
    policy = process.uniform_policy()
    values = process.state_values(policy)
    torch.testing.assert_close(expected_advantages(process, policy, values, 0.3), process.advantages(policy))
    critic = torch.tensor([1.0, -2.0, 3.0, 0.5, -1.0, 0.0]).double()
    torch.testing.assert_close(
        expected_advantages(process, policy, critic, 1.0) + critic[:, None], process.q_values(values)
    )
    with pytest.raises(ValueError, match=r"0 ≤ λ ≤ 1; got -0\.1"):
        expected_advantages(process, policy, values, -0.1)

"""The mean of an estimate against all paths."""

import pytest
import torch

from parnassus.reinforcement.experience.generalised_advantage import generalised_advantages
from parnassus.reinforcement.tabular.expected_advantage import expected_advantages
from parnassus.reinforcement.tabular.trajectories import enumerate_trajectories
from parnassus.reinforcement.textbook.cat import cat_decision_process


@pytest.mark.parametrize("decay", [0.0, 0.4, 0.8])
def test_it_is_the_mean_over_all_episodes(decay: float) -> None:
    """With γλ ≤ 0.4 what comes after twelve steps is below 10⁻⁴."""
    process = cat_decision_process(0.5)
    policy, critic = process.uniform_policy(), torch.tensor([1.0, -2.0, 3.0, 0.5, -1.0, 9.0]).double()
    paths = enumerate_trajectories(process, torch.tensor([0.0, 0, 0, 1, 0, 0]).double(), 12)
    found = generalised_advantages(
        paths.rewards.T,
        critic[paths.states[:, :-1].T],
        critic[paths.states[:, 1:].T],
        process.terminal[paths.states[:, 1:].T],
        torch.zeros_like(paths.live.T),
        gamma=0.5,
        gae_lambda=decay,
    )[0]
    probabilities = paths.probabilities(policy)
    exact = expected_advantages(process, policy, critic, decay)
    for action in (1, 2):
        chosen = paths.actions[:, 0] == action
        mean = (probabilities[chosen] @ found[chosen]) / probabilities[chosen].sum()
        assert float(mean) == pytest.approx(float(exact[3, action]), abs=1e-3)
    assert float(exact[3, 0]) == -torch.inf


def test_the_true_critic_gives_the_advantage_and_lambda_one_forgives() -> None:
    process = cat_decision_process(0.9)
    policy = process.uniform_policy()
    values = process.values_of(policy)
    torch.testing.assert_close(expected_advantages(process, policy, values, 0.3), process.advantages_of(policy))
    wrong = torch.tensor([1.0, -2.0, 3.0, 0.5, -1.0, 0.0]).double()
    torch.testing.assert_close(
        expected_advantages(process, policy, wrong, 1.0) + wrong[:, None], process.q_values(values)
    )
    with pytest.raises(ValueError, match=r"0 ≤ λ ≤ 1; got -0\.1"):
        expected_advantages(process, policy, values, -0.1)

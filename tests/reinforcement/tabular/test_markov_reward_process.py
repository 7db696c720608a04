"""Markov reward processes with known values."""

import pytest
import torch

from parnassus.reinforcement.tabular.markov_reward_process import MarkovRewardProcess, solve_bellman


def geometric_process(gamma: float, stay: float = 0.5) -> MarkovRewardProcess:
    """One state with reward 1, left with probability 1 − stay for a terminal state."""
    transition = torch.tensor([[stay, 1 - stay], [0.0, 1.0]], dtype=torch.float64)
    return MarkovRewardProcess(transition, torch.tensor([1.0, 0.0], dtype=torch.float64), gamma)


@pytest.mark.parametrize("gamma", [0.0, 0.3, 0.9, 1.0])
def test_values_match_the_geometric_series(gamma: float) -> None:
    values = geometric_process(gamma).values()
    torch.testing.assert_close(values, torch.tensor([1 / (1 - 0.5 * gamma), 0.0], dtype=torch.float64))
    torch.testing.assert_close(geometric_process(gamma).iterates(100)[-1], values)


def test_iterates_sum_the_first_rewards() -> None:
    iterates = geometric_process(0.5).iterates(3)
    torch.testing.assert_close(iterates[:, 0], torch.tensor([0.0, 1.0, 1.25, 1.3125], dtype=torch.float64))


def test_absorbing_state_with_reward_is_not_terminal() -> None:
    process = MarkovRewardProcess(torch.ones(1, 1).double(), torch.ones(1).double(), 0.9)
    assert not bool(process.terminal.any())
    torch.testing.assert_close(process.values(), torch.tensor([10.0], dtype=torch.float64))


def test_solve_bellman_is_batched() -> None:
    stays = (0.1, 0.5, 0.9)
    processes = [geometric_process(0.8, stay) for stay in stays]
    values = solve_bellman(
        torch.stack([process.transition for process in processes]),
        torch.stack([process.reward for process in processes]),
        0.8,
        torch.stack([process.terminal for process in processes]),
    )
    torch.testing.assert_close(values, torch.stack([process.values() for process in processes]))


def test_path_return_and_marginal() -> None:
    paths = torch.tensor([[0, 0, 1], [0, 1, 1]])
    torch.testing.assert_close(geometric_process(0.5).path_return(paths), torch.tensor([1.5, 1.0], dtype=torch.float64))
    assert geometric_process(0.5).chain(torch.tensor([1.0, 0.0]).double()).marginal(1).tolist() == [0.5, 0.5]


def test_undiscounted_values_with_a_rarely_reached_terminal_state() -> None:
    states = 60
    transition = torch.zeros(states, states, dtype=torch.float64)
    transition[range(states - 1), range(1, states)] = 0.5
    transition[range(states - 1), 0] += 0.5
    transition[-1, -1] = 1
    reward = torch.ones(states, dtype=torch.float64)
    reward[-1] = 0
    values = MarkovRewardProcess(transition, reward, 1.0).values()
    assert float(values[0]) == pytest.approx(2.0**states, rel=1e-3)


def test_invalid_arguments_raise_value_error() -> None:
    identity = torch.eye(2, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"must satisfy 0 ≤ γ ≤ 1; got 1\.5"):
        MarkovRewardProcess(identity, torch.zeros(2).double(), 1.5)
    with pytest.raises(ValueError, match="probabilities must sum to one"):
        MarkovRewardProcess(identity / 2, torch.zeros(2).double(), 0.5)
    with pytest.raises(ValueError, match="every state must be able to reach a terminal state; state 0 never does"):
        MarkovRewardProcess(identity, torch.tensor([1.0, 0.0]).double(), 1.0).values()
    with pytest.raises(ValueError, match="sweeps must not be negative; got sweeps=-1"):
        geometric_process(0.5).iterates(-1)

"""Values of chains that can be worked out by hand."""

import pytest
import torch

from parnassus.reinforcement.tabular.markov_reward_process import MarkovRewardProcess, solve_bellman


def process(discount: float, stay: float = 0.5) -> MarkovRewardProcess:
    """One state that pays 1 and is left with 1 − stay, for an end."""
    transition = torch.tensor([[stay, 1 - stay], [0.0, 1.0]], dtype=torch.float64)
    return MarkovRewardProcess(transition, torch.tensor([1.0, 0.0], dtype=torch.float64), discount)


@pytest.mark.parametrize("discount", [0.0, 0.3, 0.9, 1.0])
def test_a_geometric_sum(discount: float) -> None:
    values = process(discount).values()
    torch.testing.assert_close(values, torch.tensor([1 / (1 - 0.5 * discount), 0.0], dtype=torch.float64))
    torch.testing.assert_close(process(discount).iterates(100)[-1], values)


def test_iterates_count_the_first_rewards() -> None:
    path = process(0.5).iterates(3)
    torch.testing.assert_close(path[:, 0], torch.tensor([0.0, 1.0, 1.25, 1.3125], dtype=torch.float64))


def test_a_state_that_is_never_left_may_pay_for_ever() -> None:
    forever = MarkovRewardProcess(torch.ones(1, 1).double(), torch.ones(1).double(), 0.9)
    assert not bool(forever.terminal.any())
    torch.testing.assert_close(forever.values(), torch.tensor([10.0], dtype=torch.float64))


def test_many_processes_at_once() -> None:
    stays = (0.1, 0.5, 0.9)
    each = [process(0.8, stay) for stay in stays]
    together = solve_bellman(
        torch.stack([one.transition for one in each]),
        torch.stack([one.reward for one in each]),
        0.8,
        torch.stack([one.terminal for one in each]),
    )
    torch.testing.assert_close(together, torch.stack([one.values() for one in each]))


def test_returns_of_paths() -> None:
    paths = torch.tensor([[0, 0, 1], [0, 1, 1]])
    torch.testing.assert_close(process(0.5).path_return(paths), torch.tensor([1.5, 1.0], dtype=torch.float64))
    assert process(0.5).chain(torch.tensor([1.0, 0.0]).double()).marginal(1).tolist() == [0.5, 0.5]


def test_without_discount_a_long_way_to_the_end_is_still_a_way() -> None:
    states = 60
    transition = torch.zeros(states, states, dtype=torch.float64)
    transition[range(states - 1), range(1, states)] = 0.5
    transition[range(states - 1), 0] += 0.5
    transition[-1, -1] = 1
    reward = torch.ones(states, dtype=torch.float64)
    reward[-1] = 0
    short = MarkovRewardProcess(transition, reward, 1.0).values()
    assert float(short[0]) == pytest.approx(2.0**states, rel=1e-3)


def test_what_cannot_work_gets_a_sentence() -> None:
    whole = torch.eye(2, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"must satisfy 0 ≤ γ ≤ 1; got 1\.5"):
        MarkovRewardProcess(whole, torch.zeros(2).double(), 1.5)
    with pytest.raises(ValueError, match="probabilities must sum to one"):
        MarkovRewardProcess(whole / 2, torch.zeros(2).double(), 0.5)
    with pytest.raises(ValueError, match="every state must be able to reach a terminal state; state 0 never does"):
        MarkovRewardProcess(whole, torch.tensor([1.0, 0.0]).double(), 1.0).values()
    with pytest.raises(ValueError, match="sweeps must not be negative; got sweeps=-1"):
        process(0.5).iterates(-1)

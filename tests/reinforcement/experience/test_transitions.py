"""Transitions over n steps against a plain loop, in chunks of any length; ends cut them."""

import pytest
import torch

from parnassus.reinforcement.experience.collector import Experience
from parnassus.reinforcement.experience.transitions import NStepTransitions, Transitions

GAMMA = 0.9


def experience(steps: int, num_learners: int = 2, n_envs: int = 3) -> Experience:
    torch.manual_seed(0)
    shape = (steps, num_learners, n_envs)
    terminated = torch.rand(shape) < 0.15
    truncated = (torch.rand(shape) < 0.15) & ~terminated
    seen, next_observations = torch.randn(2, *shape, 2)
    return Experience(seen, torch.randint(4, shape), torch.randn(shape), terminated, truncated, next_observations)


def part(seen: Experience, first: int, last: int) -> Experience:
    return Experience(*(column[first:last] for column in vars(seen).values()))


def by_hand(seen: Experience, n: int, t: int, learner: int, copy: int) -> tuple[float, float, list[float], bool]:
    total, power = 0.0, 1.0
    for step in range(t, t + n):
        at = (step, learner, copy)
        total += power * float(seen.rewards[at])
        power *= GAMMA
        if seen.terminated[at] or seen.truncated[at]:
            break
    return total, power, seen.next_observations[at].tolist(), bool(seen.terminated[at])


@pytest.mark.parametrize("n", [1, 2, 5])
def test_rewards_discounts_and_ends_are_those_of_a_loop(n: int) -> None:
    seen = experience(12)
    found = NStepTransitions(n, gamma=GAMMA)(seen)
    assert found is not None
    for learner in range(2):
        for row in range(found.rewards.shape[1]):
            t, copy = divmod(row, 3)
            reward, power, next_observations, terminated = by_hand(seen, n, t, learner, copy)
            assert float(found.rewards[learner, row]) == pytest.approx(reward, abs=1e-5)
            assert float(found.discounts[learner, row]) == pytest.approx(power)
            assert found.next_observations[learner, row].tolist() == next_observations
            assert bool(found.terminated[learner, row]) is terminated
            assert torch.equal(found.observations[learner, row], seen.observations[t, learner, copy])
            assert found.actions[learner, row] == seen.actions[t, learner, copy]


@pytest.mark.parametrize("cuts", [[4, 8], [1, 2, 3], [11]])
def test_chunks_give_what_the_whole_gives(cuts: list[int]) -> None:
    seen = experience(12)
    whole = NStepTransitions(3, gamma=GAMMA)(seen)
    over, found = NStepTransitions(3, gamma=GAMMA), []
    for first, last in zip([0, *cuts], [*cuts, 12], strict=True):
        new = over(part(seen, first, last))
        again = NStepTransitions(3, gamma=GAMMA)  # as after an interruption
        again.load_state_dict(over.state_dict())
        over = again
        if new is not None:
            found.append(new)
    joined = Transitions(*(torch.cat(columns, 1) for columns in zip(*found, strict=True)))
    assert whole is not None
    assert all(torch.equal(a, b) for a, b in zip(whole, joined, strict=True))


def test_no_steps_are_told() -> None:
    with pytest.raises(ValueError, match="got n=0"):
        NStepTransitions(0, gamma=0.9)
    with pytest.raises(ValueError, match=r"0 ≤ γ ≤ 1; got 1\.5"):
        NStepTransitions(1, gamma=1.5)

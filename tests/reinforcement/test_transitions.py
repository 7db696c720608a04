"""Transitions over n steps against a plain loop, in chunks of any length; ends cut them."""

import pytest
import torch

from parnassus.reinforcement.collector import Experience
from parnassus.reinforcement.transitions import NSteps, Transitions

GAMMA = 0.9


def experience(steps: int, learners: int = 2, copies: int = 3) -> Experience:
    torch.manual_seed(0)
    shape = (steps, learners, copies)
    terminated = torch.rand(shape) < 0.15
    truncated = (torch.rand(shape) < 0.15) & ~terminated
    seen, led_to = torch.randn(2, *shape, 2)
    return Experience(seen, torch.randint(4, shape), torch.randn(shape), terminated, truncated, led_to)


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
    return total, power, seen.led_to[at].tolist(), bool(seen.terminated[at])


@pytest.mark.parametrize("n", [1, 2, 5])
def test_rewards_discounts_and_ends_are_those_of_a_loop(n: int) -> None:
    seen = experience(12)
    found = NSteps(n, discount=GAMMA)(seen)
    assert found is not None
    for learner in range(2):
        for row in range(found.rewards.shape[1]):
            t, copy = divmod(row, 3)
            reward, power, led_to, terminated = by_hand(seen, n, t, learner, copy)
            assert float(found.rewards[learner, row]) == pytest.approx(reward, abs=1e-5)
            assert float(found.discounts[learner, row]) == pytest.approx(power)
            assert found.led_to[learner, row].tolist() == led_to
            assert bool(found.terminated[learner, row]) is terminated
            assert torch.equal(found.observations[learner, row], seen.observations[t, learner, copy])
            assert found.actions[learner, row] == seen.actions[t, learner, copy]


@pytest.mark.parametrize("cuts", [[4, 8], [1, 2, 3], [11]])
def test_chunks_give_what_the_whole_gives(cuts: list[int]) -> None:
    seen = experience(12)
    whole = NSteps(3, discount=GAMMA)(seen)
    over, found = NSteps(3, discount=GAMMA), []
    for first, last in zip([0, *cuts], [*cuts, 12], strict=True):
        new = over(part(seen, first, last))
        again = NSteps(3, discount=GAMMA)  # as after an interruption
        again.load_state_dict(over.state_dict())
        over = again
        if new is not None:
            found.append(new)
    joined = Transitions(*(torch.cat(columns, 1) for columns in zip(*found, strict=True)))
    assert whole is not None
    assert all(torch.equal(a, b) for a, b in zip(whole, joined, strict=True))


def test_no_steps_are_told() -> None:
    with pytest.raises(ValueError, match="got n=0"):
        NSteps(0, discount=0.9)
    with pytest.raises(ValueError, match=r"got discount=1\.5"):
        NSteps(1, discount=1.5)

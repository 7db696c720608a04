"""n-step transitions compared with a loop, also over chunks."""

import pytest
import torch

from parnassus.reinforcement.experience.collector import Experience
from parnassus.reinforcement.experience.transitions import NStepTransitions, Transitions

GAMMA = 0.9


def random_experience(steps: int, num_learners: int = 2, n_envs: int = 3) -> Experience:
    torch.manual_seed(0)
    shape = (steps, num_learners, n_envs)
    terminated = torch.rand(shape) < 0.15
    truncated = (torch.rand(shape) < 0.15) & ~terminated
    observations, next_observations = torch.randn(2, *shape, 2)
    return Experience(
        observations, torch.randint(4, shape), torch.randn(shape), terminated, truncated, next_observations
    )


def slice_steps(experience: Experience, first: int, last: int) -> Experience:
    return Experience(*(column[first:last] for column in vars(experience).values()))


def expected_transition(
    experience: Experience, n: int, t: int, learner: int, env: int
) -> tuple[float, float, list[float], bool]:
    total, power = 0.0, 1.0
    for step in range(t, t + n):
        index = (step, learner, env)
        total += power * float(experience.rewards[index])
        power *= GAMMA
        if experience.terminated[index] or experience.truncated[index]:
            break
    return total, power, experience.next_observations[index].tolist(), bool(experience.terminated[index])


@pytest.mark.parametrize("n", [1, 2, 5])
def test_transitions_match_a_loop(n: int) -> None:
    experience = random_experience(12)
    transitions = NStepTransitions(n, gamma=GAMMA)(experience)
    assert transitions is not None
    for learner in range(2):
        for row in range(transitions.rewards.shape[1]):
            t, env = divmod(row, 3)
            reward, power, next_observations, terminated = expected_transition(experience, n, t, learner, env)
            assert float(transitions.rewards[learner, row]) == pytest.approx(reward, abs=1e-5)
            assert float(transitions.discounts[learner, row]) == pytest.approx(power)
            assert transitions.next_observations[learner, row].tolist() == next_observations
            assert bool(transitions.terminated[learner, row]) is terminated
            assert torch.equal(transitions.observations[learner, row], experience.observations[t, learner, env])
            assert transitions.actions[learner, row] == experience.actions[t, learner, env]


@pytest.mark.parametrize("cuts", [[4, 8], [1, 2, 3], [11]])
def test_chunks_match_a_single_pass(cuts: list[int]) -> None:
    experience = random_experience(12)
    expected = NStepTransitions(3, gamma=GAMMA)(experience)
    n_step, chunks = NStepTransitions(3, gamma=GAMMA), []
    for first, last in zip([0, *cuts], [*cuts, 12], strict=True):
        chunk = n_step(slice_steps(experience, first, last))
        restored = NStepTransitions(3, gamma=GAMMA)  # as in a resumed run
        restored.load_state_dict(n_step.state_dict())
        n_step = restored
        if chunk is not None:
            chunks.append(chunk)
    joined = Transitions(*(torch.cat(columns, 1) for columns in zip(*chunks, strict=True)))
    assert expected is not None
    assert all(torch.equal(a, b) for a, b in zip(expected, joined, strict=True))


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="got n=0"):
        NStepTransitions(0, gamma=0.9)
    with pytest.raises(ValueError, match=r"0 ≤ γ ≤ 1; got 1\.5"):
        NStepTransitions(1, gamma=1.5)

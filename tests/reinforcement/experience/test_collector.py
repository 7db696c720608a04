"""Experience is what happened, learner by learner; scores are sums of rewards."""

import pytest
import torch

from parnassus.reinforcement.environments import CartPole, TensorEnvironments
from parnassus.reinforcement.experience.collector import Collector


def test_scores_of_episodes_and_learners_apart() -> None:
    torch.manual_seed(0)
    collector = Collector(TensorEnvironments(CartPole(max_episode_steps=30), 6), num_learners=2)
    balanced = torch.tensor([0.0, 0.0, 1.0, 0.6])
    seen = collector.collect(
        lambda x: torch.stack([(x[0] @ balanced > 0).long(), torch.zeros(3, dtype=torch.int64)]), 90
    )
    assert seen.observations.shape == (90, 2, 3, 4)
    assert torch.equal(
        seen.observations[1:][~(seen.terminated | seen.truncated)[:-1]],
        seen.next_observations[:-1][~(seen.terminated | seen.truncated)[:-1]],
    )
    assert seen.truncated[29, 0].all()
    assert not seen.terminated[:, 0].any()
    better, worse = collector.recent_returns
    assert better == 30  # never more than the limit
    assert 7 < worse < 13
    assert collector.steps == 270
    assert collector.episodes == int((seen.terminated | seen.truncated).sum())


def test_a_part_of_an_episode_is_no_return() -> None:
    collector = Collector(TensorEnvironments(CartPole(max_episode_steps=30), 2), num_learners=2)
    still = torch.tensor([0.0, 0.0, 1.0, 0.6])
    for steps, told in ((29, 0), (1, 2)):
        collector.collect(lambda x: (x @ still > 0).long(), steps)
        assert len(collector.progress) == told
    assert collector.recent_returns == [30.0, 30.0]


def test_it_goes_on_in_the_middle_of_episodes() -> None:
    torch.manual_seed(0)
    first, second = (Collector(TensorEnvironments(CartPole(), 4), num_learners=2) for _ in range(2))

    def act(x: torch.Tensor) -> torch.Tensor:
        return (torch.rand(x.shape[:2]) < 0.5).long()

    first.collect(act, 25)
    second.load_state_dict(first.state_dict())
    torch.manual_seed(1)
    one = first.collect(act, 40)
    torch.manual_seed(1)
    other = second.collect(act, 40)
    assert torch.equal(one.next_observations, other.next_observations)
    assert first.recent_returns == second.recent_returns
    assert first.steps == second.steps == 130


def test_copies_are_shared_alike() -> None:
    with pytest.raises(ValueError, match="n_envs must be divisible by num_learners; got n_envs=5, num_learners=2"):
        Collector(TensorEnvironments(CartPole(), 5), num_learners=2)

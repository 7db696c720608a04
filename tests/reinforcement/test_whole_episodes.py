"""Whole episodes and the gradient they give: weights, a known gradient, the worth of a baseline."""

import pytest
import torch
from torch import Tensor

from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.actor_vector import ActorVector
from parnassus.reinforcement.environments import CartPole, Discrete, Simulated
from parnassus.reinforcement.whole_episodes import (
    Episodes,
    critic_rows,
    reinforce_objective,
    reinforce_weights,
    slope_variance,
    whole_episodes,
)


def played(learners: int = 2, copies: int = 4, longest: int = 25) -> tuple[ActorCritic, Episodes]:
    torch.manual_seed(0)
    model = ActorCritic(4, Discrete(2), hidden=(6,), learners=learners)
    worlds = Simulated(CartPole(longest=longest), learners * copies)
    return model, whole_episodes(worlds, lambda x: model.law(x).draw(), learners)


def test_episodes_go_from_their_beginning_to_their_end() -> None:
    _, seen = played()
    lengths = seen.live.sum(0)
    assert torch.equal(seen.scores, lengths.float())  # 1 a step
    assert int(lengths.max()) == len(seen.rewards) <= 25
    assert bool(seen.live[0].all())
    assert not bool((seen.live[1:] & ~seen.live[:-1]).any())  # once over, over
    assert bool((seen.observations[0].abs() <= 0.05).all())


def test_weights_are_what_followed() -> None:
    _, seen = played()
    baseline = torch.randn_like(seen.rewards)
    found = reinforce_weights(seen, baseline, discount=0.9)
    for learner in range(2):
        for copy in range(4):
            length = int(seen.live[:, learner, copy].sum())
            for step in range(len(seen.rewards)):
                ahead = sum(0.9 ** (k - step) for k in range(step, length))
                wanted = 0.9**step * (ahead - float(baseline[step, learner, copy])) if step < length else 0.0
                assert float(found[step, learner, copy]) == pytest.approx(wanted, abs=1e-5)


def test_the_slope_of_the_objective_is_that_of_the_return() -> None:
    """One step, action 1 pays 1: J = π(1|s), whose slope enumeration gives; the mean over many draws agrees."""
    torch.manual_seed(0)
    model, copies = ActorCritic(1, Discrete(2), hidden=(3,)).double(), 40_000
    ActorVector(model).write(torch.randn_like(ActorVector(model).read()))
    states = torch.ones(1, 1, copies, 1, dtype=torch.float64)
    with torch.no_grad():
        actions = model.law(states[0]).draw()[None]
    seen = Episodes(states, actions, actions.double(), torch.ones(1, 1, copies, dtype=torch.bool))
    actor = ActorVector(model)
    exact = actor.slope(model.law(states[0, :, :1]).log_prob(torch.ones(1, 1, dtype=torch.int64)).exp().sum())
    slopes: list[Tensor] = []
    for baseline in (0.0, 0.7):
        weights = reinforce_weights(seen, baseline, discount=0.9)
        slopes.append(actor.slope(reinforce_objective(model, seen, weights).mean(1).sum()))
        torch.testing.assert_close(slopes[-1], exact, atol=0.02 * float(exact.norm()), rtol=0)
    assert not torch.equal(slopes[0], slopes[1])


def test_the_variance_is_that_of_slopes_one_by_one() -> None:
    model, seen = played(copies=5)
    weights = reinforce_weights(seen, discount=0.95)
    found = slope_variance(model, seen, weights)
    actor, each = ActorVector(model), []
    for copy in range(5):
        alone = torch.zeros_like(weights)
        alone[..., copy] = weights[..., copy]
        each.append(actor.slope(reinforce_objective(model, seen, alone).sum()))
    mean = torch.stack(each).mean(0)
    wanted = torch.stack([(own - mean).square().sum(1) for own in each]).sum(0) / 4
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_the_critic_sees_living_states_alone() -> None:
    _, seen = played()
    states, returned = critic_rows(seen, 200, discount=1.0)
    assert states.shape == (2, 200, 4)
    assert float(returned.min()) >= 1  # after the end it would be 0
    for learner in range(2):
        assert float(returned[learner].max()) <= float(seen.scores[learner].max())


def test_wrong_input() -> None:
    model, seen = played(copies=1)
    with pytest.raises(ValueError, match="at least two episodes of each learner; got 1"):
        slope_variance(model, seen, reinforce_weights(seen, discount=0.9))
    with pytest.raises(ValueError, match="3 copies cannot be shared by 2 learners alike"):
        whole_episodes(Simulated(CartPole(), 3), lambda x: model.law(x).draw(), 2)

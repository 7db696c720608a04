"""PPO as an estimator."""

import numpy as np
import pytest

from parnassus.estimators import PPO
from parnassus.reinforcement.agents.ppo import TUNED, PPOSettings
from parnassus.reinforcement.environments import make_environments

SETTINGS = PPOSettings(n_envs=8, n_steps=32, batch_size=128)


def test_cart_pole_is_learned_and_reproduced() -> None:
    """An untrained policy balances the pole for about 20 steps."""
    agents = [PPO("CartPole-v1", SETTINGS, verbose=False).fit(16_384) for _ in range(2)]
    returns = [agent.evaluate(8) for agent in agents]
    assert returns[0].mean() > 100
    assert np.array_equal(returns[0], returns[1])
    assert "CartPole-v1" in repr(agents[0])
    assert "<svg" in agents[0]._repr_html_()


def test_actions_are_of_one_state_or_of_rows() -> None:
    agent = PPO(lambda count: make_environments("Pendulum-v1", count), SETTINGS, verbose=False).fit(512)
    assert agent.act([1.0, 0.0, 0.0]).shape == (1,)
    assert agent.act(np.zeros((5, 3))).shape == (5, 1)
    assert not np.array_equal(agent.act(np.zeros(3), sample_actions=True), agent.act(np.zeros(3)))
    with pytest.raises(ValueError, match=r"observation must be one state or rows of states; got shape \(1, 1, 3\)"):
        agent.act(np.zeros((1, 1, 3)))


def test_defaults_are_tuned_for_the_environment() -> None:
    assert PPO("Acrobot-v1").settings.n_steps == TUNED["Acrobot-v1"]["n_steps"] != PPO().settings.n_steps


def test_an_agent_that_is_not_fitted_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"this PPO is not fitted: call fit\(total_timesteps\) first"):
        PPO().act([0.0] * 4)

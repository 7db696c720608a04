"""Chain, reward process and decision process of the cat example."""

import pytest
import torch

from parnassus.reinforcement.textbook.cat import (
    ACTIONS,
    STATES,
    cat_chain,
    cat_decision_process,
    cat_reward_process,
    constant_policy,
    state_indices,
)


def test_waiting_follows_the_chain() -> None:
    chain, decisions = cat_chain("hunting"), cat_decision_process()
    assert chain.start.tolist() == [1, 0, 0, 0, 0, 0]
    others = [STATES.index(mood) for mood in STATES if mood != "relaxed"]
    torch.testing.assert_close(decisions.transition[others, 0], chain.transition[others])
    assert decisions.allowed.sum(1).tolist() == [1, 1, 1, 2, 1, 1]


def test_reward_process_is_a_mixture_of_talking_and_stroking() -> None:
    """The reward process talks with probability 0.2."""
    policy = 0.2 * constant_policy("talk") + 0.8 * constant_policy("stroke")
    torch.testing.assert_close(cat_decision_process(0.9).state_values(policy), cat_reward_process(0.9).values())


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"the cat's states are hunting, .*; got 'angry'"):
        state_indices("hungry", "angry")
    with pytest.raises(ValueError, match="'talk' or 'stroke'; got 'wait'"):
        constant_policy(ACTIONS[0])

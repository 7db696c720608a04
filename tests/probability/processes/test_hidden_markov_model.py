"""The forward algorithm against sums over every hidden path."""

import pytest
import torch
from torch import Tensor

from parnassus.probability import LUMPED_CHAIN, LUMPING, HiddenMarkovModel, MarkovChain, lumped_chain


def two_state_model() -> HiddenMarkovModel:
    def float64_tensor(*rows: list[float]) -> Tensor:
        return torch.tensor(rows, dtype=torch.float64)

    chain = MarkovChain(float64_tensor([0.6, 0.4])[0], float64_tensor([0.9, 0.1], [0.3, 0.7]))
    return HiddenMarkovModel(chain, float64_tensor([0.5, 0.3, 0.2], [0.1, 0.1, 0.8]))


def joint_with_all_hidden_paths(model: HiddenMarkovModel, observations: Tensor) -> Tensor:
    """P[y, x] for all hidden paths x, by enumeration."""
    hidden = torch.cartesian_prod(*[torch.arange(len(model.emission))] * len(observations))
    log_emission = model.emission[hidden, observations].log().sum(1)
    return (model.chain.log_prob(hidden) + log_emission).exp()


def test_forward_algorithm_sums_over_all_hidden_paths() -> None:
    model = two_state_model()
    observations = torch.tensor([0, 2, 2, 1, 2])
    joint = joint_with_all_hidden_paths(model, observations)
    torch.testing.assert_close(model.log_prob(observations[None])[0], joint.sum().log())


def test_filtered_posterior_matches_enumeration() -> None:
    model = two_state_model()
    observations = torch.tensor([0, 2, 2, 1])
    joint = joint_with_all_hidden_paths(model, observations)
    last_states = torch.cartesian_prod(*[torch.arange(2)] * 4)[:, -1]
    expected = torch.stack([joint[last_states == state].sum() for state in range(2)]) / joint.sum()
    torch.testing.assert_close(model.filter_states(observations[None])[0][0, -1], expected)


def test_predictions_are_ratios_of_probabilities() -> None:
    model = two_state_model()
    observations = torch.tensor([[1, 0, 2]])
    extended = torch.cat([observations.expand(3, -1), torch.arange(3)[:, None]], 1)
    torch.testing.assert_close(
        model.predict(observations)[0], (model.log_prob(extended) - model.log_prob(observations)).exp()
    )


def test_probabilities_of_all_observations_sum_to_one() -> None:
    observations = torch.cartesian_prod(*[torch.arange(3)] * 4)
    torch.testing.assert_close(float(two_state_model().log_prob(observations).exp().sum()), 1.0)


def test_long_paths_do_not_underflow() -> None:
    model = two_state_model()
    _, observations = model.sample(2, steps=5_000, generator=torch.Generator().manual_seed(0))
    assert bool(model.log_prob(observations).isfinite().all())
    assert float(model.log_prob(observations).max()) < -3_000


def test_samples_follow_the_emission_probabilities() -> None:
    hidden, observations = two_state_model().sample(3_000, steps=20, generator=torch.Generator().manual_seed(0))
    frequencies = torch.bincount(observations[hidden == 1], minlength=3) / (hidden == 1).sum()
    torch.testing.assert_close(frequencies, torch.tensor([0.1, 0.1, 0.8]), atol=0.01, rtol=0)


def test_lumped_chain_matches_its_definition() -> None:
    hidden, observations = lumped_chain(torch.full((5,), 0.2)).sample(200, steps=30)
    assert [LUMPING[state] for state in (hidden + 1).flatten().tolist()] == (observations + 1).flatten().tolist()
    transitions = set(zip((hidden[:, :-1] + 1).flatten().tolist(), (hidden[:, 1:] + 1).flatten().tolist(), strict=True))
    assert transitions == {(state, next_state) for state, row in LUMPED_CHAIN.items() for next_state in row}


def test_impossible_and_invalid_observations() -> None:
    model = lumped_chain(torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0]))
    assert float(model.log_prob(torch.tensor([[1]]))[0]) == -torch.inf  # state 1 emits symbol 1, never 2
    with pytest.raises(ValueError, match="must have positive probability"):
        model.predict(torch.tensor([[1]]))
    with pytest.raises(ValueError, match=r"symbols must lie between 0 and 1; got 2 to 2"):
        model.log_prob(torch.tensor([[2]]))
    with pytest.raises(ValueError, match=r"observations must not be empty; got shape \(2, 0\)"):
        model.log_prob(torch.zeros(2, 0, dtype=torch.int64))
    with pytest.raises(ValueError, match="emission must have one row per state; got 2 rows, 5 states"):
        HiddenMarkovModel(model.chain, torch.eye(2))

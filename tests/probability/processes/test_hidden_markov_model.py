"""The forward algorithm against sums over every hidden path."""

import pytest
import torch
from torch import Tensor

from parnassus.probability import LUMPED_CHAIN, LUMPING, HiddenMarkovModel, MarkovChain, lumped_chain


def two_state_model() -> HiddenMarkovModel:
    def table(*rows: list[float]) -> Tensor:
        return torch.tensor(rows, dtype=torch.float64)

    chain = MarkovChain(table([0.6, 0.4])[0], table([0.9, 0.1], [0.3, 0.7]))
    return HiddenMarkovModel(chain, table([0.5, 0.3, 0.2], [0.1, 0.1, 0.8]))


def joint_with_every_hidden_path(model: HiddenMarkovModel, observations: Tensor) -> Tensor:
    """P[y, x] for all hidden paths x, by enumeration."""
    hidden = torch.cartesian_prod(*[torch.arange(len(model.emission))] * len(observations))
    emitted = model.emission[hidden, observations].log().sum(1)
    return (model.chain.log_prob(hidden) + emitted).exp()


def test_the_forward_algorithm_sums_over_all_hidden_paths() -> None:
    model = two_state_model()
    observations = torch.tensor([0, 2, 2, 1, 2])
    joint = joint_with_every_hidden_path(model, observations)
    torch.testing.assert_close(model.log_prob(observations[None])[0], joint.sum().log())


def test_the_filtered_posterior_equals_enumeration() -> None:
    model = two_state_model()
    observations = torch.tensor([0, 2, 2, 1])
    joint = joint_with_every_hidden_path(model, observations)
    ends = torch.cartesian_prod(*[torch.arange(2)] * 4)[:, -1]
    expected = torch.stack([joint[ends == state].sum() for state in range(2)]) / joint.sum()
    torch.testing.assert_close(model.filter_states(observations[None])[0][0, -1], expected)


def test_predictions_are_ratios_of_probabilities() -> None:
    model = two_state_model()
    observations = torch.tensor([[1, 0, 2]])
    longer = torch.cat([observations.expand(3, -1), torch.arange(3)[:, None]], 1)
    torch.testing.assert_close(
        model.predict(observations)[0], (model.log_prob(longer) - model.log_prob(observations)).exp()
    )


def test_all_observations_have_total_probability_one() -> None:
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


def test_the_example_lumps_the_states_as_printed() -> None:
    hidden, observations = lumped_chain(torch.full((5,), 0.2)).sample(200, steps=30)
    assert [LUMPING[state] for state in (hidden + 1).flatten().tolist()] == (observations + 1).flatten().tolist()
    moves = set(zip((hidden[:, :-1] + 1).flatten().tolist(), (hidden[:, 1:] + 1).flatten().tolist(), strict=True))
    assert moves == {(state, following) for state, row in LUMPED_CHAIN.items() for following in row}


def test_impossible_observations() -> None:
    model = lumped_chain(torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0]))
    assert float(model.log_prob(torch.tensor([[1]]))[0]) == -torch.inf  # state 1 emits symbol 1, never 2
    with pytest.raises(ValueError, match="must have positive probability"):
        model.predict(torch.tensor([[1]]))
    with pytest.raises(ValueError, match=r"need one or more symbols from 0 to 1; got \[\[2\]\]"):
        model.log_prob(torch.tensor([[2]]))
    with pytest.raises(ValueError, match="emission must have one row per state; got 2 rows, 5 states"):
        HiddenMarkovModel(model.chain, torch.eye(2))

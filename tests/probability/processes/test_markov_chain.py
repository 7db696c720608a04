"""Finite Markov chains against matrix powers, frequencies and closed forms."""

import pytest
import torch

from parnassus.probability import InhomogeneousMarkovChain, MarkovChain, float64_tensor, stationary_distribution
from parnassus.probability.processes.markov_chain import check_transition


def coin_chain(stay: float) -> MarkovChain:
    return MarkovChain(
        float64_tensor(1.0, 0.0), torch.tensor([[stay, 1 - stay], [1 - stay, stay]], dtype=torch.float64)
    )


@pytest.mark.parametrize("steps", [0, 1, 2, 9])
def test_marginal_of_symmetric_two_state_chain_matches_closed_form(steps: int) -> None:
    """P[X_n = X_0] = ½ (1 + (2s − 1)ⁿ)."""
    return_probability = (1 + (2 * 0.8 - 1) ** steps) / 2
    torch.testing.assert_close(
        coin_chain(0.8).marginal(steps), float64_tensor(return_probability, 1 - return_probability)
    )
    torch.testing.assert_close(
        coin_chain(0.8).marginals(steps)[-1], float64_tensor(return_probability, 1 - return_probability)
    )


def test_deterministic_chain_has_one_path() -> None:
    cycle = torch.eye(4).roll(1, 1)  # 0 → 1 → 2 → 3 → 0
    paths = MarkovChain(torch.tensor([0.0, 0.0, 1.0, 0.0]), cycle).sample(3, steps=5)
    assert paths.tolist() == [[2, 3, 0, 1, 2, 3]] * 3


def test_samples_follow_start_and_transition_probabilities() -> None:
    start, rows = (
        float64_tensor(0.2, 0.5, 0.3),
        torch.stack([float64_tensor(0.1, 0.9, 0.0), float64_tensor(0.5, 0.0, 0.5), float64_tensor(0.3, 0.3, 0.4)]),
    )
    paths = MarkovChain(start, rows).sample(60_000, steps=2, generator=torch.Generator().manual_seed(0))
    transitions = torch.zeros(3, 3).index_put((paths[:, 1], paths[:, 2]), torch.ones(60_000), accumulate=True)
    torch.testing.assert_close(torch.bincount(paths[:, 0]) / 60_000, start.float(), atol=0.01, rtol=0)
    torch.testing.assert_close(transitions / transitions.sum(1, keepdim=True), rows.float(), atol=0.02, rtol=0)


def test_probabilities_of_all_paths_sum_to_one() -> None:
    chain = MarkovChain(float64_tensor(0.25, 0.75), torch.tensor([[0.1, 0.9], [0.6, 0.4]], dtype=torch.float64))
    paths = torch.cartesian_prod(*[torch.arange(2)] * 5)
    torch.testing.assert_close(chain.log_prob(paths).exp().sum(), float64_tensor(1.0)[0])
    torch.testing.assert_close(chain.log_prob(torch.tensor([[1, 0, 0]])).exp(), float64_tensor(0.75 * 0.6 * 0.1))


def test_fit_counts_transitions_and_recovers_the_chain() -> None:
    fitted = MarkovChain.fit(torch.tensor([[0, 1, 1, 0], [0, 0, 1, 1]]), states=2)
    torch.testing.assert_close(fitted.start, float64_tensor(1.0, 0.0))
    torch.testing.assert_close(fitted.transition, torch.tensor([[1 / 3, 2 / 3], [1 / 3, 2 / 3]], dtype=torch.float64))
    paths = coin_chain(0.7).sample(2_000, steps=50, generator=torch.Generator().manual_seed(0))
    refitted = MarkovChain.fit(paths, states=2)
    torch.testing.assert_close(refitted.transition, coin_chain(0.7).transition, atol=0.01, rtol=0)
    log_likelihood = refitted.log_prob(paths).sum()
    assert log_likelihood >= coin_chain(0.7).log_prob(paths).sum()


def test_smoothing_handles_states_without_transitions() -> None:
    paths = torch.tensor([[0, 1, 0]])
    with pytest.raises(ValueError, match=r"got none for states \[2\]"):
        MarkovChain.fit(paths, states=3)
    fitted = MarkovChain.fit(paths, states=3, smoothing=1.0)
    torch.testing.assert_close(fitted.transition[2], float64_tensor(1 / 3, 1 / 3, 1 / 3))


def test_inhomogeneous_chain_with_equal_matrices_matches_homogeneous_chain() -> None:
    homogeneous = coin_chain(0.9)
    inhomogeneous = InhomogeneousMarkovChain(homogeneous.start, homogeneous.transition.expand(6, 2, 2))
    torch.testing.assert_close(inhomogeneous.marginals(), homogeneous.marginals(6))
    paths = inhomogeneous.sample(7, generator=torch.Generator().manual_seed(3))
    assert torch.equal(paths, homogeneous.sample(7, steps=6, generator=torch.Generator().manual_seed(3)))


def test_stationary_distribution_on_a_graph_is_proportional_to_the_degrees() -> None:
    neighbours = torch.tensor([[0, 1, 1, 1], [1, 0, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0]], dtype=torch.float64)
    degrees = neighbours.sum(1)
    torch.testing.assert_close(stationary_distribution(neighbours / degrees[:, None]), degrees / degrees.sum())


def test_periodic_chain_has_a_stationary_distribution() -> None:
    torch.testing.assert_close(stationary_distribution(torch.eye(3).roll(1, 1)), torch.full((3,), 1 / 3))


def test_invalid_arguments_raise_value_error() -> None:
    chain = coin_chain(0.5)
    with pytest.raises(ValueError, match=r"a row of transition sums to 1\.5"):
        MarkovChain(float64_tensor(0.5, 0.5), torch.tensor([[1.0, 0.5], [0.0, 1.0]], dtype=torch.float64))
    with pytest.raises(ValueError, match="a row and a column for each of 3 states; got 2 × 2"):
        check_transition(chain.transition, states=3)
    with pytest.raises(ValueError, match="must be unique; the chain has 2 closed classes"):
        stationary_distribution(torch.eye(2))
    with pytest.raises(ValueError, match="steps must not be negative; got steps=-1"):
        chain.marginal(-1)
    with pytest.raises(ValueError, match="count must be positive; got count=0"):
        chain.sample(0, steps=1)
    with pytest.raises(ValueError, match=r"states must lie between 0 and 1; got 0 to 2"):
        chain.log_prob(torch.tensor([[0, 2]]))
    with pytest.raises(ValueError, match="smoothing must not be negative"):
        MarkovChain.fit(torch.tensor([[0, 1]]), states=2, smoothing=-1.0)

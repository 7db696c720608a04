"""Exact path distributions, and checks of the Markov property."""

from fractions import Fraction

import pytest

from parnassus.probability import (
    chain_distribution,
    history_distribution,
    is_markov,
    markov_violations,
    next_state_distribution,
    observed_distribution,
    random_walk_distribution,
)

HALF = Fraction(1, 2)
FLIP = {0: {0: Fraction(3, 4), 1: Fraction(1, 4)}, 1: {0: Fraction(1, 3), 1: Fraction(2, 3)}}


def test_path_probability_is_the_product_of_transition_probabilities() -> None:
    distribution = chain_distribution({0: HALF, 1: HALF}, [FLIP, FLIP])
    assert distribution[0, 1, 1] == HALF * Fraction(1, 4) * Fraction(2, 3)
    assert sum(distribution.values()) == 1
    assert len(distribution) == 8


def test_inhomogeneous_chains_are_markov() -> None:
    other = {0: {1: Fraction(1)}, 1: {0: Fraction(1, 9), 1: Fraction(8, 9)}}
    assert is_markov(chain_distribution({0: HALF, 1: HALF}, [FLIP, other, FLIP]))
    assert is_markov(random_walk_distribution(6, up=Fraction(2, 7)))


def test_process_repeating_its_first_state_is_not_markov() -> None:
    """X_0, X_1 are fair coins and X_2 = X_0, which is independent of X_1."""
    distribution: dict[tuple[int, ...], Fraction] = {(a, b, a): Fraction(1, 4) for a in (0, 1) for b in (0, 1)}
    assert not is_markov(distribution)
    violations = markov_violations(distribution)
    assert len(violations) == 8  # four histories with two next states each
    assert {(case.given_history, case.given_last_state) for case in violations} == {
        (Fraction(1), HALF),
        (Fraction(0), HALF),
    }
    histories = history_distribution(
        {tuple(state + 1 for state in path): fraction for path, fraction in distribution.items()}
    )
    assert is_markov(histories)


def test_single_violating_history_is_detected() -> None:
    distribution = chain_distribution({1: HALF, 2: HALF}, [{1: {1: HALF, 2: HALF}, 2: {1: HALF, 2: HALF}}] * 4)
    distribution[1, 1, 1, 1, 1] += Fraction(1, 64)
    distribution[1, 1, 1, 1, 2] -= Fraction(1, 64)
    assert {case.history for case in markov_violations(distribution)} >= {(1, 1, 1, 1)}


def test_constant_observation_is_markov() -> None:
    observed = observed_distribution(chain_distribution({0: HALF, 1: HALF}, [FLIP] * 3), lambda _: "one")
    assert observed == {("one",) * 4: Fraction(1)}
    assert is_markov(observed)


def test_next_state_distribution_is_the_row_of_the_last_state() -> None:
    distribution = chain_distribution({0: HALF, 1: HALF}, [FLIP] * 3)
    assert next_state_distribution(distribution, (1, 0)) == FLIP[0]
    assert next_state_distribution(distribution, (1,), since=2) == FLIP[1]
    assert next_state_distribution(distribution, ()) == {0: HALF, 1: HALF}


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(
        ValueError, match="the row of state 0 must hold non-negative fractions with sum one; they sum to 1/2"
    ):
        chain_distribution({0: Fraction(1)}, [{0: {0: HALF}}])
    with pytest.raises(ValueError, match="the initial distribution"):
        chain_distribution({0: Fraction(3, 2), 1: -HALF}, [])
    with pytest.raises(ValueError, match="paths must extend beyond the history"):
        next_state_distribution(random_walk_distribution(1), (1, 2))
    with pytest.raises(ValueError, match="must have positive probability"):
        next_state_distribution(random_walk_distribution(2), (1, 1))
    with pytest.raises(ValueError, match="no state may be 0"):
        history_distribution(random_walk_distribution(2))
    with pytest.raises(ValueError, match="need steps ≥ 0"):
        random_walk_distribution(-1)

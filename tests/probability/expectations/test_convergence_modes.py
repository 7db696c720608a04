"""Errors of each mode of convergence on short paths, and Lévy distances in closed form."""

import pytest
import torch

from parnassus.probability import (
    DiscreteDistribution,
    deviation_probability,
    empirical_distribution,
    levy_distance,
    lp_error,
    tail_deviation_probability,
)

PATHS = torch.tensor([[3.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 4.0]])
LIMIT = torch.zeros(4)


def test_errors_and_deviation_probabilities_match_hand_computation() -> None:
    assert deviation_probability(PATHS, LIMIT, tolerance=0.5).tolist() == [0.5, 0.25, 0.25, 0.25]
    assert tail_deviation_probability(PATHS, LIMIT, tolerance=0.5).tolist() == [0.75, 0.75, 0.5, 0.25]
    assert lp_error(PATHS, LIMIT, order=2.0).tolist() == [2.5, 1.0, 0.25, 4.0]
    assert deviation_probability(PATHS + 7, LIMIT + 7, tolerance=2.5).tolist() == [0.25, 0.0, 0.0, 0.25]


@pytest.mark.parametrize(("shift", "distance"), [(0.0, 0.0), (0.1, 0.1), (0.9, 0.9), (5.0, 1.0)])
def test_levy_distance_of_point_masses(shift: float, distance: float) -> None:
    first, second = (
        DiscreteDistribution(torch.tensor([value], dtype=torch.float64), torch.ones(1, dtype=torch.float64))
        for value in (0.0, shift)
    )
    assert float(levy_distance(first, second)) == pytest.approx(distance, abs=1e-12)


def test_levy_distance_of_a_small_distant_mass_is_small() -> None:
    first = DiscreteDistribution(torch.tensor([0.0]).double(), torch.ones(1).double())
    second = DiscreteDistribution(torch.tensor([0.0, 100.0]).double(), torch.tensor([0.97, 0.03], dtype=torch.float64))
    assert float(levy_distance(first, second)) == pytest.approx(0.03)
    assert float(levy_distance(second, first)) == pytest.approx(0.03)


def test_levy_distance_of_a_shifted_sample_is_below_the_shift() -> None:
    """The distance is smaller than the shift, since the distribution functions may also differ by ε."""
    torch.manual_seed(0)
    sample = torch.randn(2_000).double()
    distance = float(levy_distance(empirical_distribution(sample), empirical_distribution(sample + 0.2)))
    assert 0.05 < distance < 0.2
    assert distance == pytest.approx(
        float(levy_distance(empirical_distribution(sample + 0.2), empirical_distribution(sample)))
    )


def test_levy_distance_satisfies_the_definition_on_a_fine_grid() -> None:
    torch.manual_seed(1)
    first, second = (DiscreteDistribution(torch.randn(6).double(), torch.rand(6).double().softmax(0)) for _ in range(2))
    x = torch.linspace(-6, 6, 200_001).double()

    def satisfies_definition(epsilon: float) -> bool:
        above = first.cdf(x - epsilon) - epsilon <= second.cdf(x) + 1e-9
        below = second.cdf(x) <= first.cdf(x + epsilon) + epsilon + 1e-9
        return bool((above & below).all())

    distance = float(levy_distance(first, second))
    assert satisfies_definition(distance + 1e-3)
    assert not satisfies_definition(distance - 1e-3)


def test_invalid_input_raises_value_error() -> None:
    with pytest.raises(ValueError, match="tolerance must be positive; got tolerance="):
        deviation_probability(PATHS, LIMIT, tolerance=0.0)
    with pytest.raises(ValueError, match=r"order must be at least 1; got order=0\.5"):
        lp_error(PATHS, LIMIT, order=0.5)

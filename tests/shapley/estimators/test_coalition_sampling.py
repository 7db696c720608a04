"""Sampling of coalitions: weights, complements, no duplicates, uniform sizes."""

from math import comb, inf

import pytest
import torch

from parnassus.shapley.estimators.coalition_sampling import (
    allocate_budget,
    exhaustive_sample,
    sample_coalition_sets,
    sample_coalitions,
)
from parnassus.shapley.estimators.kernel_shap import kernel_shap_weights


def test_kernel_shap_weights_are_symmetric_and_infinite_at_both_ends() -> None:
    pi = kernel_shap_weights(6)
    assert pi[0] == pi[-1] == inf
    assert torch.equal(pi, pi.flip(0))
    assert float(pi[2]) == pytest.approx(5 / (comb(6, 2) * 2 * 4))


@pytest.mark.parametrize(("players", "budget"), [(2, 2), (7, 20), (8, 60), (13, 300), (30, 500)])
def test_coalitions_are_unique_and_paired_with_their_complements(players: int, budget: int) -> None:
    sample = sample_coalitions(players, budget, generator=torch.Generator().manual_seed(0)).coalitions
    half = len(sample) // 2
    assert torch.equal(sample[:half], ~sample.flip(0)[:half])
    assert len(torch.unique(sample, dim=0)) == len(sample)
    assert 0 < int(sample.sum(1).min()) <= int(sample.sum(1).max()) < players
    assert abs(len(sample) - budget) <= players


def test_sufficient_budget_gives_all_coalitions() -> None:
    for players in (2, 3, 6, 9):
        sample = sample_coalitions(players, 2**players)
        assert len(sample.coalitions) == 2**players - 2 == len(exhaustive_sample(players).coalitions)
        assert bool((sample.inclusion_probability == 1).all())


def test_inclusion_probabilities_are_frequencies() -> None:
    draws = sample_coalition_sets(2_000, 6, 20, generator=torch.Generator().manual_seed(0))
    of_two = torch.tensor([True, True, False, False, False, False])
    frequency = float((draws.coalitions == of_two).all(-1).any(1).double().mean())
    probability = float(draws.inclusion_probability[draws.coalitions[0].sum(1) == 2][0])
    assert frequency == pytest.approx(probability, abs=0.04)


@pytest.mark.parametrize("players", [6, 9, 30])
def test_samples_are_extended_by_new_coalitions(players: int) -> None:
    generator = torch.Generator().manual_seed(0)
    sample = sample_coalition_sets(3, players, 12, generator=generator)
    for budget in (30, 31, 90):
        extended = sample_coalition_sets(3, players, budget, previous=sample, generator=generator)
        old, length = len(sample.inclusion_probability) // 2, len(extended.inclusion_probability)
        assert torch.equal(extended.coalitions[:, :old], sample.coalitions[:, :old])
        assert torch.equal(extended.coalitions[:, length - old :], sample.coalitions[:, old:])
        assert torch.equal(extended.coalitions, ~extended.coalitions.flip(1))
        assert all(len(torch.unique(each, dim=0)) == length for each in extended.coalitions)
        sizes = extended.coalitions.sum(-1)
        assert torch.equal(sizes, sizes[:1].expand(3, -1))
        for size in range(1, players):
            has_size = sizes[0] == size
            expected = int(has_size.sum()) / comb(players, size)
            assert torch.allclose(extended.inclusion_probability[has_size], torch.tensor(expected, dtype=torch.float64))
        sample = extended
    assert not torch.equal(sample.coalitions[0], sample.coalitions[1])


def test_extended_samples_keep_uniform_inclusion_probabilities() -> None:
    generator = torch.Generator().manual_seed(0)
    first = sample_coalition_sets(2_000, 6, 10, generator=generator)
    both = sample_coalition_sets(2_000, 6, 20, previous=first, generator=generator)
    codes = (both.coalitions.long() * 2 ** torch.arange(6)).sum(-1)
    frequency = torch.bincount(codes.flatten(), minlength=64) / 2_000
    of_two = torch.tensor([bin(code).count("1") == 2 for code in range(64)])
    probability = float(both.inclusion_probability[both.coalitions[0].sum(-1) == 2][0])
    assert frequency[of_two].tolist() == pytest.approx([probability] * 15, abs=0.05)


def test_allocate_budget_redistributes_the_surplus() -> None:
    assert allocate_budget([3.0, 100.0, 100.0], [1.0, 1.0, 1.0], 43.0) == [3, 20, 20]
    assert allocate_budget([100.0, 100.0], [1.0, 0.5], 30.0) == [20, 10]
    assert allocate_budget([3.0, 4.0], [1.0, 1.0], 50.0) == [3, 4]


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="at least 2 coalitions"):
        sample_coalitions(5, 1)
    with pytest.raises(ValueError, match="players must be positive"):
        kernel_shap_weights(0)

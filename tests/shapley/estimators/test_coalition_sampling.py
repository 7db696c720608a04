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


def test_the_kernel_is_infinite_at_both_ends_and_symmetric() -> None:
    pi = kernel_shap_weights(6)
    assert pi[0] == pi[-1] == inf
    assert torch.equal(pi, pi.flip(0))
    assert float(pi[2]) == pytest.approx(5 / (comb(6, 2) * 2 * 4))


@pytest.mark.parametrize(("players", "budget"), [(2, 2), (7, 20), (8, 60), (13, 300), (30, 500)])
def test_each_comes_with_its_complement_and_once(players: int, budget: int) -> None:
    asked = sample_coalitions(players, budget, generator=torch.Generator().manual_seed(0)).coalitions
    half = len(asked) // 2
    assert torch.equal(asked[:half], ~asked.flip(0)[:half])
    assert len(torch.unique(asked, dim=0)) == len(asked)
    assert 0 < int(asked.sum(1).min()) <= int(asked.sum(1).max()) < players
    assert abs(len(asked) - budget) <= players


def test_a_budget_that_suffices_asks_all() -> None:
    for players in (2, 3, 6, 9):
        asked = sample_coalitions(players, 2**players)
        assert len(asked.coalitions) == 2**players - 2 == len(exhaustive_sample(players).coalitions)
        assert bool((asked.inclusion_probability == 1).all())


def test_inclusion_probabilities_are_frequencies() -> None:
    draws = sample_coalition_sets(2_000, 6, 20, generator=torch.Generator().manual_seed(0))
    of_two = torch.tensor([True, True, False, False, False, False])
    often = float((draws.coalitions == of_two).all(-1).any(1).double().mean())
    chance = float(draws.inclusion_probability[draws.coalitions[0].sum(1) == 2][0])
    assert often == pytest.approx(chance, abs=0.04)


@pytest.mark.parametrize("players", [6, 9, 30])
def test_sets_grow_by_what_they_do_not_have(players: int) -> None:
    generator = torch.Generator().manual_seed(0)
    asked = sample_coalition_sets(3, players, 12, generator=generator)
    for budget in (30, 31, 90):
        more = sample_coalition_sets(3, players, budget, previous=asked, generator=generator)
        old, length = len(asked.inclusion_probability) // 2, len(more.inclusion_probability)
        assert torch.equal(more.coalitions[:, :old], asked.coalitions[:, :old])
        assert torch.equal(more.coalitions[:, length - old :], asked.coalitions[:, old:])
        assert torch.equal(more.coalitions, ~more.coalitions.flip(1))
        assert all(len(torch.unique(each, dim=0)) == length for each in more.coalitions)
        sizes = more.coalitions.sum(-1)
        assert torch.equal(sizes, sizes[:1].expand(3, -1))
        for size in range(1, players):
            there = sizes[0] == size
            expected = int(there.sum()) / comb(players, size)
            assert torch.allclose(more.inclusion_probability[there], torch.tensor(expected, dtype=torch.float64))
        asked = more
    assert not torch.equal(asked.coalitions[0], asked.coalitions[1])


def test_what_was_kept_and_what_was_added_are_drawn_alike() -> None:
    generator = torch.Generator().manual_seed(0)
    first = sample_coalition_sets(2_000, 6, 10, generator=generator)
    both = sample_coalition_sets(2_000, 6, 20, previous=first, generator=generator)
    codes = (both.coalitions.long() * 2 ** torch.arange(6)).sum(-1)
    often = torch.bincount(codes.flatten(), minlength=64) / 2_000
    of_two = torch.tensor([bin(code).count("1") == 2 for code in range(64)])
    chance = float(both.inclusion_probability[both.coalitions[0].sum(-1) == 2][0])
    assert often[of_two].tolist() == pytest.approx([chance] * 15, abs=0.05)


def test_shares_give_on_what_is_not_there() -> None:
    assert allocate_budget([3.0, 100.0, 100.0], [1.0, 1.0, 1.0], 43.0) == [3, 20, 20]
    assert allocate_budget([100.0, 100.0], [1.0, 0.5], 30.0) == [20, 10]
    assert allocate_budget([3.0, 4.0], [1.0, 1.0], 50.0) == [3, 4]


def test_too_small_a_budget_is_rejected() -> None:
    with pytest.raises(ValueError, match="at least 2 coalitions"):
        sample_coalitions(5, 1)
    with pytest.raises(ValueError, match="players must be positive"):
        kernel_shap_weights(0)

"""Which coalitions are asked: weights, complements, nothing twice, sizes alike."""

from math import comb, inf

import pytest
import torch

from parnassus.shapley.coalitions import drawn_coalitions, every_coalition, shapley_kernel, shares


def test_the_kernel_is_infinite_at_both_ends_and_symmetric() -> None:
    pi = shapley_kernel(6)
    assert pi[0] == pi[-1] == inf
    assert torch.equal(pi, pi.flip(0))
    assert float(pi[2]) == pytest.approx(5 / (comb(6, 2) * 2 * 4))


@pytest.mark.parametrize(("players", "budget"), [(2, 2), (7, 20), (8, 60), (13, 300), (30, 500)])
def test_each_comes_with_its_complement_and_once(players: int, budget: int) -> None:
    asked = drawn_coalitions(players, budget, generator=torch.Generator().manual_seed(0)).coalitions
    half = len(asked) // 2
    assert torch.equal(asked[:half], ~asked[half:])
    assert len(torch.unique(asked, dim=0)) == len(asked)
    assert 0 < int(asked.sum(1).min()) <= int(asked.sum(1).max()) < players
    assert abs(len(asked) - budget) <= players


def test_a_budget_that_suffices_asks_all() -> None:
    for players in (2, 3, 6, 9):
        asked = drawn_coalitions(players, 2**players)
        assert len(asked.coalitions) == 2**players - 2 == len(every_coalition(players).coalitions)
        assert bool((asked.chance == 1).all())


def test_chances_are_how_often_a_coalition_is_asked() -> None:
    generator = torch.Generator().manual_seed(0)
    draws = [drawn_coalitions(6, 20, generator=generator) for _ in range(2_000)]
    of_two = torch.tensor([True, True, False, False, False, False])
    often = sum(bool((draw.coalitions == of_two).all(1).any()) for draw in draws) / len(draws)
    chance = float(draws[0].chance[draws[0].coalitions.sum(1) == 2][0])
    assert often == pytest.approx(chance, abs=0.04)


def test_shares_give_on_what_is_not_there() -> None:
    assert shares([3.0, 100.0, 100.0], [1.0, 1.0, 1.0], 43.0) == [3, 20, 20]
    assert shares([100.0, 100.0], [1.0, 0.5], 30.0) == [20, 10]
    assert shares([3.0, 4.0], [1.0, 1.0], 50.0) == [3, 4]


def test_too_small_a_budget_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="at least 2 coalitions"):
        drawn_coalitions(5, 1)
    with pytest.raises(ValueError, match="there must be players"):
        shapley_kernel(0)

"""Learning a game from what was asked: Shapley values of what is learned, what is left out, what is corrected."""

import pytest
import torch
from torch import Tensor

from parnassus.shapley import adjustment
from parnassus.shapley.adjustment import adjusted, learned, product_values, understated
from parnassus.shapley.coalitions import Asked, drawn_coalitions, drawn_sets, every_coalition
from parnassus.shapley.game import members
from parnassus.shapley.kernel_shap import Pairs, kernel_shap, regressed
from parnassus.shapley.values import shapley_values


def smooth(players: int, seed: int = 0) -> Tensor:
    source = torch.Generator().manual_seed(seed)
    hidden = 0.5 * torch.randn(players, 6, generator=source, dtype=torch.float64)
    return (members(players).double() @ hidden).tanh() @ torch.randn(6, generator=source, dtype=torch.float64)


def looked_up(worth: Tensor, asked: Tensor) -> Tensor:
    return worth[..., asked.long() @ 2 ** torch.arange(asked.shape[-1])]


@pytest.mark.parametrize("players", [2, 5, 8])
def test_values_of_a_product_game(players: int) -> None:
    having, lacking = product_values(players, 0.6)
    for size in range(players + 1):
        special = torch.arange(players) < size
        worth = 0.6 ** (members(players) != special).sum(1).double()
        expected = torch.where(special, having[size], lacking[size])
        assert torch.allclose(shapley_values(worth), expected, atol=1e-14)


def test_what_is_learned_has_the_values_that_are_said() -> None:
    """By refitting without a pair, and by asking what was learned about all coalitions."""
    players = 6
    worth = smooth(players)
    asked = drawn_coalitions(players, 40, generator=torch.Generator().manual_seed(0))
    pairs = Pairs.of(asked, worth)
    equal = (worth[-1] - worth[0]) / players
    odd = pairs.odd(looked_up(worth, asked.coalitions), equal)
    found = learned(pairs, odd, 3.0, 100)
    kept = torch.arange(len(odd)) != 4
    without = Pairs(pairs.centred[kept], pairs.pull[kept], pairs.size[kept], pairs.chance[kept])
    everywhere = Pairs.of(every_coalition(players), worth)
    order = torch.cat([torch.arange(len(odd))[kept], torch.tensor([4])])
    last = Pairs(*(each[order] for each in pairs))
    said = _foretold(without, odd[kept], last.centred[-1:], last.size[-1:])
    assert float(found.left_out[4]) == pytest.approx(float(odd[4] - said), abs=1e-6)
    game = _foretold(pairs, odd, everywhere.centred, everywhere.size)
    values = game @ everywhere.pull  # exact, as all are there
    assert torch.allclose(found.values, values, atol=1e-8)


def _foretold(pairs: Pairs, odd: Tensor, centred: Tensor, size: Tensor) -> Tensor:
    """What is learned from some pairs, of others: those come after what is learned from."""
    more = Pairs(
        torch.cat([pairs.centred, centred]),
        torch.cat([pairs.pull, torch.zeros_like(centred)]),
        torch.cat([pairs.size, size]),
        torch.cat([pairs.chance, torch.ones_like(size)]),
    )
    return -learned(more, torch.cat([odd, torch.zeros_like(size)]), 3.0, len(odd)).told[len(odd) :]


def test_smooth_games_need_less_and_additivity_stays() -> None:
    worth = torch.stack([smooth(9, seed) for seed in range(8)])
    exact = shapley_values(worth - worth[:, :1])
    asked = drawn_coalitions(9, 160, generator=torch.Generator().manual_seed(0))
    ends = worth[:, 0], worth[:, -1]
    plain, better = (solve(asked, looked_up(worth, asked.coalitions), *ends) for solve in (regressed, adjusted))
    assert float((better.values - exact).square().mean()) < 0.5 * float((plain.values - exact).square().mean())
    assert torch.allclose(better.values.sum(1), ends[1] - ends[0], atol=1e-10)


@pytest.mark.parametrize("most", [1_000, 20], ids=["all learned", "some learned"])
def test_errors_are_right_for_games_that_are_as_rough_as_they_are_taken_for(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Games drawn from the Gaussian process itself; uncorrected, errors are too small by a tenth or so."""
    players, roughness = 7, 2.0
    apart = (members(players)[:, None] != members(players)).sum(-1).double()
    root = torch.linalg.cholesky(torch.exp(-roughness / players * apart) + 1e-12 * torch.eye(2**players))
    drawn = torch.randn(20_000, 2**players, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    worth = drawn @ root.mT
    exact = shapley_values(worth - worth[:, :1])
    monkeypatch.setattr(adjustment, "ROUGHNESS", (roughness,))
    monkeypatch.setattr(adjustment, "AT_MOST", most)
    monkeypatch.setattr(adjustment, "UNDERSTATED", (0.0, torch.inf))
    monkeypatch.setattr(adjustment, "WORTH_IT", torch.inf)
    more = []
    for seed in range(4):
        asked = drawn_coalitions(players, 60, generator=torch.Generator().manual_seed(seed))
        found = adjusted(asked, looked_up(worth, asked.coalitions), worth[:, 0], worth[:, -1])
        ratio = (found.values - exact).square().mean() / found.errors.square().mean()
        assert float(ratio) == pytest.approx(1.0, abs=0.03)
        more.append(understated(Pairs.of(asked, worth), roughness, most))
    assert sum(more) / 4 > 1.0


def test_sets_are_solved_as_one_by_one() -> None:
    worth = torch.stack([smooth(7, seed) for seed in range(3)])
    asked = drawn_sets(2, 7, 60, generator=torch.Generator().manual_seed(0))
    found = torch.stack([looked_up(worth, each) for each in asked.coalitions])
    ends = worth[:, 0].expand(2, -1), worth[:, -1].expand(2, -1)
    for solve in (regressed, adjusted):
        both = solve(asked, found, *ends)
        for each in range(2):
            alone = solve(Asked(asked.coalitions[each], asked.chance), found[each], worth[:, 0], worth[:, -1])
            if solve is regressed:
                assert torch.allclose(both.values[each], alone.values, atol=1e-10)
                assert torch.allclose(both.errors[each], alone.errors, atol=1e-10)
            assert torch.allclose(both.values[each].sum(-1), worth[:, -1] - worth[:, 0], atol=1e-10)


def test_learning_from_some_pairs_only_is_still_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adjustment, "AT_MOST", 120)
    worth = smooth(10)
    found = kernel_shap(lambda asked: looked_up(worth, asked), 10, 400, solve=adjusted)
    exact = shapley_values(worth - worth[0])
    assert bool(((found.values - exact).abs() <= 5 * found.errors + 1e-9).all())


@pytest.mark.parametrize("players", [1, 2, 3, 6])
def test_all_coalitions_give_exact_values(players: int) -> None:
    worth = torch.randn(2, 2**players, dtype=torch.float64, generator=torch.Generator().manual_seed(players))
    found = kernel_shap(lambda asked: looked_up(worth, asked), players, 2**players, solve=adjusted)
    assert torch.allclose(found.values, shapley_values(worth - worth[:, :1]), atol=1e-12)


def test_a_game_of_chance_is_left_to_the_regression() -> None:
    worth = torch.randn(6, 2**9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    asked = drawn_coalitions(9, 120, generator=torch.Generator().manual_seed(0))
    given = looked_up(worth, asked.coalitions), worth[:, 0], worth[:, -1]
    assert torch.equal(adjusted(asked, *given).values, regressed(asked, *given).values)

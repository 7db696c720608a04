"""Tables of worths: who is in which coalition, dividends, sums by player."""

import pytest
import torch

from parnassus.shapley.game import are_all, dividends, game, game_of, members, players_of, sizes, unanimity, with_each


def test_members_and_sizes_tell_the_same() -> None:
    assert members(3)[5].tolist() == [True, False, True]
    assert torch.equal(members(5).sum(1), sizes(5))
    assert members(0).shape == (1, 0)


def test_all_coalitions_are_told_from_others() -> None:
    every = members(4)
    assert are_all(every)
    assert are_all(members(0))
    for other in (every.flip(0), ~every, every[:-1], every[:, :3], torch.cat([every[:8], every[:8]])):
        assert not are_all(other)
    assert not are_all(torch.zeros(4, 300, dtype=torch.bool))


def test_a_function_and_a_mapping_give_one_table() -> None:
    table = {(0,): 1.0, (1,): 2.0, (0, 1): 5.0}
    assert torch.equal(game_of(table, 2), torch.tensor([0.0, 1.0, 2.0, 5.0], dtype=torch.float64))
    assert torch.equal(game(2, lambda who: table[tuple(sorted(who))] if who else 0.0), game_of(table, 2))


def test_dividends_of_a_unanimity_game_are_one_at_its_coalition() -> None:
    found = dividends(unanimity(4, (1, 3)))
    assert torch.equal(found, torch.eye(16, dtype=torch.float64)[0b1010])


def test_dividends_of_many_games_leave_them_alone() -> None:
    worth = torch.randn(2, 3, 8, dtype=torch.float64)
    kept = worth.clone()
    found = dividends(worth)
    assert torch.equal(worth, kept)
    assert torch.allclose(found[1, 2], dividends(worth[1, 2]))


def test_with_each_is_a_sum_over_coalitions_with_a_player() -> None:
    worth = torch.randn(2, 32, dtype=torch.float64)
    assert torch.allclose(with_each(worth), worth @ members(5).double())


def test_wrong_tables_get_a_sentence() -> None:
    with pytest.raises(ValueError, match="2\\^M worths"):
        players_of(torch.zeros(6))
    with pytest.raises(ValueError, match="empty coalition"):
        game(2, lambda who: 1.0)
    with pytest.raises(ValueError, match="players are called 0 to 1"):
        game_of({(2,): 1.0}, 2)
    with pytest.raises(ValueError, match="0 to 24 players"):
        members(25)
    with pytest.raises(ValueError, match="some of the players"):
        unanimity(3, ())

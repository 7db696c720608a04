"""Game tables: coalitions, dividends, sums by player."""

import pytest
import torch

from parnassus.shapley.games.cooperative_games import (
    all_coalitions,
    coalition_sizes,
    game_from_worths,
    game_table,
    harsanyi_dividends,
    is_all_coalitions,
    num_players,
    sum_over_members,
    unanimity_game,
)


def test_coalition_sizes_count_the_members() -> None:
    assert all_coalitions(3)[5].tolist() == [True, False, True]
    assert torch.equal(all_coalitions(5).sum(1), coalition_sizes(5))
    assert all_coalitions(0).shape == (1, 0)


def test_all_coalitions_are_recognised() -> None:
    coalitions = all_coalitions(4)
    assert is_all_coalitions(coalitions)
    assert is_all_coalitions(all_coalitions(0))
    for other in (
        coalitions.flip(0),
        ~coalitions,
        coalitions[:-1],
        coalitions[:, :3],
        torch.cat([coalitions[:8], coalitions[:8]]),
    ):
        assert not is_all_coalitions(other)
    assert not is_all_coalitions(torch.zeros(4, 300, dtype=torch.bool))


def test_functions_and_mappings_give_the_same_table() -> None:
    table = {(0,): 1.0, (1,): 2.0, (0, 1): 5.0}
    assert torch.equal(game_from_worths(table, 2), torch.tensor([0.0, 1.0, 2.0, 5.0], dtype=torch.float64))
    assert torch.equal(
        game_table(2, lambda members: table[tuple(sorted(members))] if members else 0.0), game_from_worths(table, 2)
    )


def test_dividends_of_a_unanimity_game_are_one_at_its_coalition() -> None:
    dividends = harsanyi_dividends(unanimity_game(4, (1, 3)))
    assert torch.equal(dividends, torch.eye(16, dtype=torch.float64)[0b1010])


def test_batched_dividends_do_not_modify_the_input() -> None:
    worth = torch.randn(2, 3, 8, dtype=torch.float64)
    original = worth.clone()
    dividends = harsanyi_dividends(worth)
    assert torch.equal(worth, original)
    assert torch.allclose(dividends[1, 2], harsanyi_dividends(worth[1, 2]))


def test_sum_over_members_matches_matrix_product() -> None:
    worth = torch.randn(2, 32, dtype=torch.float64)
    assert torch.allclose(sum_over_members(worth), worth @ all_coalitions(5).double())


def test_invalid_tables_raise_value_error() -> None:
    with pytest.raises(ValueError, match="2\\^M worths"):
        num_players(torch.zeros(6))
    with pytest.raises(ValueError, match="empty coalition"):
        game_table(2, lambda members: 1.0)
    with pytest.raises(ValueError, match="players must be 0 to 1"):
        game_from_worths({(2,): 1.0}, 2)
    with pytest.raises(ValueError, match="0 to 24 players"):
        all_coalitions(25)
    with pytest.raises(ValueError, match="non-empty subset of players"):
        unanimity_game(3, ())

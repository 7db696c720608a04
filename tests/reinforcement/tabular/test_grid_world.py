"""Grid worlds: known values, and every rule of the map."""

import pytest
import torch

from parnassus.reinforcement.tabular.grid_world import CLIFF, CORNER, GridWorld
from parnassus.reinforcement.tabular.planning import policy_iteration, value_iteration


def test_the_values_of_the_textbook() -> None:
    """Three digits as printed by Russell and Norvig, where the ends count as what they pay."""
    world = GridWorld(CORNER)
    grid = world.on_grid(value_iteration(world.process).values)
    printed = [0.812, 0.868, 0.918, 0.0, 0.762, torch.nan, 0.660, 0.0, 0.705, 0.655, 0.611, 0.388]
    torch.testing.assert_close(
        grid.flatten(), torch.tensor(printed, dtype=torch.float64), atol=6e-4, rtol=0, equal_nan=True
    )
    assert world.arrows(policy_iteration(world.process).policy.argmax(-1)) == "→→→G\n↑#↑X\n↑←←←"


def test_without_slipping_values_are_distances() -> None:
    world = GridWorld("S.#/..G", step_reward=-1.0, slip=0.0, rewards={"G": 0.0})
    grid = world.on_grid(value_iteration(world.process).values)
    expected = torch.tensor([[-3.0, -2.0, torch.nan], [-2.0, -1.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(grid, expected, equal_nan=True)


def test_walls_hold_and_ground_slips_to_both_sides() -> None:
    process = GridWorld("...\n...\n...", slip=0.2).process
    middle, up = 4, 0
    row = process.transition[middle, up]
    torch.testing.assert_close(row[[1, 3, 5]], torch.tensor([0.8, 0.1, 0.1], dtype=torch.float64))
    corner = process.transition[0, up]
    torch.testing.assert_close(corner[[0, 1]], torch.tensor([0.9, 0.1], dtype=torch.float64))


def test_who_falls_is_back_at_the_start() -> None:
    world = GridWorld(CLIFF, step_reward=-1.0, slip=0.0)
    above, start = world.state(2, 4), world.state(3, 0)
    down = 2
    assert float(world.process.transition[above, down, start]) == 1
    assert float(world.process.reward[above, down, start]) == -101
    assert not bool(world.process.terminal[start])


def test_a_fall_and_a_bump_that_end_alike_pay_their_mean() -> None:
    world = GridWorld("S./CG", step_reward=0.0, slip=0.5, rewards={"G": 0.0, "C": -8.0})
    start = world.state(0, 0)
    down = 2  # 0.5 falls back to S, 0.25 bumps into the left wall and stays, 0.25 slips right
    torch.testing.assert_close(world.process.transition[start, down, start], torch.tensor(0.75, dtype=torch.float64))
    torch.testing.assert_close(world.process.expected_reward[start, down], torch.tensor(-4.0, dtype=torch.float64))


def test_cells_can_be_changed() -> None:
    world = GridWorld(CORNER).with_cell(1, 1, ".")
    assert world.rows == ["...G", "...X", "S..."]
    assert len(world.cells) == 12
    assert GridWorld("..G").start.tolist() == [0.5, 0.5, 0.0]


@pytest.mark.parametrize(
    ("drawing", "sentence"),
    [
        ("..\n...", r"equal length; got lengths \[2, 3\]"),
        ("..Z", "letters . # S G X C; got 'Z'"),
        ("##G", "needs a floor cell"),
        (".CG", "a map with 'C' needs an 'S'"),
        ("", "equal length"),
    ],
)
def test_a_map_that_cannot_be_gets_a_sentence(drawing: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        GridWorld(drawing)


def test_what_cannot_work_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]; got slip=1\.5"):
        GridWorld(CORNER, slip=1.5)
    with pytest.raises(ValueError, match="'X' is missing"):
        GridWorld(CORNER, rewards={"G": 1.0})
    with pytest.raises(ValueError, match="3 rows and 4 columns; got row 3, column 0"):
        GridWorld(CORNER).with_cell(3, 0, ".")
    with pytest.raises(ValueError, match="row 1, column 1 is not a state"):
        GridWorld(CORNER).state(1, 1)

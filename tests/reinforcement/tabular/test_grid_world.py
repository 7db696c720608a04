"""Grid worlds: known values, transitions, rewards and maps."""

import pytest
import torch

from parnassus.reinforcement.tabular.grid_world import CLIFF, CORNER, GridWorld
from parnassus.reinforcement.tabular.value_and_policy_iteration import policy_iteration, value_iteration


def test_values_match_russell_and_norvig() -> None:
    """Values of Russell and Norvig, rounded to three digits."""
    env = GridWorld(CORNER)
    grid = env.on_grid(value_iteration(env.process).values)
    expected = [0.812, 0.868, 0.918, 0.0, 0.762, torch.nan, 0.660, 0.0, 0.705, 0.655, 0.611, 0.388]
    torch.testing.assert_close(
        grid.flatten(), torch.tensor(expected, dtype=torch.float64), atol=6e-4, rtol=0, equal_nan=True
    )
    assert env.arrows(policy_iteration(env.process).policy.argmax(-1)) == "→→→G\n↑#↑X\n↑←←←"


def test_deterministic_values_are_negative_distances() -> None:
    env = GridWorld("S.#/..G", step_reward=-1.0, slip_probability=0.0, rewards={"G": 0.0})
    grid = env.on_grid(value_iteration(env.process).values)
    expected = torch.tensor([[-3.0, -2.0, torch.nan], [-2.0, -1.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(grid, expected, equal_nan=True)


def test_slip_moves_sideways_and_walls_block() -> None:
    process = GridWorld("...\n...\n...", slip_probability=0.2).process
    middle, up = 4, 0
    row = process.transition[middle, up]
    torch.testing.assert_close(row[[1, 3, 5]], torch.tensor([0.8, 0.1, 0.1], dtype=torch.float64))
    corner = process.transition[0, up]
    torch.testing.assert_close(corner[[0, 1]], torch.tensor([0.9, 0.1], dtype=torch.float64))


def test_cliff_leads_back_to_the_start() -> None:
    env = GridWorld(CLIFF, step_reward=-1.0, slip_probability=0.0)
    above, start = env.state(2, 4), env.state(3, 0)
    down = 2
    assert float(env.process.transition[above, down, start]) == 1
    assert float(env.process.reward[above, down, start]) == -101
    assert not bool(env.process.terminal[start])


def test_reward_averages_over_outcomes_with_the_same_next_state() -> None:
    env = GridWorld("S./CG", step_reward=0.0, slip_probability=0.5, rewards={"G": 0.0, "C": -8.0})
    start = env.state(0, 0)
    down = 2  # probability 0.5 to fall back to S, 0.25 to stay at the left wall, 0.25 to slip to the right
    torch.testing.assert_close(env.process.transition[start, down, start], torch.tensor(0.75, dtype=torch.float64))
    torch.testing.assert_close(env.process.expected_reward[start, down], torch.tensor(-4.0, dtype=torch.float64))


def test_with_cell_changes_one_cell() -> None:
    env = GridWorld(CORNER).with_cell(1, 1, ".")
    assert env.rows == ["...G", "...X", "S..."]
    assert len(env.cells) == 12
    assert GridWorld("..G").start.tolist() == [0.5, 0.5, 0.0]


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("..\n...", r"equal length; got lengths \[2, 3\]"),
        ("..Z", "letters . # S G X C; got 'Z'"),
        ("##G", "needs a floor cell"),
        (".CG", "a map with 'C' needs an 'S'"),
        ("", "equal length"),
    ],
)
def test_invalid_layouts_raise_value_error(layout: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GridWorld(layout)


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]; got slip_probability=1\.5"):
        GridWorld(CORNER, slip_probability=1.5)
    with pytest.raises(ValueError, match="'X' is missing"):
        GridWorld(CORNER, rewards={"G": 1.0})
    with pytest.raises(ValueError, match="3 rows and 4 columns; got row 3, column 0"):
        GridWorld(CORNER).with_cell(3, 0, ".")
    with pytest.raises(ValueError, match="row 1, column 1 is not a state"):
        GridWorld(CORNER).state(1, 1)

"""The grid follows the map that is typed, the cat's graph its rewards."""

from typing import cast

import pytest
import torch

from parnassus.reinforcement.probes.cat_mdp import cat_mdp
from parnassus.reinforcement.probes.grid_world import (
    CELL,
    INK,
    NEGATIVE,
    POSITIVE,
    SWEEPS,
    WALL,
    complete_map,
    value_iteration_on_a_grid,
)
from parnassus.reinforcement.tabular.grid_world import GridWorld
from parnassus.reinforcement.textbook.cat import STATES, cat_reward_process
from parnassus.widgets import Bars, Curves, Graph, Images, Numbers, evaluate_probe, read_controls

GRID = read_controls(value_iteration_on_a_grid, None)
CAT = read_controls(cat_mdp, None)


def grid(**values: object) -> tuple[Images, Numbers, Curves]:
    picture, numbers, errors = evaluate_probe(value_iteration_on_a_grid, None, GRID, values)
    return cast("Images", picture), cast("Numbers", numbers), cast("Curves", errors)


def cat(**values: object) -> tuple[Graph, Bars, Numbers]:
    graph, bars, numbers = evaluate_probe(cat_mdp, None, CAT, values)
    return cast("Graph", graph), cast("Bars", bars), cast("Numbers", numbers)


def test_every_cell_has_its_place_and_colour() -> None:
    picture, numbers, _ = grid(layout="..G/.#X", sweep=SWEEPS, slip=0.0)
    assert picture.images.shape == (2, 3, 2 * CELL, 3 * CELL)
    corner = torch.stack([picture.images[0, :, 3, column * CELL + CELL // 2] for column in range(3)])
    below = torch.stack([picture.images[0, :, CELL + 3, column * CELL + CELL // 2] for column in range(3)])
    torch.testing.assert_close(corner[2], POSITIVE)
    torch.testing.assert_close(below[1], WALL)
    torch.testing.assert_close(below[2], NEGATIVE)
    assert numbers.values["row 2"] == "0.79 · # · X"  # −0.04 − 0.95 · 0.04 + 0.95² · 0.96


def test_arrows_point_where_it_would_go() -> None:
    picture, *_ = grid(layout=".G", sweep=1, slip=0.0)
    dark = (picture.images[0, :, :, :CELL] - INK[:, None, None]).abs().amax(0) < 0.01
    broad, thin = dark[:, CELL // 2 + 6].sum(), dark[:, CELL // 2 - 10].sum()
    assert int(broad) > 2 * int(thin) > 0  # the head is on the right


def test_errors_shrink_and_no_sweep_knows_nothing() -> None:
    _, numbers, errors = grid(sweep=0)
    assert numbers.values["row 1"] == "0.00 · 0.00 · 0.00 · G"
    heights = torch.tensor(errors.lines["maximum error"][1])
    bound = torch.tensor(errors.lines["γ^k × initial error"][1])
    assert bool((heights <= bound + 1e-9).all())
    assert errors.marked == 0


@pytest.mark.parametrize(
    ("typed", "drawn"),
    [
        ("", "."),
        ("..g/.", "..G/.##"),
        ("a?G", "..G"),
        ("###", ".##"),
        (".CG", "SCG"),
        ("CCC", "SCC"),
        ("/..G/", "..G"),
        (100 * ".", 14 * "."),
    ],
)
def test_a_map_is_one_at_every_moment_of_its_writing(typed: str, drawn: str) -> None:
    assert complete_map(typed) == drawn
    GridWorld(complete_map(typed))


def test_the_cats_graph_holds_the_books_values() -> None:
    graph, bars, numbers = cat()
    torch.testing.assert_close(bars.values.double(), cat_reward_process(0.9).values(), atol=1e-5, rtol=0)
    assert [box.value for box in graph.nodes] == ["-24.43", "-10.23", "6.14", "2.12", "0.69", "0.00"]
    assert {(STATES[a.start], STATES[a.end]): a.label for a in graph.edges}["relaxed", "confused"] == "0.2"
    assert numbers.values["optimal action in relaxed"] == "talk"
    assert cat(discount=1.0)[2].values["optimal action in relaxed"] == "stroke"


def test_habits_and_rewards_count() -> None:
    graph, bars, _ = cat(talking=1.0, confused=-10.0)
    assert not any((a.start, a.end) == (3, 5) for a in graph.edges)  # never stroked to sleep
    assert float(bars.values[4]) < 0
    with pytest.raises(ValueError, match="must be between -10 and 10"):
        cat(hunting=11.0)

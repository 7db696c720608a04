"""Probes of the grid world and of the cat example."""

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

GRID_CONTROLS = read_controls(value_iteration_on_a_grid, None)
CAT_CONTROLS = read_controls(cat_mdp, None)


def evaluate_grid(**values: object) -> tuple[Images, Numbers, Curves]:
    images, numbers, errors = evaluate_probe(value_iteration_on_a_grid, None, GRID_CONTROLS, values)
    return cast("Images", images), cast("Numbers", numbers), cast("Curves", errors)


def evaluate_cat(**values: object) -> tuple[Graph, Bars, Numbers]:
    graph, bars, numbers = evaluate_probe(cat_mdp, None, CAT_CONTROLS, values)
    return cast("Graph", graph), cast("Bars", bars), cast("Numbers", numbers)


def test_cell_positions_and_colours() -> None:
    images, numbers, _ = evaluate_grid(layout="..G/.#X", sweep=SWEEPS, slip_probability=0.0)
    assert images.images.shape == (2, 3, 2 * CELL, 3 * CELL)
    corner = torch.stack([images.images[0, :, 3, column * CELL + CELL // 2] for column in range(3)])
    below = torch.stack([images.images[0, :, CELL + 3, column * CELL + CELL // 2] for column in range(3)])
    torch.testing.assert_close(corner[2], POSITIVE)
    torch.testing.assert_close(below[1], WALL)
    torch.testing.assert_close(below[2], NEGATIVE)
    assert numbers.values["row 2"] == "0.79 · # · X"  # −0.04 − 0.95 · 0.04 + 0.95² · 0.96


def test_arrows_point_in_the_direction_of_the_action() -> None:
    images, *_ = evaluate_grid(layout=".G", sweep=1, slip_probability=0.0)
    is_ink = (images.images[0, :, :, :CELL] - INK[:, None, None]).abs().amax(0) < 0.01
    head, shaft = is_ink[:, CELL // 2 + 6].sum(), is_ink[:, CELL // 2 - 10].sum()
    assert int(head) > 2 * int(shaft) > 0  # the head is on the right


def test_errors_stay_below_the_bound_and_sweep_zero_shows_zeros() -> None:
    _, numbers, errors = evaluate_grid(sweep=0)
    assert numbers.values["row 1"] == "0.00 · 0.00 · 0.00 · G"
    heights = torch.tensor(errors.lines["maximum error"][1])
    bound = torch.tensor(errors.lines["γ^k × initial error"][1])
    assert bool((heights <= bound + 1e-9).all())
    assert errors.marked == 0


@pytest.mark.parametrize(
    ("typed", "completed"),
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
def test_incomplete_maps_are_completed(typed: str, completed: str) -> None:
    assert complete_map(typed) == completed
    GridWorld(complete_map(typed))


def test_cat_graph_shows_the_values_of_the_book() -> None:
    graph, bars, numbers = evaluate_cat()
    torch.testing.assert_close(bars.values.double(), cat_reward_process(0.9).values(), atol=1e-5, rtol=0)
    assert [node.value for node in graph.nodes] == ["-24.43", "-10.23", "6.14", "2.12", "0.69", "0.00"]
    assert {(STATES[edge.start], STATES[edge.end]): edge.label for edge in graph.edges}["relaxed", "confused"] == "0.2"
    assert numbers.values["optimal action in relaxed"] == "talk"
    assert evaluate_cat(gamma=1.0)[2].values["optimal action in relaxed"] == "stroke"


def test_cat_graph_depends_on_policy_and_rewards() -> None:
    graph, bars, _ = evaluate_cat(talking=1.0, confused=-10.0)
    assert not any((edge.start, edge.end) == (3, 5) for edge in graph.edges)  # never stroked to sleep
    assert float(bars.values[4]) < 0
    with pytest.raises(ValueError, match="must be between -10 and 10"):
        evaluate_cat(hunting=11.0)

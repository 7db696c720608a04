"""A graph of states: an ellipse for each, an arrow for each move, loops and ends told apart."""

import pytest
from matplotlib.patches import Ellipse, FancyArrowPatch

from parnassus.reinforcement.figures.state_graph import plot_state_graph
from parnassus.report.style import subplots

POSITIONS = {"sun": (0.0, 0.0), "rain": (3.0, 0.0), "end": (3.0, 2.0)}
TRANSITIONS = {
    ("sun", "rain"): 0.5,
    ("sun", "sun"): 0.5,
    ("rain", "sun"): 0.75,
    ("rain", "end"): 0.25,
    ("end", "end"): 1.0,
}


def test_every_state_and_move_is_drawn_once() -> None:
    _, axes = subplots()
    plot_state_graph(axes[0, 0], POSITIONS, TRANSITIONS, notes={"sun": "+1"}, fills={"rain": "#0072b2"})
    ellipses = [patch for patch in axes[0, 0].patches if isinstance(patch, Ellipse)]
    arrows = [patch for patch in axes[0, 0].patches if isinstance(patch, FancyArrowPatch)]
    assert len(ellipses) == 3 + 1 + 1  # one is filled, and an end has two rims
    assert len(arrows) == 4
    words = [text.get_text() for text in axes[0, 0].texts]
    assert sorted(word for word in words if word) == ["+1", "0.25", "0.5", "0.5", "0.75", "end", "rain", "sun"]


def test_there_and_back_do_not_lie_on_each_other() -> None:
    _, axes = subplots()
    plot_state_graph(axes[0, 0], POSITIONS, {("sun", "rain"): 0.5, ("rain", "sun"): 0.75})
    labels = {text.get_text(): text.get_position()[1] for text in axes[0, 0].texts}
    assert labels["0.5"] < 0 < labels["0.75"]


def test_a_move_needs_states() -> None:
    _, axes = subplots()
    with pytest.raises(ValueError, match="'snow' is not among"):
        plot_state_graph(axes[0, 0], POSITIONS, {("sun", "snow"): 1.0})

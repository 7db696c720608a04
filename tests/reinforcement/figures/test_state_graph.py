"""State graphs: nodes, edges and labels."""

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


def test_each_state_and_transition_is_drawn_once() -> None:
    _, axes = subplots()
    plot_state_graph(axes[0, 0], POSITIONS, TRANSITIONS, notes={"sun": "+1"}, fills={"rain": "#0072b2"})
    ellipses = [patch for patch in axes[0, 0].patches if isinstance(patch, Ellipse)]
    arrows = [patch for patch in axes[0, 0].patches if isinstance(patch, FancyArrowPatch)]
    assert len(ellipses) == 3 + 1 + 1  # one for the fill, one for the second border of a terminal state
    assert len(arrows) == 4
    labels = [text.get_text() for text in axes[0, 0].texts]
    assert sorted(label for label in labels if label) == ["+1", "0.25", "0.5", "0.5", "0.75", "end", "rain", "sun"]


def test_opposite_transitions_do_not_overlap() -> None:
    _, axes = subplots()
    plot_state_graph(axes[0, 0], POSITIONS, {("sun", "rain"): 0.5, ("rain", "sun"): 0.75})
    labels = {text.get_text(): text.get_position()[1] for text in axes[0, 0].texts}
    assert labels["0.5"] < 0 < labels["0.75"]


def test_unknown_state_raises_value_error() -> None:
    _, axes = subplots()
    with pytest.raises(ValueError, match="'snow' is not among"):
        plot_state_graph(axes[0, 0], POSITIONS, {("sun", "snow"): 1.0})

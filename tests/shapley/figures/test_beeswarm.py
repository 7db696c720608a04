"""Beeswarm and dependence plots: a dot per row, colours by feature value."""

import numpy as np
import pytest
import torch

from parnassus.shapley.figures.beeswarm import plot_beeswarm, plot_dependence


def test_equal_values_have_one_colour() -> None:
    features = np.stack([np.arange(6.0), [0.0, 1.0, 0.0, 1.0, 1.0, 0.0], np.full(6, 3.0)], 1)
    ax = plot_beeswarm(np.tile([3.0, 2.0, 1.0], (6, 1)), features, ["many", "two", "one"]).axes[0]
    ranks = [np.asarray(dots.get_array()).tolist() for dots in ax.collections]
    assert ranks == [[0.5] * 6, [0, 1, 0, 1, 1, 0], pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])]
    assert {dots.get_clim() for dots in ax.collections} == {(0.0, 1.0)}


def test_beeswarm_has_a_dot_per_row_and_the_most_important_feature_on_top() -> None:
    attributions = np.stack([np.linspace(-1, 1, 30), np.linspace(-5, 5, 30)], 1)
    ax = plot_beeswarm(attributions, attributions, ["small", "large"]).axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["small", "large"]
    assert [len(np.asarray(dots.get_offsets())) for dots in ax.collections] == [30, 30]


def test_dependence_plot_has_axis_label() -> None:
    x = np.linspace(0, 1, 9)
    assert plot_dependence(x, x, x, name="x", colour_name="z").axes[0].get_xlabel() == "x"


def test_mismatched_sizes_raise_value_error() -> None:
    with pytest.raises(ValueError, match="must match"):
        plot_beeswarm(torch.ones(3, 2), torch.ones(3, 3), ["a", "b"])

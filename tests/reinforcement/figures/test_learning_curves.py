"""Learning curves and the table of learners."""

import numpy as np
import pytest

from parnassus.reinforcement.figures.learning_curves import learners_table, plot_divergences, plot_learning_curves


def test_learning_curves_show_learners_mean_and_threshold() -> None:
    figure = plot_learning_curves({"a": ([0, 10], [1.0, 3.0]), "b": ([0, 10], [3.0, 5.0])}, threshold=4.0)
    lines = figure.axes[0].get_lines()
    heights = np.array([line.get_ydata() for line in lines[:3]])
    assert heights.tolist() == [[1.0, 3.0], [3.0, 5.0], [2.0, 4.0]]
    assert len(lines) == 4
    single = plot_learning_curves({"a": ([0, 10], [1.0, 3.0])})
    assert len(single.axes[0].get_lines()) == 1


def test_learners_table_has_one_row_per_learner() -> None:
    rows = learners_table([[1.0, 3.0], [5.0, 5.0]])
    assert rows[0] == {"learner": "1", "mean": 2.0, "std": pytest.approx(1.0), "min": 1.0, "max": 3.0}
    assert rows[1]["std"] == 0.0


def test_divergence_plot_includes_the_threshold() -> None:
    figure = plot_divergences({"a": ([0, 10], [0.01, 0.02]), "b": ([0, 10], [0.0, 0.03])}, threshold=0.03)
    ax = figure.axes[0]
    heights = np.array([line.get_ydata() for line in ax.lines])
    assert heights.tolist() == [[0.01, 0.02], [0.0, 0.03], [0.03, 0.03]]
    assert ax.get_ylim()[1] > 0.03

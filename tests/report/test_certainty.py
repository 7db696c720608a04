"""Pictures of certainty: points where they belong, names above the right pictures."""

import numpy as np
import pytest
import torch
from matplotlib.collections import LineCollection

from parnassus.report.certainty import Calibration, calibration_plot, most_and_least_certain, predicted_numbers


def test_points_lie_at_stated_and_observed_shares() -> None:
    half = torch.tensor([0.5, 0.9])
    (ax,) = calibration_plot(
        {"one": Calibration(half, half, half - 0.1, half + 0.1)}, x_label="stated", y_label="seen"
    ).axes
    assert np.asarray(ax.lines[1].get_xydata()).tolist() == pytest.approx(np.array([[0.5, 0.5], [0.9, 0.9]]))
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["one"]


def test_the_surest_stand_first_and_errors_tell_the_truth() -> None:
    probabilities = torch.tensor([[0.6, 0.4], [0.05, 0.95], [0.55, 0.45], [0.9, 0.1]])
    figure = most_and_least_certain(torch.zeros(4, 1, 3, 3), probabilities, torch.tensor([1, 1, 0, 0]), "ab", each=2)
    assert [text.get_text() for text in figure.axes[0].texts] == ["b: 0.95", "a: 0.90", "a: 0.60 (b)", "a: 0.55"]
    with pytest.raises(ValueError, match="need probabilities"):
        most_and_least_certain(torch.zeros(3, 1, 3, 3), probabilities, torch.tensor([1, 1, 0, 0]), "ab")


def test_every_number_has_a_bar() -> None:
    truth = np.array([0.0, 1.0, 2.0])
    (ax,) = predicted_numbers(truth, truth + 0.1, np.ones(3)).axes
    (bars,) = ax.collections
    assert isinstance(bars, LineCollection)
    assert len(bars.get_segments()) == 3

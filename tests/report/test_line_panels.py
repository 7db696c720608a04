"""Panels contain the given lines on logarithmic axes."""

import pytest
import torch

from parnassus.report.line_panels import panels


def test_every_panel_has_its_title_and_lines() -> None:
    sizes, lines = [4, 8, 16], {"slow": torch.tensor([1.0, 2.0, 4.0]), "quick": torch.tensor([1.0, 1.0, 1.0])}
    figure, axes = panels({"work": lines, "time": {"slow": [3.0, 2.0, 1.0]}}, sizes, x_label="length", log_y=True)
    assert axes.shape == (1, 2)
    assert [ax.get_title() for ax in figure.axes] == ["work", "time"]
    assert [line.get_ydata().tolist() for line in axes[0, 0].lines] == [[1.0, 2.0, 4.0], [1.0, 1.0, 1.0]]
    assert axes[0, 1].lines[0].get_xdata().tolist() == sizes
    assert {(ax.get_xscale(), ax.get_yscale()) for ax in figure.axes} == {("log", "log")}
    assert [text.get_text() for text in axes[0, 0].get_legend().get_texts()] == ["slow", "quick"]


def test_empty_panels_raise_value_error() -> None:
    with pytest.raises(ValueError, match="at least one chart"):
        panels({}, [1, 2], x_label="")

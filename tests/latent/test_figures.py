"""Figures of rate and distortion, and of vector fields."""

import numpy as np
import pytest

from parnassus.latent.figures import plot_rate_and_distortion, plot_rate_distortion_trajectory, plot_vector_field


def test_stacked_bars_end_at_the_sum() -> None:
    (ax,) = plot_rate_and_distortion({"alone": (0.0, 200.0), "by a code": (25.0, 80.0)}, 100.0).axes
    ends = [float(bar.get_x() + bar.get_width()) for bars in ax.containers for bar in bars]
    assert ends == [0.0, 200.0, 25.0, 105.0]
    assert [text.get_text() for text in ax.texts] == ["200.0", "25.0", "80.0"]


def test_trajectory_ends_at_the_last_values() -> None:
    rates, distortions = list(np.linspace(5, 25, 20)), list(np.linspace(150, 80, 20))
    (ax,) = plot_rate_distortion_trajectory(rates, distortions, 95.0).axes
    end = np.asarray(ax.lines[-1].get_xydata())[0]
    assert end.tolist() == pytest.approx([25.0, 80.0])
    bound = next(line for line in ax.lines if str(line.get_label()).startswith("rate + distortion"))
    assert np.asarray(bound.get_xydata()).sum(1) == pytest.approx([95.0, 95.0])


def test_vector_field_has_one_arrow_per_point() -> None:
    points, vectors = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([[0.5, 0.0], [0.0, -0.5]])
    (ax,) = plot_vector_field(points, vectors, background=points).axes
    background, arrows = ax.collections
    assert np.asarray(background.get_offsets()).tolist() == points.tolist()
    assert np.asarray(arrows.get_offsets()).tolist() == points.tolist()
    assert np.stack([arrows.U, arrows.V], 1).tolist() == vectors.tolist()  # type: ignore[attr-defined]

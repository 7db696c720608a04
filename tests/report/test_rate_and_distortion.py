"""Bills and the plane of rate and distortion: lengths that add up."""

import numpy as np
import pytest

from parnassus.report.rate_and_distortion import draw_bill, draw_plane


def test_a_bill_is_as_long_as_its_sum() -> None:
    (ax,) = draw_bill({"alone": (0.0, 200.0), "by a code": (25.0, 80.0)}, 100.0).axes
    ends = [float(bar.get_x() + bar.get_width()) for bars in ax.containers for bar in bars]
    assert ends == [0.0, 200.0, 25.0, 105.0]
    assert [text.get_text() for text in ax.texts] == ["200.0", "25.0", "80.0"]


def test_the_path_ends_above_the_floor() -> None:
    rates, distortions = list(np.linspace(5, 25, 20)), list(np.linspace(150, 80, 20))
    (ax,) = draw_plane(rates, distortions, 95.0).axes
    end = np.asarray(ax.lines[-1].get_xydata())[0]
    assert end.tolist() == pytest.approx([25.0, 80.0])
    floor = next(line for line in ax.lines if str(line.get_label()).startswith("the least bill"))
    assert np.asarray(floor.get_xydata()).sum(1) == pytest.approx([95.0, 95.0])

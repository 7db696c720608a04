"""The probe of positional schemes against their known properties."""

from typing import cast

import pytest
import torch

from parnassus.attention.probes.positions import SCHEMES, position_products
from parnassus.widgets import Curves, Numbers, evaluate_probe, read_controls


def shown(scheme: int, place: int, half: int = 16, base: float = 10_000.0) -> tuple[list[float], dict[str, float]]:
    """The curve and the statistics."""
    curve, _, numbers = position_products(scheme, place, half, base)
    (line,) = cast("Curves", curve).lines.values()
    return list(line[1]), cast("dict[str, float]", cast("Numbers", numbers).values)


@pytest.mark.parametrize("scheme", range(len(SCHEMES)))
def test_a_curve_shifts_with_the_position_if_only_the_distance_counts(scheme: int) -> None:
    (near, numbers), (far, _) = shown(scheme, 40), shown(scheme, 60)
    moves_along = torch.allclose(torch.tensor(near[30:50]), torch.tensor(far[50:70]), atol=1e-4)
    assert moves_along == (list(SCHEMES)[scheme] not in ("rotary, mixed signs", "learned table, untrained"))
    assert (numbers["standard deviation among pairs of equal distance"] < 1e-4) == moves_along


def test_sinusoidal_and_rotary_give_the_same_curve() -> None:
    torch.testing.assert_close(torch.tensor(shown(0, 17)[0]), torch.tensor(shown(1, 17)[0]), atol=1e-5, rtol=0)


def test_one_frequency_is_periodic() -> None:
    """Positions 44 apart are nearly seven periods of the fastest frequency."""
    assert shown(0, 50, half=1)[0][94] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("place", [0, 127])
def test_the_ends_of_the_sequence_work(place: int) -> None:
    controls = read_controls(position_products, None)
    answers = evaluate_probe(
        position_products, None, controls, {"scheme": 5, "position": place, "half": 1, "base": 2.0}
    )
    assert len(answers) == 3

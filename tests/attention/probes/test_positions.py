"""The probe of positional encodings."""

from typing import cast

import pytest
import torch

from parnassus.attention.probes.positions import SCHEMES, position_products
from parnassus.widgets import Curves, Numbers, evaluate_probe, read_controls


def evaluate(
    scheme: int, position: int, num_frequencies: int = 16, base: float = 10_000.0
) -> tuple[list[float], dict[str, float]]:
    """The curve and the statistics."""
    curve, _, numbers = position_products(scheme, position, num_frequencies, base)
    (line,) = cast("Curves", curve).lines.values()
    return list(line[1]), cast("dict[str, float]", cast("Numbers", numbers).values)


@pytest.mark.parametrize("scheme", range(len(SCHEMES)))
def test_curve_shifts_with_position_for_translation_invariant_schemes_only(scheme: int) -> None:
    (near, numbers), (far, _) = evaluate(scheme, 40), evaluate(scheme, 60)
    is_shifted = torch.allclose(torch.tensor(near[30:50]), torch.tensor(far[50:70]), atol=1e-4)
    assert is_shifted == (list(SCHEMES)[scheme] not in ("rotary, mixed signs", "learned table, untrained"))
    assert (numbers["standard deviation among pairs of equal distance"] < 1e-4) == is_shifted


def test_sinusoidal_and_rotary_curves_match() -> None:
    torch.testing.assert_close(torch.tensor(evaluate(0, 17)[0]), torch.tensor(evaluate(1, 17)[0]), atol=1e-5, rtol=0)


def test_single_frequency_is_periodic() -> None:
    """A distance of 44 is nearly seven periods of the highest frequency."""
    assert evaluate(0, 50, num_frequencies=1)[0][94] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("position", [0, 127])
def test_first_and_last_positions_are_accepted(position: int) -> None:
    controls = read_controls(position_products, None)
    answers = evaluate_probe(
        position_products, None, controls, {"scheme": 5, "position": position, "num_frequencies": 1, "base": 2.0}
    )
    assert len(answers) == 3

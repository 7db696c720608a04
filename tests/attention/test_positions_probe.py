"""What the probe of positions says, against the laws of the schemes."""

from typing import cast

import pytest
import torch

from parnassus.attention.probes.positions import SCHEMES, positions_and_products
from parnassus.touch import Curves, Numbers, answer, controls_of


def shown(scheme: int, place: int, half: int = 16, base: float = 10_000.0) -> tuple[list[float], dict[str, float]]:
    """The curve and the numbers."""
    curve, _, numbers = positions_and_products(scheme, place, half, base)
    (line,) = cast("Curves", curve).lines.values()
    return list(line[1]), cast("dict[str, float]", cast("Numbers", numbers).values)


@pytest.mark.parametrize("scheme", range(len(SCHEMES)))
def test_a_curve_follows_its_place_where_only_the_distance_counts(scheme: int) -> None:
    (near, numbers), (far, _) = shown(scheme, 40), shown(scheme, 60)
    moves_along = torch.allclose(torch.tensor(near[30:50]), torch.tensor(far[50:70]), atol=1e-4)
    assert moves_along == (list(SCHEMES)[scheme] not in ("rotary, mixed signs", "learned table, untrained"))
    assert (numbers["spread among pairs of one distance"] < 1e-4) == moves_along


def test_waves_and_rotary_draw_the_same_curve() -> None:
    torch.testing.assert_close(torch.tensor(shown(0, 17)[0]), torch.tensor(shown(1, 17)[0]), atol=1e-5, rtol=0)


def test_one_frequency_cannot_tell_a_turn_from_none() -> None:
    """Places 44 apart are seven turns of the fastest hand, nearly."""
    assert shown(0, 50, half=1)[0][94] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("place", [0, 127])
def test_the_ends_of_the_sequence_are_places_too(place: int) -> None:
    controls = controls_of(positions_and_products, None)
    answers = answer(positions_and_products, None, controls, {"scheme": 5, "place": place, "half": 1, "base": 2.0})
    assert len(answers) == 3

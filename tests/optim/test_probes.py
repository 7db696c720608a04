"""The bowl and the race: what theory says of the ways is what they do."""

import pytest
import torch
from torch import Tensor

from parnassus.optim import gradient_descent, rosenbrock, valley
from parnassus.optim.probes import SURFACES, race_optimisers, roll_down_a_bowl
from parnassus.touch import Curves, Numbers, Path, answer, controls_of

CONTROLS = controls_of(roll_down_a_bowl, None)


def rolled(**values: object) -> tuple[Path, Curves, Numbers]:
    path, losses, numbers = answer(roll_down_a_bowl, None, CONTROLS, values)
    assert isinstance(path, Path)
    assert isinstance(losses, Curves)
    assert isinstance(numbers, Numbers)
    return path, losses, numbers


def bowl(theta: Tensor, ratio: float) -> Tensor:
    return (theta[..., 0].square() + ratio * theta[..., 1].square()) / 2


@pytest.mark.parametrize("ratio", [1, 12, 100])
def test_below_two_over_beta_descent_arrives_and_beyond_it_leaves(ratio: float) -> None:
    border = rolled(ratio=ratio)[2].values["largest stable rate, 2/β"]
    assert border == pytest.approx(2 / ratio)
    assert isinstance(border, float)
    for share, arrives in ((0.95, True), (1.05, False)):
        path, losses, _ = rolled(ratio=ratio, rate=share * border, momentum=0)
        (line,) = losses.lines.values()
        assert (line[1][-1] < line[1][0]) is arrives
        assert list(path.places) == ["gradient descent"]


def test_momentum_may_take_larger_rates() -> None:
    path, losses, numbers = rolled(ratio=10, rate=0.3, momentum=0.9)  # 2/β = 0.2, 2 (1 + μ)/β = 0.38
    assert numbers.values["with momentum, 2 (1 + μ)/β"] == pytest.approx(0.38)
    assert losses.lines["gradient descent"][1][-1] > 20 * losses.lines["gradient descent"][1][0]
    assert losses.lines["with momentum"][1][-1] < 0.01 * losses.lines["with momentum"][1][0]
    assert len(path.places["gradient descent"]) < 10  # a way that leaves is cut short


@pytest.mark.parametrize(
    "values",
    [
        {"rate": 0.1, "momentum": 0.0},
        {"rate": 0.15, "momentum": 0.7},
        {"rate": 0.17, "momentum": 0.9},
        {"rate": 0.01, "momentum": 0.5, "ratio": 100},
        {"rate": 0.3, "momentum": 0.3},
    ],
)
def test_the_factor_measured_is_the_one_predicted(values: dict[str, object]) -> None:
    _, _, numbers = rolled(**values)
    for name in ("gradient descent", "with momentum"):
        if f"{name}, factor measured" in numbers.values:
            predicted = numbers.values[f"{name}, factor predicted"]
            assert numbers.values[f"{name}, factor measured"] == pytest.approx(predicted, rel=0.05)


def test_a_start_in_the_flat_direction_never_feels_the_steep_one() -> None:
    """η = 0.5 is beyond 2/β, and yet the ball arrives, by 1 − η a step."""
    path, _, numbers = rolled(start=[2, 0], rate=0.5, momentum=0)
    assert numbers.values["gradient descent, factor predicted"] == pytest.approx(0.5)
    assert numbers.values["gradient descent, factor measured"] == pytest.approx(0.5)
    assert float(path.places["gradient descent"][-1].abs().max()) < 1e-5


def test_a_swing_through_the_minimum_goes_on() -> None:
    """In a round bowl η = 1 reaches the minimum in a step; plain descent rests there, momentum flies past."""
    path, _, _ = rolled(ratio=1, rate=1, momentum=0.7)
    plain, swinging = path.places.values()
    assert len(plain) == 2
    torch.testing.assert_close(plain[-1], torch.zeros(2, dtype=torch.float64))
    assert len(swinging) > 20


def test_the_picture_is_one_of_the_bowl() -> None:
    path, losses, _ = rolled(ratio=7, start=[1, -1])
    torch.testing.assert_close(path.levels[3, 5], bowl(torch.stack([path.across[5], path.up[3]]).double(), 7))
    for name, way in path.places.items():
        assert way[0].tolist() == [1, -1]
        torch.testing.assert_close(torch.tensor(losses.lines[name][1]).double(), bowl(way, 7), atol=1e-7, rtol=1e-5)


def test_a_start_at_rest_stays_there() -> None:
    path, _, numbers = rolled(start=[0, 0])
    assert all(way.tolist() == [[0, 0]] for way in path.places.values())
    assert "gradient descent, factor measured" not in numbers.values


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"rate": 0}, "learning rate η must be between 0.001 and 3; got 0"),
        ({"momentum": 1}, "momentum μ must be between 0 and 0.99; got 1"),
        ({"start": [9, 0]}, "start must be between -3 and 3; got 9"),
        ({"ratio": float("nan")}, "steep curvature over flat must be a number"),
        ({"friction": 1}, "there is no control friction; there are start, rate, momentum, ratio"),
    ],
)
def test_wrong_values_get_sentences(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        rolled(**values)


RACE = controls_of(race_optimisers, None)


def raced(**values: object) -> tuple[Path, Curves, Numbers]:
    path, losses, numbers = answer(race_optimisers, None, RACE, values)
    assert isinstance(path, Path)
    assert isinstance(losses, Curves)
    assert isinstance(numbers, Numbers)
    return path, losses, numbers


def test_all_six_start_where_the_pointer_is() -> None:
    path, losses, numbers = raced(surface=1, start=[-1, 1])
    assert len(path.places) == len(losses.lines) == len(numbers.values) == 6
    assert all(way[0].tolist() == pytest.approx([-1.8, 2.4]) for way in path.places.values())


def test_the_way_of_descent_is_that_of_the_plain_loop() -> None:
    path, losses, _ = raced(surface=1, start=[0, 0], rate=1e-3)
    way = path.places["gradient descent"]
    begin = torch.tensor([0.0, 0.8], dtype=torch.float64)
    torch.testing.assert_close(way, gradient_descent(rosenbrock(), begin, rate=1e-3, steps=80)[: len(way)])
    torch.testing.assert_close(losses.lines["gradient descent"][1][0], float(rosenbrock()(begin)))


def test_past_two_over_beta_descent_leaves_and_says_so() -> None:
    _, _, inside = raced(surface=0, rate=0.09, momentum=0)
    _, _, outside = raced(surface=0, rate=0.11, momentum=0)  # β = 20
    assert isinstance(inside.values["gradient descent"], float)
    assert str(outside.values["gradient descent"]).startswith("left after")
    assert inside.values["momentum"] == inside.values["gradient descent"]


def test_on_the_ridge_of_the_saddle_descent_never_finds_the_way_down() -> None:
    saddle = list(SURFACES).index("a saddle")
    path, _, numbers = raced(surface=saddle, start=[-1, 0], rate=0.1)
    assert numbers.values["gradient descent"] == "not yet"
    assert float(path.places["gradient descent"][-1].abs().max()) < 1e-6


def test_a_start_at_the_minimum_has_arrived() -> None:
    cost = valley()
    across = -1 + 2 * (0 - cost.across[0]) / (cost.across[1] - cost.across[0])
    _, _, numbers = raced(surface=0, start=[across, 0])
    assert set(numbers.values.values()) == {0.0}

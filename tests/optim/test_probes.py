"""Gradient descent on a quadratic and the comparison of optimisers follow the predicted rates."""

import pytest
import torch
from torch import Tensor

from parnassus.optim import gradient_descent, quadratic_valley, rosenbrock
from parnassus.optim.probes import SURFACES, compare_optimisers, gradient_descent_on_quadratic
from parnassus.widgets import Curves, Numbers, Trajectories, evaluate_probe, read_controls

CONTROLS = read_controls(gradient_descent_on_quadratic, None)


def run_quadratic(**values: object) -> tuple[Trajectories, Curves, Numbers]:
    path, losses, numbers = evaluate_probe(gradient_descent_on_quadratic, None, CONTROLS, values)
    assert isinstance(path, Trajectories)
    assert isinstance(losses, Curves)
    assert isinstance(numbers, Numbers)
    return path, losses, numbers


def quadratic(theta: Tensor, ratio: float) -> Tensor:
    return (theta[..., 0].square() + ratio * theta[..., 1].square()) / 2


@pytest.mark.parametrize("ratio", [1, 12, 100])
def test_descent_converges_below_two_over_beta_and_diverges_above(ratio: float) -> None:
    limit = run_quadratic(condition_number=ratio)[2].values["largest stable rate, 2/β"]
    assert limit == pytest.approx(2 / ratio)
    assert isinstance(limit, float)
    for fraction, converges in ((0.95, True), (1.05, False)):
        path, losses, _ = run_quadratic(condition_number=ratio, learning_rate=fraction * limit, momentum=0)
        (line,) = losses.lines.values()
        assert (line[1][-1] < line[1][0]) is converges
        assert list(path.paths) == ["gradient descent"]


def test_momentum_is_stable_at_larger_rates() -> None:
    path, losses, numbers = run_quadratic(
        condition_number=10, learning_rate=0.3, momentum=0.9
    )  # 2/β = 0.2, 2 (1 + μ)/β = 0.38
    assert numbers.values["with momentum, 2 (1 + μ)/β"] == pytest.approx(0.38)
    assert losses.lines["gradient descent"][1][-1] > 20 * losses.lines["gradient descent"][1][0]
    assert losses.lines["with momentum"][1][-1] < 0.01 * losses.lines["with momentum"][1][0]
    assert len(path.paths["gradient descent"]) < 10  # diverged paths are cut


@pytest.mark.parametrize(
    "values",
    [
        {"learning_rate": 0.1, "momentum": 0.0},
        {"learning_rate": 0.15, "momentum": 0.7},
        {"learning_rate": 0.17, "momentum": 0.9},
        {"learning_rate": 0.01, "momentum": 0.5, "condition_number": 100},
        {"learning_rate": 0.3, "momentum": 0.3},
    ],
)
def test_measured_and_predicted_factors_agree(values: dict[str, object]) -> None:
    _, _, numbers = run_quadratic(**values)
    for name in ("gradient descent", "with momentum"):
        if f"{name}, measured factor" in numbers.values:
            predicted = numbers.values[f"{name}, predicted factor"]
            assert numbers.values[f"{name}, measured factor"] == pytest.approx(predicted, rel=0.05)


def test_start_along_the_low_curvature_axis_does_not_move_along_the_other() -> None:
    """η = 0.5 is above 2/β, yet the iterates converge with factor 1 − η per step."""
    path, _, numbers = run_quadratic(start=[2, 0], learning_rate=0.5, momentum=0)
    assert numbers.values["gradient descent, predicted factor"] == pytest.approx(0.5)
    assert numbers.values["gradient descent, measured factor"] == pytest.approx(0.5)
    assert float(path.paths["gradient descent"][-1].abs().max()) < 1e-5


def test_momentum_overshoots_the_minimum() -> None:
    """With one curvature, η = 1 reaches the minimum in one step; descent stays there, momentum overshoots."""
    path, _, _ = run_quadratic(condition_number=1, learning_rate=1, momentum=0.7)
    plain, with_momentum = path.paths.values()
    assert len(plain) == 2
    torch.testing.assert_close(plain[-1], torch.zeros(2, dtype=torch.float64))
    assert len(with_momentum) > 20


def test_plot_shows_the_quadratic() -> None:
    path, losses, _ = run_quadratic(condition_number=7, start=[1, -1])
    torch.testing.assert_close(path.levels[3, 5], quadratic(torch.stack([path.x[5], path.y[3]]).double(), 7))
    for name, path_points in path.paths.items():
        assert path_points[0].tolist() == [1, -1]
        torch.testing.assert_close(
            torch.tensor(losses.lines[name][1]).double(), quadratic(path_points, 7), atol=1e-7, rtol=1e-5
        )


def test_start_at_the_minimum_does_not_move() -> None:
    path, _, numbers = run_quadratic(start=[0, 0])
    assert all(each.tolist() == [[0, 0]] for each in path.paths.values())
    assert "gradient descent, measured factor" not in numbers.values


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"learning_rate": 0}, "learning rate η must be between 0.001 and 3; got 0"),
        ({"momentum": 1}, "momentum μ must be between 0 and 0.99; got 1"),
        ({"start": [9, 0]}, "start must be between -3 and 3; got 9"),
        ({"condition_number": float("nan")}, "condition number must be a number"),
        ({"friction": 1}, "unknown controls: friction; available: start, learning_rate, momentum, condition_number"),
    ],
)
def test_invalid_values_raise_value_error(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run_quadratic(**values)


COMPARISON_CONTROLS = read_controls(compare_optimisers, None)


def run_comparison(**values: object) -> tuple[Trajectories, Curves, Numbers]:
    path, losses, numbers = evaluate_probe(compare_optimisers, None, COMPARISON_CONTROLS, values)
    assert isinstance(path, Trajectories)
    assert isinstance(losses, Curves)
    assert isinstance(numbers, Numbers)
    return path, losses, numbers


def test_all_six_optimisers_start_at_the_chosen_point() -> None:
    path, losses, numbers = run_comparison(surface=1, start=[-1, 1])
    assert len(path.paths) == len(losses.lines) == len(numbers.values) == 6
    assert all(each[0].tolist() == pytest.approx([-1.8, 2.4]) for each in path.paths.values())


def test_path_of_sgd_matches_gradient_descent() -> None:
    path, losses, _ = run_comparison(surface=1, start=[0, 0], learning_rate=1e-3)
    path_points = path.paths["gradient descent"]
    theta0 = torch.tensor([0.0, 0.8], dtype=torch.float64)
    torch.testing.assert_close(
        path_points, gradient_descent(rosenbrock(), theta0, learning_rate=1e-3, steps=80)[: len(path_points)]
    )
    torch.testing.assert_close(losses.lines["gradient descent"][1][0], float(rosenbrock()(theta0)))


def test_divergence_above_two_over_beta_is_reported() -> None:
    _, _, stable = run_comparison(surface=0, learning_rate=0.09, momentum=0)
    _, _, unstable = run_comparison(surface=0, learning_rate=0.11, momentum=0)  # β = 20
    assert isinstance(stable.values["gradient descent"], float)
    assert str(unstable.values["gradient descent"]).startswith("diverged after")
    assert stable.values["momentum"] == stable.values["gradient descent"]


def test_descent_from_the_ridge_converges_to_the_saddle_point() -> None:
    saddle = list(SURFACES).index("saddle point")
    path, _, numbers = run_comparison(surface=saddle, start=[-1, 0], learning_rate=0.1)
    assert numbers.values["gradient descent"] == "not converged"
    assert float(path.paths["gradient descent"][-1].abs().max()) < 1e-6


def test_start_at_the_minimum_has_converged() -> None:
    cost = quadratic_valley()
    x = -1 + 2 * (0 - cost.x_range[0]) / (cost.x_range[1] - cost.x_range[0])
    _, _, numbers = run_comparison(surface=0, start=[x, 0])
    assert set(numbers.values.values()) == {0.0}

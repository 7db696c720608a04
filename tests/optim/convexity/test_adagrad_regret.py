"""The AdaGrad trajectory against the optimiser, and its quantities against their definitions."""

import pytest
import torch
from torch import Tensor

from parnassus.optim import (
    AdaGradTrajectory,
    FullAdaGrad,
    lipschitz_trace_bound,
    smooth_regret_bound,
    weighted_squared_norm,
)

TARGET = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)


def cost(w: Tensor) -> Tensor:
    return ((w - TARGET) @ torch.diag(torch.tensor([1.0, 0.3, 2.0]).double()) @ (w - TARGET)).cosh() - 1


@pytest.fixture
def run() -> AdaGradTrajectory:
    gradient = torch.func.grad(cost)
    return AdaGradTrajectory.compute(
        lambda _, w: gradient(w), torch.zeros(3, dtype=torch.float64), learning_rate=0.7, steps=25
    )


def test_trajectory_matches_the_optimiser(run: AdaGradTrajectory) -> None:
    parameter = torch.nn.Parameter(torch.zeros(3, dtype=torch.float64))
    optimizer = FullAdaGrad([parameter], lr=0.7, cutoff=1e-14)
    for point in run.path[1:]:
        optimizer.zero_grad()
        cost(parameter).backward()
        optimizer.step()
        torch.testing.assert_close(parameter.detach(), point)


def test_roots_squared_are_the_summed_outer_products(run: AdaGradTrajectory) -> None:
    outer = (run.gradients[:, :, None] * run.gradients[:, None, :]).cumsum(0)
    torch.testing.assert_close(run.roots @ run.roots, outer, atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(run.roots @ run.inverses @ run.roots, run.roots, atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(run.traces[-1], torch.linalg.svdvals(run.gradients).sum())


def test_squared_norm_is_a_quadratic_form() -> None:
    v = torch.tensor([[1.0, 2.0], [0.0, 3.0]])
    matrix = torch.tensor([[2.0, 1.0], [1.0, 4.0]]).expand(2, 2, 2)
    torch.testing.assert_close(weighted_squared_norm(v, matrix), torch.tensor([22.0, 36.0]))


def test_one_dimensional_bounds_match_hand_computed_values() -> None:
    """Gradients 3 and 4: G = 3 and 5, steps η and 4η/5."""
    gradients = torch.tensor([[3.0], [4.0]], dtype=torch.float64)
    run = AdaGradTrajectory.compute(
        lambda t, _: gradients[t], torch.zeros(1, dtype=torch.float64), learning_rate=0.5, steps=2
    )
    torch.testing.assert_close(run.path[:, 0], torch.tensor([0.0, -0.5, -0.9]).double())
    torch.testing.assert_close(run.traces, torch.tensor([3.0, 5.0]).double())
    torch.testing.assert_close(run.preconditioned_norms(), torch.tensor([3.0, 3.2]).double())
    target = torch.tensor([-1.0], dtype=torch.float64)
    torch.testing.assert_close(run.linearised_regret(target), torch.tensor([3.0, 2.0]).double())
    torch.testing.assert_close(run.distance_decreases(target), torch.tensor([2.25, 1.2]).double())
    assert run.diameter(target) == 1.0
    torch.testing.assert_close(run.distance_bound(1.0), torch.tensor([3.0, 5.0]).double())
    torch.testing.assert_close(run.preconditioned_norm_bound(), torch.tensor([6.0, 10.0]).double())
    torch.testing.assert_close(run.regret_bound(1.0), torch.tensor([4.5, 7.5]).double())


def test_alternating_orthogonal_gradients_attain_the_trace_bound() -> None:
    """The bound ρ√(dt) is attained at multiples of d and not exceeded in between."""
    size, steps = 4, 80
    axes = 3.0 * torch.eye(size, dtype=torch.float64)
    zero = torch.zeros(size, dtype=torch.float64)
    alternating = AdaGradTrajectory.compute(lambda t, _: axes[t % size], zero, learning_rate=1.0, steps=steps)
    bound = lipschitz_trace_bound(torch.arange(1.0, steps + 1).double(), lipschitz=3.0, dim=size)
    torch.testing.assert_close(alternating.traces[size - 1 :: size], bound[size - 1 :: size])
    assert bool((alternating.traces <= bound + 1e-9).all())


def test_smooth_regret_bound_has_the_known_value() -> None:
    assert smooth_regret_bound(beta=2.0, dim=3, diameter=2.0) == pytest.approx(108.0)


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"need learning_rate > 0 and steps ≥ 1; got learning_rate=0\.0, steps=5"):
        AdaGradTrajectory.compute(lambda _, w: w, torch.ones(1), learning_rate=0.0, steps=5)

"""Gradient flow with a constant kernel against the matrix exponential, descent steps and linear solves."""

from math import inf

import pytest
import torch

from parnassus.kernels import GradientFlow
from parnassus.probability import standard_normal

DOUBLE = torch.float64
ROOT = standard_normal(5, 7)
KERNEL = ROOT @ ROOT.mT
START = standard_normal(5, 2, seed=1)
TARGET = standard_normal(5, 2, seed=2)


@pytest.mark.parametrize("time", [0.0, 0.03, 1.0])
def test_outputs_match_the_matrix_exponential(time: float) -> None:
    flow = GradientFlow.from_kernel(KERNEL)
    exact = TARGET + torch.linalg.matrix_exp(-time * KERNEL) @ (START - TARGET)
    torch.testing.assert_close(flow.outputs(START, TARGET, flow.progress_at(time)), exact)
    torch.testing.assert_close(flow.outputs(START[:, 0], TARGET[:, 0], flow.progress_at(time)), exact[:, 0])


def test_progress_after_steps_matches_gradient_descent() -> None:
    flow, u, f = GradientFlow.from_kernel(KERNEL), START, torch.zeros(3, 2, dtype=DOUBLE)
    cross = standard_normal(3, 7, seed=3) @ ROOT.mT
    for _ in range(6):
        f, u = f - 0.03 * cross @ (u - TARGET), u - 0.03 * KERNEL @ (u - TARGET)
    progress = flow.progress_after(6, learning_rate=0.03)
    torch.testing.assert_close(flow.outputs(START, TARGET, progress), u)
    torch.testing.assert_close(flow.predict(cross, START, TARGET, progress), f)


def test_infinite_time_solves_the_linear_system() -> None:
    flow = GradientFlow.from_kernel(KERNEL)
    cross = standard_normal(3, 5, seed=3)
    exact = cross @ torch.linalg.solve(KERNEL, TARGET - START)
    torch.testing.assert_close(flow.predict(cross, START, TARGET, flow.progress_at(inf)), exact)
    torch.testing.assert_close(flow.outputs(START, TARGET, flow.progress_at(inf)), TARGET)
    torch.testing.assert_close(flow.matrix(flow.progress_at(inf).gain), torch.linalg.inv(KERNEL))


def test_modes_of_eigenvalue_zero_are_not_learned() -> None:
    low_rank = ROOT[:, :3]
    flow = GradientFlow.from_kernel(low_rank @ low_rank.mT)
    residual = flow.unlearnable_residual(START, TARGET)
    torch.testing.assert_close(flow.outputs(START, TARGET, flow.progress_at(inf)), TARGET + residual)
    torch.testing.assert_close(low_rank.mT @ residual, torch.zeros(3, 2, dtype=DOUBLE))
    cross = ROOT[:2, :3] @ low_rank.mT
    min_norm = cross @ torch.linalg.pinv(low_rank @ low_rank.mT, hermitian=True, rtol=1e-10) @ (TARGET - START)
    torch.testing.assert_close(flow.predict(cross, START, TARGET, flow.progress_at(inf)), min_norm)


def test_gradient_descent_converges_below_the_max_stable_learning_rate_only() -> None:
    flow = GradientFlow.from_kernel(KERNEL)
    stable, unstable = (
        flow.progress_after(500, learning_rate=factor * flow.max_stable_learning_rate).remaining.abs().max()
        for factor in (0.9, 1.1)
    )
    assert float(stable) < 1 < float(unstable)


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match="symmetric and positive semi-definite"):
        GradientFlow.from_kernel(-KERNEL)
    with pytest.raises(ValueError, match="symmetric and positive semi-definite; got an asymmetry of"):
        GradientFlow.from_kernel(ROOT[:, :5])
    with pytest.raises(ValueError, match=r"time must not be negative; got time=-1\.0"):
        GradientFlow.from_kernel(KERNEL).progress_at(-1.0)
    with pytest.raises(ValueError, match="need steps ≥ 0 and learning_rate > 0"):
        GradientFlow.from_kernel(KERNEL).progress_after(3, learning_rate=0.0)

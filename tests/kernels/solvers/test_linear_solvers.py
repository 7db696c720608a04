"""Solvers against torch's own, and what they report of themselves."""

import pytest
import torch

from parnassus.kernels import (
    RBF,
    CholeskySolver,
    ConjugateGradients,
    KernelMatrix,
    Preconditioner,
    Solver,
    choose_solver,
    pivoted_cholesky,
    relative_residual,
)

X = torch.rand(120, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
T = torch.randn(120, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
KERNEL = RBF(0.5)
MATRIX = KERNEL(X).detach()
EYE = torch.eye(120, dtype=torch.float64)


@pytest.mark.parametrize("noise", [0.5, 1e-3])
def test_all_solvers_find_what_torch_finds(noise: float) -> None:
    exact = torch.linalg.solve(MATRIX + noise * EYE, T)
    lazy = KernelMatrix(KERNEL, X, block=50)
    solvers: list[Solver] = [
        CholeskySolver.from_matrix(MATRIX.clone(), noise=noise),
        ConjugateGradients(MATRIX, noise),
        ConjugateGradients(lazy, noise, Preconditioner.from_matrix(lazy, rank=30, noise=noise)),
    ]
    for solver in solvers:
        found = solver.solve(T)
        torch.testing.assert_close(found.weights, exact, rtol=1e-7, atol=1e-7)
        torch.testing.assert_close(solver.solve(T[:, 0]).weights, found.weights[:, 0], rtol=1e-7, atol=1e-7)
        assert found.residual < 1e-9
        assert found.jitter == 0
        k = MATRIX[:, :7]
        torch.testing.assert_close(
            solver.explained_variance(k), (k * torch.linalg.solve(MATRIX + noise * EYE, k)).sum(0)
        )


def test_factoring_leaves_the_matrix_as_it_was() -> None:
    matrix = MATRIX.clone()
    CholeskySolver.from_matrix(matrix, noise=0.1)
    assert torch.equal(matrix, MATRIX)


def test_the_preconditioner_inverts_what_it_says() -> None:
    near = Preconditioner.from_matrix(MATRIX, rank=20, noise=0.01)
    P = near.factor @ near.factor.mT + near.shift * EYE
    torch.testing.assert_close(near.solve(P @ T), T)
    torch.testing.assert_close(P.trace(), (MATRIX + 0.01 * EYE).trace())


def test_a_full_factor_rebuilds_the_matrix_and_a_low_rank_one_is_found_out() -> None:
    features = X[:, :2]
    factor, left = pivoted_cholesky(features @ features.mT, 50)
    assert factor.shape == (120, 2)
    torch.testing.assert_close(factor @ factor.mT, features @ features.mT)
    assert float(left.max()) < 1e-12
    factor, left = pivoted_cholesky(MATRIX, 10)
    torch.testing.assert_close(left, (MATRIX - factor @ factor.mT).diagonal(), rtol=0, atol=1e-12)


def test_the_first_pivots_are_where_the_largest_variances_are_left() -> None:
    matrix = torch.diag(torch.tensor([1.0, 5.0, 3.0], dtype=torch.float64))
    factor, left = pivoted_cholesky(matrix, 2)
    torch.testing.assert_close(left, torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64))
    torch.testing.assert_close(factor.square().sum(0), torch.tensor([5.0, 3.0], dtype=torch.float64))


def test_points_that_occur_twice_need_a_jitter_and_it_is_told() -> None:
    twice = torch.cat([X[:20], X[:20]])
    solution = CholeskySolver.from_matrix(KERNEL(twice).detach(), noise=0.0).solve(torch.cat([T[:20], T[:20]]))
    assert 0 < solution.jitter < 1e-6
    assert bool(solution.weights.isfinite().all())


def test_a_column_of_zeros_costs_nothing_and_is_zero() -> None:
    t = torch.cat([T[:, :1], torch.zeros(120, 1, dtype=torch.float64)], 1)
    solution = ConjugateGradients(MATRIX, 0.1).solve(t)
    assert torch.equal(solution.weights[:, 1], torch.zeros(120, dtype=torch.float64))
    assert ConjugateGradients(MATRIX, 0.1).solve(0 * t).steps == 0


def test_too_few_steps_show_in_the_residual() -> None:
    solution = ConjugateGradients(MATRIX, 1e-4, max_steps=3).solve(T)
    assert solution.steps == 3
    missing = (T - MATRIX @ solution.weights - 1e-4 * solution.weights).norm(dim=0) / T.norm(dim=0)
    assert solution.residual == pytest.approx(float(missing.max()))
    assert solution.residual > 1e-3


def test_the_error_of_single_precision_is_measured_in_double() -> None:
    lazy = KernelMatrix(KERNEL, X.float())
    solution = ConjugateGradients(lazy, 1e-2, tolerance=1e-5).solve(T.float())
    assert solution.weights.dtype == torch.float32
    exact = KERNEL(X.float().double()).detach() @ solution.weights.double() + 1e-2 * solution.weights.double()
    expected = ((T.float().double() - exact).norm(dim=0) / T.float().double().norm(dim=0)).max()
    assert solution.residual == pytest.approx(float(expected), rel=1e-6)
    assert 1e-7 < solution.residual < 1e-3


def test_the_solver_follows_the_memory() -> None:
    matrix = KernelMatrix(KERNEL, X)
    assert isinstance(choose_solver(matrix, noise=0.1, memory=3 * matrix.bytes), CholeskySolver)
    little = choose_solver(matrix, noise=0.1, memory=matrix.bytes)
    assert isinstance(little, ConjugateGradients)
    torch.testing.assert_close(little.solve(T).weights, choose_solver(matrix, noise=0.1).solve(T).weights)


def test_the_residual_of_the_truth_is_rounding() -> None:
    exact = torch.linalg.solve(MATRIX + EYE, T)
    assert relative_residual(MATRIX, T, exact, noise=1.0) < 1e-13


def test_invalid_input_raises() -> None:
    with pytest.raises(ValueError, match=r"noise=-1"):
        CholeskySolver.from_matrix(MATRIX.clone(), noise=-1.0)
    with pytest.raises(ValueError, match="noise=nan"):
        ConjugateGradients(MATRIX, float("nan")).solve(T)
    with pytest.raises(ValueError, match=r"positive definite; a direction p has pᵀ\(K \+ σ²I\)p = -"):
        ConjugateGradients(-MATRIX, 0.0).solve(T)
    with pytest.raises(ValueError, match="rank=0"):
        pivoted_cholesky(MATRIX, 0)

"""Linear solvers against `torch.linalg.solve`, and their reported residuals."""

import pytest
import torch

from parnassus.kernels import (
    CholeskySolver,
    ConjugateGradients,
    KernelMatrix,
    LinearSolver,
    Preconditioner,
    RBFKernel,
    choose_solver,
    pivoted_cholesky,
    relative_residual,
)
from parnassus.probability import standard_normal, uniform_samples

X = uniform_samples(120, 3)
T = standard_normal(120, 4, seed=1)
KERNEL = RBFKernel(0.5)
MATRIX = KERNEL(X).detach()
EYE = torch.eye(120, dtype=torch.float64)


@pytest.mark.parametrize("noise", [0.5, 1e-3])
def test_solvers_match_torch(noise: float) -> None:
    exact = torch.linalg.solve(MATRIX + noise * EYE, T)
    lazy = KernelMatrix(KERNEL, X, block=50)
    solvers: list[LinearSolver] = [
        CholeskySolver.from_matrix(MATRIX.clone(), noise=noise),
        ConjugateGradients(MATRIX, noise),
        ConjugateGradients(lazy, noise, Preconditioner.from_matrix(lazy, rank=30, noise=noise)),
    ]
    for solver in solvers:
        solution = solver.solve(T)
        torch.testing.assert_close(solution.weights, exact, rtol=1e-7, atol=1e-7)
        torch.testing.assert_close(solver.solve(T[:, 0]).weights, solution.weights[:, 0], rtol=1e-7, atol=1e-7)
        assert solution.residual < 1e-9
        assert solution.jitter == 0
        k = MATRIX[:, :7]
        torch.testing.assert_close(
            solver.explained_variance(k), (k * torch.linalg.solve(MATRIX + noise * EYE, k)).sum(0)
        )


def test_factorisation_does_not_modify_the_matrix() -> None:
    matrix = MATRIX.clone()
    CholeskySolver.from_matrix(matrix, noise=0.1)
    assert torch.equal(matrix, MATRIX)


def test_preconditioner_solves_its_approximation() -> None:
    preconditioner = Preconditioner.from_matrix(MATRIX, rank=20, noise=0.01)
    P = preconditioner.factor @ preconditioner.factor.mT + preconditioner.shift * EYE
    torch.testing.assert_close(preconditioner.solve(P @ T), T)
    torch.testing.assert_close(P.trace(), (MATRIX + 0.01 * EYE).trace())


def test_pivoted_cholesky_reports_the_remaining_diagonal() -> None:
    features = X[:, :2]
    factor, remaining = pivoted_cholesky(features @ features.mT, 50)
    assert factor.shape == (120, 2)
    torch.testing.assert_close(factor @ factor.mT, features @ features.mT)
    assert float(remaining.max()) < 1e-12
    factor, remaining = pivoted_cholesky(MATRIX, 10)
    torch.testing.assert_close(remaining, (MATRIX - factor @ factor.mT).diagonal(), rtol=0, atol=1e-12)


def test_pivots_are_the_largest_remaining_variances() -> None:
    matrix = torch.diag(torch.tensor([1.0, 5.0, 3.0], dtype=torch.float64))
    factor, remaining = pivoted_cholesky(matrix, 2)
    torch.testing.assert_close(remaining, torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64))
    torch.testing.assert_close(factor.square().sum(0), torch.tensor([5.0, 3.0], dtype=torch.float64))


def test_duplicate_points_report_jitter() -> None:
    x = torch.cat([X[:20], X[:20]])
    solution = CholeskySolver.from_matrix(KERNEL(x).detach(), noise=0.0).solve(torch.cat([T[:20], T[:20]]))
    assert 0 < solution.jitter < 1e-6
    assert bool(solution.weights.isfinite().all())


def test_zero_columns_give_zero_solutions() -> None:
    t = torch.cat([T[:, :1], torch.zeros(120, 1, dtype=torch.float64)], 1)
    solution = ConjugateGradients(MATRIX, 0.1).solve(t)
    assert torch.equal(solution.weights[:, 1], torch.zeros(120, dtype=torch.float64))
    assert ConjugateGradients(MATRIX, 0.1).solve(0 * t).steps == 0


def test_insufficient_steps_are_reported_in_the_residual() -> None:
    solution = ConjugateGradients(MATRIX, 1e-4, max_steps=3).solve(T)
    assert solution.steps == 3
    residual = (T - MATRIX @ solution.weights - 1e-4 * solution.weights).norm(dim=0) / T.norm(dim=0)
    assert solution.residual == pytest.approx(float(residual.max()))
    assert solution.residual > 1e-3


def test_residual_in_single_precision_is_measured_in_double() -> None:
    lazy = KernelMatrix(KERNEL, X.float())
    solution = ConjugateGradients(lazy, 1e-2, tolerance=1e-5).solve(T.float())
    assert solution.weights.dtype == torch.float32
    exact = KERNEL(X.float().double()).detach() @ solution.weights.double() + 1e-2 * solution.weights.double()
    expected = ((T.float().double() - exact).norm(dim=0) / T.float().double().norm(dim=0)).max()
    assert solution.residual == pytest.approx(float(expected), rel=1e-6)
    assert 1e-7 < solution.residual < 1e-3


def test_solver_choice_depends_on_memory() -> None:
    matrix = KernelMatrix(KERNEL, X)
    assert isinstance(choose_solver(matrix, noise=0.1, memory=3 * matrix.nbytes), CholeskySolver)
    iterative = choose_solver(matrix, noise=0.1, memory=matrix.nbytes)
    assert isinstance(iterative, ConjugateGradients)
    torch.testing.assert_close(iterative.solve(T).weights, choose_solver(matrix, noise=0.1).solve(T).weights)


def test_residual_of_the_exact_solution_is_rounding_error() -> None:
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

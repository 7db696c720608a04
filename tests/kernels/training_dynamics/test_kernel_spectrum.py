"""The spectrum of a kernel against identities and direct computation."""

import pytest
import torch

from parnassus.kernels import GPRegression, KernelSpectrum, RBFKernel, ScaledKernel
from parnassus.probability import standard_normal, uniform_samples

X = uniform_samples(40, 2)
T = standard_normal(40, 3, seed=1)
MATRIX = RBFKernel(0.4)(X).detach()
EYE = torch.eye(40, dtype=torch.float64)
SPECTRUM = KernelSpectrum.from_matrix(MATRIX)


def test_eigendecomposition_is_sorted_and_reconstructs_the_kernel() -> None:
    U = SPECTRUM.eigenvectors
    torch.testing.assert_close(U * SPECTRUM.eigenvalues @ U.mT, MATRIX)
    assert bool((SPECTRUM.eigenvalues.diff() <= 0).all())


def test_effective_dimension_is_the_trace_of_the_smoother() -> None:
    smoother = MATRIX @ torch.linalg.inv(MATRIX + 0.1 * EYE)
    assert SPECTRUM.effective_dimension(0.1) == pytest.approx(float(smoother.trace()))
    assert SPECTRUM.effective_dimension(1e-14) > 39 * 0.5
    assert SPECTRUM.effective_dimension(1e6) < 0.01


def test_alignment_recovers_mixing_fractions() -> None:
    t = 3 * SPECTRUM.eigenvectors[:, 2] - 4 * SPECTRUM.eigenvectors[:, 7]
    fractions = SPECTRUM.alignment(t)
    torch.testing.assert_close(fractions[[2, 7]], torch.tensor([0.36, 0.64], dtype=torch.float64))
    assert float(SPECTRUM.alignment(T).sum()) == pytest.approx(1)


def test_remaining_fraction_matches_the_matrix_exponential() -> None:
    times = torch.tensor([0.0, 0.3, 2.0], dtype=torch.float64)
    expected = [float((torch.matrix_exp(-time * MATRIX) @ T).square().sum() / T.square().sum()) for time in times]
    torch.testing.assert_close(SPECTRUM.remaining_fraction(T, times), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("ratio", [0.01, 0.5])
def test_evidence_is_the_likelihood_at_the_best_amplitude(ratio: float) -> None:
    best = SPECTRUM.evidence(T, ratio)

    def likelihood(amplitude: float) -> float:
        fit = GPRegression.fit(ScaledKernel(RBFKernel(0.4), amplitude), X, T, noise_variance=ratio * amplitude)
        return float(fit.log_marginal_likelihood().detach()) / T.numel()

    assert best.log_likelihood == pytest.approx(likelihood(best.amplitude), rel=1e-9)
    assert best.log_likelihood > max(likelihood(best.amplitude * factor) for factor in (0.9, 1.1))


def test_solve_matches_torch() -> None:
    torch.testing.assert_close(SPECTRUM.solve(T, 0.3), torch.linalg.solve(MATRIX + 0.3 * EYE, T))


def test_invalid_input_raises() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        SPECTRUM.effective_dimension(0.0)
    with pytest.raises(ValueError, match="ratio=0"):
        SPECTRUM.evidence(T, 0.0)
    with pytest.raises(ValueError, match="one row for each of 40 points; got 3"):
        SPECTRUM.alignment(T[:3])
    with pytest.raises(ValueError, match="must be finite"):
        KernelSpectrum.from_matrix(MATRIX * float("nan"))

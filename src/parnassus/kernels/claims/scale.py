"""Claims about kernels of many points: blocks, matrix-free solvers, calibrated predictions (book sec. 15.3)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.attention.fast.peak_memory import peak_memory
from parnassus.data import load_digits
from parnassus.kernels.gaussian_processes.calibration import interval_coverage
from parnassus.kernels.infinite_width.kernel_state import KernelState
from parnassus.kernels.infinite_width.network import fully_connected
from parnassus.kernels.infinite_width.nonlinearity import ReLU
from parnassus.kernels.solvers.kernel_matrix import KernelMatrix, evaluate_in_blocks
from parnassus.kernels.solvers.linear_solvers import CholeskySolver, ConjugateGradients, Preconditioner
from parnassus.kernels.training_dynamics.kernel_spectrum import KernelSpectrum

NETWORK = fully_connected(3, ReLU(), bias_variance=0.1)
NOISE = 1e-2
CPU = torch.device("cpu")


def digits(rows: int) -> tuple[Tensor, Tensor]:
    """Images of norm 1, and centred one-hot labels."""
    train = load_digits().train
    assert train.y is not None
    x = train.x[:rows].flatten(1).double()
    t = torch.nn.functional.one_hot(train.y[:rows], 10).double()
    return x / x.norm(dim=1, keepdim=True), t - t.mean(0)


@claim("B15.3-4")
def evaluation_in_blocks_needs_little_more_memory_than_the_kernel() -> Evidence:
    """In blocks, on one or two devices, the NNGP kernel is the same and takes 1.2 times its memory (book eq. 15.44)."""
    x = digits(1_437)[0]
    at_once = NETWORK.kernel(KernelState.from_inputs(x, x, tangent=False)).nngp
    size = at_once.numel() * at_once.element_size()
    in_blocks, filled = (
        peak_memory(lambda: evaluate_in_blocks(NETWORK.nngp, x, block=160)),
        evaluate_in_blocks(NETWORK.nngp, x, block=160),
    )
    return all_of(
        same_kernel=close(filled, at_once, atol=1e-13),
        same_on_two_devices=close(
            evaluate_in_blocks(NETWORK.nngp, x, block=500, devices=(CPU, CPU)), at_once, atol=1e-13
        ),
        memory_in_blocks=less_equal(in_blocks / size, 1.2),
        memory_at_once=greater_equal(
            peak_memory(lambda: NETWORK.kernel(KernelState.from_inputs(x, x, tangent=False))) / size, 3.0
        ),
    )


@claim("B15.3-5", "B15.1-7")
def conjugate_gradients_agree_with_cholesky() -> Evidence:
    """L⁻¹t by products with a lazy kernel equals Cholesky's to 10⁻⁸, for ten columns at once (book eq. 15.9)."""
    x, t = digits(600)
    matrix = KernelMatrix(NETWORK.nngp, x, block=200)
    exact = CholeskySolver.from_matrix(matrix.to_dense(), noise=NOISE).solve(t)
    found = ConjugateGradients(matrix, NOISE, Preconditioner.from_matrix(matrix, rank=100, noise=NOISE)).solve(t)
    single = KernelMatrix(NETWORK.nngp, x.float())
    near = Preconditioner.from_matrix(single, rank=100, noise=NOISE)
    rounded = ConjugateGradients(single, NOISE, near, tolerance=1e-5).solve(t.float())
    scale = exact.weights.abs().max()
    return all_of(
        same_weights=close(found.weights / scale, exact.weights / scale, atol=1e-8),
        residual=less_equal(found.residual, 1e-9),
        float32_residual_in_float64=less_equal(rounded.residual, 1e-3),
        float32_predictions=close(matrix @ rounded.weights.double(), matrix @ exact.weights, atol=1e-3),
    )


@claim("B15.3-5")
def pivoted_cholesky_preconditioning_saves_steps() -> Evidence:
    """With a pivoted Cholesky factor of rank 100 conjugate gradients need a quarter of the steps (book sec. 15.3)."""
    x, t = digits(600)
    kernel = NETWORK.nngp(x)
    plain = ConjugateGradients(kernel, NOISE).solve(t)
    ranks = (25, 50, 100)
    steps = [
        ConjugateGradients(kernel, NOISE, Preconditioner.from_matrix(kernel, rank=rank, noise=NOISE)).solve(t).steps
        for rank in ranks
    ]
    return all_of(
        fraction_of_steps=less_equal(steps[-1] / plain.steps, 0.25),
        higher_rank_fewer_steps=less_equal(torch.tensor([plain.steps, *steps]).diff(), 0),
        plain_converges=less_equal(plain.residual, 1e-9),
    )


@claim("B15.3-5", "B15.1-7")
def the_posterior_of_the_true_prior_is_calibrated() -> Evidence:
    """For functions sampled from the NNGP prior, intervals have nominal coverage if σ² is included (book eq. 15.10)."""
    x = digits(400)[0]
    draws, noise = 50, 0.02
    generator = torch.Generator().manual_seed(0)
    prior = NETWORK.nngp(x)
    root = torch.linalg.cholesky(prior + 1e-10 * torch.eye(400).double())
    y = root @ torch.randn(400, draws, dtype=torch.float64, generator=generator)
    t = y + noise**0.5 * torch.randn(400, draws, dtype=torch.float64, generator=generator)
    train, test = slice(0, 250), slice(250, 400)
    solver = CholeskySolver.from_matrix(prior[train, train].clone(), noise=noise)
    k = prior[train, test]
    mean = k.mT @ solver.solve(t[train]).weights
    variance = prior.diagonal()[test] - solver.explained_variance(k)
    levels = torch.tensor([0.5, 0.8, 0.95], dtype=torch.float64)
    return all_of(
        coverage=close(interval_coverage(mean, variance + noise, t[test], levels), levels, atol=0.025),
        without_noise_too_narrow=less_equal(interval_coverage(mean, variance, t[test], levels), levels - 0.02),
    )


@claim("B15.4-6")
def targets_align_with_leading_eigenvectors() -> Evidence:
    """Digit classes align with few eigenvectors of the tangent kernel, shuffled ones with all (book eq. 15.62)."""
    x, t = digits(500)
    spectrum = KernelSpectrum.from_matrix(NETWORK.kernels(x).ntk)
    shuffled = t[torch.randperm(500, generator=torch.Generator().manual_seed(0))]
    first = [spectrum.alignment(targets)[:50].sum() for targets in (t, shuffled)]
    time = torch.tensor([1 / float(spectrum.eigenvalues[50])], dtype=torch.float64)
    remaining = [spectrum.remaining_fraction(targets, time) for targets in (t, shuffled)]
    return all_of(
        true_classes=greater_equal(first[0], 0.75),
        random_classes=less_equal(first[1], 0.2),
        true_remaining=less_equal(remaining[0], 0.2),
        random_remaining=greater_equal(remaining[1], 0.4),
    )

"""Claims about kernels of many points: blocks, solvers that hold no matrix, calibrated predictions (book sec. 15.3)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.attention.peak_memory import peak_memory
from parnassus.data import load_digits
from parnassus.kernels.blocks import KernelMatrix, blocked
from parnassus.kernels.calibration import coverage
from parnassus.kernels.network import fully_connected
from parnassus.kernels.nonlinearity import ReLU
from parnassus.kernels.pair import Pair
from parnassus.kernels.solve import CholeskySolver, ConjugateGradients, Preconditioner
from parnassus.kernels.spectrum import KernelSpectrum

NETWORK = fully_connected(3, ReLU(), bias=0.1)
NOISE = 1e-2
CPU = torch.device("cpu")


def digits(rows: int) -> tuple[Tensor, Tensor]:
    """Images of length 1, and for each class 1 where it is that, minus the mean."""
    train = load_digits().train
    assert train.y is not None
    x = train.x[:rows].flatten(1).double()
    t = torch.nn.functional.one_hot(train.y[:rows], 10).double()
    return x / x.norm(dim=1, keepdim=True), t - t.mean(0)


@claim("B15.3-4")
def blocks_are_the_kernel_in_little_more_than_its_memory() -> Evidence:
    """In blocks, on one device or two, the NNGP kernel is the same, in 1.2 times its own memory (book eq. 15.44)."""
    x = digits(1_437)[0]
    at_once = NETWORK.kernel(Pair.of_inputs(x, x, tangent=False)).nngp
    size = at_once.numel() * at_once.element_size()
    in_blocks, filled = peak_memory(lambda: blocked(NETWORK.nngp, x, block=160)), blocked(NETWORK.nngp, x, block=160)
    return all_of(
        same=close(filled, at_once, atol=1e-13),
        same_on_two_devices=close(blocked(NETWORK.nngp, x, block=500, devices=(CPU, CPU)), at_once, atol=1e-13),
        memory_in_blocks=at_most(in_blocks / size, 1.2),
        memory_at_once=at_least(peak_memory(lambda: NETWORK.kernel(Pair.of_inputs(x, x, tangent=False))) / size, 3.0),
    )


@claim("B15.3-5", "B15.1-7")
def conjugate_gradients_arrive_where_cholesky_is() -> Evidence:
    """L⁻¹t by products with a kernel never held equals Cholesky's to 10⁻⁸, ten columns at once (book eq. 15.9)."""
    x, t = digits(600)
    matrix = KernelMatrix(NETWORK.nngp, x, block=200)
    exact = CholeskySolver.of(matrix.whole(), noise=NOISE).solve(t)
    found = ConjugateGradients(matrix, NOISE, Preconditioner.of(matrix, rank=100, noise=NOISE)).solve(t)
    single = KernelMatrix(NETWORK.nngp, x.float())
    near = Preconditioner.of(single, rank=100, noise=NOISE)
    rounded = ConjugateGradients(single, NOISE, near, tolerance=1e-5).solve(t.float())
    scale = exact.weights.abs().max()
    return all_of(
        same=close(found.weights / scale, exact.weights / scale, atol=1e-8),
        residual=at_most(found.residual, 1e-9),
        float32_residual_in_float64=at_most(rounded.residual, 1e-3),
        float32_predictions=close(matrix @ rounded.weights.double(), matrix @ exact.weights, atol=1e-3),
    )


@claim("B15.3-5")
def a_preconditioner_saves_steps() -> Evidence:
    """With a pivoted Cholesky factor of 100 columns conjugate gradients need a fourth of the steps (book sec. 15.3)."""
    x, t = digits(600)
    kernel = NETWORK.nngp(x)
    plain = ConjugateGradients(kernel, NOISE).solve(t)
    ranks = (25, 50, 100)
    steps = [
        ConjugateGradients(kernel, NOISE, Preconditioner.of(kernel, rank=rank, noise=NOISE)).solve(t).steps
        for rank in ranks
    ]
    return all_of(
        share_of_steps=at_most(steps[-1] / plain.steps, 0.25),
        more_columns_fewer_steps=at_most(torch.tensor([plain.steps, *steps]).diff(), 0),
        both_arrive=at_most(plain.residual, 1e-9),
    )


@claim("B15.3-5", "B15.1-7")
def the_posterior_of_the_true_prior_is_calibrated() -> Evidence:
    """Of functions drawn from the NNGP prior, intervals cover their share, with σ² in the variance (book eq. 15.10)."""
    x = digits(400)[0]
    draws, noise = 50, 0.02
    source = torch.Generator().manual_seed(0)
    prior = NETWORK.nngp(x)
    root = torch.linalg.cholesky(prior + 1e-10 * torch.eye(400).double())
    y = root @ torch.randn(400, draws, dtype=torch.float64, generator=source)
    t = y + noise**0.5 * torch.randn(400, draws, dtype=torch.float64, generator=source)
    seen, unseen = slice(0, 250), slice(250, 400)
    solver = CholeskySolver.of(prior[seen, seen].clone(), noise=noise)
    k = prior[seen, unseen]
    mean = k.mT @ solver.solve(t[seen]).weights
    variance = prior.diagonal()[unseen] - solver.explained(k)
    levels = torch.tensor([0.5, 0.8, 0.95], dtype=torch.float64)
    return all_of(
        covered=close(coverage(mean, variance + noise, t[unseen], levels), levels, atol=0.025),
        without_noise_too_narrow=at_most(coverage(mean, variance, t[unseen], levels), levels - 0.02),
    )


@claim("B15.4-6")
def the_targets_lie_along_the_large_eigenvectors() -> Evidence:
    """Digits' classes lie along few eigenvectors of the tangent kernel; random ones along all (book eq. 15.62)."""
    x, t = digits(500)
    spectrum = KernelSpectrum.of(NETWORK.kernels(x).ntk)
    shuffled = t[torch.randperm(500, generator=torch.Generator().manual_seed(0))]
    first = [spectrum.alignment(targets)[:50].sum() for targets in (t, shuffled)]
    time = torch.tensor([1 / float(spectrum.eigenvalues[50])], dtype=torch.float64)
    left = [spectrum.left_at(targets, time) for targets in (t, shuffled)]
    return all_of(
        true_classes=at_least(first[0], 0.75),
        random_classes=at_most(first[1], 0.2),
        true_left=at_most(left[0], 0.2),
        random_left=at_least(left[1], 0.4),
    )

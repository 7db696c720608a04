"""Double-precision tensors: given values, and samples that are determined by a seed."""

import torch
from torch import Tensor
from torch.nn.functional import normalize


def float64_tensor(*values: float | int) -> Tensor:
    """The values as a vector in float64."""
    return torch.tensor(values, dtype=torch.float64)


def points_on_sphere(count: int, dim: int, *, seed: int = 0) -> Tensor:
    """Independent uniform points on the unit sphere of ℝ^dim in float64, determined by the seed."""
    return normalize(standard_normal(count, dim, seed=seed), dim=1)


def random_distributions(count: int, outcomes: int, *, seed: int = 0) -> Tensor:
    """Samples from the uniform distribution on the simplex, Dirichlet(1, …, 1), one per row, in float64."""
    weights = uniform_samples(count, outcomes, seed=seed).log()
    return weights / weights.sum(-1, keepdim=True)


def random_orthogonal(size: int, *, generator: torch.Generator) -> Tensor:
    """An orthogonal matrix in float64: Q of the QR decomposition of N(0, 1) samples from the generator."""
    q: Tensor = torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64)).Q
    return q


def seeded_generator(seed: int = 0) -> torch.Generator:
    """A generator of random numbers on the CPU that starts from the seed."""
    return torch.Generator().manual_seed(seed)


def standard_normal(*shape: int, seed: int = 0) -> Tensor:
    """Independent N(0, 1) samples in float64, determined by the seed."""
    return torch.randn(*shape, generator=seeded_generator(seed), dtype=torch.float64)


def uniform_samples(*shape: int, seed: int = 0) -> Tensor:
    """Independent samples of the uniform distribution on [0, 1) in float64, determined by the seed."""
    return torch.rand(*shape, generator=seeded_generator(seed), dtype=torch.float64)

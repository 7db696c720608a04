"""Kernel distance between two feature sets (KID's formula, Bińkowski et al. 2018)."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.arrays import accepts_arrays
from parnassus.probability.divergences.mmd import CubicKernel, unbiased_squared_mmd


class KernelDistance(NamedTuple):
    """The mean over subsets and its standard error, computed from the number of subsets that can be disjoint."""

    value: float
    standard_error: float


@torch.no_grad()
@accepts_arrays
def kernel_distance(
    real: Float[Tensor, "count_x d"],
    samples: Float[Tensor, "count_y d"],
    *,
    subsets: int = 50,
    size: int = 1_000,
    seed: int = 0,
) -> KernelDistance:
    """The unbiased MMD² under the cubic kernel, averaged over random subsets (Bińkowski et al. 2018).

    Unbiased for any number of rows, so the value may be negative; compare it with its standard error.
    """
    size = min(size, len(real) // 2, len(samples) // 2)  # larger subsets overlap: their spread understates the error
    if size < 2 or subsets < 2:
        raise ValueError(
            "needs at least four rows of each kind and two subsets; "
            f"got {len(real)} real, {len(samples)} samples, subsets={subsets}"
        )
    generator = torch.Generator().manual_seed(seed)

    def draw_subset(rows: Tensor) -> Tensor:
        return rows[torch.randperm(len(rows), generator=generator)[:size].to(rows.device)].double()

    values = torch.stack(
        [unbiased_squared_mmd(draw_subset(real), draw_subset(samples), kernel=CubicKernel()) for _ in range(subsets)]
    )
    independent = min(subsets, min(len(real), len(samples)) / size)
    return KernelDistance(float(values.mean()), float(values.std()) / independent**0.5)

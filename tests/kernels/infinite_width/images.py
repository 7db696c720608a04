"""Two small images, and reference kernels by neural-tangents and wide modules."""

import torch
from torch import Tensor

from parnassus.kernels.finite_width.empirical_ntk import empirical_ntk
from parnassus.kernels.infinite_width.network import Network

KernelEntries = tuple[float, float, float]
"""Of two images: K(x_1, x_1), K(x_1, x_2), K(x_2, x_2)."""


def images(dtype: torch.dtype = torch.float64) -> Tensor:
    """sin(i^1.3) for i = 0, 1, …, as two images of three channels and 4 × 4 pixels."""
    return torch.sin(torch.arange(96, dtype=torch.float64).pow(1.3)).view(2, 3, 4, 4).to(dtype)


def assert_kernels_match(network: Network, nngp: KernelEntries, ntk: KernelEntries) -> None:
    """neural-tangents 0.6.5 in float64 (jax 0.4.30, ntk parametrisation, standard deviations √weight and √bias).

    It rounds zero angles at equal positions to about 1e-8, hence the tolerance of the tangent kernel.
    """
    kernels = network.kernels(images())
    for kernel, reference, rtol in ((kernels.nngp, nngp, 1e-12), (kernels.ntk, ntk, 1e-9)):
        entries = torch.stack([kernel[0, 0], kernel[0, 1], kernel[1, 1]])
        torch.testing.assert_close(entries, torch.tensor(reference, dtype=torch.float64), rtol=rtol, atol=0)
    torch.testing.assert_close(network.nngp(images()), kernels.nngp)


def errors_of_wide_modules(network: Network, *, width: int, draws: int) -> tuple[float, float]:
    """Relative errors of both kernels estimated from random modules of this width."""
    torch.manual_seed(0)
    x, limit = images(), network.kernels(images())
    nngp_mean, ntk_mean = torch.zeros(2, 2, dtype=x.dtype), torch.zeros(2, 2, dtype=x.dtype)
    for _ in range(draws):
        with torch.no_grad():
            out = network.module((3, 4, 4), width, outputs=2_000).double()(x)
        nngp_mean += out @ out.mT / out.shape[1] / draws
        ntk_mean += empirical_ntk(network.module((3, 4, 4), width, outputs=2).double(), x) / draws
    return (
        float((nngp_mean - limit.nngp).abs().max() / limit.nngp.max()),
        float((ntk_mean - limit.ntk).abs().max() / limit.ntk.max()),
    )

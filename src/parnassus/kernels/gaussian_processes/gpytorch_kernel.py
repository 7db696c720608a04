"""Adapter of these kernels to gpytorch, for its samplers, likelihoods and large-scale solvers.

Needs gpytorch, which comes with `pip install 'parnassus[gp]'`.
"""

import warnings
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.errors import MissingExtraError
from parnassus.kernels.gaussian_processes.covariance import Kernel


def as_gpytorch(kernel: Kernel) -> nn.Module:
    """A `gpytorch.kernels.Kernel` that evaluates `kernel` and trains its parameters.

    Leading axes of gpytorch's inputs are batches; all of them use the same kernel.
    """
    adapter = _adapter()()
    adapter.kernel = cast("nn.Module", kernel)
    return adapter


def gpytorch_module() -> ModuleType:
    """Import gpytorch, or raise an ImportError with the install command."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # linear_operator still uses torch.jit.script
            return import_module("gpytorch")
    except ImportError:
        raise MissingExtraError("this needs gpytorch: pip install 'parnassus[gp]'") from None


@cache
def _adapter() -> type[nn.Module]:
    """The adapter class, built once: gpytorch is imported only when needed."""
    gpytorch_kernel = gpytorch_module().kernels.Kernel
    return type("ParnassusKernel", (gpytorch_kernel,), {"forward": _forward, "__module__": __name__})


def _forward(
    adapter: nn.Module, x1: Tensor, x2: Tensor, *, diag: bool = False, last_dim_is_batch: bool = False
) -> Tensor:
    """K(x1, x2), or its diagonal, over leading batch axes; gpytorch passes arguments by these names."""
    if last_dim_is_batch:
        raise ValueError("last_dim_is_batch is not supported: the kernel needs all coordinates of a point")
    kernel = cast("Kernel", adapter.kernel)
    batch = torch.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    first = x1.expand(*batch, *x1.shape[-2:]).reshape(-1, *x1.shape[-2:])
    second = x2.expand(*batch, *x2.shape[-2:]).reshape(-1, *x2.shape[-2:])
    value = _diagonal if diag else _matrix
    parts = torch.stack([value(kernel, a, b) for a, b in zip(first, second, strict=True)])
    return parts.reshape(*batch, *parts.shape[1:])


def _matrix(kernel: Kernel, x: Float[Tensor, "n dim"], y: Float[Tensor, "m dim"]) -> Float[Tensor, "n m"]:
    return kernel(x, y)


def _diagonal(kernel: Kernel, x: Float[Tensor, "n dim"], y: Float[Tensor, "n dim"]) -> Float[Tensor, " n"]:
    """K(x_i, y_i); gpytorch usually passes equal x and y, but does not guarantee it."""
    return kernel.diagonal(x) if torch.equal(x, y) else kernel(x, y).diagonal()

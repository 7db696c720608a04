"""The contract of kernels: every public module with a matrix K(x, y) and its `diagonal`."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from parnassus import kernels

from .checks import (
    Offences,
    check_equal,
    other_default_device,
    perturb,
    seeded,
    unchanged,
    unchanged_globals,
    without_shape_checks,
)
from .public_members import check_factories, has_any, public_classes


def features(x: Tensor) -> Tensor:
    return torch.cat([x.sin(), x.cos()], 1)


def network() -> kernels.Network:
    return kernels.fully_connected(2, kernels.ReLU(), bias_variance=0.2)


KERNELS: dict[str, Callable[[], Any]] = {
    "kernels.BrownianKernel": kernels.BrownianKernel,
    "kernels.FeatureKernel": lambda: kernels.FeatureKernel(features),
    "kernels.LinearKernel": kernels.LinearKernel,
    "kernels.NNGP": lambda: kernels.NNGP(network()),
    "kernels.NTK": lambda: kernels.NTK(network()),
    "kernels.OrnsteinUhlenbeckKernel": lambda: kernels.OrnsteinUhlenbeckKernel(1.3),
    "kernels.ProductKernel": lambda: kernels.ProductKernel(kernels.RBFKernel(0.7), kernels.LinearKernel()),
    "kernels.RBFKernel": lambda: kernels.RBFKernel(0.7),
    "kernels.ScaledKernel": lambda: kernels.ScaledKernel(kernels.RBFKernel(), 2.5),
    "kernels.SumKernel": lambda: kernels.SumKernel(kernels.RBFKernel(2.0), kernels.LinearKernel()),
}


def test_every_kernel_has_a_factory() -> None:
    check_factories([name for name, each in public_classes(nn.Module).items() if has_any(each, "diagonal")], KERNELS)


def times(dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    """Points of one feature that are not negative, where every kernel is defined."""
    return 0.1 + torch.rand(5, 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def test_kernels_are_symmetric_positive_and_consistent() -> None:
    offences = Offences()
    for name, build in KERNELS.items():
        with offences.record(name, "matrix"):
            kernel, x, y = build(), times(), times(seed=1)
            matrix, diagonal, cross = kernel(x), kernel.diagonal(x), kernel(x, y[:3])
            assert matrix.dtype == diagonal.dtype == cross.dtype == torch.float64, "another dtype than the points"
            assert cross.shape == (5, 3), f"shape {tuple(cross.shape)}"
            torch.testing.assert_close(matrix, matrix.mT, rtol=1e-12, atol=0)
            torch.testing.assert_close(matrix.diagonal(), diagonal, rtol=1e-10, atol=0)
            torch.testing.assert_close(kernel(torch.cat([x, y]))[:5, 5:8], cross, rtol=1e-10, atol=0)
            assert float(torch.linalg.eigvalsh(matrix.detach()).min()) > -1e-10, "not positive semi-definite"
        with offences.record(name, "float32"):
            single = build()
            assert single(times(torch.float32)).dtype == single.diagonal(times(torch.float32)).dtype == torch.float32
    offences.check()


def test_kernels_follow_the_device_of_the_points_and_change_nothing_else() -> None:
    offences = Offences()
    for name, build in KERNELS.items():
        kernel, x, y = build(), times(), times(seed=1)
        with offences.record(name, "device"), other_default_device():
            results = kernel(x), kernel(x, y), kernel.diagonal(x)
            assert all(each.device.type == "cpu" for each in results), "not the device of the points"
        guard = unchanged_globals(torch_generator=True)
        with offences.record(name, "side effects"), without_shape_checks(), unchanged(x, y), guard:
            check_equal(kernel(x, y), kernel(x, y))
            kernel.diagonal(x)
        with offences.record(name, "repr"):
            assert "tensor(" not in repr(kernel)[:400] == repr(kernel), "long repr"
    offences.check()


def test_gradients_reach_every_hyperparameter_and_a_state_dict_restores_the_kernel() -> None:
    offences = Offences()
    for name, build in KERNELS.items():
        with offences.record(name, "gradients"):
            kernel = build()
            if list(kernel.parameters()):
                kernel(times()).square().sum().backward()
            unreached = [key for key, p in kernel.named_parameters() if p.grad is None or not bool(p.grad.any())]
            assert not unreached, f"no gradient at {', '.join(unreached)}"
        with offences.record(name, "state_dict"):
            first, second = perturb(seeded(build)), perturb(build())
            second.load_state_dict(first.state_dict())
            check_equal(first(times()), second(times()))
    offences.check()

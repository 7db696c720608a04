"""The module, NNGP and tangent kernel of a network against each other, and in blocks."""

from inspect import unwrap
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

import parnassus.kernels.infinite_width.network as blocks
from parnassus.attention import peak_memory
from parnassus.kernels import GELU, Activation, Dense, Erf, KernelState, Network, Nonlinearity, ReLU, fully_connected
from parnassus.probability import standard_normal


@pytest.mark.parametrize(("depth", "tangent"), [(1, 1.10045), (2, 1.54442), (3, 1.95229)])
def test_ntk_at_known_angle(depth: int, tangent: float) -> None:
    x = torch.tensor([[1.0, 0.0], [0.6, 0.8]], dtype=torch.float64)
    nngp, ntk = fully_connected(depth, ReLU()).kernels(x)
    torch.testing.assert_close(nngp.diagonal(), torch.ones(2, dtype=torch.float64))
    assert ntk.diagonal().tolist() == pytest.approx([depth + 1] * 2, rel=1e-14)
    assert float(ntk[0, 1]) == pytest.approx(tangent, abs=5e-6)


@pytest.mark.parametrize("sigma", [ReLU(), Erf(), GELU()])
def test_wide_module_approximates_both_kernels(sigma: Nonlinearity) -> None:
    torch.manual_seed(0)
    network, x = fully_connected(2, sigma, bias=0.1), standard_normal(3, 5) / 2
    nngp, ntk = network.kernels(x)
    module = network.module((5,), 2048).double()
    features = module[:-1](x).detach()
    torch.testing.assert_close(
        network.layers[-1].weight * features @ features.mT / 2048 + 0.1,  # type: ignore[attr-defined]
        nngp,
        rtol=0.12,
        atol=0.05,
    )
    jacobian = torch.stack([flat_gradient(module, row) for row in x])
    torch.testing.assert_close(jacobian @ jacobian.mT, ntk, rtol=0.12, atol=0.1)


def flat_gradient(module: torch.nn.Module, row: Tensor) -> Tensor:
    return torch.cat(
        [gradient.flatten() for gradient in torch.autograd.grad(module(row[None]).sum(), list(module.parameters()))]
    )


def test_blocks_do_not_change_values(monkeypatch: pytest.MonkeyPatch) -> None:
    network, x, y = fully_connected(3, ReLU(), bias=0.2), standard_normal(23, 5), standard_normal(11, 5, seed=1)
    symmetric, rectangular = network.kernels(x), network.kernels(x, y)
    monkeypatch.setattr(blocks, "BLOCK", 4)
    for unblocked, blocked in ((symmetric, network.kernels(x)), (rectangular, network.kernels(x, y))):
        torch.testing.assert_close(unblocked.nngp, blocked.nngp)
        torch.testing.assert_close(unblocked.ntk, blocked.ntk)
    torch.testing.assert_close(symmetric.nngp, symmetric.nngp.mT, atol=1e-14, rtol=0)
    torch.testing.assert_close(network.nngp(x, y), rectangular.nngp)
    torch.testing.assert_close(network.kernels(x, x).ntk, symmetric.ntk, atol=1e-6, rtol=0)


def test_threads_do_not_change_values() -> None:
    network, x = fully_connected(2, ReLU(), bias=0.2), standard_normal(600, 5)
    num_threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        single_threaded = network.kernels(x)
        torch.set_num_threads(3)
        multi_threaded = network.kernels(x)
        assert torch.get_num_threads() == 3
        with torch.inference_mode():
            network.nngp(standard_normal(600, 5))
        with pytest.raises(ValueError, match="in the first layer only"):
            Network((Dense(), Dense(divide=False))).kernels(x)
    finally:
        torch.set_num_threads(num_threads)
    torch.testing.assert_close(multi_threaded.nngp, single_threaded.nngp, atol=1e-13, rtol=0)
    torch.testing.assert_close(multi_threaded.ntk, single_threaded.ntk, atol=1e-6, rtol=0)


def test_peak_memory_is_close_to_the_size_of_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)  # memory of other threads is not measured
    x = standard_normal(2_000, 5)
    network = fully_connected(5, ReLU())
    assert peak_memory(lambda: network.kernels(x)) <= 1.2 * 2 * 2_000**2 * 8
    assert peak_memory(lambda: network.nngp(x)) <= 1.2 * 2_000**2 * 8


@pytest.mark.parametrize("sigma", [ReLU(), Erf(), GELU()])
def test_input_gradients_match_finite_differences(sigma: Nonlinearity) -> None:
    network = fully_connected(2, sigma)
    x = standard_normal(3, 5).requires_grad_()

    def diagonals(x: Tensor) -> Tensor:
        nngp, ntk = network.kernels(x)
        return torch.stack([nngp.diagonal(), ntk.diagonal()])

    assert torch.autograd.gradcheck(diagonals, (x,), atol=1e-6)

    def sums(x: Tensor) -> Tensor:
        nngp, ntk = network.kernels(x, standard_normal(2, 5, seed=1))
        return torch.stack([nngp.sum(), ntk.sum()])

    assert torch.autograd.gradcheck(sums, (x,), atol=1e-6)


def test_zero_and_duplicate_inputs_are_finite() -> None:
    x = standard_normal(4, 5)
    x[1], x[2] = 0.0, x[0]
    nngp, ntk = fully_connected(3, ReLU()).kernels(x.requires_grad_())
    torch.testing.assert_close(torch.stack([nngp[1], ntk[1]]), torch.zeros(2, 4).double(), atol=1e-150, rtol=0)
    torch.testing.assert_close(ntk[0], ntk[2], atol=1e-6, rtol=0)
    (nngp.sum() + ntk.sum()).backward()
    assert x.grad is not None
    assert bool(x.grad.isfinite().all())


def test_module_has_the_requested_widths() -> None:
    module = fully_connected(2, ReLU(), bias=1.0).module((7,), 16, outputs=3)
    assert [tuple(parameter.shape) for parameter in module.parameters()] == [
        (16, 7),
        (16,),
        (16, 16),
        (16,),
        (3, 16),
        (3,),
    ]
    assert module(torch.zeros(5, 7)).shape == (5, 3)


def test_networks_compose() -> None:
    x = standard_normal(4, 5)
    flat = Network((Dense(), Activation(Erf()), Dense()))
    inner = Network(flat.layers[:2]).kernel(KernelState.from_inputs(x, x))
    torch.testing.assert_close(flat.kernels(x).ntk, Dense().kernel(inner).ntk)


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match="a network needs at least one layer"):
        Network(())
    with pytest.raises(ValueError, match="depth must not be negative; got depth=-1"):
        fully_connected(-1, ReLU())
    with pytest.raises(ValueError, match="width and outputs must be positive; got width=0, outputs=1"):
        fully_connected(1, ReLU()).module((3,), 0)
    with pytest.raises(ValueError, match="x and y must have the same features; got 5 and 6"):
        fully_connected(1, ReLU()).kernels(standard_normal(3, 5), standard_normal(3, 6))


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ((Dense(), ReLU(), Dense()), r"got ReLU\(.*\): wrap it as Activation\(ReLU\(\)\)"),
        ((Dense, Dense()), r"got .*Dense.*: create one with Dense\(…\)"),
        ((Dense(), torch.nn.Linear(2, 2)), r"got Linear.*: use those of parnassus.kernels"),
    ],
)
def test_layers_of_the_wrong_kind_raise_value_error(layers: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unwrap(Network.__post_init__)(SimpleNamespace(layers=layers))  # without the type checks of the tests

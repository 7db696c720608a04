from functools import partial

import pytest
import torch
from torch.func import jacrev, vmap

from parnassus.flows.residual.jacobian_traces import (
    jacobian_trace,
    rademacher_directions,
    unit_directions,
    value_and_vjp,
)
from parnassus.layers import mlp, tanh


def test_trace_with_unit_directions_matches_autograd() -> None:
    torch.manual_seed(0)
    network, z = mlp((5, 16, 5), activation=tanh).double(), torch.randn(7, 5, dtype=torch.float64)
    value, vjp = value_and_vjp(network, z)
    expected = vmap(jacrev(network))(z).diagonal(dim1=1, dim2=2).sum(1)
    torch.testing.assert_close(value, network(z))
    torch.testing.assert_close(jacobian_trace(vjp, unit_directions(z)), expected, rtol=0, atol=1e-12)


def test_random_signs_estimate_the_trace_without_bias() -> None:
    """For a constant J the variance is Σ_{i<j} (J_ij + J_ji)², none of it from the diagonal."""
    torch.manual_seed(0)
    matrix = torch.randn(4, 4, dtype=torch.float64)
    z = torch.zeros(20_000, 4, dtype=torch.float64)
    _, vjp = value_and_vjp(lambda rows: rows @ matrix.mT, z)
    estimates = jacobian_trace(vjp, rademacher_directions(z))
    variance = (matrix + matrix.mT).triu(1).square().sum()
    assert abs(float(estimates.mean() - matrix.trace())) < 4 * float(variance / len(z)) ** 0.5
    torch.testing.assert_close(estimates.var(), variance, rtol=0.05, atol=0)
    variance_of_two = jacobian_trace(vjp, partial(rademacher_directions, count=2)(z)).var()
    torch.testing.assert_close(variance_of_two, variance / 2, rtol=0.05, atol=0)


def test_outer_products_of_directions_sum_to_the_identity() -> None:
    z = torch.zeros(3, 2, 2)
    rows = unit_directions(z).flatten(2)
    torch.testing.assert_close(torch.einsum("dbi,dbj->bij", rows, rows), torch.eye(4).expand(3, 4, 4))
    signs = rademacher_directions(z, count=5)
    assert signs.shape == (5, 3, 2, 2)
    torch.testing.assert_close(signs.square().sum(0), torch.ones_like(z))


def test_traces_are_computed_under_no_grad() -> None:
    network, z = mlp((3, 8, 3), activation=tanh), torch.randn(4, 3)
    with torch.no_grad():
        value, vjp = value_and_vjp(network, z)
        trace = jacobian_trace(vjp, unit_directions(z))
    assert not value.requires_grad
    assert not trace.requires_grad
    _, vjp = value_and_vjp(network, z)
    with_gradient = jacobian_trace(vjp, unit_directions(z))
    torch.testing.assert_close(with_gradient, trace)
    with_gradient.sum().backward()
    assert all(parameter.grad is not None for parameter in network[0].parameters())


def test_count_of_zero_raises_value_error() -> None:
    with pytest.raises(ValueError, match="at least 1; got count=0"):
        rademacher_directions(torch.zeros(2, 3), count=0)

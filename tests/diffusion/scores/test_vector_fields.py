"""Derivatives of vector fields against torch.func and closed forms."""

import torch
from torch import Tensor
from torch.func import jacrev, vmap

from parnassus.diffusion.scores.vector_fields import (
    divergence,
    hutchinson_divergence,
    jacobian_asymmetry,
    squared_norm,
    value_and_jacobian,
)
from parnassus.probability import standard_normal

MATRIX = torch.tensor([[1.0, 2.0, 0.5], [-1.0, 3.0, 0.0], [0.2, 0.1, -2.0]], dtype=torch.float64)


def nonlinear_field(x: Tensor) -> Tensor:
    return torch.sin(x @ MATRIX.mT) * x[..., :1]


def sample_points(count: int = 7) -> Tensor:
    return standard_normal(count, 3)


def test_jacobian_matches_torch_func() -> None:
    x = sample_points()
    value, jacobians = value_and_jacobian(nonlinear_field, x)
    torch.testing.assert_close(jacobians.detach(), vmap(jacrev(nonlinear_field))(x))
    torch.testing.assert_close(value.detach(), nonlinear_field(x))


def test_divergence_is_the_trace_of_the_jacobian() -> None:
    x = sample_points()
    _, trace = divergence(nonlinear_field, x)
    torch.testing.assert_close(trace, value_and_jacobian(nonlinear_field, x)[1].diagonal(dim1=1, dim2=2).sum(1))


def test_probe_along_an_axis_gives_a_diagonal_entry() -> None:
    x = sample_points()
    axis = torch.eye(3, dtype=torch.float64)[1].expand_as(x)
    _, entry = hutchinson_divergence(nonlinear_field, x, axis)
    torch.testing.assert_close(entry, value_and_jacobian(nonlinear_field, x)[1][:, 1, 1])


def test_divergence_of_an_image_field() -> None:
    """The field x³ on 1 × 2 × 2 images has the divergence Σ 3 x²."""
    x = torch.randn(5, 1, 2, 2, dtype=torch.float64)
    _, trace = divergence(lambda y: y**3, x)
    torch.testing.assert_close(trace, 3 * squared_norm(x))
    _, estimate = hutchinson_divergence(lambda y: y**3, x, torch.ones_like(x))
    torch.testing.assert_close(estimate, trace)


def test_divergence_of_a_constant_field_is_zero() -> None:
    x = sample_points()
    assert torch.equal(divergence(torch.ones_like, x)[1], torch.zeros(7, dtype=torch.float64))


def test_asymmetry_is_0_for_gradients_and_1_for_equal_symmetric_and_skew_parts() -> None:
    x = sample_points()
    symmetric, skew = (MATRIX + MATRIX.mT) / 2, (MATRIX - MATRIX.mT) / 2
    assert float(jacobian_asymmetry(lambda y: y @ symmetric, x).max()) < 1e-14
    mixed = symmetric / symmetric.norm() + skew / skew.norm()
    torch.testing.assert_close(jacobian_asymmetry(lambda y: y @ mixed.mT, x), torch.ones(7, dtype=torch.float64))


def test_divergence_is_differentiable_in_the_parameters() -> None:
    weight = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    x = sample_points()
    _, trace = divergence(lambda y: weight**2 * y, x)
    (gradient,) = torch.autograd.grad(trace.sum(), weight)
    torch.testing.assert_close(gradient, torch.tensor(7 * 3 * 4.0, dtype=torch.float64))


def test_divergence_is_computed_under_no_grad() -> None:
    with torch.no_grad():
        _, trace = divergence(nonlinear_field, sample_points())
    assert trace.isfinite().all()

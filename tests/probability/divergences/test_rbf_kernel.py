"""The RBF kernel against hand computation and scikit-learn, and its squared distances."""

import pytest
import torch
from sklearn.metrics.pairwise import rbf_kernel as sklearn_rbf_kernel

from parnassus.probability import rbf_kernel, squared_distances, standard_normal


def test_kernel_matches_hand_computation() -> None:
    x, y = torch.tensor([[0.0, 0.0], [1.0, 2.0]]), torch.tensor([[3.0, 4.0]])  # squared distances 25 and 8
    torch.testing.assert_close(rbf_kernel(x, y, length_scale=2.0), torch.tensor([[-25 / 8], [-1.0]]).exp())


def test_kernel_matches_scikit_learn() -> None:
    x, y = standard_normal(6, 3), standard_normal(8, 3, seed=1)
    for ours, other in ((rbf_kernel(x, y, length_scale=0.7), y), (rbf_kernel(x, length_scale=0.7), x)):
        expected = sklearn_rbf_kernel(x.numpy(), other.numpy(), gamma=1 / (2 * 0.7**2))
        torch.testing.assert_close(ours, torch.from_numpy(expected))


def test_squared_distances_are_accurate_far_from_the_origin() -> None:
    x, y = standard_normal(2, 5, 3), standard_normal(2, 7, 3, seed=1)
    exact = (x[..., :, None, :] - y[..., None, :, :]).square().sum(-1)
    torch.testing.assert_close(squared_distances(x + 1e5, y + 1e5), exact, rtol=1e-9, atol=1e-9)
    assert float(squared_distances(x).diagonal(dim1=-2, dim2=-1).abs().max()) < 1e-14


def test_gradients_are_finite_where_points_coincide() -> None:
    x = torch.zeros(4, 2, requires_grad=True)
    rbf_kernel(x, torch.zeros(3, 2)).sum().backward()
    assert x.grad is not None
    assert bool(x.grad.isfinite().all())


def test_invalid_input_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"length_scale must be positive; got length_scale=0\.0"):
        rbf_kernel(torch.zeros(2, 1), length_scale=0.0)
    with pytest.raises(ValueError, match="the same number of features; got 2 and 3"):
        squared_distances(torch.zeros(4, 2), torch.zeros(4, 3))

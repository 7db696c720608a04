"""The invertible 1×1 convolution against torch's convolution and the Jacobian by autograd."""

import pytest
import torch
from torch import nn
from torch.func import jacrev
from torch.nn.functional import conv2d

from parnassus.flows import DenseMatrix, HouseholderMatrix, InvertibleConv1x1, PLUMatrix, random_rotation


def test_matches_torch_convolution() -> None:
    torch.manual_seed(0)
    weight, z = torch.randn(3, 3), torch.randn(2, 3, 4, 5)
    for matrix in (DenseMatrix(weight), PLUMatrix(weight)):
        torch.testing.assert_close(InvertibleConv1x1(matrix)(z)[0], conv2d(z, weight[:, :, None, None]))


@pytest.mark.parametrize("form", [DenseMatrix, PLUMatrix, HouseholderMatrix])
def test_log_determinant_matches_autograd(form: type[nn.Module]) -> None:
    torch.manual_seed(1)
    flow = InvertibleConv1x1(form(torch.randn(3, 3, dtype=torch.float64)))
    z = torch.randn(3, 2, 4, dtype=torch.float64)
    jacobian = jacrev(lambda image: flow(image[None])[0][0].flatten())(z).reshape(24, 24)
    x, log_det = flow(z[None])
    torch.testing.assert_close(log_det[0], torch.linalg.slogdet(jacobian).logabsdet, atol=1e-10, rtol=0)
    z_back, log_det_back = flow.inverse(x)
    torch.testing.assert_close(z_back[0], z, atol=1e-10, rtol=0)
    torch.testing.assert_close(log_det_back, -log_det)


def test_rotation_preserves_volume() -> None:
    torch.manual_seed(2)
    flow = InvertibleConv1x1(PLUMatrix(random_rotation(12)))
    z = torch.randn(4, 12, 8, 8)
    x, log_det = flow(z)
    torch.testing.assert_close(log_det, torch.zeros(4), atol=1e-3, rtol=0)
    torch.testing.assert_close(x.square().sum(1), z.square().sum(1), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(flow.inverse(x)[0], z, atol=1e-5, rtol=0)


def test_invalid_matrix_raises_value_error() -> None:
    with pytest.raises(ValueError, match="multiply, solve and log_abs_det; got Conv2d"):
        InvertibleConv1x1(nn.Conv2d(3, 3, 1))

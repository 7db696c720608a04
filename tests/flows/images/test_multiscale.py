"""The multiscale transform: shapes, inverse and log-determinant."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.flows import MultiscaleTransform


class Scale(nn.Module):
    """x = c z with one factor per channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.randn(channels, 1, 1, dtype=torch.float64))

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        return self.log_scale.exp() * z, (self.log_scale.expand_as(z)).sum((1, 2, 3))

    def inverse(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return (-self.log_scale).exp() * x, -(self.log_scale.expand_as(x)).sum((1, 2, 3))


@pytest.mark.parametrize("num_scales", [1, 2, 3])
def test_inverse_and_log_determinant(num_scales: int) -> None:
    torch.manual_seed(0)
    flow = MultiscaleTransform((1, 8, 16), Scale, num_scales=num_scales)
    z = torch.randn(2, 128, dtype=torch.float64)
    x, log_det = flow(z)
    assert x.shape == (2, 1, 8, 16)
    z_back, log_det_back = flow.inverse(x)
    torch.testing.assert_close(z_back, z, atol=1e-10, rtol=0)
    torch.testing.assert_close(log_det, -log_det_back)
    jacobian = torch.func.jacrev(lambda row: flow(row[None])[0][0].flatten())(z[0])
    torch.testing.assert_close(torch.linalg.slogdet(jacobian).logabsdet, log_det[0])


def test_half_of_each_scale_is_factored_out() -> None:
    flow = MultiscaleTransform((3, 32, 32), Scale, num_scales=3)
    assert flow.shapes == [(6, 16, 16), (12, 8, 8), (48, 4, 4)]
    assert sum(channels * height * width for channels, height, width in flow.shapes) == 3 * 32 * 32
    assert [len(scale.log_scale) for scale in flow.scales if isinstance(scale, Scale)] == [12, 24, 48]


def test_indivisible_sizes_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"multiples of 2\*\*num_scales; got height=28, width=28, num_scales=3"):
        MultiscaleTransform((1, 28, 28), Scale, num_scales=3)

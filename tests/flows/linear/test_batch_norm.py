import pytest
import torch
from torch import Tensor, nn
from torch.func import jacrev

from parnassus.flows import BatchNormFlow, Chain, Flow, GaussianBase, InverseTransform, real_nvp


def fitted_layer(features: int, z: Tensor) -> BatchNormFlow:
    """A layer in float64 after one batch, with random scale and shift, in evaluation mode."""
    layer = BatchNormFlow(features, epsilon=1e-3).double()
    layer(z)
    nn.init.normal_(layer.log_scale, std=0.5)
    nn.init.normal_(layer.shift)
    return layer.eval()


@pytest.mark.parametrize("shape", [(4,), (3, 2, 2)])
def test_inverse_and_log_determinant(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    z = 3 * torch.randn(20, *shape, dtype=torch.float64) + 1
    layer = fitted_layer(shape[0], z)
    x, log_det = layer(z)
    z_back, log_det_back = layer.inverse(x)
    torch.testing.assert_close(z_back, z)
    torch.testing.assert_close(log_det_back, -log_det)
    jacobian = jacrev(lambda flat: layer(flat.view(1, *shape))[0].flatten())(z[0].flatten())
    torch.testing.assert_close(log_det, torch.linalg.slogdet(jacobian).logabsdet.expand(20))


def test_matches_torch_in_both_modes() -> None:
    torch.manual_seed(0)
    layer, reference = BatchNormFlow(3, momentum=1.0), nn.BatchNorm1d(3, momentum=1.0)
    for _ in range(3):
        z = 5 * torch.randn(64, 3) - 2
        torch.testing.assert_close(layer(z)[0], reference(z), atol=1e-5, rtol=1e-5)
    reference.running_var.mul_(63 / 64)  # type: ignore[union-attr]  # torch stores the unbiased variance
    torch.testing.assert_close(layer.eval()(z)[0], reference.eval()(z), atol=1e-5, rtol=1e-5)


def test_statistics_are_cumulative_means_and_then_moving_averages() -> None:
    layer = BatchNormFlow(1, momentum=0.25)
    batches = [torch.full((2, 1), float(value)) for value in (4, 8, 12, 16, 20)]
    for batch in batches[:4]:
        layer(batch)
    torch.testing.assert_close(layer.mean, torch.tensor([10.0]))
    layer(batches[4])
    torch.testing.assert_close(layer.mean, torch.tensor([12.5]))
    layer.eval()(100 + batches[0])
    torch.testing.assert_close(layer.mean, torch.tensor([12.5]))


def test_statistics_have_no_gradient() -> None:
    layer, z = BatchNormFlow(2), torch.randn(8, 2, requires_grad=True)
    x, log_det = layer(z)
    x.sum().backward()
    factor = (layer.variance + layer.epsilon).rsqrt()
    torch.testing.assert_close(z.grad, factor.expand(8, 2))  # zero if gradients passed through the statistics
    assert log_det.grad_fn is not None


def test_density_of_a_flow_with_batch_norm_integrates_to_one() -> None:
    torch.manual_seed(0)
    first, second = real_nvp(2, num_layers=2, width=8, num_hidden_layers=1)
    flow = Flow(Chain([first, InverseTransform(BatchNormFlow(2)), second]), GaussianBase((2,)))
    x = 3 * torch.randn(200, 2) + 5
    loss = flow.loss(x)  # with the statistics of this batch
    assert float(loss.detach()) == pytest.approx(
        -float(torch.distributions.Normal(5, 3).log_prob(x).sum(1).mean()), abs=0.02
    )
    flow.eval()
    line = torch.linspace(-15, 25, 401)
    mass = flow.log_prob(torch.cartesian_prod(line, line)).exp().sum() * 0.01
    assert float(mass.detach()) == pytest.approx(1.0, abs=1e-3)


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="at least two values per feature; got shape \\(1, 3\\)"):
        BatchNormFlow(3)(torch.randn(1, 3))
    with pytest.raises(ValueError, match="at least one feature; got features=0"):
        BatchNormFlow(0)
    with pytest.raises(ValueError, match="momentum must be in"):
        BatchNormFlow(3, momentum=0.0)

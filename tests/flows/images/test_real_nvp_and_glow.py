"""Real NVP and Glow for images: exact inverse and log-determinant, also under autocast."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from parnassus.flows import ConvConditioner, Flow, Invertible, PixelNorm, glow_step, image_flow, real_nvp_step

STEPS = pytest.mark.parametrize("step", [real_nvp_step, glow_step])
Step = Callable[..., nn.Module]


def perturb_weights(module: nn.Module) -> nn.Module:
    """Add noise to the weights, so that no layer is the identity, and switch to evaluation mode."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return module.eval()


def small_flow(step: Step) -> Flow:
    torch.manual_seed(0)
    flow = image_flow((1, 4, 4), lambda channels: step(channels, width=8, blocks=1), num_scales=2, steps_per_scale=1)
    assert isinstance(perturb_weights(flow), Flow)
    return flow


def train_flow(flow: Flow, x: Tensor, *, lr: float, steps: int) -> list[float]:
    """Train with Adam and return the loss before each step."""
    optimizer, losses = torch.optim.Adam(flow.parameters(), lr=lr), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = flow.loss(x)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


@STEPS
def test_inverse_recovers_the_input(step: Step) -> None:
    flow = small_flow(step)
    z = torch.randn(5, 16)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-10)):
        flow = flow.to(dtype)
        x, log_det = flow.transform(z.to(dtype))
        z_back, log_det_back = flow.transform.inverse(x)
        torch.testing.assert_close(z_back, z.to(dtype), atol=10 * tolerance, rtol=tolerance)
        torch.testing.assert_close(log_det, -log_det_back, atol=10 * tolerance, rtol=tolerance)


@STEPS
def test_log_determinant_matches_autograd(step: Step) -> None:
    flow = small_flow(step).double()
    z = torch.randn(2, 16, dtype=torch.float64)
    _, log_det = flow.transform(z)
    for point, expected in zip(z, log_det, strict=True):
        jacobian = torch.func.jacrev(lambda row: flow.transform(row[None])[0][0].flatten())(point)
        torch.testing.assert_close(torch.linalg.slogdet(jacobian).logabsdet, expected)


@STEPS
def test_initial_loss_is_finite_and_training_reduces_it(step: Step) -> None:
    torch.manual_seed(0)
    flow = image_flow((1, 4, 4), lambda channels: step(channels, width=8, blocks=1), num_scales=1, steps_per_scale=1)
    x = (torch.rand(64, 1, 4, 4) > 0.5) * 0.8 + 0.1 * torch.rand(64, 1, 4, 4)
    first = flow.loss(x)
    assert bool(first.isfinite())
    train_flow(flow, x, lr=3e-2, steps=30)
    assert float(flow.loss(x).detach()) < float(first.detach()) - 2


@STEPS
def test_inverse_and_log_determinant_are_accurate_under_autocast(step: Step) -> None:
    flow = small_flow(step)
    x = torch.rand(3, 1, 4, 4)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        z, log_det = flow.transform.inverse(x)
        z_back, log_det_back = flow.transform(z)
    assert z.dtype == log_det.dtype == torch.float32
    torch.testing.assert_close(z_back, x, atol=1e-4, rtol=0)
    torch.testing.assert_close(log_det, -log_det_back, atol=1e-3, rtol=1e-4)


@STEPS
def test_last_coupling_transforms_the_half_that_is_factored_out(step: Step) -> None:
    torch.manual_seed(0)
    chain = perturb_weights(step(4, width=8, blocks=1)).double()
    assert isinstance(chain, Invertible)
    z = torch.randn(1, 4, 2, 2, dtype=torch.float64)
    shifted = z.clone()
    shifted[:, :2] += 1
    first, other = next(iter(chain))(z)[0], next(iter(chain))(shifted)[0]  # type: ignore[call-overload]  # a Chain
    assert bool((first[:, 2:] != other[:, 2:]).all())


def test_conditioner_outputs_zeros_initially_and_has_the_expected_receptive_field() -> None:
    torch.manual_seed(0)
    network = ConvConditioner(2, 6, width=8, blocks=1)
    x = torch.randn(1, 2, 9, 9)
    assert network(x).shape == (1, 6, 9, 9)
    assert not bool(network(x).any())
    x.requires_grad_(True)
    perturb_weights(network)(x)[0, :, 4, 4].sum().backward()
    assert x.grad is not None
    assert int((x.grad[0].abs().sum(0) > 0).sum()) == 49  # three filters of 3 × 3


def test_training_many_couplings_of_wide_networks_is_stable() -> None:
    """Without `PixelNorm` and the factor 1/√f the loss rises from −6 to 20,000 nats within these steps."""
    torch.manual_seed(0)
    flow = image_flow(
        (1, 4, 4), lambda channels: real_nvp_step(channels, width=64, blocks=1), num_scales=1, steps_per_scale=6
    )
    losses = train_flow(flow, torch.rand(64, 1, 4, 4) ** 4, lr=1e-2, steps=8)
    assert max(losses) == losses[0]
    assert losses[-1] < losses[0] - 3


def test_output_is_bounded_for_large_inputs() -> None:
    torch.manual_seed(0)
    network = perturb_weights(ConvConditioner(2, 6, width=16, blocks=2)).double()
    x = torch.randn(4, 2, 5, 5, dtype=torch.float64)
    moderate, extreme = (float(network(size * x).detach().abs().max()) for size in (1e3, 1e6))
    assert 0 < extreme < 1.1 * moderate < 1


@pytest.mark.parametrize("width", [16, 256])
def test_change_of_coefficients_by_one_adam_step_is_bounded(width: int) -> None:
    """A step of Adam changes each of f weights by η, and an output for standardised pixels by at most √f η."""
    torch.manual_seed(0)
    learning_rate, network = 1e-3, ConvConditioner(2, 6, width=width, blocks=1)
    last = list(network.modules())[-1]
    assert isinstance(last, nn.Conv2d)
    with torch.no_grad():
        last.weight.fill_(learning_rate)
        change = float(network(torch.randn(8, 2, 6, 6)).abs().max())
    assert 0 < change <= learning_rate * (9 * width) ** 0.5


def test_pixel_norm_standardises_each_pixel_over_channels() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 32, 3, 4, dtype=torch.float64)
    pixels = PixelNorm()(1e4 * x + 5)
    torch.testing.assert_close(pixels, (x - x.mean(1, keepdim=True)) / x.std(1, correction=0, keepdim=True))


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="at least 1; got steps_per_scale=0"):
        image_flow((1, 4, 4), glow_step, steps_per_scale=0)
    with pytest.raises(ValueError, match="got height=6, width=4, num_scales=2"):
        image_flow((1, 6, 4), glow_step)

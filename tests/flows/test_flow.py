import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Independent, Normal

from parnassus.flows import Chain, Flow, FlowDistribution, GaussianBase, InverseTransform, Invertible


class Scale(nn.Module):
    """x = c z, with known density."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.log_factor = nn.Parameter(torch.tensor(factor).log())

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        return self.log_factor.exp() * z, self.log_factor * z[0].numel() * z.new_ones(len(z))

    def inverse(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return (-self.log_factor).exp() * x, -self.log_factor * x[0].numel() * x.new_ones(len(x))


class Shift(nn.Module):
    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        return z + 1, z.new_zeros(len(z))

    def inverse(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x - 1, x.new_zeros(len(x))


def make_flow() -> Flow:
    return Flow(Chain([Scale(2.0), Shift(), Scale(0.5)]), GaussianBase((3,)))


def test_density_of_an_affine_chain_is_gaussian() -> None:
    x = torch.randn(7, 3)
    reference = Independent(Normal(torch.full((3,), 0.5), torch.ones(3)), 1)  # ½ (2 z + 1)
    torch.testing.assert_close(make_flow().log_prob(x), reference.log_prob(x))
    torch.testing.assert_close(make_flow().loss(x), -reference.log_prob(x).mean())


def test_inverse_and_path_of_a_chain() -> None:
    chain = Chain([Scale(2.0), Shift()])
    z = torch.randn(5, 3)
    x, log_det = chain(z)
    torch.testing.assert_close(x, 2 * z + 1)
    z_back, log_det_back = chain.inverse(x)
    torch.testing.assert_close(z_back, z)
    torch.testing.assert_close(log_det, -log_det_back)
    states = list(chain.path(z))
    assert len(states) == 3
    torch.testing.assert_close(states[1], 2 * z)


def test_inverse_transform_swaps_the_directions() -> None:
    chain, z = Chain([Scale(2.0), Shift()]), torch.randn(5, 3)
    inverted = InverseTransform(chain)
    assert isinstance(inverted, Invertible)
    torch.testing.assert_close(inverted(z)[0], chain.inverse(z)[0])
    torch.testing.assert_close(inverted.inverse(z)[1], chain(z)[1])


def test_samples_with_log_prob_are_differentiable() -> None:
    torch.manual_seed(0)
    model = make_flow()
    x, log_prob = model.sample_with_log_prob(100)
    torch.testing.assert_close(log_prob, model.log_prob(x))
    x.sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert not model.sample(4).requires_grad


def test_only_a_trainable_base_has_parameters() -> None:
    trainable = Flow(Chain([Shift()]), GaussianBase((3,), trainable=True))
    trainable.loss(torch.randn(5, 3)).backward()
    assert all(parameter.grad is not None for parameter in trainable.parameters())
    assert not list(GaussianBase((3,)).parameters())


def test_flow_distribution_implements_the_interface_of_torch() -> None:
    torch.manual_seed(0)
    distribution = FlowDistribution(make_flow(), (3,))
    assert distribution.event_shape == (3,)
    samples = distribution.rsample((4, 5))
    assert samples.shape == (4, 5, 3)
    assert samples.requires_grad
    reference = Independent(Normal(torch.full((3,), 0.5), torch.ones(3)), 1)
    torch.testing.assert_close(distribution.log_prob(samples), reference.log_prob(samples))
    assert distribution.sample().shape == (3,)
    with pytest.raises(ValueError, match="within the support"):
        distribution.log_prob(torch.full((3,), float("nan")))
    with pytest.raises(ValueError, match=r"the event's shape \(3,\); got \(5, 1\)"):
        distribution.log_prob(torch.zeros(5, 1))
    unchecked = FlowDistribution(make_flow(), (3,), validate_args=False)
    assert unchecked.log_prob(torch.full((3,), float("nan"))).isnan()


def test_invalid_flow_raises_value_error() -> None:
    with pytest.raises(ValueError, match="must have an inverse; got Linear"):
        Flow(nn.Linear(2, 2), GaussianBase((2,)))
    with pytest.raises(ValueError, match=r"positive sizes; got shape=\(0,\)"):
        GaussianBase((0,))

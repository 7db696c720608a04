"""Real NVP against zuko and normflows: densities and samples for the same weights and points."""

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Transform

from parnassus.flows import AffineCoupling, Chain, Flow, GaussianBase, real_nvp

normflows = pytest.importorskip("normflows")
zuko = pytest.importorskip("zuko")


def random_flow(features: int) -> Flow:
    """A random Real NVP in float64, away from the identity."""
    torch.manual_seed(0)
    chain = real_nvp(features, num_layers=4, width=16, num_hidden_layers=2).double()
    for parameter in chain.parameters():
        nn.init.normal_(parameter, std=0.3)
    return Flow(chain, GaussianBase((features,)).double())


def couplings(model: Flow) -> list[AffineCoupling]:
    assert isinstance(model.transform, Chain)
    affine_couplings = [coupling for coupling in model.transform if isinstance(coupling, AffineCoupling)]
    assert len(affine_couplings) == 4
    return affine_couplings


class Interleaved(nn.Module):
    """The conditioner that normflows expects: shift and log-scale interleaved."""

    def __init__(self, coupling: AffineCoupling) -> None:
        super().__init__()
        self.coupling = coupling

    def forward(self, kept: Tensor) -> Tensor:
        raw, beta = self.coupling.network(kept).chunk(2, dim=1)
        return torch.stack([beta, self.coupling.scale * raw.tanh()], dim=2).flatten(1)


class Scaled(Transform):
    """zuko's affine transform with the bound on the scale of `AffineCoupling`."""

    bijective = True
    sign = +1

    def __init__(self, shift: Tensor, log_scale: Tensor) -> None:
        super().__init__()
        self.shift, self.log_scale = shift, log_scale

    domain = codomain = torch.distributions.constraints.real

    def _call(self, x: Tensor) -> Tensor:
        return x * self.log_scale.exp() + self.shift

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.shift) / self.log_scale.exp()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.log_scale.expand(x.shape)


@pytest.mark.parametrize("features", [2, 4, 6])
def test_density_and_samples_match_normflows(features: int) -> None:
    flow = random_flow(features)
    layers: list[nn.Module] = []
    for coupling in couplings(flow):  # normflows keeps the first half; a swap after each layer alternates the halves
        block = normflows.flows.AffineCouplingBlock(Interleaved(coupling))
        layers += [block, normflows.flows.Permute(features, mode="swap")]
    reference = normflows.NormalizingFlow(
        normflows.distributions.DiagGaussian(features, trainable=False), layers
    ).double()
    x = torch.randn(50, features, dtype=torch.float64)
    torch.testing.assert_close(flow.log_prob(x), reference.log_prob(x), atol=1e-10, rtol=1e-10)
    z = torch.randn(50, features, dtype=torch.float64)
    torch.testing.assert_close(flow.transform(z)[0], reference.forward(z), atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("features", [2, 5])
def test_density_matches_zuko(features: int) -> None:
    flow = random_flow(features)
    zeros = torch.zeros(features, dtype=torch.float64)
    base = torch.distributions.Independent(torch.distributions.Normal(zeros, zeros + 1), 1)
    transforms = []
    for layer, coupling in enumerate(couplings(flow)):
        mask = (torch.arange(features) < features // 2) == (layer % 2 == 0)

        def meta(kept: Tensor, coupling: AffineCoupling = coupling) -> Transform:
            raw, beta = coupling.network(kept).chunk(2, dim=1)
            transform: Transform = zuko.transforms.DependentTransform(Scaled(beta, coupling.scale * raw.tanh()), 1)
            return transform

        transforms.append(zuko.transforms.CouplingTransform(meta, mask))
    to_data = zuko.transforms.ComposedTransform(*transforms)
    reference = zuko.distributions.NormalizingFlow(to_data.inv, base)
    x = torch.randn(50, features, dtype=torch.float64)
    torch.testing.assert_close(flow.log_prob(x), reference.log_prob(x), atol=1e-10, rtol=1e-10)


def test_mean_log_density_is_below_that_of_the_true_distribution() -> None:
    """Gibbs' inequality: no model has a larger mean log-density than the distribution of the data."""
    flow, truth = (
        random_flow(2),
        torch.distributions.Independent(torch.distributions.Normal(torch.zeros(2).double(), 1.0), 1),
    )
    x = truth.sample((20_000,))
    assert float(flow.log_prob(x).mean().detach()) < float(truth.log_prob(x).mean())

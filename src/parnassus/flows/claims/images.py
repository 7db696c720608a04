"""Claims about flows of images: dequantisation, checkerboard couplings, multiscale (book sec. 13.1)."""

from functools import partial
from math import log, sqrt

import numpy as np
import torch
from torch import Tensor, nn

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, raises
from parnassus.flows.coupling.affine_coupling import AffineCoupling
from parnassus.flows.flow import Chain, Flow, GaussianBase
from parnassus.flows.images.dequantisation import DequantisedFlow, Logit, bits_per_dimension
from parnassus.flows.images.multiscale import MultiscaleTransform
from parnassus.flows.images.real_nvp_and_glow import glow_step, image_flow, real_nvp_step
from parnassus.flows.images.squeeze import Squeeze, checkerboard_channels


def perturb_weights(flow: Flow) -> Flow:
    """Add noise to all weights, so that no layer is the identity; in double precision."""
    with torch.no_grad():
        for parameter in flow.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return flow.double().eval()


@claim("B13.1-1", "B13.1-5")
def uniform_dequantisation_bounds_the_discrete_likelihood() -> Evidence:
    """With uniform noise E log p is a lower bound of the log-mass of a cell, E p its mass (book sec. 13.1)."""
    torch.manual_seed(0)
    levels, num_draws = 4, 50_000
    flow = Flow(Chain([Logit(0.05)]), GaussianBase((1,))).double()
    edges = flow.transform.inverse(torch.linspace(0, 1, levels + 1, dtype=torch.float64)[:, None])[0]
    mass = torch.special.ndtr(edges).diff(dim=0)[:, 0]  # of N(0, 1) between the edges of the cells
    images = torch.arange(levels, dtype=torch.float64)[:, None] / (levels - 1)
    log_probs = (
        DequantisedFlow(flow, (1,), levels=levels).log_prob(images.repeat(num_draws, 1)).reshape(num_draws, levels)
    )
    return all_of(
        bound=less_equal(log_probs.mean(0), mass.log()),
        mean_density=close(log_probs.exp().mean(0), mass, rtol=0.01),
        bounds_sum_to_less_than_one=less_equal(log_probs.mean(0).exp().sum(), mass.sum()),
    )


@claim("B13.1-5")
def bits_per_dimension_include_every_term() -> Evidence:
    """Uniform pixels with 256 levels have 8 bits, plus −log₂(1 − 2λ) for the margin λ of the logit (book eq. 13.2)."""
    torch.manual_seed(0)
    bits: dict[str, Evidence] = {}
    for margin in (0.01, 0.2):
        # the logit of a uniform variable has the logistic distribution
        flow = Flow(Logit(margin), LogisticBase(6))
        cube = torch.rand(50, 6, dtype=torch.float64)
        log_inside = log(1 - 2 * margin)  # mass inside the cube
        bits[f"margin_{margin}"] = close(
            bits_per_dimension(flow.log_prob(cube), 6, levels=256), 8 - log_inside / log(2), atol=1e-9
        )
    half = torch.full((3,), 6 * log(2), dtype=torch.float64)
    return all_of(**bits, half_of_the_levels=close(bits_per_dimension(half, 6, levels=256), 7.0, atol=1e-12))


@claim("B13.1-1")
def nan_log_densities_are_not_ignored() -> Evidence:
    """A NaN log-density makes the loss NaN and `bits_per_dimension` raise an error (book sec. 13.1)."""
    log_probs = torch.tensor([-10.0, float("nan"), -12.0])
    model = DequantisedFlow(Flow(NaNTransform(), GaussianBase((2,))), (2,), levels=4)
    return all_of(
        bits=raises(ValueError, lambda: bits_per_dimension(log_probs, 2, levels=4)),
        loss=close(model.loss(torch.zeros(3, 2)).isnan(), 1),
    )


@claim("B13.1-10")
def a_checkerboard_mask_is_a_choice_of_squeezed_channels() -> Evidence:
    """After a squeeze, keeping two of four channels is the checkerboard coupling of Real NVP (book eq. 13.19)."""
    torch.manual_seed(0)
    network = nn.Conv2d(2, 4, 3, padding=1).double()
    coupling = AffineCoupling(network, checkerboard_channels(4), 4).double()
    image = torch.randn(3, 1, 6, 6, dtype=torch.float64)
    squeezed, _ = Squeeze().inverse(image)
    transformed, log_det = coupling(squeezed)
    out, _ = Squeeze()(transformed)
    rows, columns = torch.arange(6)[:, None], torch.arange(6)
    board = ((rows + columns) % 2 == 0).double()
    raw = network(squeezed[:, list(checkerboard_channels(4))])
    alpha, beta = (to_white_squares(part) for part in raw.chunk(2, dim=1))
    masked = board * image + (1 - board) * (image * alpha.tanh().exp() + beta)
    return all_of(
        image=close(out, masked, atol=1e-12),
        kept=close((board * out), board * image, atol=0.0),
        log_det=close(log_det, ((1 - board) * alpha.tanh()).sum((1, 2, 3)), atol=1e-12),
    )


@claim("B13.1-4", "B13.1-5", "B13.1-10")
def image_flows_integrate_to_one() -> Evidence:
    """Real NVP and Glow on 2 × 2 images: integral one, exact inverse and log-determinant (book eq. 13.2)."""
    torch.manual_seed(0)
    evidence: dict[str, Evidence] = {}
    margin = 0.05 / 0.9  # outside the unit interval
    points, weights = np.polynomial.legendre.leggauss(14)
    nodes = torch.tensor(points) * (0.5 + margin) + 0.5
    grid = torch.cartesian_prod(*[nodes] * 4).reshape(-1, 1, 2, 2)
    masses = torch.cartesian_prod(*[torch.tensor(weights) * (0.5 + margin)] * 4).prod(1)
    for name, step in {"real_nvp": real_nvp_step, "glow": glow_step}.items():
        flow = perturb_weights(image_flow((1, 2, 2), partial(step, width=4, blocks=1), num_scales=1, steps_per_scale=1))
        with torch.no_grad():
            evidence[f"{name}_integral"] = close((flow.log_prob(grid).exp() * masses).sum(), 1.0, atol=2e-3)
            z = torch.randn(20, 4, dtype=torch.float64)
            x, log_det = flow.transform(z)
            evidence[f"{name}_round_trip"] = close(flow.transform.inverse(x)[0], z, atol=1e-9)
        jacobian = torch.func.jacrev(lambda one, flow=flow: flow.transform(one[None])[0][0].flatten())(z[0])
        evidence[f"{name}_log_det"] = close(torch.linalg.slogdet(jacobian).logabsdet, log_det[0], atol=1e-9)
    return all_of(**evidence)


@claim("B13.1-4")
def the_multiscale_split_preserves_all_dimensions() -> Evidence:
    """Each scale but the last factors out half of its channels; no dimension is lost (book sec. 13.1)."""
    multiscale = MultiscaleTransform((3, 32, 32), lambda _channels: Chain([]), num_scales=3)
    sizes = torch.tensor([shape[0] * shape[1] * shape[2] for shape in multiscale.shapes])
    image = torch.rand(2, 3, 32, 32)
    z, _ = multiscale.inverse(image)
    reconstruction, _ = multiscale(z)
    return all_of(
        sizes=close(sizes, torch.tensor([1536, 768, 768])),
        all_dimensions=close(sizes.sum(), 3 * 32 * 32),
        norm=close(z.norm() / sqrt(2), image.norm() / sqrt(2), rtol=1e-6),
        inverse=close(reconstruction, image, atol=0.0),
        latent_is_not_constant=greater_equal(z.std(), 0.2),
    )


def to_white_squares(values: Tensor) -> Tensor:
    """Two squeezed channels at the white squares of the checkerboard, zeros at the black ones."""
    board = values.new_zeros(len(values), 4, *values.shape[2:])
    board[:, 1:3] = values
    image: Tensor = Squeeze()(board)[0]
    return image


class LogisticBase(nn.Module):
    """Independent logistic distributions: σ(z) is uniform."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features = features

    def forward(self) -> torch.distributions.Distribution:
        low, high = torch.zeros(self.features).double(), torch.ones(self.features).double()
        uniform = torch.distributions.Uniform(low, high)
        logistic = torch.distributions.TransformedDistribution(uniform, [torch.distributions.SigmoidTransform().inv])
        return torch.distributions.Independent(logistic, 1)


class NaNTransform(nn.Module):
    """A map with a NaN log-determinant for one example, as after an overflow."""

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        return z, z.new_zeros(len(z))

    def inverse(self, x: Tensor) -> tuple[Tensor, Tensor]:
        log_det = x.new_zeros(len(x))
        log_det[0] = float("nan")
        return x, log_det

"""Claims about flows over images: cells, checkerboards, scales (book sec. 13.1)."""

from functools import partial
from math import log, sqrt

import numpy as np
import torch
from torch import Tensor, nn

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close, raises
from parnassus.flows.coupling import AffineCoupling
from parnassus.flows.dequantisation import Dequantised, Logit, bits_per_dimension
from parnassus.flows.flow import Chain, Flow, GaussianBase
from parnassus.flows.image_flow import glow_step, image_flow, real_nvp_step
from parnassus.flows.multiscale import Multiscale
from parnassus.flows.squeeze import Squeeze, checkerboard


def awake(flow: Flow) -> Flow:
    """The flow far from the identity it begins as: noise on all weights, in double precision."""
    with torch.no_grad():
        for parameter in flow.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return flow.double().eval()


@claim("B13.1-1", "B13.1-5")
def noise_in_the_cells_bounds_the_law_of_whole_greys() -> Evidence:
    """With uniform noise a flow bounds the log-mass of each cell; the mean density is the mass (book sec. 13.1)."""
    torch.manual_seed(0)
    levels, draws = 4, 50_000
    flow = Flow(Chain([Logit(0.05)]), GaussianBase((1,))).double()
    edges = flow.transform.inverse(torch.linspace(0, 1, levels + 1, dtype=torch.float64)[:, None])[0]
    mass = torch.special.ndtr(edges).diff(dim=0)[:, 0]  # of N(0, 1) between the edges of the cells
    pictures = torch.arange(levels, dtype=torch.float64)[:, None] / (levels - 1)
    found = Dequantised(flow, (1,), levels=levels).log_prob(pictures.repeat(draws, 1)).reshape(draws, levels)
    return all_of(
        bound=at_most(found.mean(0), mass.log()),
        mean_density=close(found.exp().mean(0), mass, rtol=0.01),
        bounds_of_all_cells_sum_to_less_than_one=at_most(found.mean(0).exp().sum(), mass.sum()),
    )


@claim("B13.1-5")
def bits_count_every_term() -> Evidence:
    """A pixel uniform on 256 values costs 8 bits and what the logit's margin λ loses, −log₂(1 − 2λ) (book eq. 13.2)."""
    torch.manual_seed(0)
    bits: dict[str, Evidence] = {}
    for margin in (0.01, 0.2):
        # the logistic law is the one that the logit makes of the uniform: its density is the logit's own volume
        flow = Flow(Logit(margin), LogisticBase(6))
        cube = torch.rand(50, 6, dtype=torch.float64)
        inside = log(1 - 2 * margin)  # the margin's share of the mass is lost beside the cube
        bits[f"margin_{margin}"] = close(
            bits_per_dimension(flow.log_prob(cube), 6, levels=256), 8 - inside / log(2), atol=1e-9
        )
    half = torch.full((3,), 6 * log(2), dtype=torch.float64)
    return all_of(**bits, half_the_values=close(bits_per_dimension(half, 6, levels=256), 7.0, atol=1e-12))


@claim("B13.1-1")
def a_nan_is_never_dropped() -> Evidence:
    """An image without a number makes the loss a NaN and the bits an error, not a mean of the rest (book sec. 13.1)."""
    lost = torch.tensor([-10.0, float("nan"), -12.0])
    model = Dequantised(Flow(Losing(), GaussianBase((2,))), (2,), levels=4)
    return all_of(
        bits=raises(ValueError, lambda: bits_per_dimension(lost, 2, levels=4)),
        loss=close(model.loss(torch.zeros(3, 2)).isnan(), 1),
    )


@claim("B13.1-10")
def a_checkerboard_is_a_choice_of_channels() -> Evidence:
    """After a squeeze, keeping two of four channels is Real NVP's masked coupling of the image (book eq. 13.19)."""
    torch.manual_seed(0)
    network = nn.Conv2d(2, 4, 3, padding=1).double()
    coupling = AffineCoupling(network, checkerboard(4), 4).double()
    image = torch.randn(3, 1, 6, 6, dtype=torch.float64)
    squeezed, _ = Squeeze().inverse(image)
    moved, log_det = coupling(squeezed)
    out, _ = Squeeze()(moved)
    rows, columns = torch.arange(6)[:, None], torch.arange(6)
    board = ((rows + columns) % 2 == 0).double()
    raw = network(squeezed[:, list(checkerboard(4))])
    alpha, beta = (spread_white(part) for part in raw.chunk(2, dim=1))
    masked = board * image + (1 - board) * (image * alpha.tanh().exp() + beta)
    return all_of(
        image=close(out, masked, atol=1e-12),
        kept=close((board * out), board * image, atol=0.0),
        log_det=close(log_det, ((1 - board) * alpha.tanh()).sum((1, 2, 3)), atol=1e-12),
    )


@claim("B13.1-4", "B13.1-5", "B13.1-10")
def flows_over_images_are_densities() -> Evidence:
    """Real NVP and Glow on images of 2 × 2 integrate to one, undo themselves, know their volume (book eq. 13.2)."""
    torch.manual_seed(0)
    found: dict[str, Evidence] = {}
    beside = 0.05 / 0.9  # the margin beyond the unit interval
    points, weights = np.polynomial.legendre.leggauss(14)
    places = torch.tensor(points) * (0.5 + beside) + 0.5
    grid = torch.cartesian_prod(*[places] * 4).reshape(-1, 1, 2, 2)
    shares = torch.cartesian_prod(*[torch.tensor(weights) * (0.5 + beside)] * 4).prod(1)
    for name, step in {"real_nvp": real_nvp_step, "glow": glow_step}.items():
        flow = awake(image_flow((1, 2, 2), partial(step, width=4, blocks=1), scales=1, steps=1))
        with torch.no_grad():
            found[f"{name}_integral"] = close((flow.log_prob(grid).exp() * shares).sum(), 1.0, atol=2e-3)
            z = torch.randn(20, 4, dtype=torch.float64)
            x, log_det = flow.transform(z)
            found[f"{name}_round_trip"] = close(flow.transform.inverse(x)[0], z, atol=1e-9)
        jacobian = torch.func.jacrev(lambda one, flow=flow: flow.transform(one[None])[0][0].flatten())(z[0])
        found[f"{name}_volume"] = close(torch.linalg.slogdet(jacobian).logabsdet, log_det[0], atol=1e-9)
    return all_of(**found)


@claim("B13.1-4")
def setting_half_aside_loses_nothing() -> Evidence:
    """Each scale but the last sets half its numbers aside; they are as many as the image has (book sec. 13.1)."""
    multiscale = Multiscale((3, 32, 32), lambda _channels: Chain([]), scales=3)
    sizes = torch.tensor([shape[0] * shape[1] * shape[2] for shape in multiscale.shapes])
    image = torch.rand(2, 3, 32, 32)
    z, _ = multiscale.inverse(image)
    back, _ = multiscale(z)
    return all_of(
        sizes=close(sizes, torch.tensor([1536, 768, 768])),
        all_numbers=close(sizes.sum(), 3 * 32 * 32),
        length=close(z.norm() / sqrt(2), image.norm() / sqrt(2), rtol=1e-6),
        back=close(back, image, atol=0.0),
        noise_is_not_lost=at_least(z.std(), 0.2),
    )


def spread_white(values: Tensor) -> Tensor:
    """Two channels of a squeezed image in their places on the white fields of the board, zeros on the black."""
    board = values.new_zeros(len(values), 4, *values.shape[2:])
    board[:, 1:3] = values
    spread: Tensor = Squeeze()(board)[0]
    return spread


class LogisticBase(nn.Module):
    """Independent logistic laws: σ(z) is uniform."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features = features

    def forward(self) -> torch.distributions.Distribution:
        low, high = torch.zeros(self.features).double(), torch.ones(self.features).double()
        uniform = torch.distributions.Uniform(low, high)
        logistic = torch.distributions.TransformedDistribution(uniform, [torch.distributions.SigmoidTransform().inv])
        return torch.distributions.Independent(logistic, 1)


class Losing(nn.Module):
    """A map that loses the number of one example, as an overflow does."""

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        return z, z.new_zeros(len(z))

    def inverse(self, x: Tensor) -> tuple[Tensor, Tensor]:
        log_det = x.new_zeros(len(x))
        log_det[0] = float("nan")
        return x, log_det

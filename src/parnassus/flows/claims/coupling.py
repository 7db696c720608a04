"""Claims about couplings, and about batch normalisation between them (book sec. 13.1)."""

from math import log, pi

import torch
from torch import Tensor, nn
from torch.distributions import Normal
from torch.func import jacrev

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, raises
from parnassus.data.densities import moons_entropy, moons_grid, moons_log_prob
from parnassus.flows.batch_norm import BatchNormFlow
from parnassus.flows.coupling import AffineCoupling, real_nvp
from parnassus.flows.flow import Chain, Flow, GaussianBase, Inverted


class Counted(nn.Module):
    """A network that counts how often it is asked, and that no one could invert: two numbers in, six out."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 7), nn.ReLU(), nn.Linear(7, 6)).double()
        self.asked = 0

    def forward(self, kept: Tensor) -> Tensor:
        self.asked += 1
        coefficients: Tensor = self.layers(kept)
        return coefficients


def coupling_at_random() -> tuple[AffineCoupling, Counted, Tensor]:
    """A coupling that keeps the first two of five coordinates, and points."""
    torch.manual_seed(0)
    network = Counted()
    coupling = AffineCoupling(network, [0, 1], 5).double()
    nn.init.normal_(coupling.scale)
    return coupling, network, torch.randn(100, 5, dtype=torch.float64)


@claim("B13.1-10")
def the_inverse_inverts_no_network() -> Evidence:
    """z_B = (z'_B − β(z'_A)) ⊙ exp(−α(z'_A)): one pass of a ReLU network each way (book ex. 13.1)."""
    coupling, network, z = coupling_at_random()
    with torch.no_grad():
        x, log_det = coupling(z)
        forward = network.asked
        back, log_det_back = coupling.inverse(x)
        raw, beta = network(x[:, :2]).chunk(2, dim=1)
        by_hand = (x[:, 2:] - beta) * (-coupling.scale * raw.tanh()).exp()
    return all_of(
        there_and_back=close(back, z, atol=1e-12),
        by_hand=close(by_hand, z[:, 2:], atol=1e-12),
        log_det=close(log_det + log_det_back, 0.0, atol=1e-12),
        passes_forward=close(float(forward), 1.0),
        passes_back=close(float(network.asked - forward - 1), 1.0),
    )


@claim("B13.1-10")
def the_jacobian_has_three_blocks() -> Evidence:
    """∂z'/∂z = [[I, 0], [∂z'_B/∂z_A, diag(exp α)]], so that log |det| = Σ_j α_j(z_A) (book ex. 13.1)."""
    coupling, network, z = coupling_at_random()
    one = z[0]
    jacobian: Tensor = jacrev(lambda point: coupling(point[None])[0][0])(one)
    with torch.no_grad():
        alpha = coupling.scale * network(one[None, :2])[0].chunk(2)[0].tanh()
        return all_of(
            identity=close(jacobian[:2, :2], torch.eye(2)),
            zero=close(jacobian[:2, 2:], 0.0),
            diagonal=close(jacobian[2:, 2:], torch.diag(alpha.exp()), atol=1e-12),
            something_below=at_least(jacobian[2:, :2].abs().sum(), 0.1),
            log_det=close(coupling(one[None])[1], alpha.sum(), atol=1e-12),
            autograd=close(torch.linalg.slogdet(jacobian).logabsdet.detach(), alpha.sum(), atol=1e-12),
        )


@claim("B13.1-11")
def no_flow_gets_below_the_entropy_of_the_moons() -> Evidence:
    """Mean −log p of the moons under any flow is their entropy, 0.2892 nats, or more (book sec. 13.1, fig. 13.2)."""
    grid, cell = moons_grid(spacing=0.025)
    points = grid.flatten(0, 1)
    q = moons_log_prob(points).exp() * cell
    flows = [Flow(real_nvp(2).double(), GaussianBase((2,)).double()) for _ in range(5)]
    torch.manual_seed(0)
    for flow in flows[1:]:  # the first stays the identity
        for parameter in flow.parameters():
            nn.init.normal_(parameter, std=0.2)
    with torch.no_grad():
        nll = torch.stack([-(q * flow.log_prob(points)).sum() for flow in flows])
    second_moment = (q[:, None] * points.square()).sum()
    return all_of(
        mass_of_the_truth=close(q.sum(), 1.0, atol=1e-10),
        entropy=close(moons_entropy(), 0.28923, atol=1e-5),
        identity=close(nll[0], log(2 * pi) + second_moment / 2, atol=1e-9),
        none_below=at_least(nll, moons_entropy()),
    )


@claim("B13.1-10")
def couplings_must_take_turns() -> Evidence:
    """Couplings that all keep the same half leave it as it was; two that take turns move all (book sec. 13.1)."""
    torch.manual_seed(0)
    same = Chain(AffineCoupling(nn.Linear(2, 4), [0, 1], 4) for _ in range(6))
    turns = real_nvp(4, layers=2)
    for parameter in turns.parameters():
        nn.init.normal_(parameter, std=0.3)
    z = torch.randn(50, 4)
    with torch.no_grad():
        return all_of(
            same_half=close(same(z)[0][:, :2], z[:, :2]),
            taking_turns=at_least((turns(z)[0] - z).abs().amax(0), 1e-3),
        )


@erratum(
    "B13.1-10",
    printed="log|det J| = Σ log|α_i| with the α of 13.19",
    right="log|det J| = Σ α_i: there α is a logarithm",
)
def the_alpha_of_the_coupling_is_a_logarithm() -> Correction:
    """Eq. 13.17 calls the scale α; 13.19 puts α into an exponential, so 13.17 does not serve it (book eq. 13.19)."""
    coupling, network, z = coupling_at_random()
    with torch.no_grad():
        alpha = coupling.scale * network(z[:1, :2])[0].chunk(2)[0].tanh()
        truth = torch.linalg.slogdet(jacrev(lambda point: coupling(point[None])[0][0])(z[0])).logabsdet
        return Correction(
            printed=close(alpha.abs().log().sum(), truth, atol=1e-6), corrected=close(alpha.sum(), truth, atol=1e-12)
        )


def batch_standardised(z: Tensor, epsilon: float) -> Tensor:
    """Batch normalisation by statistics of the batch itself, with α = 1 and β = 0."""
    return (z - z.mean(0)) / (z.var(0, correction=0) + epsilon).sqrt()


@claim("B13.1-14")
def with_constant_statistics_the_formula_is_exact() -> Evidence:
    """Σ_i log(|α_i|/√(σ_i² + ε)) is autograd's log-determinant, and the map is undone (book eqs. 13.20-13.21)."""
    torch.manual_seed(0)
    layer = BatchNormFlow(3, epsilon=0.1).double()
    z = torch.randn(40, 3, dtype=torch.float64) * torch.tensor([0.1, 1.0, 5.0]) + 2
    layer(z)
    nn.init.normal_(layer.log_scale)
    nn.init.normal_(layer.shift)
    layer.eval()
    with torch.no_grad():
        x, log_det = layer(z)
        jacobian = jacrev(lambda point: layer(point[None])[0][0])(z[0])
        printed = (layer.log_scale.exp() / (layer.variance + layer.epsilon).sqrt()).log().sum()
        return all_of(
            autograd=close(log_det, torch.linalg.slogdet(jacobian).logabsdet, atol=1e-12),
            formula=close(log_det, printed, atol=1e-12),
            there_and_back=close(layer.inverse(x)[0], z, atol=1e-12),
        )


@claim("B13.1-14")
def with_statistics_of_the_batch_it_is_not() -> Evidence:
    """The map of a whole batch forgets mean and scale of it: its Jacobian is singular (book eq. 13.21)."""
    torch.manual_seed(0)
    count, epsilon = 12, 1e-6
    z = torch.randn(count, 1, dtype=torch.float64)
    jacobian = jacrev(lambda batch: batch_standardised(batch[:, None], epsilon)[:, 0])(z[:, 0])
    singular = torch.linalg.svdvals(jacobian)
    slope = 1 / (z.var(correction=0) + epsilon).sqrt()
    return all_of(
        forgets_the_mean=at_most(singular[-1], 1e-12),
        forgets_the_scale=at_most(singular[-2], 1e-4),
        all_others_are_the_formula=close(singular[:-2], slope, rtol=1e-10),
        no_inverse=close(batch_standardised(3 * z + 7, 0.0), batch_standardised(z, 0.0), atol=1e-12),
    )


@claim("B13.1-14")
def with_statistics_of_the_batch_it_promises_too_much() -> Evidence:
    """For normal data and batches of n it states an NLL ½(log(n/2) − ψ((n−1)/2)) below the entropy (book eq. 13.21)."""
    torch.manual_seed(0)
    law = Normal(torch.tensor(1.0, dtype=torch.float64), 2.0)
    sizes = torch.tensor([4, 8, 16, 64])
    stated = []
    for size in sizes.tolist():
        batches = law.sample(torch.Size([400_000 // size, size]))
        deviation = batches.std(1, correction=0, keepdim=True)
        z = (batches - batches.mean(1, keepdim=True)) / deviation
        stated.append(-(Normal(0.0, 1.0).log_prob(z) - deviation.log()).mean())
    half = sizes.double() / 2
    too_much = (half.log() - torch.digamma(half - 0.5)) / 2
    return all_of(
        stated=close(torch.stack(stated), law.entropy() - too_much, atol=0.01),
        below_what_is_possible=at_most(torch.stack(stated), law.entropy()),
    )


@claim("B13.1-14")
def between_maps_it_keeps_a_flow_invertible() -> Evidence:
    """T_k ∘ BN ∘ T_{k−1} is undone exactly, in training too, and a single row has no statistics (book sec. 13.1)."""
    torch.manual_seed(0)
    chain = Chain([*real_nvp(4, layers=2), Inverted(BatchNormFlow(4)), *real_nvp(4, layers=2)]).double()
    x = 5 * torch.randn(60, 4, dtype=torch.float64) + 3
    with torch.no_grad():
        z, log_det = chain.inverse(x)  # the direction of training, which moves the statistics first
        again, log_det_back = chain(z)
    return all_of(
        there_and_back=close(again, x, atol=1e-10),
        log_det=close(log_det + log_det_back, 0.0, atol=1e-10),
        standardised=close(z.var(0, correction=0), 1.0, atol=1e-3),
        one_row=raises(ValueError, lambda: BatchNormFlow(4)(x[:1].float())),
    )

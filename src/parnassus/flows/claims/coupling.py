"""Claims about coupling layers and batch normalisation as a flow layer (book sec. 13.1)."""

from math import log, pi

import torch
from torch import Tensor, nn
from torch.distributions import Normal
from torch.func import jacrev

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, raises
from parnassus.data.built_in.densities import moons_entropy, moons_grid, moons_log_prob
from parnassus.flows.coupling.affine_coupling import AffineCoupling
from parnassus.flows.coupling.real_nvp import real_nvp
from parnassus.flows.flow import Chain, Flow, GaussianBase, InverseTransform
from parnassus.flows.linear.batch_norm import BatchNormFlow
from parnassus.layers.normalisation import standardise


class CountingNetwork(nn.Module):
    """A non-invertible network from two inputs to six outputs that counts its evaluations."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 7), nn.ReLU(), nn.Linear(7, 6)).double()
        self.calls = 0

    def forward(self, kept: Tensor) -> Tensor:
        self.calls += 1
        coefficients: Tensor = self.layers(kept)
        return coefficients


def random_coupling() -> tuple[AffineCoupling, CountingNetwork, Tensor]:
    """A coupling that keeps the first two of five coordinates, its network, and points."""
    torch.manual_seed(0)
    network = CountingNetwork()
    coupling = AffineCoupling(network, [0, 1], 5).double()
    nn.init.normal_(coupling.scale)
    return coupling, network, torch.randn(100, 5, dtype=torch.float64)


@claim("B13.1-10")
def the_inverse_evaluates_the_network_once() -> Evidence:
    """z_B = (z'_B − β(z'_A)) ⊙ exp(−α(z'_A)): one evaluation of the network per direction (book ex. 13.1)."""
    coupling, network, z = random_coupling()
    with torch.no_grad():
        x, log_det = coupling(z)
        forward_calls = network.calls
        z_back, log_det_back = coupling.inverse(x)
        raw, beta = network(x[:, :2]).chunk(2, dim=1)
        closed_form = (x[:, 2:] - beta) * (-coupling.scale * raw.tanh()).exp()
    return all_of(
        inverse=close(z_back, z, atol=1e-12),
        closed_form=close(closed_form, z[:, 2:], atol=1e-12),
        log_det=close(log_det + log_det_back, 0.0, atol=1e-12),
        forward_calls=close(float(forward_calls), 1.0),
        inverse_calls=close(float(network.calls - forward_calls - 1), 1.0),
    )


@claim("B13.1-10")
def the_jacobian_is_block_triangular() -> Evidence:
    """∂z'/∂z = [[I, 0], [∂z'_B/∂z_A, diag(exp α)]], so that log |det| = Σ_j α_j(z_A) (book ex. 13.1)."""
    coupling, network, z = random_coupling()
    point = z[0]
    jacobian: Tensor = jacrev(lambda row: coupling(row[None])[0][0])(point)
    with torch.no_grad():
        alpha = coupling.scale * network(point[None, :2])[0].chunk(2)[0].tanh()
        return all_of(
            identity=close(jacobian[:2, :2], torch.eye(2)),
            zero=close(jacobian[:2, 2:], 0.0),
            diagonal=close(jacobian[2:, 2:], torch.diag(alpha.exp()), atol=1e-12),
            nonzero_below=greater_equal(jacobian[2:, :2].abs().sum(), 0.1),
            log_det=close(coupling(point[None])[1], alpha.sum(), atol=1e-12),
            autograd=close(torch.linalg.slogdet(jacobian).logabsdet.detach(), alpha.sum(), atol=1e-12),
        )


@claim("B13.1-11")
def the_nll_of_a_flow_is_at_least_the_entropy() -> Evidence:
    """The mean −log p(x) of the moons under any flow is at least their entropy, 0.2892 nats (book fig. 13.2)."""
    grid, cell = moons_grid(spacing=0.025)
    points = grid.flatten(0, 1)
    q = moons_log_prob(points).exp() * cell
    flows = [Flow(real_nvp(2).double(), GaussianBase((2,)).double()) for _ in range(5)]
    torch.manual_seed(0)
    for flow in flows[1:]:  # the first is the identity
        for parameter in flow.parameters():
            nn.init.normal_(parameter, std=0.2)
    with torch.no_grad():
        nll = torch.stack([-(q * flow.log_prob(points)).sum() for flow in flows])
    second_moment = (q[:, None] * points.square()).sum()
    return all_of(
        mass_of_the_true_density=close(q.sum(), 1.0, atol=1e-10),
        entropy=close(moons_entropy(), 0.28923, atol=1e-5),
        identity=close(nll[0], log(2 * pi) + second_moment / 2, atol=1e-9),
        none_below=greater_equal(nll, moons_entropy()),
    )


@claim("B13.1-11", slow=True)
def a_trained_flow_is_near_the_entropy_and_integrates_to_one() -> Evidence:
    """From N(0, I) the mean −log p of the moons falls to within 0.3 nats of their entropy, not to it (book fig. 13.2).

    The learned density integrates to 1, and the moons are mapped to about a standard normal.
    """
    grid, cell = moons_grid(spacing=0.05)
    points = grid.flatten(0, 1)
    mass = moons_log_prob(points).exp() * cell
    torch.manual_seed(0)
    flow = Flow(real_nvp(2).double(), GaussianBase((2,)).double())
    optimizer = torch.optim.Adam(flow.parameters(), lr=3e-3)
    losses = []
    for _ in range(1_000):
        x = points[torch.multinomial(mass, 256, replacement=True)] + 0.05 * (torch.rand(256, 2).double() - 0.5)
        loss = flow.loss(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    axis = torch.linspace(-5, 6, 441, dtype=torch.float64)
    with torch.no_grad():
        nll = -(mass * flow.log_prob(points)).sum()
        total = flow.log_prob(torch.cartesian_prod(axis, axis)).exp().sum() * (axis[1] - axis[0]) ** 2
        z = flow.transform.inverse(points)[0]
    variance = mass @ z.square() - (mass @ z).square()
    averages = torch.stack(losses).view(10, 100).mean(1)
    return all_of(
        likelihood_increases=less_equal(averages[[1, 2, 9]] - averages[[0, 1, 2]], 0.0),
        distance_to_the_entropy=less_equal(nll - moons_entropy(), 0.3),
        not_below=greater_equal(nll, moons_entropy()),
        mass=close(total, 1.0, atol=0.01),
        variance_in_the_base_space=close(variance, 1.0, atol=0.25),
    )


@claim("B13.1-10")
def couplings_must_alternate() -> Evidence:
    """Couplings that keep the same half leave it unchanged; two that alternate transform all (book sec. 13.1)."""
    torch.manual_seed(0)
    same = Chain(AffineCoupling(nn.Linear(2, 4), [0, 1], 4) for _ in range(6))
    alternating = real_nvp(4, num_layers=2)
    for parameter in alternating.parameters():
        nn.init.normal_(parameter, std=0.3)
    z = torch.randn(50, 4)
    with torch.no_grad():
        return all_of(
            same_half=close(same(z)[0][:, :2], z[:, :2]),
            alternating=greater_equal((alternating(z)[0] - z).abs().amax(0), 1e-3),
        )


@erratum(
    "B13.1-10",
    printed="log|det J| = Σ log|α_i| with the α of 13.19",
    right="log|det J| = Σ α_i: there α is a logarithm",
)
def alpha_of_the_coupling_is_a_log_scale() -> Correction:
    """In eq. 13.17 α is the scale, in 13.19 its logarithm: Σ log|α_i| does not apply (book eq. 13.19)."""
    coupling, network, z = random_coupling()
    with torch.no_grad():
        alpha = coupling.scale * network(z[:1, :2])[0].chunk(2)[0].tanh()
        truth = torch.linalg.slogdet(jacrev(lambda point: coupling(point[None])[0][0])(z[0])).logabsdet
        return Correction(
            printed=close(alpha.abs().log().sum(), truth, atol=1e-6), corrected=close(alpha.sum(), truth, atol=1e-12)
        )


@claim("B13.1-14")
def batch_norm_with_constant_statistics_has_the_stated_determinant() -> Evidence:
    """Σ_i log(|α_i|/√(σ_i² + ε)) is the log-determinant, and the map is invertible (book eqs. 13.20-13.21)."""
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
            inverse=close(layer.inverse(x)[0], z, atol=1e-12),
        )


@claim("B13.1-14")
def batch_norm_with_batch_statistics_is_singular() -> Evidence:
    """With batch statistics the map discards mean and scale: its Jacobian is singular (book eq. 13.21)."""
    torch.manual_seed(0)
    count, epsilon = 12, 1e-6
    z = torch.randn(count, 1, dtype=torch.float64)
    jacobian = jacrev(lambda batch: standardise(batch[:, None], (0,), epsilon=epsilon)[:, 0])(z[:, 0])
    singular = torch.linalg.svdvals(jacobian)
    derivative = 1 / (z.var(correction=0) + epsilon).sqrt()
    return all_of(
        discards_the_mean=less_equal(singular[-1], 1e-12),
        discards_the_scale=less_equal(singular[-2], 1e-4),
        others_equal_the_formula=close(singular[:-2], derivative, rtol=1e-10),
        no_inverse=close(standardise(3 * z + 7, (0,), epsilon=1e-30), standardise(z, (0,), epsilon=1e-30), atol=1e-12),
    )


@claim("B13.1-14")
def batch_statistics_overstate_the_likelihood() -> Evidence:
    """For Gaussian data, batches of n give an NLL ½(log(n/2) − ψ((n−1)/2)) below the entropy (book eq. 13.21)."""
    torch.manual_seed(0)
    distribution = Normal(torch.tensor(1.0, dtype=torch.float64), 2.0)
    sizes = torch.tensor([4, 8, 16, 64])
    nll = []
    for size in sizes.tolist():
        batches = distribution.sample(torch.Size([400_000 // size, size]))
        deviation = batches.std(1, correction=0, keepdim=True)
        z = standardise(batches, (1,), epsilon=1e-30)
        nll.append(-(Normal(0.0, 1.0).log_prob(z) - deviation.log()).mean())
    half = sizes.double() / 2
    difference = (half.log() - torch.digamma(half - 0.5)) / 2
    return all_of(
        nll=close(torch.stack(nll), distribution.entropy() - difference, atol=0.01),
        below_the_entropy=less_equal(torch.stack(nll), distribution.entropy()),
    )


@claim("B13.1-14")
def batch_norm_between_couplings_is_invertible() -> Evidence:
    """T_k ∘ BN ∘ T_{k−1} is invertible, also in training; a single row raises an error (book sec. 13.1)."""
    torch.manual_seed(0)
    chain = Chain([*real_nvp(4, num_layers=2), InverseTransform(BatchNormFlow(4)), *real_nvp(4, num_layers=2)]).double()
    x = 5 * torch.randn(60, 4, dtype=torch.float64) + 3
    with torch.no_grad():
        z, log_det = chain.inverse(x)  # the direction of training, which first updates the statistics
        x_back, log_det_back = chain(z)
    return all_of(
        forward_of_inverse=close(x_back, x, atol=1e-10),
        log_det=close(log_det + log_det_back, 0.0, atol=1e-10),
        standardised=close(z.var(0, correction=0), 1.0, atol=1e-3),
        one_row=raises(ValueError, lambda: BatchNormFlow(4)(x[:1].float())),
    )

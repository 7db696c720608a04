"""Claims about the change of variables along a chain of invertible maps (book sec. 13.1)."""

from math import log

import torch
from torch import Tensor, nn
from torch.distributions import Independent, Normal
from torch.func import jacrev, vmap

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal
from parnassus.flows.coupling.real_nvp import real_nvp
from parnassus.flows.flow import Chain, Flow, GaussianBase
from parnassus.flows.linear.linear_flow import Permutation


def random_flow(features: int = 2, *, num_layers: int = 4, seed: int = 0) -> Flow:
    """A Real NVP in float64 with random weights."""
    torch.manual_seed(seed)
    chain = real_nvp(features, num_layers=num_layers, width=16, num_hidden_layers=1).double()
    for parameter in chain.parameters():
        nn.init.normal_(parameter, std=0.4)
    return Flow(chain, GaussianBase((features,)).double())


def jacobians(transform: nn.Module, z: Tensor) -> Tensor:
    """∂T/∂z of each example, by autograd."""

    def one(point: Tensor) -> Tensor:
        x: Tensor = transform(point[None])[0][0]
        return x

    matrices: Tensor = vmap(jacrev(one))(z)
    return matrices


@claim("B13.1-4")
def a_chain_is_inverted_in_reverse_order() -> Evidence:
    """T⁻¹ = T_1⁻¹ ∘ … ∘ T_K⁻¹ inverts T; the inverses in the order of T do not (book sec. 13.1)."""
    flow = random_flow(6, num_layers=6)
    chain = flow.transform
    assert isinstance(chain, Chain)
    z = torch.randn(200, 6, dtype=torch.float64)
    with torch.no_grad():
        x, _ = chain(z)
        wrong = x
        for transform in chain:
            wrong, _ = transform.inverse(wrong)  # type: ignore[operator]  # an Invertible; nn.Module does not declare it
        z_back, x_back = chain.inverse(x)[0], chain(chain.inverse(z)[0])[0]
        single = chain.float()
        return all_of(
            inverse_of_forward=close(z_back, z, atol=1e-10),
            forward_of_inverse=close(x_back, z, atol=1e-10),
            in_float32=close(single.inverse(single(z.float())[0])[0], z, atol=1e-4),
            wrong_order=greater_equal((wrong - z).abs().max(), 0.1),
        )


@claim("B13.1-5")
def log_determinants_add_up_along_a_chain() -> Evidence:
    """Σ_k log |det J_{T_k}(z_{k−1})| = log |det J_T| by autograd, and det J_T det J_{T⁻¹} = 1 (book eqs. 13.3-13.4)."""
    flow = random_flow(4, num_layers=5)
    chain = flow.transform
    assert isinstance(chain, Chain)
    z = torch.randn(30, 4, dtype=torch.float64)
    with torch.no_grad():
        x, log_det = chain(z)
        _, log_det_back = chain.inverse(x)
        states = list(chain.path(z))
        log_dets = [torch.linalg.slogdet(jacobians(t, at)).logabsdet for t, at in zip(chain, states, strict=False)]
        return all_of(
            autograd=close(log_det, torch.linalg.slogdet(jacobians(chain, z)).logabsdet, atol=1e-10),
            sum_of_the_layers=close(log_det, torch.stack(log_dets).sum(0), atol=1e-10),
            inverse=close(log_det + log_det_back, 0.0, atol=1e-10),
        )


@claim("B13.1-5")
def the_density_of_a_flow_integrates_to_one() -> Evidence:
    """∫ p_z(T⁻¹(x)) |det J_{T⁻¹}(x)| dx = 1; without the determinant the integral is not 1 (book eq. 13.2)."""
    flow = random_flow()
    line = torch.linspace(-12, 12, 601, dtype=torch.float64)
    with torch.no_grad():
        grid = torch.cartesian_prod(line, line)
        z, _ = flow.transform.inverse(grid)
        cell = (line[1] - line[0]) ** 2
        mass = flow.log_prob(grid).exp().sum() * cell
        mass_without = flow.base().log_prob(z).exp().sum() * cell
    return all_of(mass=close(mass, 1.0, atol=1e-4), without_determinant=greater_equal((mass_without - 1).abs(), 0.05))


@claim("B13.1-5")
def samples_follow_the_density() -> Evidence:
    """The fractions of samples T(z) in cells agree with the integrals of p_x (book eqs. 13.1-13.2)."""
    flow, count, subdivisions = random_flow(), 200_000, 8
    edges = torch.linspace(-4, 4, 17, dtype=torch.float64)
    cell = float(edges[1] - edges[0])
    offsets = (torch.arange(subdivisions, dtype=torch.float64) + 0.5) * cell / subdivisions
    line = (edges[:-1, None] + offsets).flatten()
    with torch.no_grad():
        samples, log_prob = flow.sample_with_log_prob(count)
        fractions = torch.histogramdd(samples, [edges, edges]).hist / count
        density = flow.log_prob(torch.cartesian_prod(line, line)).exp().view(16, subdivisions, 16, subdivisions)
        mass = density.mean((1, 3)) * cell**2
        errors = (fractions - mass) / (mass / count).sqrt().clamp(min=1e-4)
        return all_of(
            cells_in_standard_errors=close(errors, 0.0, atol=5.0),
            log_prob_of_samples=close(log_prob, flow.log_prob(samples), atol=1e-9),
        )


def wide_normal() -> tuple[float, float, float]:
    """E_q[log p], entropy(q) and KL(q ‖ p) for data q = N(0, 4) and the flow x = z with base p = N(0, 1), exactly."""
    q, p = Normal(0.0, 2.0), Normal(0.0, 1.0)
    expected = -0.5 * log(2 * torch.pi) - 0.5 * 4
    return expected, float(q.entropy()), float(torch.distributions.kl_divergence(q, p))


@claim("B13.1-6")
def the_mean_nll_minus_the_entropy_is_the_kl_divergence() -> Evidence:
    """The loss of a flow on samples of q minus entropy(q) estimates KL(q ‖ p_x) (book eqs. 13.5-13.9)."""
    torch.manual_seed(0)
    count = 200_000
    q = Independent(Normal(torch.tensor([0.5, -1.0]).double(), torch.tensor([2.0, 0.7]).double()), 1)
    flow = Flow(Chain([]), GaussianBase((2,)).double())
    p = Independent(Normal(torch.zeros(2).double(), torch.ones(2).double()), 1)
    nll = flow.loss(q.sample(torch.Size([count])))
    return close(nll - q.entropy(), torch.distributions.kl_divergence(q, p), atol=0.02)


@claim("B13.1-6")
def base_parameters_enter_the_first_term_only() -> Evidence:
    """∂/∂ψ of the loss is that of −log p_z(T⁻¹(x)); the determinant does not depend on ψ (book eq. 13.9)."""
    torch.manual_seed(0)
    flow = random_flow()
    flow = Flow(flow.transform, GaussianBase((2,), trainable=True).double())  # type: ignore[arg-type]  # a module
    x = torch.randn(50, 2, dtype=torch.float64) + 1
    psi = list(flow.base.parameters())
    of_the_loss = torch.autograd.grad(flow.loss(x), psi)
    z, log_det = flow.transform.inverse(x)
    of_the_first_term = torch.autograd.grad(-flow.base().log_prob(z.detach()).mean(), psi)
    of_the_determinant = torch.autograd.grad(log_det.mean(), psi, allow_unused=True)
    return all_of(
        mean=close(of_the_loss[0], of_the_first_term[0], atol=1e-13),
        log_std=close(of_the_loss[1], of_the_first_term[1], atol=1e-13),
        not_in_the_determinant=close(float(sum(gradient is not None for gradient in of_the_determinant)), 0.0),
    )


@erratum("B13.1-6", printed="KL = −E_q[log p_z + log|det|] + entropy(q)", right="… − entropy(q)")
def the_entropy_is_subtracted() -> Correction:
    """Eq. 13.8 adds the entropy that 13.7 subtracts: q = N(0, 4) and x = z give 5.03, not 0.807 (book eq. 13.8)."""
    expected, entropy, divergence = wide_normal()
    flow = Flow(Permutation.reversal(1), GaussianBase((1,)).double())  # x = z
    by_the_flow = flow.log_prob(2 * torch.tensor([[-1.0], [1.0]], dtype=torch.float64)).mean()  # E x² = 4
    return Correction(
        printed=close(-expected + entropy, divergence, atol=1e-6),
        corrected=all_of(
            divergence=close(-expected - entropy, divergence, atol=1e-6),
            likelihood_of_a_flow=close(by_the_flow, expected, atol=1e-6),
        ),
    )


@erratum("B13.1-6", printed="−(1/N) Σ log p_z + log|det|", right="−(1/N) Σ [log p_z + log|det|]")
def sign_and_mean_apply_to_both_terms() -> Correction:
    """Without brackets sign and mean apply to the first term only, and the loss is not the NLL (book eq. 13.9)."""
    flow = random_flow()
    with torch.no_grad():
        x = torch.randn(500, 2, dtype=torch.float64)
        z, log_det = flow.transform.inverse(x)
        log_base = flow.base().log_prob(z)
        nll = -flow.log_prob(x).mean()
        return Correction(
            printed=close(-log_base.mean() + log_det.mean(), nll, atol=1e-6),
            corrected=close(-(log_base + log_det).mean(), nll, atol=1e-12),
        )

"""Claims about autoregressive flows: triangular Jacobians, numbers of passes, affine layers (book sec. 13.1)."""

import torch
from torch import Tensor, nn
from torch.func import jacrev

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.flows.autoregressive.autoregressive_flow import (
    AutoregressiveTransform,
    inverse_autoregressive_flow,
    masked_autoregressive_flow,
)
from parnassus.flows.autoregressive.conditioners import RecurrentConditioner, SeparateConditioners
from parnassus.flows.autoregressive.made import MADE
from parnassus.flows.autoregressive.synthesizers import AffineSynthesizer, SplineSynthesizer, Synthesizer
from parnassus.flows.flow import Flow, GaussianBase
from parnassus.layers import mlp, tanh

DIM = 5
SYNTHESIZERS: dict[str, Synthesizer] = {"affine": AffineSynthesizer(), "spline": SplineSynthesizer(bins=6, bound=3.0)}


class UnmaskedConditioner(nn.Module):
    """A conditioner that is not autoregressive: every h_i depends on all coordinates."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.network = mlp((DIM, 32, DIM * outputs), activation=tanh)

    def forward(self, z: Tensor) -> Tensor:
        h: Tensor = self.network(z)
        return h.reshape(len(z), DIM, -1)


def build_conditioners(outputs: int) -> dict[str, nn.Module]:
    """One smooth conditioner of each kind."""
    torch.manual_seed(0)
    return {
        "masked": MADE(DIM, outputs, hidden_sizes=(32, 32), activation=tanh).double(),
        "separate": SeparateConditioners(DIM, outputs, hidden_sizes=(16,), activation=tanh).double(),
        "recurrent": RecurrentConditioner(outputs, hidden_size=16).double(),
    }


def jacobian(flow: nn.Module, z: Tensor) -> Tensor:
    """∂z′/∂z at one point, by autograd."""
    matrix: Tensor = jacrev(lambda point: flow(point[None])[0][0])(z)
    return matrix.detach()


@claim("B13.1-8")
def the_jacobian_is_lower_triangular() -> Evidence:
    """∂z′/∂z is zero above the diagonal and nonzero below, for three kinds of conditioner (book eq. 13.15)."""
    z = torch.linspace(-1, 1, DIM, dtype=torch.float64)
    evidence: dict[str, Evidence] = {}
    for name, conditioner in build_conditioners(2).items():
        matrix = jacobian(AutoregressiveTransform(conditioner, AffineSynthesizer()), z)
        evidence[f"{name}_above"] = close(matrix.triu(1), 0.0)
        below = matrix[torch.ones_like(matrix).tril(-1).bool()]
        evidence[f"{name}_below"] = greater_equal(below.abs(), 1e-12)
    return all_of(**evidence)


@claim("B13.1-8", "B13.1-9")
def the_log_determinant_is_a_sum_over_the_diagonal() -> Evidence:
    """Σ_i log ∂τ/∂z_i equals log |det J| by autograd, unless h_i depends on z_i (book eqs. 13.16-13.17)."""
    z = torch.linspace(-2, 2, DIM, dtype=torch.float64)
    evidence: dict[str, Evidence] = {}
    for name, synthesizer in SYNTHESIZERS.items():
        for kind, conditioner in build_conditioners(synthesizer.size).items():
            flow = AutoregressiveTransform(conditioner, synthesizer)
            truth = torch.linalg.slogdet(jacobian(flow, z)).logabsdet
            evidence[f"{name}_{kind}"] = close(flow(z[None])[1][0].detach(), truth, atol=1e-10)
    free = AutoregressiveTransform(UnmaskedConditioner(2).double(), AffineSynthesizer())
    gap = free(z[None])[1][0].detach() - torch.linalg.slogdet(jacobian(free, z)).logabsdet
    return all_of(**evidence, without_masks=greater_equal(gap.abs(), 0.01))


@claim("B13.1-8")
def one_direction_takes_one_pass_and_the_other_d_passes() -> Evidence:
    """From z to z′ a masked conditioner takes one pass, from z′ to z D passes; MAF reverses IAF (book sec. 13.1)."""
    sizes = (1, 2, 4, 8, 16)
    forward_passes, inverse_passes = zip(*(_passes_per_direction(dim) for dim in sizes), strict=True)
    torch.manual_seed(0)
    maf, iaf = (family(3, AffineSynthesizer()) for family in (masked_autoregressive_flow, inverse_autoregressive_flow))
    return all_of(
        forward_passes=close(torch.tensor(forward_passes), 1),
        inverse_passes=close(torch.tensor(inverse_passes), torch.tensor(sizes)),
        maf_density=close(_count_passes(maf, maf.inverse), 5),
        maf_samples=close(_count_passes(maf, maf), 5 * 3),
        iaf_density=close(_count_passes(iaf, iaf.inverse), 5 * 3),
        iaf_samples=close(_count_passes(iaf, iaf), 5),
    )


@claim("B13.1-8")
def fixed_point_iteration_k_is_exact_in_k_coordinates() -> Evidence:
    """From any start, k iterations of z ← τ⁻¹(z′; c(z)) make the first k coordinates exact, D iterations all."""
    torch.manual_seed(1)
    flow = AutoregressiveTransform(build_conditioners(2)["masked"], AffineSynthesizer())
    z = torch.randn(20, DIM, dtype=torch.float64)
    with torch.no_grad():
        x, _ = flow(z)
        estimate, errors = torch.full_like(z, 7.0), []
        for iterations in range(1, DIM + 1):
            estimate, _ = flow.synthesizer.inverse(x, flow.condition(estimate))
            errors.append((estimate - z).abs()[:, :iterations].max())
        sequential, _ = flow.inverse(x)
    return all_of(
        first_k_exact=less_equal(torch.stack(errors), 1e-12),
        equals_sequential_inverse=close(sequential, estimate, atol=1e-12),
    )


@claim("B13.1-9")
def an_affine_synthesizer_keeps_its_scale_positive() -> Evidence:
    """α = exp(α̃) > 0 for any α̃, so that τ is invertible, and log ∂τ/∂z = α̃ (book eq. 13.17)."""
    log_scale = torch.linspace(-20, 20, 81, dtype=torch.float64)
    h = torch.stack([log_scale, torch.full_like(log_scale, 0.3)], -1)
    tau, z = AffineSynthesizer(), torch.full_like(log_scale, 1.7)
    x, log_derivative = tau(z, h)
    z_back, _ = tau.inverse(x, h)
    return all_of(
        derivative=close(log_derivative, log_scale),
        positive=greater_equal(tau(z + 1, h)[0] - x, 1e-9),
        inverse=close(z_back, z, rtol=1e-6),
    )


@claim("B13.1-9")
def affine_layers_have_gaussian_conditionals() -> Evidence:
    """In one dimension affine layers give a Gaussian; spline layers need not (book sec. 13.1)."""
    torch.manual_seed(2)
    line = torch.linspace(-3, 3, 121, dtype=torch.float64)[:, None]
    curvatures: dict[str, Tensor] = {}
    for name, synthesizer in SYNTHESIZERS.items():
        flow = Flow(masked_autoregressive_flow(1, synthesizer, num_layers=4), GaussianBase((1,)))
        for parameter in flow.parameters():
            nn.init.normal_(parameter, std=1.0)
        log_prob = flow.double().log_prob(line).detach()
        curvatures[name] = log_prob.diff(n=2) / 0.05**2  # constant for a Gaussian
    return all_of(
        affine=less_equal(curvatures["affine"].std() / curvatures["affine"].mean().abs(), 1e-6),
        spline=greater_equal(curvatures["spline"].std() / curvatures["spline"].mean().abs(), 0.1),
    )


def _passes_per_direction(dim: int) -> tuple[int, int]:
    """Evaluations of the conditioner by `forward` and by `inverse`."""
    flow = AutoregressiveTransform(MADE(dim, 2, hidden_sizes=(4,)), AffineSynthesizer())
    calls = _record_calls(flow)
    flow(torch.zeros(1, dim))
    forward_passes = len(calls)
    flow.inverse(torch.zeros(1, dim))
    return forward_passes, len(calls) - forward_passes


def _count_passes(flow: nn.Module, direction: object) -> int:
    calls = _record_calls(flow)
    assert callable(direction)
    direction(torch.zeros(1, 3))
    return len(calls)


def _record_calls(flow: nn.Module) -> list[None]:
    """A list that grows by one with every evaluation of a MADE of the flow."""
    calls: list[None] = []
    for part in flow.modules():
        if isinstance(part, MADE):
            part.register_forward_hook(lambda *_: calls.append(None))
    return calls

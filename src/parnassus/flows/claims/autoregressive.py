"""Claims about autoregressive flows: who hears whom, what a pass costs, what affine cannot do (book sec. 13.1)."""

import torch
from torch import Tensor, nn
from torch.func import jacrev

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.flows.autoregressive import Autoregressive, inverse_autoregressive_flow, masked_autoregressive_flow
from parnassus.flows.conditioners import RecurrentConditioner, SeparateConditioners
from parnassus.flows.flow import Flow, GaussianBase
from parnassus.flows.masked_network import MaskedNetwork
from parnassus.flows.synthesizers import AffineSynthesizer, SplineSynthesizer, Synthesizer
from parnassus.layers import mlp, tanh

DIM = 5
SYNTHESIZERS: dict[str, Synthesizer] = {"affine": AffineSynthesizer(), "spline": SplineSynthesizer(bins=6, bound=3.0)}


class Unmasked(nn.Module):
    """A conditioner that breaks the rule: every h_i hears all coordinates."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.network = mlp((DIM, 32, DIM * outputs), activation=tanh)

    def forward(self, z: Tensor) -> Tensor:
        h: Tensor = self.network(z)
        return h.reshape(len(z), DIM, -1)


def conditioners(outputs: int) -> dict[str, nn.Module]:
    """One of each kind, smooth, with weights far enough from zero to matter."""
    torch.manual_seed(0)
    return {
        "masked": MaskedNetwork(DIM, outputs, hidden=(32, 32), activation=tanh).double(),
        "separate": SeparateConditioners(DIM, outputs, hidden=(16,), activation=tanh).double(),
        "recurrent": RecurrentConditioner(outputs, width=16).double(),
    }


def jacobian(flow: nn.Module, z: Tensor) -> Tensor:
    """∂z′/∂z at one point, by autograd."""
    found: Tensor = jacrev(lambda point: flow(point[None])[0][0])(z)
    return found.detach()


@claim("B13.1-8")
def no_coordinate_hears_a_later_one() -> Evidence:
    """∂z′/∂z has zeros above its diagonal, none below, with three kinds of conditioner (book eq. 13.15)."""
    z = torch.linspace(-1, 1, DIM, dtype=torch.float64)
    found: dict[str, Evidence] = {}
    for name, conditioner in conditioners(2).items():
        matrix = jacobian(Autoregressive(conditioner, AffineSynthesizer()), z)
        found[f"{name}_above"] = close(matrix.triu(1), 0.0)
        below = matrix[torch.ones_like(matrix).tril(-1).bool()]
        found[f"{name}_below"] = at_least(below.abs(), 1e-12)
    return all_of(**found)


@claim("B13.1-8", "B13.1-9")
def the_log_determinant_is_a_sum_over_the_diagonal() -> Evidence:
    """Σ_i log ∂τ/∂z_i is autograd's log |det J|, and is not once h_i hears z_i (book eqs. 13.16-13.17)."""
    z = torch.linspace(-2, 2, DIM, dtype=torch.float64)
    found: dict[str, Evidence] = {}
    for name, synthesizer in SYNTHESIZERS.items():
        for kind, conditioner in conditioners(synthesizer.size).items():
            flow = Autoregressive(conditioner, synthesizer)
            truth = torch.linalg.slogdet(jacobian(flow, z)).logabsdet
            found[f"{name}_{kind}"] = close(flow(z[None])[1][0].detach(), truth, atol=1e-10)
    free = Autoregressive(Unmasked(2).double(), AffineSynthesizer())
    gap = free(z[None])[1][0].detach() - torch.linalg.slogdet(jacobian(free, z)).logabsdet
    return all_of(**found, without_masks=at_least(gap.abs(), 0.01))


@claim("B13.1-8")
def one_way_is_one_pass_and_the_other_one_a_coordinate() -> Evidence:
    """From z to z′ one asks a masked conditioner once, back D times; MAF and IAF swap the two (book sec. 13.1)."""
    sizes = (1, 2, 4, 8, 16)
    there, back = zip(*(_passes(dim) for dim in sizes), strict=True)
    torch.manual_seed(0)
    maf, iaf = (family(3, AffineSynthesizer()) for family in (masked_autoregressive_flow, inverse_autoregressive_flow))
    return all_of(
        there=close(torch.tensor(there), 1),
        back=close(torch.tensor(back), torch.tensor(sizes)),
        maf_density=close(_asked(maf, maf.inverse), 5),
        maf_samples=close(_asked(maf, maf), 5 * 3),
        iaf_density=close(_asked(iaf, iaf.inverse), 5 * 3),
        iaf_samples=close(_asked(iaf, iaf), 5),
    )


@claim("B13.1-8")
def pass_k_settles_coordinate_k() -> Evidence:
    """Started anywhere, k rounds of z ← τ⁻¹(z′; c(z)) put the first k coordinates right, D rounds all of them."""
    torch.manual_seed(1)
    flow = Autoregressive(conditioners(2)["masked"], AffineSynthesizer())
    z = torch.randn(20, DIM, dtype=torch.float64)
    with torch.no_grad():
        x, _ = flow(z)
        guess, wrong = torch.full_like(z, 7.0), []
        for rounds in range(1, DIM + 1):
            guess, _ = flow.synthesizer.inverse(x, flow.steering(guess))
            wrong.append((guess - z).abs()[:, :rounds].max())
        sequential, _ = flow.inverse(x)
    return all_of(
        settled=at_most(torch.stack(wrong), 1e-12),
        the_same_as_one_by_one=close(sequential, guess, atol=1e-12),
    )


@claim("B13.1-9")
def an_affine_synthesizer_keeps_its_scale_positive() -> Evidence:
    """α = exp(α̃) > 0 for any α̃, so τ can be undone, and log ∂τ/∂z = α̃ itself (book eq. 13.17)."""
    log_scale = torch.linspace(-20, 20, 81, dtype=torch.float64)
    h = torch.stack([log_scale, torch.full_like(log_scale, 0.3)], -1)
    tau, z = AffineSynthesizer(), torch.full_like(log_scale, 1.7)
    x, log_slope = tau(z, h)
    back, _ = tau.inverse(x, h)
    return all_of(
        slope=close(log_slope, log_scale),
        positive=at_least(tau(z + 1, h)[0] - x, 1e-9),
        undone=close(back, z, rtol=1e-6),
    )


@claim("B13.1-9")
def affine_layers_leave_each_conditional_normal() -> Evidence:
    """In one coordinate any number of affine layers is a Gaussian; a spline layer need not be (book sec. 13.1)."""
    torch.manual_seed(2)
    line = torch.linspace(-3, 3, 121, dtype=torch.float64)[:, None]
    bends: dict[str, Tensor] = {}
    for name, synthesizer in SYNTHESIZERS.items():
        flow = Flow(masked_autoregressive_flow(1, synthesizer, layers=4), GaussianBase((1,)))
        for parameter in flow.parameters():
            nn.init.normal_(parameter, std=1.0)
        log_prob = flow.double().log_prob(line).detach()
        bends[name] = log_prob.diff(n=2) / 0.05**2  # constant for a Gaussian
    return all_of(
        affine=at_most(bends["affine"].std() / bends["affine"].mean().abs(), 1e-6),
        spline=at_least(bends["spline"].std() / bends["spline"].mean().abs(), 0.1),
    )


def _passes(dim: int) -> tuple[int, int]:
    """How often the conditioner is asked on the way there and on the way back."""
    flow = Autoregressive(MaskedNetwork(dim, 2, hidden=(4,)), AffineSynthesizer())
    seen = _count(flow)
    flow(torch.zeros(1, dim))
    there = len(seen)
    flow.inverse(torch.zeros(1, dim))
    return there, len(seen) - there


def _asked(flow: nn.Module, direction: object) -> int:
    seen = _count(flow)
    assert callable(direction)
    direction(torch.zeros(1, 3))
    return len(seen)


def _count(flow: nn.Module) -> list[None]:
    """A list that grows whenever a masked network of the flow is asked."""
    seen: list[None] = []
    for part in flow.modules():
        if isinstance(part, MaskedNetwork):
            part.register_forward_hook(lambda *_: seen.append(None))
    return seen

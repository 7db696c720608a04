"""Claims about layers at finite and infinite width, and training at finite width (book secs. 15.2-15.4)."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.kernels.finite_width.empirical_ntk import empirical_ntk
from parnassus.kernels.finite_width.width_effects import kernel_statistics, train_and_measure
from parnassus.kernels.infinite_width.kernel_state import KernelState
from parnassus.kernels.infinite_width.layer import Activation, Dense
from parnassus.kernels.infinite_width.network import Network, fully_connected
from parnassus.kernels.infinite_width.nonlinearity import GELU, Cosine, Erf, LeakyReLU, Nonlinearity, ReLU, Sine
from parnassus.kernels.infinite_width.pooling import AveragePooling, Flatten
from parnassus.kernels.infinite_width.quadrature import Quadrature
from parnassus.kernels.infinite_width.residual import Parallel
from parnassus.kernels.infinite_width.trainable_dense import TrainableDense
from parnassus.kernels.training_dynamics.gradient_flow import GradientFlow
from parnassus.probability import standard_normal

INPUTS = torch.tensor([[0.6, -0.8, 0.3], [1.0, 0.2, -0.5], [-0.4, 0.1, 0.9]], dtype=torch.float64)


def outputs_of_random_networks(network: Network, x: Tensor, count: int, *, width: int) -> Tensor:
    """Outputs of `count` random networks of one width, one row each."""
    torch.manual_seed(0)
    return torch.stack([network.module(x.shape[1:], width).double()(x)[:, 0].detach() for _ in range(count)])


@claim("B15.2-2", "B15.3-1")
def a_dense_layer_has_its_covariance_at_every_width() -> Evidence:
    """Cov f(x)f(x′) = v xᵀx′/d + b of the module, exactly Gaussian, and its NTK is the same (book eqs. 15.13-15.17)."""
    layer = Dense(weight_variance=1.7, bias_variance=0.4)
    state = layer.kernel(KernelState.from_inputs(INPUTS, INPUTS[:2]))
    exact = 1.7 * INPUTS @ INPUTS[:2].mT / 3 + 0.4
    torch.manual_seed(0)
    module, shape = layer.module((3,), 40_000)
    u = module.double()(INPUTS).detach()
    kurtosis = (u**4).mean(1) / u.square().mean(1).square()
    one, _ = layer.module((3,), 1)
    return all_of(
        nngp=close(state.nngp, exact, rtol=1e-12),
        ntk=close(state.ntk if state.ntk is not None else torch.nan, exact, rtol=1e-12),
        variances=close(state.left, 1.7 * INPUTS.square().sum(1) / 3 + 0.4, rtol=1e-12),
        covariance_of_units=close((u @ u.mT / 40_000)[:, :2], exact, atol=0.03),
        fourth_moment=close(kurtosis, 3.0, atol=0.1),
        empirical_ntk=close(empirical_ntk(one.double(), INPUTS)[:, :2], exact, rtol=1e-9),
        shape=close(torch.tensor(shape), 40_000),
    )


@claim("B15.2-3", "B15.3-4")
def closed_forms_of_expectations_agree_with_quadrature() -> Evidence:
    """E σ(u)σ(v), E σ′(u)σ′(v) and E σ(u)² of six nonlinearities, on a fine grid of the plane (book eqs. 15.19-21).

    The Gauss-Hermite rule of forty nodes agrees for the smooth ones.
    """
    cross, left, right = (torch.tensor(value, dtype=torch.float64) for value in (0.35, 0.9, 0.6))
    axis = torch.linspace(-8, 8, 1_201, dtype=torch.float64)
    z = torch.cartesian_prod(axis, axis)
    mass = torch.exp(-z.square().sum(1) / 2)
    mass = mass / mass.sum()
    u = left.sqrt() * z[:, 0]
    v = cross / left.sqrt() * z[:, 0] + (right - cross**2 / left).sqrt() * z[:, 1]
    slopes: dict[str, tuple[Nonlinearity, Callable[[Tensor], Tensor]]] = {
        "relu": (ReLU(), lambda x: (x > 0).double()),
        "leaky_relu": (LeakyReLU(0.2), lambda x: torch.where(x > 0, 1.0, 0.2).double()),
        "erf": (Erf(), lambda x: 2 / torch.pi**0.5 * torch.exp(-x.square())),
        "gelu": (GELU(), lambda x: torch.special.ndtr(x) + x * torch.exp(-x.square() / 2) / (2 * torch.pi) ** 0.5),
        "sine": (Sine(), torch.cos),
        "cosine": (Cosine(), lambda x: -torch.sin(x)),
    }
    parts = {}
    for name, (nonlinearity, slope) in slopes.items():
        found = nonlinearity.expect(cross, left, right)
        error = 1e-3 if "relu" in name else 1e-9
        parts[f"value_{name}"] = close(found[0], (mass * nonlinearity(u) * nonlinearity(v)).sum(), atol=error)
        parts[f"derivative_{name}"] = close(found[1], (mass * slope(u) * slope(v)).sum(), atol=10 * error)
        parts[f"moment_{name}"] = close(
            nonlinearity.second_moment(left), (mass * nonlinearity(u).square()).sum(), atol=error
        )
        if "relu" not in name:
            rule = Quadrature(nonlinearity).expect(cross, left, right)
            parts[f"rule_{name}"] = close(torch.stack(rule), torch.stack(found), atol=1e-6)
    return all_of(**parts)


@claim("B15.3-3")
def the_module_of_a_fully_connected_network_is_its_formula() -> Evidence:
    """F = W³√(c/d₂)σ(W²√(c/d₁)σ(W¹x)), standard normal weights, W¹ not divided; outputs have the NNGP kernel."""
    network = fully_connected(2, Erf())
    torch.manual_seed(0)
    module = network.module((3,), 5).double()
    w = [part for part in module.parameters() if part.ndim == 2]
    c = 1 / Erf().second_moment(torch.tensor(1.0, dtype=torch.float64))
    h = torch.erf(INPUTS @ w[0].mT)
    h = torch.erf((c / 5) ** 0.5 * h @ w[1].mT)
    wide = outputs_of_random_networks(network, INPUTS, 3_000, width=60)
    return all_of(
        outputs=close(module(INPUTS), (c / 5) ** 0.5 * h @ w[2].mT, rtol=1e-5),
        standard_normal_weights=close(
            torch.cat([part.flatten() for part in network.module((3,), 300).parameters()]).std(), 1.0, atol=0.02
        ),
        covariance=close(wide.mT @ wide / len(wide), network.nngp(INPUTS), atol=0.1),
    )


@claim("B15.3-4")
def pooling_and_branches_map_kernels_as_modules_do() -> Evidence:
    """Means over 2 × 2 squares of both positions; kernels of branches add."""
    images = standard_normal(3, 2, 4, 4)
    pooled = Network((AveragePooling(2), Flatten(), Dense(1.3, 0.2)))
    small = torch.stack([images[:, :, i : i + 2, j : j + 2].mean((2, 3)) for i in (0, 2) for j in (0, 2)], 2)
    exact = 1.3 * torch.einsum("ncp,mcp->nm", small, small) / (2 * 4) + 0.2
    branches = (Network((Dense(0.7, 0.1),)), Network((Dense(1.1), Activation(Erf()), Dense(0.5))))
    both = Network((Parallel(branches),))
    samples = outputs_of_random_networks(both, INPUTS, 4_000, width=50)
    return all_of(
        pooling=close(pooled.nngp(images), exact, atol=1e-12),
        sum_of_branches=close(both.nngp(INPUTS), sum(branch.nngp(INPUTS) for branch in branches), rtol=1e-12),
        tangent_of_branches=close(
            both.kernels(INPUTS).ntk, sum(branch.kernels(INPUTS).ntk for branch in branches), rtol=1e-12
        ),
        sampled_branches=close(samples.mT @ samples / len(samples), both.nngp(INPUTS), atol=0.06),
        module=close(pooled.layers[0].module((2, 4, 4), 1)[0](images), small.unflatten(2, (2, 2)), atol=1e-12),
    )


@claim("B15.1-6")
def trainable_variances_have_the_kernels_of_fixed_ones() -> Evidence:
    """With v = 1.7 and b = 0.4 both kernels are those of `Dense`, and gradients those of v and b (book sec. 15.1)."""
    trainable = Network((TrainableDense(1.7, 0.4), Activation(Erf()), Dense(1.2, 0.1)))
    step = 1e-6

    def total(weight: float, bias: float) -> Tensor:
        network = Network((Dense(weight, bias), Activation(Erf()), Dense(1.2, 0.1)))
        return torch.stack(network.kernels(INPUTS)).sum()

    found = torch.stack(trainable.kernels(INPUTS))
    parameters = [part for layer in trainable.trainable_layers() for part in layer.parameters()]
    gradients = torch.autograd.grad(found.sum(), parameters)
    exact = (
        1.7 * (total(1.7 + step, 0.4) - total(1.7 - step, 0.4)) / (2 * step),
        0.4 * (total(1.7, 0.4 + step) - total(1.7, 0.4 - step)) / (2 * step),
    )
    return all_of(
        total=close(found.detach().sum(), total(1.7, 0.4), rtol=1e-6),
        gradients=close(torch.stack(gradients), torch.stack(exact), rtol=1e-4),
    )


@claim("B15.4-4", "B15.4-6")
def training_of_a_linear_model_is_the_formula_of_its_modes() -> Evidence:
    """(1 − ηλ)^τ of the residual remains in each mode after τ steps; the kernel of a linear model is constant."""
    torch.manual_seed(0)
    model, x, y = nn.Linear(3, 1, bias=False).double(), INPUTS, standard_normal(3, 1, seed=4)
    start, before = model(x).detach(), model.weight.detach().clone()
    record = train_and_measure(model, x, y, learning_rate=0.2, steps=30, records=4)
    flow = GradientFlow.from_kernel(x @ x.mT)
    expected = [flow.outputs(start, y, flow.progress_after(int(step), learning_rate=0.2)) for step in record.steps]
    by_loop, weight = start, before
    for _ in range(30):
        weight = weight - 0.2 * (x @ weight.mT - y).mT @ x
        by_loop = x @ weight.mT
    return all_of(
        outputs=close(record.outputs, torch.stack(expected), atol=1e-12),
        last_output=close(record.outputs[-1], by_loop, atol=1e-12),
        kernel=close(record.kernel_change, 0.0, atol=1e-12),
        parameters=close(record.parameter_change[-1], (weight - before).norm() / before.norm(), rtol=1e-9),
        something_is_learned=greater_equal((by_loop - start).norm(), 0.3),
    )


@claim("B15.4-11")
def statistics_of_empirical_kernels_are_those_of_their_draws() -> Evidence:
    """Mean, deviation and its error over random networks; the mean is near the limit at width 100 (book sec. 15.4)."""
    network = Network((Dense(), Activation(Erf()), Dense()))

    def sample() -> nn.Module:
        return network.module((3,), 100).double()

    torch.manual_seed(0)
    found = kernel_statistics(sample, INPUTS, draws=40)
    torch.manual_seed(0)
    kernels = torch.stack([empirical_ntk(sample(), INPUTS) for _ in range(40)])
    deviation = ((kernels - kernels.mean(0)).square().sum(0) / 39).sqrt()
    return all_of(
        mean=close(found.mean, kernels.mean(0), rtol=1e-12),
        std=close(found.std, deviation, rtol=1e-9),
        standard_error=close(found.standard_error, deviation / 40**0.5, rtol=1e-9),
        distance_to_the_limit=less_equal((found.mean - network.kernels(INPUTS).ntk).abs() / found.standard_error, 4.0),
    )

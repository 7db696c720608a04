"""Claims about deep networks of growing width: exact results and O(1/width) corrections (book sec. 15.3)."""

import torch
from torch import Tensor
from torch.func import grad

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, rate
from parnassus.kernels.gaussian_processes.gp_regression import GPRegression
from parnassus.kernels.infinite_width.layer import ScaledLinear
from parnassus.kernels.infinite_width.network import fully_connected
from parnassus.kernels.infinite_width.nngp_and_ntk import NNGP, NTK
from parnassus.kernels.infinite_width.nonlinearity import Erf, Identity, Nonlinearity, ReLU, normaliser
from parnassus.kernels.infinite_width.quadrature import Quadrature, gauss_hermite
from parnassus.probability import seeded_generator, standard_normal

UNIT = torch.tensor([[1.0, 0.0], [0.6, 0.8]], dtype=torch.float64)
TANH = Quadrature(torch.tanh, 80)


def features(nonlinearity: Nonlinearity, widths: tuple[int, ...], draws: int, x: Tensor = UNIT) -> Tensor:
    """g^L(x) of `draws` networks with these hidden widths, (draws, inputs, last width) (book eqs. 15.28-15.31)."""
    gain, random = normaliser(nonlinearity), seeded_generator(sum(widths))
    g = x.expand(draws, *x.shape)
    for width in widths:
        weight = torch.randn(draws, g.shape[2], width, generator=random, dtype=torch.float64)
        g = (gain / width) ** 0.5 * nonlinearity(g @ weight)
    return g


@claim("B15.3-1")
def ntk_scaling_keeps_outputs_and_divides_gradients_by_the_root_of_the_width() -> Evidence:
    """1/√d₁ in forward pass or weights: outputs equal in distribution, ‖∂z/∂W²‖² ∝ 1 or d₁ (book eq. 15.26)."""
    widths = (16, 64, 256, 1024)
    forward, initial, differences = [], [], []
    for width in widths:
        torch.manual_seed(0)
        y = (UNIT[:1] @ torch.randn(2, width, dtype=torch.float64)).relu()
        scaled = ScaledLinear(width, 400, width**-0.5, 0.0).double()
        plain = torch.nn.Linear(width, 400, bias=False, dtype=torch.float64)
        with torch.no_grad():
            plain.weight.copy_(scaled.weight * width**-0.5)
        outputs = [layer(y)[0] for layer in (scaled, plain)]
        differences.append(outputs[0].detach() - outputs[1].detach())
        gradients = [
            torch.autograd.grad(z[0], list(layer.parameters()))[0]
            for z, layer in zip(outputs, (scaled, plain), strict=True)
        ]
        forward.append(gradients[0].square().sum())
        initial.append(gradients[1].square().sum())
    ratio = torch.stack(initial) / torch.stack(forward)
    return all_of(
        same_outputs=close(torch.stack(differences), 0.0, atol=1e-13),
        forward_scaling_is_constant=close(torch.stack(forward), 0.5, rtol=0.6),
        ratio_is_the_width=close(ratio, torch.tensor(widths), rtol=1e-12),
    )


@claim("B15.3-2")
def normalisers_of_four_activations() -> Evidence:
    """c_σ = 1/E σ(z)²: ReLU 2, tanh 2.536175, erf 2.152579, sigmoid 3.408560 (book eq. 15.27)."""
    constants = [normaliser(sigma) for sigma in (ReLU(), TANH, Erf(), Quadrature(torch.sigmoid))]
    return close(torch.tensor(constants), torch.tensor([2.0, 2.536175, 2.152579, 3.408560]), atol=1e-6)


@erratum("B15.3-2", printed="c_σ = (E[σ(z)]²)⁻¹", right="c_σ = (E[σ(z)²])⁻¹")
def the_normaliser_uses_the_mean_of_the_square() -> Correction:
    """With the printed square of a mean, ReLU's constant is 2π: activations grow by π per layer (book eq. 15.27)."""
    z, weight = gauss_hermite(200)
    mean, square = weight @ z.relu(), weight @ z.relu() ** 2
    tanh_mean = weight @ z.tanh()
    return Correction(
        printed=close(square / mean**2, 1.0, rtol=0.01),
        corrected=all_of(
            normalised_mean_square=close(normaliser(ReLU()) * square, 1.0, rtol=1e-10),
            printed_constant_is_two_pi=close(1 / mean**2, 2 * torch.pi, rtol=0.01),
            odd_activations_have_mean_zero=less_equal(tanh_mean.abs(), 1e-12),
        ),
    )


@claim("B15.3-3")
def activations_keep_unit_norm() -> Evidence:
    """‖x‖ = 1 gives E‖g^l‖² → 1 at every layer, for tanh, erf and ReLU (book eqs. 15.28-15.32)."""
    squared_norms = torch.stack(
        [
            features(sigma, (200,) * depth, 20).square().sum(2).mean()
            for sigma in (Quadrature(torch.tanh), Erf(), ReLU())
            for depth in (1, 2, 3)
        ]
    )
    return close(squared_norms, 1.0, atol=0.08)


@claim("B15.3-3")
def relu_keeps_the_mean_square_at_every_width() -> Evidence:
    """For ReLU E f² = ‖x‖² exactly, at width 1 as at depth 3, for inputs of any length (book eq. 15.32)."""
    x = torch.tensor([[1.0, 0.0], [3.0, 4.0], [-0.1, 0.2]], dtype=torch.float64)
    z_scores = []
    for widths in ((1,), (2,), (4, 4), (8, 8, 8)):
        square = features(ReLU(), widths, 40_000, x).square().sum(2) / x.square().sum(1)
        z_scores.append((square.mean(0) - 1) / (square.std(0) / len(square) ** 0.5))
    erf = features(Erf(), (2, 2), 20_000).square().sum(2)[:, 0]
    return all_of(
        in_standard_errors=less_equal(torch.stack(z_scores).abs(), 4.0),
        erf_differs=greater_equal((erf.mean() - 1).abs() / (erf.std() / len(erf) ** 0.5), 10.0),
    )


@claim("B15.3-4")
def closed_form_quadrature_and_simulation_agree() -> Evidence:
    """Σ^l in closed form, by Gauss-Hermite quadrature and by sampling (u, v) agree (book eqs. 15.33-15.44)."""
    chains = {}
    for sigma in (ReLU(), Erf()):
        quadrature = Quadrature(sigma, 60)
        chains[sigma] = [fully_connected(3, kind).nngp(UNIT)[0, 1] for kind in (sigma, quadrature)]
    u = standard_normal(300_000, 2) @ UNIT.mT
    samples = normaliser(Erf()) * u.erf().prod(1)
    return all_of(
        relu=close(chains[ReLU()][1], chains[ReLU()][0], atol=5e-3),  # quadrature converges slowly at a kink
        erf=close(chains[Erf()][1], chains[Erf()][0], atol=1e-9),
        sampled=close(
            samples.mean(), fully_connected(1, Erf()).nngp(UNIT)[0, 1], atol=4 * float(samples.std()) / 300_000**0.5
        ),
    )


def second_layer_bias(nonlinearity: Nonlinearity, width: int, draws: int) -> Tensor:
    """E[Σ²] − Σ² at first width n with the second layer integrated exactly, for Σ(x, x') and Σ(x, x).

    Given W¹ the next covariance is K(Q) with Q = (⟨g¹, g¹'⟩). E Q is exact, so the linear part of K is subtracted from
    each draw as a control variate.
    """
    first = fully_connected(1, nonlinearity).nngp(UNIT)
    limit = torch.stack([first[0, 0], first[1, 1], first[0, 1]])
    g = features(nonlinearity, (width,), draws)
    q = torch.cat([g.square().sum(2), g.prod(1).sum(1)[:, None]], 1)

    def off_diagonal(q: Tensor) -> Tensor:
        return nonlinearity.expect(q[..., 2], q[..., 0], q[..., 1]).value

    def diagonal(q: Tensor) -> Tensor:
        return nonlinearity.second_moment(q[..., 0])

    nonlinear = [kernel(q) - kernel(limit) - (q - limit) @ grad(kernel)(limit) for kernel in (off_diagonal, diagonal)]
    return normaliser(nonlinearity) * torch.stack(nonlinear).mean(1)


@claim("B15.3-4")
def the_covariance_of_two_layers_has_a_bias_of_one_over_the_width() -> Evidence:
    """At L = 2 and cosine 0.6 ReLU's E⟨g, g'⟩ has bias about −0.07/n off the diagonal, 0 on it (book eq. 15.44)."""
    widths = (8, 16, 32, 64)
    biases = torch.stack([second_layer_bias(ReLU(), width, 40_000) for width in widths])
    tanh = second_layer_bias(Quadrature(torch.tanh, 20), 32, 4_000)
    return all_of(
        slope=rate(torch.tensor(widths), -biases[:, 0], -1.0, atol=0.1),
        bias_times_width=close(biases[:, 0] * torch.tensor(widths), -0.075, atol=0.015),
        exact_on_the_diagonal=close(biases[:, 1], 0.0, atol=1e-14),
        tanh_off_the_diagonal=close(32 * tanh[0], -0.1, atol=0.03),
        tanh_on_the_diagonal=close(32 * tanh[1], -0.14, atol=0.03),
    )


@claim("B15.3-4")
def inner_products_fluctuate_by_one_over_the_root_of_the_width() -> Evidence:
    """⟨g(x), g(x')⟩ of one random network has a standard deviation of O(1/√n) (book sec. 15.3)."""
    widths = (8, 32, 128, 512)
    deviations = [features(ReLU(), (width,), 2_000).prod(1).sum(1).std() for width in widths]
    return rate(torch.tensor(widths), torch.stack(deviations), -0.5, atol=0.03)


@claim("B15.3-4")
def relu_correlations_rise_to_one_with_depth() -> Evidence:
    """ReLU's correlation rises to 1 with 1 − ρ_L → 9π²/2L²; erf's, without a bias, falls to 0 (book sec. 15.3)."""
    opposite = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    few = torch.stack([fully_connected(depth, ReLU()).nngp(opposite)[0, 1:] for depth in (1, 2, 4, 8, 16)])
    depths = (250, 500, 1_000, 2_000)
    gaps = torch.stack([1 - fully_connected(depth, ReLU()).nngp(UNIT)[0, 1] for depth in depths])
    erf = torch.stack([fully_connected(depth, Erf()).nngp(UNIT)[0, 1] for depth in (1, 10, 40)])
    return all_of(
        relu_correlation_increases=greater_equal(few.diff(dim=0), 0.0),
        slope=rate(torch.tensor(depths), gaps, -2.0, atol=0.06),
        limit_constant=close(gaps[-1] * depths[-1] ** 2, 9 * torch.pi**2 / 2, rtol=0.05),
        erf_correlation_decreases=less_equal(erf.diff(), 0.0),
        erf_correlation_at_40_layers=less_equal(erf[-1], 0.05),
    )


@claim("B15.3-4", "B15.4-11")
def without_a_bias_relu_kernels_on_a_line_have_rank_two() -> Evidence:
    """ReLU without bias on 1-D inputs: Σ^L and K* have rank 2; a bias or a constant coordinate makes them regular."""
    line = torch.linspace(-1, 1, 8, dtype=torch.float64)[:, None]
    angle = 2 * torch.pi * torch.arange(8, dtype=torch.float64) / 8
    circle = torch.stack([angle.cos(), angle.sin()], 1)
    constant = torch.cat([line, torch.ones_like(line)], 1)
    network = fully_connected(1, ReLU())
    third = [torch.linalg.eigvalsh(kernel(network)(line))[-3] for kernel in (NNGP, NTK)]

    def smallest_eigenvalue(x: Tensor, *, bias: float = 0.0, depth: int = 1) -> Tensor:
        spectrum: Tensor = torch.linalg.eigvalsh(NTK(fully_connected(depth, ReLU(), bias_variance=bias))(x))
        return spectrum[0]

    return all_of(
        rank_two=less_equal(torch.stack(third).abs(), 1e-7),  # square roots of rounding errors
        constant_coordinate=close(smallest_eigenvalue(constant), 0.0484, atol=1e-4),
        bias=close(smallest_eigenvalue(line, bias=1.0), 0.0484, atol=1e-4),
        an_arc=greater_equal(smallest_eigenvalue(circle[:4]), 0.1),
        a_full_circle_lacks_the_third_harmonic=less_equal(smallest_eigenvalue(circle).abs(), 1e-12),
        two_layers_have_it=greater_equal(smallest_eigenvalue(circle, depth=2), 0.01),
    )


@claim("B15.3-4")
def odd_activations_without_a_bias_give_odd_functions() -> Evidence:
    """Without a bias erf and tanh make f odd: Σ^L(x, −x) = −Σ^L(x, x), and x with −x is singular (book sec. 15.3)."""
    x = torch.cat([UNIT, -UNIT])
    smallest = {}
    for bias in (0.0, 0.5):
        for name, sigma in (("erf", Erf()), ("tanh", Quadrature(torch.tanh))):
            smallest[name, bias] = torch.linalg.eigvalsh(fully_connected(2, sigma, bias_variance=bias).nngp(x))[0]
    kernel = fully_connected(2, Erf()).nngp(x)
    return all_of(
        odd=close(kernel[:2, 2:], -kernel[:2, :2], atol=1e-15),
        singular=less_equal(torch.stack([smallest["erf", 0.0], smallest["tanh", 0.0]]).abs(), 1e-13),
        regular_with_a_bias=greater_equal(torch.stack([smallest["erf", 0.5], smallest["tanh", 0.5]]), 1e-3),
    )


@claim("B15.3-5")
def nngp_regression_is_bayesian_regression_on_the_readout_of_a_wide_network() -> Evidence:
    """Ridge regression on random features g^L tends to the NNGP posterior mean at rate O(1/√n) (book sec. 15.3)."""
    random = seeded_generator(5)
    x, new = (torch.randn(count, 3, generator=random, dtype=torch.float64) for count in (10, 6))
    t = x[:, 0].sin() + x[:, 1]
    posterior = GPRegression.fit(NNGP(fully_connected(1, ReLU())), x, t, noise_variance=0.1).predict(new)
    widths = (128, 512, 2_048)
    errors = []
    for width in widths:
        g = features(ReLU(), (width,), 100, torch.cat([x, new]))
        kernel = g @ g.mT
        weights = torch.linalg.solve(kernel[:, :10, :10] + 0.1 * torch.eye(10), t.expand(100, 10))
        ridge = torch.einsum("dmn,dn->dm", kernel[:, 10:, :10], weights)
        errors.append((ridge - posterior.mean).square().mean().sqrt())
    linear = GPRegression.fit(NNGP(fully_connected(1, Identity())), x, t, noise_variance=0.1).predict(new)
    weights = torch.linalg.solve(x.mT @ x + 0.1 * torch.eye(3), x.mT @ t)
    return all_of(
        slope=rate(torch.tensor(widths), torch.stack(errors), -0.5, atol=0.12),
        identity_is_linear_regression=close(linear.mean, new @ weights, atol=1e-9),
    )

"""Claims about one hidden layer with random weights: Gaussianity and its width (book sec. 15.2)."""

from math import acos, pi

import torch
from scipy import stats
from torch import Tensor

from parnassus.atlas import (
    Correction,
    Evidence,
    accepts,
    all_of,
    claim,
    close,
    erratum,
    greater_equal,
    less_equal,
    rate,
    rejects,
)
from parnassus.kernels.infinite_width.layer import Activation, Dense
from parnassus.kernels.infinite_width.network import Network
from parnassus.kernels.infinite_width.nonlinearity import Erf, Nonlinearity, ReLU
from parnassus.kernels.infinite_width.quadrature import gauss_hermite

COSINE = 0.6
KERNEL = (0.8 + (pi - acos(COSINE)) * COSINE) / pi
"""c_σ E σσ = (sin θ + (π − θ) cos θ) / π = 0.67755 for two unit vectors with this cosine."""
UNIT = torch.tensor([[1.0, 0.0], [COSINE, 0.8]], dtype=torch.float64)


def hidden(draws: int, width: int, *, seed: int = 0, x: Tensor = UNIT) -> Tensor:
    """Pre-activations W¹x of `draws` networks, (draws, width, inputs)."""
    torch.manual_seed(seed)
    module, _ = Dense(divide=False).module((x.shape[1],), draws * width)
    units: Tensor = module.double()(x).detach().mT
    return units.view(draws, width, len(x))


def conditional_variance(nonlinearity: Nonlinearity, draws: int, width: int) -> Tensor:
    """Q = Σ_j σ(u_j)² / d₁ of the first input: given W¹, z is N(0, Q), so E z² = E Q and E z⁴ = 3 E Q²."""
    return nonlinearity(hidden(draws, width, x=UNIT[:1])[..., 0]).square().mean(1)


@claim("B15.2-1")
def the_network_description_is_the_books_network() -> Evidence:
    """The network is z = W² σ(W¹x), W¹ ~ N(0, σ_W²), W² ~ N(0, σ_W²/d₁), no biases (book eqs. 15.11-15.12)."""
    torch.manual_seed(0)
    network = Network((Dense(1.3, divide=False), Activation(ReLU()), Dense(1.3)))
    module = network.module((2,), 5, outputs=3).double()
    first, second = (parameter.detach() for parameter in module.parameters())
    by_formula = (1.3 / 5) ** 0.5 * second @ (1.3**0.5 * first @ UNIT.mT).relu()
    return all_of(
        equals_the_formula=close(module(UNIT).detach().mT, by_formula, atol=1e-14),
        no_biases=close(float(sum(1 for _ in module.parameters())), 2.0),
        kernel=close(network.nngp(UNIT)[0, 1], 1.3**2 * KERNEL / 2, atol=1e-12),
    )


@claim("B15.2-2")
def pre_activations_are_gaussian_at_width_one() -> Evidence:
    """W¹x is N(0, (xᵀx')) at every width with independent units, without a limit (book eqs. 15.13-15.17)."""
    u = hidden(40_000, 2)
    across = u.flatten(1)
    covariance = across.mT @ across / len(u)
    exact = torch.block_diag(UNIT @ UNIT.mT, UNIT @ UNIT.mT)
    mixed = (u[:, 0, 0] + u[:, 0, 1]) / (2 + 2 * COSINE) ** 0.5  # any linear combination must be normal too
    squares = across.square()
    return all_of(
        covariance=close(covariance, exact, atol=0.03),
        normal=accepts(float(stats.kstest(u[:, 0, 0].numpy(), "norm").pvalue)),
        linear_combination_is_normal=accepts(float(stats.kstest(mixed.numpy(), "norm").pvalue)),
        units_independent=close(torch.corrcoef(squares.mT)[:2, 2:], 0.0, atol=0.025),
    )


@claim("B15.2-3")
def the_covariance_is_exact_at_every_width() -> Evidence:
    """E z(x)z(x') is the kernel at d₁ = 1 as at d₁ = 128, without a limit (book eq. 15.21)."""
    covariances, errors = [], []
    for width in (1, 2, 4, 8, 32, 128):
        u = hidden(400_000 // width, width, seed=width)
        products = 2 * (u[..., 0].relu() * u[..., 1].relu()).mean(1)
        covariances.append(products.mean())
        errors.append(products.std() / len(products) ** 0.5)
    return all_of(
        covariance=close(torch.stack(covariances), KERNEL, atol=4 * float(torch.stack(errors).max())),
        sampling_error=less_equal(torch.stack(errors), 0.003),
        kernel=close(
            Network((Dense(divide=False), Activation(ReLU()), Dense(2.0))).nngp(UNIT)[0, 1], KERNEL, atol=1e-12
        ),
    )


@claim("B15.2-3")
def excess_kurtosis_falls_with_the_width() -> Evidence:
    """The excess kurtosis of z is 3(m₄/m₂² − 1)/d₁, which is 15/d₁ for ReLU; m_k = E σ(u)ᵏ (book eqs. 15.22-15.25)."""
    widths = (1, 2, 4, 8, 32, 128)
    excess = []
    for width in widths:
        q = conditional_variance(ReLU(), max(20_000, 400_000 // width), width)
        excess.append(3 * (q.square().mean() / q.mean().square() - 1))
    q = conditional_variance(Erf(), 40_000, 4)
    z, weight = gauss_hermite(80)
    m_2, m_4 = weight @ z.erf() ** 2, weight @ z.erf() ** 4
    scaled = torch.stack(excess) * torch.tensor(widths)
    return all_of(
        kurtosis_times_width=close(scaled, 15.0, rtol=0.06),
        slope=rate(torch.tensor(widths), torch.stack(excess), -1.0, atol=0.03),
        erf=close(3 * (q.square().mean() / q.mean().square() - 1), 3 * (m_4 / m_2**2 - 1) / 4, rtol=0.05),
    )


@claim("B15.2-3")
def non_gaussianity_is_detected_at_small_widths_only() -> Evidence:
    """A normality test rejects z for four hidden units, but not for two thousand (book sec. 15.2)."""
    generator = torch.Generator().manual_seed(3)

    def p_value(width: int) -> float:
        q = 2 * conditional_variance(ReLU(), 1_500, width)
        z = q.sqrt() * torch.randn(len(q), generator=generator, dtype=torch.float64)
        return float(stats.kstest(z.numpy(), "norm").pvalue)

    return all_of(rejected_at_width_4=rejects(p_value(4)), not_rejected_at_width_2000=accepts(p_value(2_000)))


@claim("B15.2-3")
def outputs_are_uncorrelated_but_not_independent() -> Evidence:
    """Two outputs share W¹: E z₁z₂ = 0 at every width, but Cov(z₁², z₂²) = 5/d₁ (book sec. 15.2)."""
    widths = (1, 4, 16, 64)
    generator = torch.Generator().manual_seed(0)
    product, squares = [], []
    for width in widths:
        q = 2 * conditional_variance(ReLU(), 100_000 // max(1, width // 4), width)
        z = q.sqrt()[:, None] * torch.randn(len(q), 2, generator=generator, dtype=torch.float64)
        product.append(z.prod(1).mean() / (z.prod(1).std() / len(z) ** 0.5))
        squares.append(q.var())  # given W¹ the two are independent, so Cov(z₁², z₂²) = Var Q
    return all_of(
        correlation_in_standard_errors=less_equal(torch.stack(product).abs(), 4.0),
        five_over_the_width=close(torch.stack(squares) * torch.tensor(widths), 5.0, rtol=0.12),
        slope=rate(torch.tensor(widths), torch.stack(squares), -1.0, atol=0.05),
    )


@erratum("B15.2-3", printed="E[y_j(x) y_j'(x')]", right="E[y_j(x) y_j(x')], one unit at both inputs")
def the_covariance_is_of_one_unit_at_two_inputs() -> Correction:
    """A stray prime in eq. 15.20: different units are independent and give the product of means (book eq. 15.20)."""
    y = hidden(200_000, 2).relu()
    same, different = 2 * (y[:, 0, 0] * y[:, 0, 1]).mean(), 2 * (y[:, 0, 0] * y[:, 1, 1]).mean()
    return Correction(
        printed=close(different, KERNEL, atol=0.02),
        corrected=all_of(
            one_unit_at_both_inputs=close(same, KERNEL, atol=0.02),
            different_units_give_the_product_of_means=close(different, 1 / pi, atol=0.02),
            difference=greater_equal(same - different, 0.3),
        ),
    )

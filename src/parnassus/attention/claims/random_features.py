"""Claims about random features: unbiased estimates with variances in closed form (Diehl sec. 4.1)."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import normalize

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, rate
from parnassus.attention.core.dot_product import attention
from parnassus.attention.efficient.linear_attention import linear_attention
from parnassus.attention.efficient.performer import causal_performer_attention, performer_attention
from parnassus.attention.efficient.random_features import (
    cosh_features,
    cosh_variance,
    draw_phases,
    fourier_features,
    gaussian_directions,
    log_positive_features,
    orthogonal_directions,
    positive_features,
    positive_rbf_features,
    positive_variance,
)
from parnassus.attention.regression.feature_ridge import FeatureRidge, KernelRidge
from parnassus.attention.regression.kernels import similarity
from parnassus.probability import seeded_generator, standard_normal
from parnassus.probability.distributions.gaussian import Gaussian
from parnassus.probability.expectations.gauss_hermite import gaussian_expectation

X = torch.tensor([0.4, -0.3, 0.2], dtype=torch.float64)
Y = torch.tensor([0.1, 0.5, 0.3], dtype=torch.float64)
STANDARD = Gaussian(torch.zeros(3, dtype=torch.float64), torch.eye(3, dtype=torch.float64))
NUM_DRAWS = 400_000


def normal_samples(count: int = NUM_DRAWS, seed: int = 0) -> Tensor:
    return standard_normal(count, 3, seed=seed)


@claim("D4.1.3")
def the_mean_of_the_exponential_of_a_gaussian() -> Evidence:
    """E exp(Zᵀx) = exp(‖x‖²/2) for Z ~ N(0, I), by quadrature and by sampling (Diehl lem. 4.2)."""
    exact = (X.square().sum() / 2).exp()
    samples = (normal_samples() @ X).exp()
    variance = float((2 * X.square().sum()).exp() - exact.square())
    feature = gaussian_expectation(lambda z: log_positive_features(X, z[None])[0].exp(), STANDARD, nodes=20)
    return all_of(
        quadrature=close(gaussian_expectation(lambda z: (z @ X).exp(), STANDARD, nodes=20), exact, rtol=1e-12),
        features_have_mean_one=close(feature, 1.0, rtol=1e-12),
        sampling=close(samples.mean(), exact, atol=4 * (variance / NUM_DRAWS) ** 0.5),
        other_variances_differ=greater_equal((2 * normal_samples() @ X).exp().mean() - exact, 0.1),
    )


@claim("D4.1.4")
def positive_features_are_unbiased_with_a_known_variance() -> Evidence:
    """E ψ(x)ᵀψ(y) = e^⟨x,y⟩, with variance e^{−‖x‖²−‖y‖²}(e^{2s} − e^s) per draw, s = ‖x+y‖² (Diehl eq. 3)."""
    directions = normal_samples()
    products = len(directions) * positive_features(X, directions) * positive_features(Y, directions)  # one per draw

    def square(z: Tensor) -> Tensor:
        psi = positive_features(torch.stack([X, Y]), z[None])
        return (psi[0, 0] * psi[1, 0]).square()

    second_moment = gaussian_expectation(square, STANDARD, nodes=30)
    s = (X + Y).square().sum()
    closed_form = (-X.square().sum() - Y.square().sum()).exp() * ((2 * s).exp() - s.exp())
    return all_of(
        mean=close(products.mean(), (X @ Y).exp(), atol=4 * float(closed_form / NUM_DRAWS) ** 0.5),
        variance_by_quadrature=close(second_moment - (2 * X @ Y).exp(), positive_variance(X, Y), rtol=1e-9),
        formula=close(positive_variance(X, Y), closed_form, rtol=1e-12),
        variance_by_sampling=close(products.var(), positive_variance(X, Y), rtol=0.03),
        positive=greater_equal(positive_features(3 * normal_samples(1_000), normal_samples(50, 1)).min(), 0.0),
        zero_at_opposite_points=close(positive_variance(X, -X), 0.0),
        grows_with_the_norm=greater_equal(positive_variance(3 * X, 3 * X) / (2 * 9 * X @ X).exp(), 50.0),
    )


@claim("D4.1.5")
def cosh_features_more_than_halve_the_variance() -> Evidence:
    """Var_cosh = ½(1 − e^{−s}) Var_exp at equal draws, and smaller at equal feature counts too (Diehl sec. 4.1)."""

    def square(z: Tensor) -> Tensor:
        psi = cosh_features(torch.stack([X, Y]), z[None])
        return (psi[0] @ psi[1]).square()

    second_moment = gaussian_expectation(square, STANDARD, nodes=30)
    estimate = cosh_features(X, normal_samples()) @ cosh_features(Y, normal_samples())
    scaled = torch.linspace(0.1, 3.0, 30, dtype=torch.float64)[:, None] * X
    return all_of(
        exact=close(second_moment - (2 * X @ Y).exp(), cosh_variance(X, Y), rtol=1e-9),
        halves=less_equal(cosh_variance(scaled, scaled) / positive_variance(scaled, scaled), 0.5),
        equal_feature_count=less_equal(2 * cosh_variance(scaled, scaled) / positive_variance(scaled, scaled), 1.0),
        mean=close(estimate, (X @ Y).exp(), atol=4 * (float(cosh_variance(X, Y)) / NUM_DRAWS) ** 0.5),
    )


@claim("D4.1.4")
def orthogonal_directions_reduce_the_error() -> Evidence:
    """The mean squared error decreases as 1/k and is smaller with orthogonal directions (Choromanski et al. 2021)."""
    x, y = (0.5 * torch.randn(8, generator=seeded_generator(seed)) for seed in (1, 2))
    counts, generator = torch.tensor([8, 16, 32, 64, 128]), seeded_generator()

    def error(draw: Callable[..., Tensor], count: int) -> float:
        projections = torch.stack([draw(count, 8, generator=generator) for _ in range(1_500)])
        log_products = projections @ (x + y) - (x.square().sum() + y.square().sum()) / 2
        return float((log_products.exp().mean(1) - (x @ y).exp()).square().mean())

    independent = torch.tensor([error(gaussian_directions, int(count)) for count in counts])
    orthogonal = torch.tensor([error(orthogonal_directions, int(count)) for count in counts])
    exact = float(positive_variance(x, y))
    return all_of(
        rate=rate(counts, independent, -1.0, atol=0.15),
        constant=close(independent * counts / exact, 1.0, rtol=0.35),
        orthogonal=less_equal(orthogonal.sum() / independent.sum(), 0.95),
    )


@claim("D4.1.6")
def performer_attention_is_linear_attention_of_positive_features() -> Evidence:
    """Its two softmaxes are ψ(q)ᵀΣψ(k)vᵀ/ψ(q)ᵀΣψ(k); the error decreases with more features (Diehl sec. 4.1)."""
    q, k, v = (0.6 * standard_normal(2, 40, 8, seed=seed) for seed in range(3))
    directions = gaussian_directions(64, 8, generator=seeded_generator(3)).double()

    def feature_map(x: Tensor) -> Tensor:
        return positive_features(x * 8**-0.25, directions)

    exact = attention(q, k, v).output
    counts = torch.tensor([32, 128, 512, 2_048])

    def error(count: int) -> float:
        """Root mean square over several draws."""
        draws = [gaussian_directions(count, 8, generator=seeded_generator(s)).double() for s in range(8)]
        return float(torch.stack([performer_attention(q, k, v, w) - exact for w in draws]).square().mean().sqrt())

    large = performer_attention(100 * q.float(), 100 * k.float(), v.float(), directions.float())
    output_20 = causal_performer_attention(q, k, v, directions)[:, 20]
    return all_of(
        same_as_linear=close(
            performer_attention(q, k, v, directions), linear_attention(q, k, v, feature_map), rtol=1e-9
        ),
        rate=rate(counts, torch.tensor([error(int(count)) for count in counts]), -0.5, atol=0.15),
        causal=close(output_20, performer_attention(q[:, 20:21], k[:, :21], v[:, :21], directions)[:, 0], rtol=1e-9),
        finite_for_large_inputs=close(large.isfinite().double().mean(), 1.0),
    )


@claim("D4.1.7")
def both_kinds_of_features_give_the_rbf_kernel() -> Evidence:
    """Positive and Fourier features have mean exp(−γ‖x−y‖²); the Gram matrix error decreases as 1/√k."""
    gamma, points = 0.7, 0.5 * normalize(normal_samples(30, 1))
    gram = similarity(points, points, bandwidth=(2 * gamma) ** -0.5)
    counts = torch.tensor([100, 400, 1_600, 6_400])

    def errors(feature_map: Callable[[int, int], Tensor]) -> Tensor:
        """Root mean square error of the Gram matrix over eight draws, for each number of features."""
        samples = [[feature_map(int(count), seed) for seed in range(8)] for count in counts]
        differences = [torch.stack([psi @ psi.mT - gram for psi in draws]) for draws in samples]
        return torch.stack([difference.square().mean().sqrt() for difference in differences])

    def fourier(count: int, seed: int) -> Tensor:
        phases = draw_phases(count, generator=seeded_generator(100 + seed)).double()
        return fourier_features(points, normal_samples(count, seed), phases, gamma=gamma)

    fourier_errors = errors(fourier)
    kernel, scale = (-gamma * (X - Y).square().sum()).exp(), (2 * gamma) ** 0.5
    psi_x, psi_y = (positive_rbf_features(point, normal_samples(), gamma=gamma) for point in (X, Y))
    variance = positive_variance(scale * X, scale * Y) * (-2 * gamma * (X.square().sum() + Y.square().sum())).exp()
    return all_of(
        positive_mean=close(psi_x @ psi_y, kernel, atol=4 * float(variance / NUM_DRAWS) ** 0.5),
        fourier=rate(counts, fourier_errors, -0.5, atol=0.15),
        positive=rate(
            counts,
            errors(lambda count, seed: positive_rbf_features(points, normal_samples(count, seed), gamma=gamma)),
            -0.5,
            atol=0.15,
        ),
        final_error=less_equal(fourier_errors[-1], 0.02),
    )


@claim("D4.1.7")
def ridge_on_features_tends_to_kernel_ridge() -> Evidence:
    """Ridge on ψ is kernel ridge with the kernel ψᵀψ, and tends to that with the exact kernel (Diehl sec. 4.1)."""
    gamma, penalty = 1.0, 1e-2
    x = torch.linspace(-2, 2, 60, dtype=torch.float64)[:, None]
    y, x_new = torch.sin(3 * x), x[1:] - 0.03
    gram = similarity(x, x, bandwidth=(2 * gamma) ** -0.5)
    target = KernelRidge.fit(gram, y, penalty=penalty).predict(similarity(x_new, x, bandwidth=(2 * gamma) ** -0.5))
    deviations, counts = [], (50, 200, 800, 3_200)
    for count in counts:
        w = standard_normal(count, 1, seed=2)
        b = draw_phases(count, generator=seeded_generator(3)).double()
        psi, psi_new = (fourier_features(part, w, b, gamma=gamma) for part in (x, x_new))
        deviations.append(
            float((FeatureRidge.fit(psi, y, penalty=penalty).predict(psi_new) - target).norm() / target.norm())
        )
        if count == 200:
            kernel_prediction = KernelRidge.fit(psi @ psi.mT, y, penalty=penalty).predict(psi_new @ psi.mT)
            feature_prediction = FeatureRidge.fit(psi, y, penalty=penalty).predict(psi_new)
    return all_of(
        same_as_kernel_ridge=close(feature_prediction, kernel_prediction, atol=1e-9),
        deviation_ratio=less_equal(deviations[-1] / deviations[0], 0.4),
        final_deviation=less_equal(deviations[-1], 0.1),
    )


@erratum("D4.1.7", printed="exp(−γ‖x‖²) exp(−γ‖y‖²) exp(γ xᵀy)", right="exp(−γ‖x‖²) exp(−γ‖y‖²) exp(2γ xᵀy)")
def the_cross_term_has_the_factor_two_gamma() -> Correction:
    """‖x − y‖² = ‖x‖² − 2xᵀy + ‖y‖²: the remark omits the 2 (Diehl sec. 4.1)."""
    gamma = 0.7
    kernel = similarity(X[None], Y[None], bandwidth=(2 * gamma) ** -0.5)
    norms = (-gamma * (X.square().sum() + Y.square().sum())).exp()
    return Correction(
        printed=close(norms * (gamma * X @ Y).exp(), kernel, rtol=1e-3),
        corrected=close(norms * (2 * gamma * X @ Y).exp(), kernel, rtol=1e-12),
    )


@erratum("D4.1.4", printed="1/√k with k_1 … k_n the keys", right="1/√M with M the number of features ω_1 … ω_M")
def the_features_are_not_as_many_as_the_keys() -> Correction:
    """The letter k is used for the keys and for the number of features; only the latter normalises ψ (Diehl eq. 3)."""
    keys, directions = standard_normal(40, 3), normal_samples()
    products = (directions @ (X + Y)).exp().sum() * (-(X.square().sum() + Y.square().sum()) / 2).exp()
    exact = (X @ Y).exp()
    return Correction(
        printed=close(products / len(keys), exact, rtol=0.05),
        corrected=all_of(
            number_of_features=close(products / len(directions), exact, rtol=0.01),
            product_of_features=close(
                positive_features(X, directions) @ positive_features(Y, directions), products / NUM_DRAWS, rtol=1e-9
            ),
        ),
    )

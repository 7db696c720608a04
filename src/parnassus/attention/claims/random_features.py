"""Claims about random features: unbiased, with variances known in closed form (Diehl sec. 4.1)."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import normalize

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, rate
from parnassus.attention.dot_product import attention
from parnassus.attention.feature_ridge import FeatureRidge, KernelRidge
from parnassus.attention.kernels import similarity
from parnassus.attention.linear import linear_attention
from parnassus.attention.performer import causal_performer_attention, performer_attention
from parnassus.attention.random_features import (
    cosh_features,
    cosh_variance,
    draw_phases,
    fourier_features,
    gaussian_directions,
    orthogonal_directions,
    positive_features,
    positive_rbf_features,
    positive_variance,
)
from parnassus.probability.gaussian import Gaussian
from parnassus.probability.gaussian_quadrature import gaussian_expectation

X = torch.tensor([0.4, -0.3, 0.2], dtype=torch.float64)
Y = torch.tensor([0.1, 0.5, 0.3], dtype=torch.float64)
STANDARD = Gaussian(torch.zeros(3, dtype=torch.float64), torch.eye(3, dtype=torch.float64))
DRAWS = 400_000


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def many(count: int = DRAWS, seed: int = 0) -> Tensor:
    return torch.randn(count, 3, generator=seeded(seed), dtype=torch.float64)


@claim("D4.1.3")
def the_mean_of_an_exponential() -> Evidence:
    """E exp(Zᵀx) = exp(‖x‖²/2) for Z ~ N(0, I), by quadrature and by sampling (Diehl lem. 4.2)."""
    exact = (X.square().sum() / 2).exp()
    drawn = (many() @ X).exp()
    return all_of(
        quadrature=close(gaussian_expectation(lambda z: (z @ X).exp(), STANDARD, nodes=20), exact, rtol=1e-12),
        sampling=close(drawn.mean(), exact, atol=4 * float(drawn.std()) / DRAWS**0.5),
        only_for_standard_normals=at_least((2 * many() @ X).exp().mean() - exact, 0.1),
    )


@claim("D4.1.4")
def positive_features_are_unbiased_with_a_known_variance() -> Evidence:
    """E ψ(x)ᵀψ(y) = e^⟨x,y⟩ and one draw has the variance e^{−‖x‖²−‖y‖²}(e^{2s} − e^s), s = ‖x+y‖² (Diehl eq. 3)."""
    single = (X.square().sum() + Y.square().sum()) / -2 + many() @ (X + Y)
    products = single.exp()  # ψ(x)ᵀψ(y) with k = 1, draw by draw

    def square(z: Tensor) -> Tensor:
        psi = positive_features(torch.stack([X, Y]), z[None])
        return (psi[0, 0] * psi[1, 0]).square()

    second = gaussian_expectation(square, STANDARD, nodes=30)
    s = (X + Y).square().sum()
    printed = (-X.square().sum() - Y.square().sum()).exp() * ((2 * s).exp() - s.exp())
    return all_of(
        mean=close(products.mean(), (X @ Y).exp(), atol=4 * float(products.std()) / DRAWS**0.5),
        variance_by_quadrature=close(second - (2 * X @ Y).exp(), positive_variance(X, Y), rtol=1e-9),
        as_the_catalogue_has_it=close(positive_variance(X, Y), printed, rtol=1e-12),
        variance_by_sampling=close(products.var(), positive_variance(X, Y), rtol=0.03),
        positive=at_least(positive_features(3 * many(1_000), many(50, 1)).min(), 0.0),
        none_at_opposite_points=close(positive_variance(X, -X), 0.0),
        explodes=at_least(positive_variance(3 * X, 3 * X) / (2 * 9 * X @ X).exp(), 50.0),
    )


@claim("D4.1.5")
def the_cosh_more_than_halves_the_variance() -> Evidence:
    """Var_cosh = ½(1 − e^{−s}) Var_exp at equal draws, and less also at equal feature counts (Diehl sec. 4.1)."""

    def square(z: Tensor) -> Tensor:
        psi = cosh_features(torch.stack([X, Y]), z[None])
        return (psi[0] @ psi[1]).square()

    second = gaussian_expectation(square, STANDARD, nodes=30)
    estimate = cosh_features(X, many()) @ cosh_features(Y, many())
    lengths = torch.linspace(0.1, 3.0, 30, dtype=torch.float64)[:, None] * X
    return all_of(
        exact=close(second - (2 * X @ Y).exp(), cosh_variance(X, Y), rtol=1e-9),
        halves=at_most(cosh_variance(lengths, lengths) / positive_variance(lengths, lengths), 0.5),
        equal_feature_count=at_most(2 * cosh_variance(lengths, lengths) / positive_variance(lengths, lengths), 1.0),
        same_kernel=close(estimate, (X @ Y).exp(), atol=4 * (float(cosh_variance(X, Y)) / DRAWS) ** 0.5),
    )


@claim("D4.1.4")
def the_error_falls_as_one_over_k_and_orthogonal_draws_lower_it() -> Evidence:
    """The mean squared error falls as 1/k; directions at right angles have less of it (Choromanski et al. 2021)."""
    x, y = (0.5 * torch.randn(8, generator=seeded(seed)) for seed in (1, 2))
    counts, source = torch.tensor([8, 16, 32, 64, 128]), seeded()

    def error(draw: Callable[..., Tensor], count: int) -> float:
        drawn = torch.stack([draw(count, 8, generator=source) for _ in range(1_500)])
        logs = drawn @ (x + y) - (x.square().sum() + y.square().sum()) / 2
        return float((logs.exp().mean(1) - (x @ y).exp()).square().mean())

    independent = torch.tensor([error(gaussian_directions, int(count)) for count in counts])
    orthogonal = torch.tensor([error(orthogonal_directions, int(count)) for count in counts])
    exact = float(positive_variance(x, y))
    return all_of(
        rate=rate(counts, independent, -1.0, atol=0.15),
        constant=close(independent * counts / exact, 1.0, rtol=0.35),
        orthogonal=at_most(orthogonal.sum() / independent.sum(), 0.95),
    )


@claim("D4.1.6")
def performer_attention_is_linear_attention_of_positive_features() -> Evidence:
    """Two softmaxes through the directions are ψ(q)ᵀΣψ(k)vᵀ/ψ(q)ᵀΣψ(k); more features, less error (Diehl sec. 4.1)."""
    q, k, v = (0.6 * torch.randn(2, 40, 8, generator=seeded(seed), dtype=torch.float64) for seed in range(3))
    directions = gaussian_directions(64, 8, generator=seeded(3)).double()

    def lifted(x: Tensor) -> Tensor:
        return positive_features(x * 8**-0.25, directions)

    exact = attention(q, k, v).output
    counts = torch.tensor([32, 128, 512, 2_048])

    def error(count: int) -> float:
        """Root mean square over several draws."""
        draws = [gaussian_directions(count, 8, generator=seeded(s)).double() for s in range(8)]
        return float(torch.stack([performer_attention(q, k, v, w) - exact for w in draws]).square().mean().sqrt())

    far = performer_attention(100 * q.float(), 100 * k.float(), v.float(), directions.float())
    early = causal_performer_attention(q, k, v, directions)[:, 20]
    return all_of(
        same_as_linear=close(performer_attention(q, k, v, directions), linear_attention(q, k, v, lifted), rtol=1e-9),
        rate=rate(counts, torch.tensor([error(int(count)) for count in counts]), -0.5, atol=0.15),
        causal=close(early, performer_attention(q[:, 20:21], k[:, :21], v[:, :21], directions)[:, 0], rtol=1e-9),
        finite_where_features_overflow=close(far.isfinite().double().mean(), 1.0),
    )


@claim("D4.1.7")
def both_kinds_of_features_give_the_rbf_kernel() -> Evidence:
    """Positive and Fourier features have the mean exp(−γ‖x−y‖²); the Gram matrix's error falls as 1/√k."""
    gamma, points = 0.7, 0.5 * normalize(many(30, 1))
    gram = similarity(points, points, width=(2 * gamma) ** -0.5)
    counts = torch.tensor([100, 400, 1_600, 6_400])

    def errors(lift: Callable[[int, int], Tensor]) -> Tensor:
        """Of the Gram matrix for each number of features, root mean square over eight draws."""
        lifted = [[lift(int(count), seed) for seed in range(8)] for count in counts]
        gaps = [torch.stack([psi @ psi.mT - gram for psi in draws]) for draws in lifted]
        return torch.stack([gap.square().mean().sqrt() for gap in gaps])

    def fourier(count: int, seed: int) -> Tensor:
        phases = draw_phases(count, generator=seeded(100 + seed)).double()
        return fourier_features(points, many(count, seed), phases, gamma=gamma)

    waves = errors(fourier)
    single = many() * (2 * gamma) ** 0.5 @ (X + Y) - 2 * gamma * (X.square().sum() + Y.square().sum())
    kernel = (-gamma * (X - Y).square().sum()).exp()
    return all_of(
        positive_mean=close(single.exp().mean(), kernel, atol=4 * float(single.exp().std()) / DRAWS**0.5),
        fourier=rate(counts, waves, -0.5, atol=0.15),
        positive=rate(
            counts,
            errors(lambda count, seed: positive_rbf_features(points, many(count, seed), gamma=gamma)),
            -0.5,
            atol=0.15,
        ),
        small_in_the_end=at_most(waves[-1], 0.02),
    )


@claim("D4.1.7")
def ridge_on_features_tends_to_kernel_ridge() -> Evidence:
    """Ridge on ψ is kernel ridge of the kernel ψᵀψ exactly, and tends to that of the true kernel (Diehl sec. 4.1)."""
    gamma, penalty = 1.0, 1e-2
    x = torch.linspace(-2, 2, 60, dtype=torch.float64)[:, None]
    y, new = torch.sin(3 * x), x[1:] - 0.03
    gram = similarity(x, x, width=(2 * gamma) ** -0.5)
    target = KernelRidge.fit(gram, y, penalty=penalty).predict(similarity(new, x, width=(2 * gamma) ** -0.5))
    gaps, counts = [], (50, 200, 800, 3_200)
    for count in counts:
        w = torch.randn(count, 1, generator=seeded(2), dtype=torch.float64)
        b = draw_phases(count, generator=seeded(3)).double()
        psi, ahead = (fourier_features(part, w, b, gamma=gamma) for part in (x, new))
        gaps.append(float((FeatureRidge.fit(psi, y, penalty=penalty).predict(ahead) - target).norm() / target.norm()))
        if count == 200:
            own = KernelRidge.fit(psi @ psi.mT, y, penalty=penalty).predict(ahead @ psi.mT)
            same = FeatureRidge.fit(psi, y, penalty=penalty).predict(ahead)
    return all_of(
        same=close(same, own, atol=1e-9), closer=at_most(gaps[-1] / gaps[0], 0.4), close=at_most(gaps[-1], 0.1)
    )


@erratum("D4.1.7", printed="exp(−γ‖x‖²) exp(−γ‖y‖²) exp(γ xᵀy)", right="exp(−γ‖x‖²) exp(−γ‖y‖²) exp(2γ xᵀy)")
def the_cross_term_carries_two_gamma() -> Correction:
    """‖x − y‖² = ‖x‖² − 2xᵀy + ‖y‖²: the remark forgets the 2 (Diehl sec. 4.1)."""
    gamma = 0.7
    kernel = (-gamma * (X - Y).square().sum()).exp()
    own = (-gamma * (X.square().sum() + Y.square().sum())).exp()
    return Correction(
        printed=close(own * (gamma * X @ Y).exp(), kernel, rtol=1e-3),
        corrected=close(own * (2 * gamma * X @ Y).exp(), kernel, rtol=1e-12),
    )

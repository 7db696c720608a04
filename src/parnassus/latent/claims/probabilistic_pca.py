"""Claims about probabilistic PCA: the density, the posterior, the maximum of the likelihood (book sec. 5.1)."""

from functools import partial
from math import log, pi

import torch
from scipy import stats
from torch import Tensor
from torch.distributions import LowRankMultivariateNormal
from torch.func import grad

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, rate, runs
from parnassus.latent.latent_size import bic_by_size, likelihood_by_size
from parnassus.latent.pca import PCA
from parnassus.latent.ppca import PPCA, em_round, em_rounds
from parnassus.latent.projection import principal_angles, pseudo_inverse, second_moment
from parnassus.latent.spectrum import spectrum_by_eigh

ROWS, FEATURES, LATENT = 400, 8, 3


def truth(features: int = FEATURES, latent: int = LATENT) -> PPCA:
    """A PPCA with deviations of 3 down to 1.2 along random axes and noise of variance ¼."""
    source = torch.Generator().manual_seed(0)
    axes: Tensor = torch.linalg.qr(torch.randn(features, features, generator=source, dtype=torch.float64))[0]
    lengths = torch.linspace(3, 1.2, latent, dtype=torch.float64)
    mean = torch.arange(features, dtype=torch.float64) / 4
    return PPCA(mean, axes[:, :latent] * lengths, torch.tensor(0.25, dtype=torch.float64))


def drawn(rows: int = ROWS, seed: int = 1) -> Tensor:
    return truth().sample(rows, generator=torch.Generator().manual_seed(seed))


def rotation(seed: int = 5) -> Tensor:
    source = torch.Generator().manual_seed(seed)
    turn: Tensor = torch.linalg.qr(torch.randn(LATENT, LATENT, generator=source, dtype=torch.float64))[0]
    return turn


@claim("B5.1-1")
def without_noise_all_points_lie_on_a_plane() -> Evidence:
    """Draws of W ν + μ have a covariance of rank K that tends to W Wᵀ, and lie on a K-plane (book sec. 5.1)."""
    model = truth()
    v = torch.randn(200_000, LATENT, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    x = model.inverse(v)
    covariance = second_moment(x - x.mean(0))
    eigenvalues = torch.linalg.eigvalsh(covariance).flip(0)
    off_the_plane = (x - model.mean) - (x - model.mean) @ (model.W @ pseudo_inverse(model.W)).mT
    return all_of(
        covariance=close(covariance, model.W @ model.W.mT, atol=0.05),
        beyond_rank_K=close(eigenvalues[LATENT:], 0.0, atol=1e-12),
        up_to_rank_K=at_least(eigenvalues[:LATENT], 1.0),
        distance_to_the_plane=close(off_the_plane, 0.0, atol=1e-11),
    )


@claim("B5.1-2", "B5.1-9")
def noise_lifts_every_eigenvalue_to_a_floor() -> Evidence:
    """C = W Wᵀ + σ² I has K eigenvalues above σ² and N − K equal to it: a Gaussian in N dimensions (book sec. 5.1)."""
    model = truth()
    eigenvalues = torch.linalg.eigvalsh(model.covariance).flip(0)
    x = drawn(200_000)
    return all_of(
        floor=close(eigenvalues[LATENT:], model.variance, rtol=1e-12),
        above=at_least(eigenvalues[:LATENT], model.variance + 1.4),
        draws=close(second_moment(x - x.mean(0)), model.covariance, atol=0.06),
        mean_of_draws=close(x.mean(0), model.mean, atol=0.03),
    )


@claim("B5.1-3")
def the_log_likelihood_needs_only_small_matrices() -> Evidence:
    """The K × K form equals the N × N Gaussian of SciPy and torch's low-rank normal (book eqs. 5.1-5.2)."""
    model, x = truth(), drawn()
    scipy = stats.multivariate_normal(model.mean.numpy(), model.covariance.numpy()).logpdf(x.numpy())
    low_rank = LowRankMultivariateNormal(model.mean, model.W, model.variance.expand(FEATURES))
    return all_of(
        scipy=close(model.log_prob(x), scipy, rtol=1e-12),
        torch=close(model.log_prob(x), low_rank.log_prob(x), rtol=1e-12),
    )


@erratum("B5.1-3", printed="+(NK/2) ln 2π for N samples, K latents", right="−(MN/2) ln 2π for M samples, N dimensions")
def the_constant_counts_the_dimensions_of_the_data() -> Correction:
    """The constant of the log-likelihood has a minus and the data's dimension (book eq. 5.2)."""
    model, x = truth(), drawn()
    C, centred = model.covariance, x - model.mean
    without = -ROWS / 2 * torch.logdet(C) - (centred * torch.linalg.solve(C, centred.mT).mT).sum() / 2
    total = stats.multivariate_normal(model.mean.numpy(), C.numpy()).logpdf(x.numpy()).sum()
    return Correction(
        printed=close(without + ROWS * LATENT / 2 * log(2 * pi), total, rtol=1e-6),
        corrected=close(without - ROWS * FEATURES / 2 * log(2 * pi), total, rtol=1e-12),
    )


@claim("B5.1-4")
def the_posterior_is_gaussian_conditioning() -> Evidence:
    """M⁻¹ Wᵀ (x − μ) and σ² M⁻¹ equal Wᵀ C⁻¹ (x − μ) and I − Wᵀ C⁻¹ W of the joint Gaussian (book eq. 5.3)."""
    model, x = truth(), drawn(50)
    gain = torch.linalg.solve(model.covariance, model.W).mT
    posterior = model.posterior(x)
    return all_of(
        mean=close(posterior.mean, (x - model.mean) @ gain.mT, atol=1e-12),
        covariance=close(
            posterior.covariance_matrix, torch.eye(LATENT, dtype=torch.float64) - gain @ model.W, atol=1e-12
        ),
    )


@erratum("B5.1-4", printed="(W Wᵀ + σ² I)⁻¹ Wᵀ (x − μ)", right="(Wᵀ W + σ² I)⁻¹ Wᵀ (x − μ)")
def the_posterior_needs_the_small_matrix() -> Correction:
    """The matrix W Wᵀ + σ² I is N × N and cannot act on the K numbers Wᵀ (x − μ) (book eq. 5.3)."""
    model, x = truth(), drawn(1)
    scores = model.W.mT @ (x - model.mean)[0]
    M = model.W.mT @ model.W + model.variance * torch.eye(LATENT, dtype=torch.float64)
    conditioned = model.W.mT @ torch.linalg.solve(model.covariance, (x - model.mean)[0])
    return Correction(
        printed=runs(lambda: torch.linalg.solve(model.covariance, scores), unless=RuntimeError),
        corrected=close(torch.linalg.solve(M, scores), conditioned, atol=1e-12),
    )


@claim("B5.1-5")
def vanishing_noise_gives_the_projection() -> Evidence:
    """As σ² → 0 the code tends to pInv(W)(x − μ) in proportion to σ², its covariance to 0 (book sec. 5.1)."""
    model, x = truth(), drawn(50)
    sizes = torch.logspace(-1, -6, 6, dtype=torch.float64)
    models = [PPCA(model.mean, model.W, size) for size in sizes]
    limit = (x - model.mean) @ pseudo_inverse(model.W).mT
    pca = PCA.fit(drawn(), LATENT)
    small = PPCA(pca.mean, pca.components * pca.variances.sqrt(), sizes[-1])
    return all_of(
        code=rate(sizes, torch.stack([(each.transform(x) - limit).norm() for each in models]), 1.0, atol=0.05),
        covariance=rate(
            sizes, torch.stack([each.posterior(x).covariance_matrix[0].norm() for each in models]), 1.0, atol=0.05
        ),
        projection=close(small.reconstruct(x), pca.reconstruct(x), atol=1e-5),
    )


@claim("B5.1-6")
def no_other_parameters_are_more_likely() -> Evidence:
    """The closed form has no slope, beats truth and perturbations; any rotation does as well (book sec. 5.1)."""
    x = drawn()
    best = PPCA.fit(x, LATENT)
    top = best.log_prob(x).sum()

    source = torch.Generator().manual_seed(3)
    others = [
        PPCA(
            best.mean + size * torch.randn(FEATURES, generator=source, dtype=torch.float64),
            best.W + size * torch.randn(FEATURES, LATENT, generator=source, dtype=torch.float64),
            best.variance * (size * torch.randn((), generator=source, dtype=torch.float64)).exp(),
        )
        for size in (1e-3, 1e-2, 0.1)
        for _ in range(50)
    ]
    normal = partial(LowRankMultivariateNormal, validate_args=False)
    slopes = [
        grad(lambda mean: normal(mean, best.W, best.variance.expand(FEATURES)).log_prob(x).sum())(best.mean),
        grad(lambda W: normal(best.mean, W, best.variance.expand(FEATURES)).log_prob(x).sum())(best.W).flatten(),
        grad(lambda s: normal(best.mean, best.W, s.expand(FEATURES)).log_prob(x).sum())(best.variance)[None],
    ]
    return all_of(
        slope=close(torch.cat(slopes), 0.0, atol=1e-9),
        truth=at_most(truth().log_prob(x).sum(), top),
        perturbed=at_most(torch.stack([other.log_prob(x).sum() for other in others]), top),
        rotated=close(best.rotated(rotation()).log_prob(x).sum(), top, rtol=1e-12),
        span=close(principal_angles(best.W, PCA.fit(x, LATENT).components), 0.0, atol=1e-10),
        from_eigenvalues=close(likelihood_by_size(spectrum_by_eigh(x).eigenvalues, ROWS)[LATENT], top, rtol=1e-12),
    )


@claim("B5.1-7")
def codes_without_noise_are_white() -> Evidence:
    """For σ² → 0, W has columns u_i √λ_i, its inverse rows u_iᵀ / √λ_i, and codes covariance I (book sec. 5.1)."""
    x = drawn()
    pca = PCA.fit(x, LATENT)
    W = pca.components * pca.variances.sqrt()
    codes = (x - pca.mean) @ pseudo_inverse(W).mT
    return all_of(
        columns=close(W.norm(dim=0), pca.variances.sqrt(), rtol=1e-12),
        rows=close(pseudo_inverse(W).norm(dim=1) * pca.variances.sqrt(), 1.0, rtol=1e-12),
        white=close(second_moment(codes), torch.eye(LATENT), atol=1e-12),
    )


@erratum(
    "B5.1-7", printed="the projecting vectors are scaled by √λ_i", right="projecting divides by √λ_i, W multiplies"
)
def projecting_divides_by_the_deviation() -> Correction:
    """Codes of unit variance need u_iᵀ (x − μ) / √λ_i (book sec. 5.1)."""
    x = drawn()
    pca = PCA.fit(x, LATENT)
    scores, deviations = pca.transform(x), pca.variances.sqrt()
    return Correction(
        printed=close((scores * deviations).var(0, correction=0), 1.0, rtol=0.1),
        corrected=close((scores / deviations).var(0, correction=0), 1.0, rtol=1e-12),
    )


@claim("B5.1-8")
def two_criteria_find_the_true_size() -> Evidence:
    """Held-out likelihood and BIC, swept over K, choose the K the data were made with (book sec. 5.1)."""
    train, unseen = drawn(2_000), drawn(2_000, seed=9)
    eigenvalues = spectrum_by_eigh(train).eigenvalues
    held_out = torch.stack([PPCA.fit(train, size).log_prob(unseen).mean() for size in range(1, FEATURES)])
    on_the_fitted = likelihood_by_size(eigenvalues, len(train))
    return all_of(
        held_out=close(int(held_out.argmax()) + 1, LATENT),
        bic=close(int(bic_by_size(eigenvalues, len(train)).argmin()), LATENT),
        fitted_rows_cannot_tell=at_least(on_the_fitted.diff(), 0.0),
    )


@claim("B5.1-9")
def em_climbs_to_the_closed_form() -> Evidence:
    """Every round of EM raises the likelihood, and it ends at the closed form (book sec. 5.1)."""
    x = drawn()
    models = list(em_rounds(x, LATENT, rounds=200))
    likelihoods = torch.stack([model.log_prob(x).mean() for model in models])
    best = PPCA.fit(x, LATENT)
    return all_of(
        rises=at_least(likelihoods.diff(), -1e-13),
        ends_at_the_top=close(likelihoods[-1], best.log_prob(x).mean(), atol=1e-8),
        same_noise=close(models[-1].variance, best.variance, rtol=1e-4),
        stays_there=close(em_round(best, x).covariance, best.covariance, atol=1e-12),
    )

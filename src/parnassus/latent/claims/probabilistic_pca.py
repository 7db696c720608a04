"""Claims about probabilistic PCA: density, posterior and maximum likelihood (book sec. 5.1)."""

from functools import partial
from math import log, pi

import torch
from scipy import stats
from torch import Tensor
from torch.distributions import LowRankMultivariateNormal
from torch.func import grad, jacrev

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, rate, runs
from parnassus.latent.linear.covariance_spectrum import spectrum_by_eigh
from parnassus.latent.linear.number_of_components import bic_by_size, log_likelihood_by_size, num_free_parameters
from parnassus.latent.linear.pca import PCA
from parnassus.latent.linear.probabilistic_pca import PPCA, ppca_em_iterates, ppca_em_step
from parnassus.latent.linear.projection import principal_angles, pseudo_inverse, second_moment
from parnassus.probability import random_orthogonal, seeded_generator, standard_normal

ROWS, FEATURES, LATENT = 400, 8, 3


def true_model(features: int = FEATURES, latent: int = LATENT) -> PPCA:
    """A PPCA with standard deviations from 3 to 1.2 along random axes and noise of variance ¼."""
    axes = random_orthogonal(features, generator=seeded_generator())
    scales = torch.linspace(3, 1.2, latent, dtype=torch.float64)
    mean = torch.arange(features, dtype=torch.float64) / 4
    return PPCA(mean, axes[:, :latent] * scales, torch.tensor(0.25, dtype=torch.float64))


def sample_rows(rows: int = ROWS, seed: int = 1) -> Tensor:
    return true_model().sample(rows, generator=torch.Generator().manual_seed(seed))


def random_rotation(seed: int = 5) -> Tensor:
    return random_orthogonal(LATENT, generator=seeded_generator(seed))


@claim("B5.1-1")
def without_noise_all_points_lie_in_a_subspace() -> Evidence:
    """Samples of W ν + μ lie in a K-dimensional subspace; their covariance converges to W Wᵀ (book sec. 5.1)."""
    model = true_model()
    v = standard_normal(200_000, LATENT, seed=2)
    x = model.inverse_transform(v)
    covariance = second_moment(x - x.mean(0))
    eigenvalues = torch.linalg.eigvalsh(covariance).flip(0)
    residual = (x - model.mean) - (x - model.mean) @ (model.W @ pseudo_inverse(model.W)).mT
    return all_of(
        covariance=close(covariance, model.W @ model.W.mT, atol=0.05),
        beyond_rank_K=close(eigenvalues[LATENT:], 0.0, atol=1e-12),
        up_to_rank_K=greater_equal(eigenvalues[:LATENT], 1.0),
        distance_to_the_subspace=close(residual, 0.0, atol=1e-11),
    )


@claim("B5.1-2", "B5.1-9")
def the_noise_variance_is_the_smallest_eigenvalue() -> Evidence:
    """C = W Wᵀ + σ² I has K eigenvalues above σ² and N − K equal to it, so it has full rank (book sec. 5.1)."""
    model = true_model()
    eigenvalues = torch.linalg.eigvalsh(model.covariance).flip(0)
    x = sample_rows(200_000)
    return all_of(
        smallest_eigenvalues=close(eigenvalues[LATENT:], model.variance, rtol=1e-12),
        larger_eigenvalues=greater_equal(eigenvalues[:LATENT], model.variance + 1.4),
        sample_covariance=close(second_moment(x - x.mean(0)), model.covariance, atol=0.06),
        sample_mean=close(x.mean(0), model.mean, atol=0.03),
    )


@claim("B5.1-3")
def the_log_likelihood_has_a_low_rank_form() -> Evidence:
    """The K × K form equals the N × N Gaussian of SciPy and torch's low-rank normal (book eqs. 5.1-5.2)."""
    model, x = true_model(), sample_rows()
    scipy = stats.multivariate_normal(model.mean.numpy(), model.covariance.numpy()).logpdf(x.numpy())
    low_rank = LowRankMultivariateNormal(model.mean, model.W, model.variance.expand(FEATURES))
    return all_of(
        scipy=close(model.log_prob(x), scipy, rtol=1e-12),
        torch=close(model.log_prob(x), low_rank.log_prob(x), rtol=1e-12),
        maximum_for_each_size=close(
            log_likelihood_by_size(spectrum_by_eigh(x).eigenvalues, ROWS)[1:],
            torch.stack([PPCA.fit(x, size).log_prob(x).sum() for size in range(1, FEATURES)]),
            rtol=1e-12,
        ),
    )


@erratum("B5.1-3", printed="+(NK/2) ln 2π for N samples, K latents", right="−(MN/2) ln 2π for M samples, N dimensions")
def the_constant_counts_the_dimensions_of_the_data() -> Correction:
    """The constant of the log-likelihood is negative and contains the dimension of the data (book eq. 5.2)."""
    model, x = true_model(), sample_rows()
    C, centred = model.covariance, x - model.mean
    without_constant = -ROWS / 2 * torch.logdet(C) - (centred * torch.linalg.solve(C, centred.mT).mT).sum() / 2
    total = stats.multivariate_normal(model.mean.numpy(), C.numpy()).logpdf(x.numpy()).sum()
    return Correction(
        printed=close(without_constant + ROWS * LATENT / 2 * log(2 * pi), total, rtol=1e-6),
        corrected=close(without_constant - ROWS * FEATURES / 2 * log(2 * pi), total, rtol=1e-12),
    )


@claim("B5.1-4")
def the_posterior_is_gaussian_conditioning() -> Evidence:
    """M⁻¹ Wᵀ (x − μ) and σ² M⁻¹ equal Wᵀ C⁻¹ (x − μ) and I − Wᵀ C⁻¹ W of the joint Gaussian (book eq. 5.3)."""
    model, x = true_model(), sample_rows(50)
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
    """The matrix W Wᵀ + σ² I is N × N and cannot act on the K-vector Wᵀ (x − μ) (book eq. 5.3)."""
    model, x = true_model(), sample_rows(1)
    scores = model.W.mT @ (x - model.mean)[0]
    M = model.W.mT @ model.W + model.variance * torch.eye(LATENT, dtype=torch.float64)
    conditioned = model.W.mT @ torch.linalg.solve(model.covariance, (x - model.mean)[0])
    return Correction(
        printed=runs(lambda: torch.linalg.solve(model.covariance, scores), unless=RuntimeError),
        corrected=close(torch.linalg.solve(M, scores), conditioned, atol=1e-12),
    )


@claim("B5.1-5")
def vanishing_noise_gives_the_projection() -> Evidence:
    """As σ² → 0 the code converges to pInv(W)(x − μ) linearly in σ², its covariance to 0 (book sec. 5.1)."""
    model, x = true_model(), sample_rows(50)
    variances = torch.logspace(-1, -6, 6, dtype=torch.float64)
    models = [PPCA(model.mean, model.W, variance) for variance in variances]
    limit = (x - model.mean) @ pseudo_inverse(model.W).mT
    pca = PCA.fit(sample_rows(), LATENT)
    small = PPCA(pca.mean, pca.components * pca.explained_variance.sqrt(), variances[-1])
    return all_of(
        code=rate(
            variances,
            torch.stack([(model_at_variance.transform(x) - limit).norm() for model_at_variance in models]),
            1.0,
            atol=0.05,
        ),
        covariance=rate(
            variances,
            torch.stack([model_at_variance.posterior(x).covariance_matrix[0].norm() for model_at_variance in models]),
            1.0,
            atol=0.05,
        ),
        projection=close(small.reconstruct(x), pca.reconstruct(x), atol=1e-5),
    )


@claim("B5.1-6")
def the_closed_form_maximises_the_likelihood() -> Evidence:
    """The closed form maximises the likelihood: it is stationary, and rotations have equal values (book sec. 5.1)."""
    x = sample_rows()
    best = PPCA.fit(x, LATENT)
    maximum = best.log_prob(x).sum()

    generator = torch.Generator().manual_seed(3)
    candidates = [
        PPCA(
            best.mean + scale * torch.randn(FEATURES, generator=generator, dtype=torch.float64),
            best.W + scale * torch.randn(FEATURES, LATENT, generator=generator, dtype=torch.float64),
            best.variance * (scale * torch.randn((), generator=generator, dtype=torch.float64)).exp(),
        )
        for scale in (1e-3, 1e-2, 0.1)
        for _ in range(50)
    ]
    normal = partial(LowRankMultivariateNormal, validate_args=False)
    gradients = [
        grad(lambda mean: normal(mean, best.W, best.variance.expand(FEATURES)).log_prob(x).sum())(best.mean),
        grad(lambda W: normal(best.mean, W, best.variance.expand(FEATURES)).log_prob(x).sum())(best.W).flatten(),
        grad(lambda s: normal(best.mean, best.W, s.expand(FEATURES)).log_prob(x).sum())(best.variance)[None],
    ]
    return all_of(
        gradient=close(torch.cat(gradients), 0.0, atol=1e-9),
        true_parameters=less_equal(true_model().log_prob(x).sum(), maximum),
        perturbed=less_equal(torch.stack([perturbation.log_prob(x).sum() for perturbation in candidates]), maximum),
        rotated=close(best.rotate(random_rotation()).log_prob(x).sum(), maximum, rtol=1e-12),
        span=close(principal_angles(best.W, PCA.fit(x, LATENT).components), 0.0, atol=1e-10),
        from_eigenvalues=close(
            log_likelihood_by_size(spectrum_by_eigh(x).eigenvalues, ROWS)[LATENT], maximum, rtol=1e-12
        ),
    )


@claim("B5.1-7")
def codes_without_noise_are_white() -> Evidence:
    """For σ² → 0, W has columns u_i √λ_i, its inverse rows u_iᵀ / √λ_i, and codes covariance I (book sec. 5.1)."""
    x = sample_rows()
    pca = PCA.fit(x, LATENT)
    W = pca.components * pca.explained_variance.sqrt()
    model = PPCA(pca.mean, W, torch.tensor(1e-14, dtype=torch.float64))
    deviations = torch.linalg.svdvals(x - x.mean(0))[:LATENT] / ROWS**0.5  # independent of the fit
    unit_codes = torch.eye(LATENT, dtype=torch.float64)
    codes = model.transform(x)
    return all_of(
        generation=close((model.inverse_transform(unit_codes) - pca.mean).norm(dim=1), deviations, rtol=1e-12),
        projection=close(model.transform(pca.mean + pca.components.mT), (unit_codes / deviations), atol=1e-12),
        white=close(second_moment(codes), unit_codes, atol=1e-12),
    )


@erratum(
    "B5.1-7", printed="the projecting vectors are scaled by √λ_i", right="projecting divides by √λ_i, W multiplies"
)
def projecting_divides_by_the_deviation() -> Correction:
    """Codes of unit variance need u_iᵀ (x − μ) / √λ_i (book sec. 5.1)."""
    x = sample_rows()
    pca = PCA.fit(x, LATENT)
    scores, deviations = pca.transform(x), pca.explained_variance.sqrt()
    model = PPCA(pca.mean, pca.components * deviations, torch.tensor(1e-14, dtype=torch.float64))
    return Correction(
        printed=close((scores * deviations).var(0, correction=0), 1.0, rtol=0.1),
        corrected=all_of(
            unit_variance=close((scores / deviations).var(0, correction=0), 1.0, rtol=1e-12),
            code_of_the_model=close(model.transform(x), scores / deviations, atol=1e-12),
        ),
    )


def dimension_of_the_model(model: PPCA) -> int:
    """The rank of the derivative of (μ, C) with respect to (μ, W, σ²): the number of free parameters."""

    def moments(mean: Tensor, W: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        return mean, W @ W.mT + variance * torch.eye(FEATURES, dtype=torch.float64)

    blocks = jacrev(moments, (0, 1, 2))(model.mean, model.W, model.variance)
    sizes = (FEATURES, FEATURES**2)
    jacobian = torch.cat(
        [torch.cat([block.reshape(size, -1) for block in row], 1) for row, size in zip(blocks, sizes, strict=True)]
    )
    return int(torch.linalg.matrix_rank(jacobian, rtol=1e-9))


@claim("B5.1-8")
def held_out_likelihood_and_bic_select_the_true_number_of_components() -> Evidence:
    """Held-out likelihood and BIC as functions of K select the K of the generating model (book sec. 5.1)."""
    train, test = sample_rows(2_000), sample_rows(2_000, seed=9)
    eigenvalues = spectrum_by_eigh(train).eigenvalues
    held_out = torch.stack([PPCA.fit(train, size).log_prob(test).mean() for size in range(1, FEATURES)])
    train_likelihood = log_likelihood_by_size(eigenvalues, len(train))
    few = spectrum_by_eigh(sample_rows(60)).eigenvalues
    fits = [PPCA.fit(sample_rows(60), size) for size in range(1, FEATURES)]
    likelihoods = torch.stack([fit.log_prob(sample_rows(60)).sum() for fit in fits])
    dimensions = torch.tensor([dimension_of_the_model(fit) for fit in fits], dtype=torch.float64)
    counts = [num_free_parameters(FEATURES, size) for size in range(1, FEATURES)]
    return all_of(
        held_out=close(int(held_out.argmax()) + 1, LATENT),
        bic=close(int(bic_by_size(eigenvalues, len(train)).argmin()), LATENT),
        train_likelihood_increases=greater_equal(train_likelihood.diff(), 0.0),
        parameters=close(torch.tensor(counts), dimensions),
        criterion=close(bic_by_size(few, 60)[1:], -2 * likelihoods + dimensions * log(60), rtol=1e-12),
    )


@claim("B5.1-9")
def em_converges_to_the_closed_form() -> Evidence:
    """Every iteration of EM increases the likelihood, up to that of the closed form (book sec. 5.1)."""
    x = sample_rows()
    models = list(ppca_em_iterates(x, LATENT, num_iterations=200))
    likelihoods = torch.stack([model.log_prob(x).mean() for model in models])
    best = PPCA.fit(x, LATENT)
    return all_of(
        likelihood_increases=greater_equal(likelihoods.diff(), -1e-13),
        final_likelihood=close(likelihoods[-1], best.log_prob(x).mean(), atol=1e-8),
        same_noise=close(models[-1].variance, best.variance, rtol=1e-4),
        closed_form_is_a_fixed_point=close(ppca_em_step(best, x).covariance, best.covariance, atol=1e-12),
    )


@erratum("B5.1-9", printed="a Gaussian of K dimensions", right="a Gaussian of N dimensions with a K-dimensional code")
def the_fitted_gaussian_has_the_dimension_of_the_data() -> Correction:
    """The fitted density is that of x: its covariance is N × N and has full rank (book sec. 5.1)."""
    model = PPCA.fit(sample_rows(), LATENT)
    samples = model.sample(20_000, generator=seeded_generator(2))
    rank = int(torch.linalg.matrix_rank(second_moment(samples - samples.mean(0))))
    dimensions = torch.tensor([samples.shape[1], rank])
    return Correction(
        printed=close(dimensions, LATENT),
        corrected=all_of(
            dimension_and_rank=close(dimensions, FEATURES),
            code=close(torch.tensor(model.transform(samples[:5]).shape), torch.tensor([5, LATENT])),
            density=close(
                model.log_prob(samples[:50]),
                stats.multivariate_normal(model.mean.numpy(), model.covariance.numpy()).logpdf(samples[:50].numpy()),
                rtol=1e-12,
            ),
        ),
    )

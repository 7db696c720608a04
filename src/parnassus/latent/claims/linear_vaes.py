"""Claims about the linear variational autoencoder and its equivalence to probabilistic PCA (book sec. 5.2)."""

from functools import partial

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.latent.claims.probabilistic_pca import FEATURES, LATENT, random_rotation, sample_rows, true_model
from parnassus.latent.linear.covariance_spectrum import spectrum_by_eigh, spectrum_by_randomised_svd
from parnassus.latent.linear.incremental_pca import incremental_pca
from parnassus.latent.linear.linear_autoencoder import LinearAutoencoder
from parnassus.latent.linear.linear_vae import LinearVAE, fit_by_lbfgs
from parnassus.latent.linear.pca import PCA
from parnassus.latent.linear.probabilistic_pca import PPCA
from parnassus.latent.linear.projection import principal_angles, projection_matrix
from parnassus.probability import standard_normal


def linear_vae(seed: int = 0) -> LinearVAE:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LinearVAE(FEATURES, LATENT).double()


def largest_cosine(W: Tensor) -> Tensor:
    """Largest absolute cosine between two columns."""
    directions: Tensor = W / W.norm(dim=0)
    return (directions.mT @ directions - torch.eye(W.shape[1]).to(W)).abs().max()


@claim("B5.2-3")
@torch.no_grad()
def the_bound_is_tight_at_the_principal_axes() -> Evidence:
    """At the PPCA optimum with R = I the ELBO equals ln p(x) of every row; rotated, it is smaller (book sec. 5.2)."""
    x = sample_rows()
    best = PPCA.fit(x, LATENT)
    rotated = best.rotate(random_rotation())
    exact = best.log_prob(x)
    return all_of(
        principal_axes=close(linear_vae().match_ppca(best).elbo(x), exact, atol=1e-11),
        rotated_density=close(rotated.log_prob(x), exact, atol=1e-11),
        rotated_gap=greater_equal((exact - linear_vae().match_ppca(rotated).elbo(x)).mean(), 0.1),
    )


@claim("B5.2-3", "Z13.18")
def a_trained_linear_vae_is_ppca() -> Evidence:
    """A trained linear VAE has PPCA's likelihood, noise and subspace, and principal axes as columns (book sec. 5.2)."""
    x = sample_rows()
    model = linear_vae()
    bound = -fit_by_lbfgs(model, x, num_rounds=4)[-1]
    fitted, best = model.to_ppca(), PPCA.fit(x, LATENT)
    maximum, pca = best.log_prob(x).mean(), PCA.fit(x, LATENT)
    cosines = (fitted.W / fitted.W.norm(dim=0)).mT @ pca.components
    return all_of(
        likelihood=close(fitted.log_prob(x).mean(), maximum, atol=1e-8),
        bound=close(bound, maximum, atol=1e-8),
        noise=close(fitted.variance, best.variance, rtol=1e-6),
        subspace=close(projection_matrix(fitted.W), projection_matrix(pca.components), atol=1e-5),
        columns_are_principal_axes=close(cosines.abs().amax(1), 1.0, atol=1e-8),
        columns_are_orthogonal=close(largest_cosine(fitted.W), 0.0, atol=1e-5),
    )


@claim("B5.2-3")
@torch.no_grad()
def a_linear_autoencoder_finds_the_subspace_but_not_the_axes() -> Evidence:
    """Without a diagonal q, W and W A have the same error for any invertible A (book sec. 5.2)."""
    x = sample_rows()
    pca = PCA.fit(x, LATENT)
    A = standard_normal(LATENT, LATENT, seed=4)
    model = LinearAutoencoder(FEATURES, LATENT).double()
    model.decoder.weight.copy_(pca.components @ A)
    model.encoder.weight.copy_(torch.linalg.solve(A, pca.components.mT))
    model.encoder.bias.copy_(-model.encoder.weight @ pca.mean)
    model.decoder.bias.copy_(pca.mean)
    return all_of(
        minimal_error=close(model.loss(x), pca.residual_variance, rtol=1e-10),
        same_subspace=close(principal_angles(model.decoder.weight, pca.components), 0.0, atol=1e-10),
        columns_are_not_orthogonal=greater_equal(largest_cosine(model.decoder.weight), 0.3),
    )


@erratum(
    "B5.2-3",
    printed="q(z|x) = N(V_μ x, V_Σ x) with linear V_Σ is PPCA",
    right="a constant diagonal variance, learned σ²",
)
@torch.no_grad()
def a_variance_linear_in_x_can_be_negative() -> Correction:
    """With g(a) = a the variance V_Σ x is negative for half of the rows; PPCA's is constant (book eq. 5.5)."""
    x = sample_rows()
    best = PPCA.fit(x, LATENT)
    variances = best.posterior(x).covariance_matrix.diagonal(dim1=-2, dim2=-1)
    model = linear_vae().match_ppca(best)
    linear = (x - x.mean(0)) @ model.V.mT  # as for any V_Σ, the mean over centred rows is 0
    return Correction(
        printed=greater_equal(linear, 0.0),
        corrected=all_of(
            constant=close(variances, model.log_s.exp().expand_as(variances), rtol=1e-10),
            bound_is_exact=close(model.elbo(x), best.log_prob(x), atol=1e-11),
        ),
    )


@claim("D6.0.8")
def the_evidence_of_the_linear_model_agrees_with_quadrature() -> Evidence:
    """With a linear mean and constant noise ∫ p(x|z) p(z) dz is a Gaussian: quadrature agrees (Diehl ex. 6.4)."""
    model = true_model(latent=1)
    x = sample_rows(20)
    z = torch.linspace(-12, 12, 4_001, dtype=torch.float64)
    squares = (x[:, None] - model.inverse_transform(z[:, None])).square().sum(2)
    constant = (FEATURES + 1) / 2 * torch.log(torch.tensor(2 * torch.pi, dtype=torch.float64))
    joint = -squares / (2 * model.variance) - z.square() / 2 - constant - FEATURES / 2 * model.variance.log()
    evidence = joint.logsumexp(1) + (z[1] - z[0]).log()
    return close(model.log_prob(x), evidence, rtol=1e-10)


@claim("Z13.18")
def the_error_of_pca_is_minimal_and_the_sum_of_discarded_eigenvalues() -> Evidence:
    """The error of PCA is the sum of discarded eigenvalues, the minimum over subspaces (Zhao sec. 13)."""
    x = sample_rows()
    eigenvalues, _ = spectrum_by_eigh(x).pairs
    centred = x - x.mean(0)
    errors = [(x - PCA.fit(x, size).reconstruct(x)).square().sum(1).mean() for size in range(1, FEATURES)]
    generator = torch.Generator().manual_seed(6)
    bases = [torch.randn(FEATURES, LATENT, generator=generator, dtype=torch.float64) for _ in range(200)]
    random_errors = [(centred - centred @ projection_matrix(W)).square().sum(1).mean() for W in bases]
    wide = standard_normal(60, 500, seed=7) * torch.logspace(1, -3, 500, dtype=torch.float64)
    wide_eigenvalues = torch.linalg.svdvals(wide - wide.mean(0)).square() / 60
    randomised = PCA.fit(wide, 2, solver=partial(spectrum_by_randomised_svd, num_components=2))
    return all_of(
        discarded_eigenvalues=close(torch.stack(errors), eigenvalues.flip(0).cumsum(0).flip(0)[1:], rtol=1e-10),
        minimal=less_equal(errors[LATENT - 1], torch.stack(random_errors)),
        in_batches=close(incremental_pca(x.split(37), LATENT).residual_variance, errors[LATENT - 1], rtol=1e-10),
        randomised=close(randomised.residual_variance, wide_eigenvalues[2:].sum(), rtol=1e-6),
    )

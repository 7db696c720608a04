"""Claims about the linear variational autoencoder: when it is PPCA, and when not (book sec. 5.2)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.latent.claims.probabilistic_pca import FEATURES, LATENT, drawn, rotation, truth
from parnassus.latent.linear_autoencoder import LinearAutoencoder
from parnassus.latent.linear_vae import LinearVAE, train_exactly
from parnassus.latent.pca import PCA
from parnassus.latent.ppca import PPCA
from parnassus.latent.projection import principal_angles, projection
from parnassus.latent.spectrum import spectrum_by_eigh


def linear_vae(seed: int = 0) -> LinearVAE:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LinearVAE(FEATURES, LATENT).double()


def tangle(W: Tensor) -> Tensor:
    """The largest cosine between two columns."""
    directions: Tensor = W / W.norm(dim=0)
    return (directions.mT @ directions - torch.eye(W.shape[1]).to(W)).abs().max()


@claim("B5.2-3")
@torch.no_grad()
def the_bound_is_tight_at_the_principal_axes() -> Evidence:
    """At the PPCA optimum with R = I the ELBO equals ln p(x) of every row; turned, a gap opens (book sec. 5.2)."""
    x = drawn()
    best = PPCA.fit(x, LATENT)
    turned = best.rotated(rotation())
    exact = best.log_prob(x)
    return all_of(
        principal_axes=close(linear_vae().set_to(best).elbo(x), exact, atol=1e-11),
        rotated_density=close(turned.log_prob(x), exact, atol=1e-11),
        rotated_gap=at_least((exact - linear_vae().set_to(turned).elbo(x)).mean(), 0.1),
    )


@claim("B5.2-3", "Z13.18")
def a_trained_linear_vae_is_ppca() -> Evidence:
    """Trained, it has PPCA's likelihood, noise and subspace, and W's columns are the principal axes (book sec. 5.2)."""
    x = drawn()
    model = linear_vae()
    bound = -train_exactly(model, x, rounds=4)[-1]
    found, best = model.ppca(), PPCA.fit(x, LATENT)
    top, pca = best.log_prob(x).mean(), PCA.fit(x, LATENT)
    cosines = (found.W / found.W.norm(dim=0)).mT @ pca.components
    return all_of(
        likelihood=close(found.log_prob(x).mean(), top, atol=1e-8),
        bound=close(bound, top, atol=1e-8),
        noise=close(found.variance, best.variance, rtol=1e-6),
        subspace=close(projection(found.W), projection(pca.components), atol=1e-5),
        one_axis_for_each_column=close(cosines.abs().amax(1), 1.0, atol=1e-8),
        columns_at_right_angles=close(tangle(found.W), 0.0, atol=1e-5),
    )


@claim("B5.2-3")
@torch.no_grad()
def a_linear_autoencoder_finds_the_plane_but_not_the_axes() -> Evidence:
    """Without the diagonal q any invertible A serves: W A rebuilds as well, its columns are no axes (book sec. 5.2)."""
    x = drawn()
    pca = PCA.fit(x, LATENT)
    A = torch.randn(LATENT, LATENT, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    model = LinearAutoencoder(FEATURES, LATENT).double()
    model.decoder.weight.copy_(pca.components @ A)
    model.encoder.weight.copy_(torch.linalg.solve(A, pca.components.mT))
    model.encoder.bias.copy_(-model.encoder.weight @ pca.mean)
    model.decoder.bias.copy_(pca.mean)
    return all_of(
        least_error=close(model.loss(x), pca.residual, rtol=1e-10),
        same_plane=close(principal_angles(model.decoder.weight, pca.components), 0.0, atol=1e-10),
        columns_askew=at_least(tangle(model.decoder.weight), 0.3),
    )


@erratum(
    "B5.2-3",
    printed="q(z|x) = N(V_μ x, V_Σ x) with linear V_Σ is PPCA",
    right="a constant diagonal variance, learned σ²",
)
@torch.no_grad()
def a_variance_linear_in_x_is_no_variance() -> Correction:
    """With g(a) = a the variance V_Σ x is negative for half of the rows; PPCA's does not depend on x (book eq. 5.5)."""
    x = drawn()
    best = PPCA.fit(x, LATENT)
    variances = best.posterior(x).covariance_matrix.diagonal(dim1=-2, dim2=-1)
    model = linear_vae().set_to(best)
    linear = (x - x.mean(0)) @ model.V.mT  # as any V_Σ does, it averages to zero over centred rows
    return Correction(
        printed=at_least(linear, 0.0),
        corrected=all_of(
            constant=close(variances, model.log_s.exp().expand_as(variances), rtol=1e-10),
            bound_is_exact=close(model.elbo(x), best.log_prob(x), atol=1e-11),
        ),
    )


@claim("D6.0.8")
def the_linear_model_has_an_evidence_to_compare_with() -> Evidence:
    """With a linear mean and constant noise ∫ p(x|z) p(z) dz is a Gaussian: quadrature agrees (Diehl ex. 6.4)."""
    model = truth(latent=1)
    x = drawn(20)
    z = torch.linspace(-12, 12, 4_001, dtype=torch.float64)
    squares = (x[:, None] - model.inverse(z[:, None])).square().sum(2)
    constant = (FEATURES + 1) / 2 * torch.log(torch.tensor(2 * torch.pi, dtype=torch.float64))
    joint = -squares / (2 * model.variance) - z.square() / 2 - constant - FEATURES / 2 * model.variance.log()
    evidence = joint.logsumexp(1) + (z[1] - z[0]).log()
    return close(model.log_prob(x), evidence, rtol=1e-10)


@claim("Z13.18")
def least_error_is_what_is_dropped() -> Evidence:
    """PCA to K components errs by the eigenvalues dropped, and no random plane errs less (Zhao sec. 13)."""
    x = drawn()
    eigenvalues, _ = spectrum_by_eigh(x).pairs
    centred = x - x.mean(0)
    errors = [(x - PCA.fit(x, size).reconstruct(x)).square().sum(1).mean() for size in range(1, FEATURES)]
    source = torch.Generator().manual_seed(6)
    planes = [torch.randn(FEATURES, LATENT, generator=source, dtype=torch.float64) for _ in range(200)]
    others = [(centred - centred @ projection(W)).square().sum(1).mean() for W in planes]
    return all_of(
        dropped=close(torch.stack(errors), eigenvalues.flip(0).cumsum(0).flip(0)[1:], rtol=1e-10),
        least=at_most(errors[LATENT - 1], torch.stack(others)),
    )

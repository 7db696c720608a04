"""Claims about linear autoencoders: their solutions and loss landscape (book sec. 4.3)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.latent.autoencoders.autoencoder import Autoencoder
from parnassus.latent.linear.covariance_spectrum import spectrum_by_eigh
from parnassus.latent.linear.linear_autoencoder import (
    LinearAutoencoder,
    linear_error,
    linear_gradients,
    optimal_encoder,
    reduced_rank_regression,
)
from parnassus.latent.linear.pca import PCA
from parnassus.latent.linear.projection import principal_angles, projection_error, pseudo_inverse, second_moment
from parnassus.probability import random_orthogonal


def gaussian_rows(rows: int = 400, shift: float = 0.0, seed: int = 0) -> Tensor:
    """Rows in five dimensions with standard deviations 2.5, 2, 1, 0.7, 0.4 along rotated axes."""
    generator = torch.Generator().manual_seed(seed)
    scales = torch.tensor([2.5, 2.0, 1.0, 0.7, 0.4], dtype=torch.float64)
    rotation = random_orthogonal(5, generator=generator)
    x = torch.randn(rows, 5, generator=generator, dtype=torch.float64) * scales @ rotation
    return x - x.mean(0) + shift


def train_linear_autoencoder(
    x: Tensor, latent: int, *, seed: int = 0, bias: bool = False, steps: int = 600
) -> LinearAutoencoder:
    """Gradient descent on ⟨‖x − W V x‖²⟩ from a small random initialisation, full batch."""
    torch.manual_seed(seed)
    model = LinearAutoencoder(x.shape[1], latent, bias=bias).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        model.loss(x).backward()
        optimizer.step()
    return model.requires_grad_(requires_grad=False)


@claim("B4.1-3")
def without_a_bottleneck_training_reaches_the_identity() -> Evidence:
    """With as many code units as inputs training converges to W V = I and error 0 (book sec. 4.1)."""
    x = gaussian_rows()
    x = x / x.std(0)  # with equal scales gradient descent converges quickly
    full, narrow = train_linear_autoencoder(x, 5, steps=1_500), train_linear_autoencoder(x, 4)
    return all_of(
        product=close(full.decoder.weight @ full.encoder.weight, torch.eye(5), atol=1e-6),
        error=less_equal(full.loss(x), 1e-10),
        error_with_a_bottleneck=greater_equal(narrow.loss(x), 0.9 * PCA.fit(x, 4).residual_variance),
    )


@claim("B4.1-2", "B4.3-1")
def a_linear_autoencoder_is_one_matrix_of_low_rank() -> Evidence:
    """With identity activations decoder(encoder(x)) is W V x plus a constant, of rank K (book eqs. 4.3-4.4)."""
    torch.manual_seed(0)
    x, model = gaussian_rows(), LinearAutoencoder(5, 2).double()
    V, W = model.encoder.weight, model.decoder.weight
    network = Autoencoder(model.encoder, model.decoder)
    return all_of(
        affine=close(model(x), x @ (W @ V).mT + model.offset(), atol=1e-12),
        rank=close(int(torch.linalg.matrix_rank(W @ V)), 2),
        as_a_network=close(network(x), model(x)),
        code_then_decode=close(network.decode(network.encode(x)), network(x)),
        error=close(network.reconstruction_error(x).mean() * 5, model.loss(x), rtol=1e-12),
    )


@claim("B4.3-2")
def centring_replaces_the_biases() -> Evidence:
    """Trained biases satisfy W b₁ + b₂ = (I − W V) x̄, which is equivalent to centring the data (book sec. 4.3)."""
    x = gaussian_rows(shift=0.5)
    raw, centred = train_linear_autoencoder(x, 2, bias=True, steps=1_200), train_linear_autoencoder(x - x.mean(0), 2)
    without_bias = train_linear_autoencoder(x, 2)
    V, W = raw.encoder.weight, raw.decoder.weight
    return all_of(
        offset=close(raw.offset(), (torch.eye(5) - W @ V) @ x.mean(0), atol=1e-6),
        reconstructions=close(raw(x), centred(x - x.mean(0)) + x.mean(0), atol=1e-4),
        neither_biases_nor_centring=greater_equal(without_bias.loss(x) / raw.loss(x), 1.01),
    )


@claim("B4.3-3")
def the_gradients_follow_from_second_moments() -> Evidence:
    """∂E/∂W = −2 (Σ_yx − W V Σ_xx) Vᵀ and ∂E/∂V = −2 Wᵀ (Σ_yx − W V Σ_xx) equal autograd (book sec. 4.3)."""
    generator = torch.Generator().manual_seed(1)
    x, y = gaussian_rows(), torch.randn(400, 4, generator=generator, dtype=torch.float64)
    V = torch.randn(2, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    W = torch.randn(4, 2, generator=generator, dtype=torch.float64, requires_grad=True)
    sigma_xx, sigma_yx, sigma_yy = second_moment(x), y.mT @ x / 400, second_moment(y)
    error = (y - x @ V.mT @ W.mT).square().sum(1).mean()
    by_autograd = torch.autograd.grad(error, (V, W))
    by_formula = linear_gradients(V, W, sigma_xx=sigma_xx, sigma_yx=sigma_yx)
    return all_of(
        error=close(linear_error(V, W, sigma_xx=sigma_xx, sigma_yx=sigma_yx, sigma_yy=sigma_yy), error, rtol=1e-10),
        V=close(by_formula[0], by_autograd[0], atol=1e-10),
        W=close(by_formula[1], by_autograd[1], atol=1e-10),
    )


@claim("B4.3-3")
def the_optimal_encoder_for_other_targets_includes_a_regression() -> Evidence:
    """For y ≠ x the best encoder is pInv(W) Σ_yx Σ_xx⁻¹; pInv(W) alone is optimal only for y = x (book sec. 4.3)."""
    generator = torch.Generator().manual_seed(1)
    x = gaussian_rows()
    y = x @ torch.randn(5, 5, generator=generator, dtype=torch.float64) + torch.randn(400, 5, generator=generator)
    W = torch.randn(5, 2, generator=generator, dtype=torch.float64)
    moments = {"sigma_xx": second_moment(x), "sigma_yx": y.mT @ x / 400}

    def error(V: Tensor, W: Tensor) -> Tensor:
        return linear_error(V, W, **moments, sigma_yy=second_moment(y))

    V = optimal_encoder(W, **moments)
    best_V, best_W = reduced_rank_regression(2, **moments)
    best_gradients = linear_gradients(best_V, best_W, **moments)
    autoencoder_encoder = optimal_encoder(W, sigma_xx=moments["sigma_xx"], sigma_yx=moments["sigma_xx"])
    return all_of(
        stationary=close(linear_gradients(V, W, **moments)[0], 0.0, atol=1e-9),
        pseudo_inverse_alone=greater_equal(error(pseudo_inverse(W), W) / error(V, W), 1.5),
        target_x=close(autoencoder_encoder, pseudo_inverse(W), atol=1e-10),
        best_pair_is_stationary=close(torch.cat([best_gradients[0], best_gradients[1].mT]), 0.0, atol=1e-9),
        best_pair=less_equal(error(best_V, best_W), error(V, W)),
    )


@claim("B4.3-12")
def a_trained_linear_autoencoder_finds_the_principal_subspace() -> Evidence:
    """Training converges to the span of the top K eigenvectors, V = pInv(W) and error Σ_{i>K} λ_i (book sec. 4.3)."""
    x = gaussian_rows()
    model, pca = train_linear_autoencoder(x, 2), PCA.fit(x, 2)
    V, W = model.encoder.weight, model.decoder.weight
    return all_of(
        angles=less_equal(principal_angles(W, pca.components), 1e-3),
        error=close(model.loss(x), pca.residual_variance, rtol=1e-6),
        encoder=close(V, pseudo_inverse(W), atol=1e-4),
    )


@claim("B4.3-12")
def the_columns_of_a_trained_decoder_are_not_eigenvectors() -> Evidence:
    """W spans the eigenvectors, but (W A, A⁻¹ V) has equal error for every invertible A (book sec. 4.3)."""
    x = gaussian_rows()
    model, pca = train_linear_autoencoder(x, 2), PCA.fit(x, 2)
    V, W = model.encoder.weight, model.decoder.weight
    A = torch.tensor([[2.0, 1.0], [0.5, -1.0]], dtype=torch.float64)
    mixed_error = (x - x @ (W @ A @ torch.linalg.inv(A) @ V).mT).square().sum(1).mean()
    cosines = torch.nn.functional.normalize(W, dim=0).mT @ pca.components
    return all_of(
        mixed=close(mixed_error, model.loss(x), rtol=1e-10), largest_cosine=less_equal(cosines.abs().max(), 0.999)
    )


@claim("B4.3-14")
def only_pca_gives_uncorrelated_codes() -> Evidence:
    """Principal scores are uncorrelated; the code of a trained network with equal error is not (book sec. 4.3)."""
    x = gaussian_rows()
    model, pca = train_linear_autoencoder(x, 2), PCA.fit(x, 2)
    pca_correlations, autoencoder_correlations = torch.corrcoef(pca.transform(x).mT), torch.corrcoef(model.encode(x).mT)
    return all_of(
        error=close(model.loss(x), pca.residual_variance, rtol=1e-6),
        principal=close(pca_correlations[0, 1], 0.0, atol=1e-10),
        trained=greater_equal(autoencoder_correlations[0, 1].abs(), 0.05),
    )


@erratum(
    "B4.3-12",
    printed="eigenvectors are the columns of V or the rows of W",
    right="for V of shape K × N and W of shape N × K they are the rows of V and the columns of W",
)
def eigenvectors_are_rows_of_the_encoder() -> Correction:
    """With the shapes given for the network, a column of V cannot hold N values (book sec. 4.3)."""
    x = gaussian_rows()
    sigma, pca = second_moment(x), PCA.fit(x, 2)
    V = pca.components.mT
    return Correction(
        printed=close(V[:, 0].numel(), 5),
        corrected=all_of(
            length=close(V[0].numel(), 5), eigenvector=close(sigma @ V[0], pca.explained_variance[0] * V[0], atol=1e-10)
        ),
    )


@erratum("B4.3-12", printed="eigenvectors of the correlation matrix", right="eigenvectors of the covariance matrix")
def the_best_subspace_comes_from_the_covariance() -> Correction:
    """Σ = Xᵀ X / M is not a correlation matrix: standardising features changes the eigenvectors (book sec. 4.3)."""
    x = gaussian_rows()
    sigma, scaled = second_moment(x), x / x.std(0)
    _, of_correlation = spectrum_by_eigh(scaled).pairs
    _, of_covariance = spectrum_by_eigh(x).pairs
    minimum = PCA.fit(x, 2).residual_variance
    return Correction(
        printed=close(projection_error(of_correlation[:, :2], sigma), minimum, rtol=1e-3),
        corrected=close(projection_error(of_covariance[:, :2], sigma), minimum, rtol=1e-10),
    )

"""Claims about linear autoencoders: what they learn and the landscape they learn in (book sec. 4.3)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.latent.autoencoder import Autoencoder
from parnassus.latent.linear_autoencoder import (
    LinearAutoencoder,
    best_encoder,
    linear_error,
    linear_gradients,
    reduced_rank_regression,
)
from parnassus.latent.pca import PCA
from parnassus.latent.projection import principal_angles, projection_error, pseudo_inverse, second_moment
from parnassus.latent.spectrum import spectrum_by_eigh


def cloud(rows: int = 400, shift: float = 0.0, seed: int = 0) -> Tensor:
    """Rows in five dimensions with standard deviations 2.5, 2, 1, 0.7, 0.4 along rotated axes."""
    generator = torch.Generator().manual_seed(seed)
    scales = torch.tensor([2.5, 2.0, 1.0, 0.7, 0.4], dtype=torch.float64)
    rotation: Tensor = torch.linalg.qr(torch.randn(5, 5, generator=generator, dtype=torch.float64))[0]
    x = torch.randn(rows, 5, generator=generator, dtype=torch.float64) * scales @ rotation
    return x - x.mean(0) + shift


def trained(x: Tensor, latent: int, *, seed: int = 0, bias: bool = False, steps: int = 600) -> LinearAutoencoder:
    """Gradient descent on ⟨‖x − W V x‖²⟩ from a small random start, all rows at once."""
    torch.manual_seed(seed)
    model = LinearAutoencoder(x.shape[1], latent, bias=bias).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        model.loss(x).backward()
        optimizer.step()
    return model.requires_grad_(requires_grad=False)


@claim("B4.1-3")
def without_a_bottleneck_the_identity_wins() -> Evidence:
    """With as many code units as inputs training reaches W V = I and error 0; with fewer it cannot (book sec. 4.1)."""
    x = cloud()
    x = x / x.std(0)  # on equal scales plain descent reaches the bottom of every direction soon
    full, narrow = trained(x, 5, steps=1_500), trained(x, 4)
    return all_of(
        product=close(full.decoder.weight @ full.encoder.weight, torch.eye(5), atol=1e-6),
        error=at_most(full.loss(x), 1e-10),
        with_a_bottleneck=at_least(narrow.loss(x), 0.9 * PCA.fit(x, 4).residual),
    )


@claim("B4.1-2", "B4.3-1")
def a_linear_autoencoder_is_one_matrix_of_low_rank() -> Evidence:
    """Encoder and decoder with identity activations compose to x ↦ W V x plus a constant (book eqs. 4.3-4.4)."""
    torch.manual_seed(0)
    x, model = cloud(), LinearAutoencoder(5, 2).double()
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
    """Biases learn W b₁ + b₂ = (I − W V) x̄: raw data with biases do as well as centred data without (book sec. 4.3)."""
    x = cloud(shift=0.5)
    raw, centred = trained(x, 2, bias=True, steps=1_200), trained(x - x.mean(0), 2)
    without = trained(x, 2)
    V, W = raw.encoder.weight, raw.decoder.weight
    return all_of(
        offset=close(raw.offset(), (torch.eye(5) - W @ V) @ x.mean(0), atol=1e-6),
        reconstructions=close(raw(x), centred(x - x.mean(0)) + x.mean(0), atol=1e-4),
        neither=at_least(without.loss(x) / raw.loss(x), 1.01),
    )


@claim("B4.3-3")
def the_gradients_follow_from_second_moments() -> Evidence:
    """∂E/∂W = −2 (Σ_yx − W V Σ_xx) Vᵀ and ∂E/∂V = −2 Wᵀ (Σ_yx − W V Σ_xx) are autograd's (book sec. 4.3)."""
    generator = torch.Generator().manual_seed(1)
    x, y = cloud(), torch.randn(400, 4, generator=generator, dtype=torch.float64)
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
def another_target_needs_a_regression_before_the_pseudo_inverse() -> Evidence:
    """For y ≠ x the best encoder is pInv(W) Σ_yx Σ_xx⁻¹; pInv(W) alone is right only for y = x (book sec. 4.3)."""
    generator = torch.Generator().manual_seed(1)
    x = cloud()
    y = x @ torch.randn(5, 5, generator=generator, dtype=torch.float64) + torch.randn(400, 5, generator=generator)
    W = torch.randn(5, 2, generator=generator, dtype=torch.float64)
    moments = {"sigma_xx": second_moment(x), "sigma_yx": y.mT @ x / 400}

    def error(V: Tensor, W: Tensor) -> Tensor:
        return linear_error(V, W, **moments, sigma_yy=second_moment(y))

    V = best_encoder(W, **moments)
    best_V, best_W = reduced_rank_regression(2, **moments)
    slopes = linear_gradients(best_V, best_W, **moments)
    itself = best_encoder(W, sigma_xx=moments["sigma_xx"], sigma_yx=moments["sigma_xx"])
    return all_of(
        stationary=close(linear_gradients(V, W, **moments)[0], 0.0, atol=1e-9),
        pseudo_inverse_alone=at_least(error(pseudo_inverse(W), W) / error(V, W), 1.5),
        target_x=close(itself, pseudo_inverse(W), atol=1e-10),
        best_pair_is_stationary=close(torch.cat([slopes[0], slopes[1].mT]), 0.0, atol=1e-9),
        best_pair=at_most(error(best_V, best_W), error(V, W)),
    )


@claim("B4.3-12")
def a_trained_linear_autoencoder_finds_the_principal_subspace() -> Evidence:
    """Descent ends in the span of the top K eigenvectors with V = pInv(W) and error Σ_{i>K} λ_i (book sec. 4.3)."""
    x = cloud()
    model, pca = trained(x, 2), PCA.fit(x, 2)
    V, W = model.encoder.weight, model.decoder.weight
    return all_of(
        angles=at_most(principal_angles(W, pca.components), 1e-3),
        error=close(model.loss(x), pca.residual, rtol=1e-6),
        encoder=close(V, pseudo_inverse(W), atol=1e-4),
    )


@claim("B4.3-12")
def a_trained_decoder_does_not_hold_the_eigenvectors() -> Evidence:
    """W spans the eigenvectors without being them: (W A, A⁻¹ V) is as good for every invertible A (book sec. 4.3)."""
    x = cloud()
    model, pca = trained(x, 2), PCA.fit(x, 2)
    V, W = model.encoder.weight, model.decoder.weight
    A = torch.tensor([[2.0, 1.0], [0.5, -1.0]], dtype=torch.float64)
    mixed = (x - x @ (W @ A @ torch.linalg.inv(A) @ V).mT).square().sum(1).mean()
    cosines = torch.nn.functional.normalize(W, dim=0).mT @ pca.components
    return all_of(mixed=close(mixed, model.loss(x), rtol=1e-10), largest_cosine=at_most(cosines.abs().max(), 0.999))


@claim("B4.3-14")
def only_the_closed_form_orders_its_features() -> Evidence:
    """Principal scores are uncorrelated; the code of a trained network with the same error is not (book sec. 4.3)."""
    x = cloud()
    model, pca = trained(x, 2), PCA.fit(x, 2)
    ordered, learnt = torch.corrcoef(pca.transform(x).mT), torch.corrcoef(model.encode(x).mT)
    return all_of(
        error=close(model.loss(x), pca.residual, rtol=1e-6),
        principal=close(ordered[0, 1], 0.0, atol=1e-10),
        learnt=at_least(learnt[0, 1].abs(), 0.05),
    )


@erratum(
    "B4.3-12",
    printed="eigenvectors are the columns of V or the rows of W",
    right="with V K × N and W N × K they are the rows of V and the columns of W",
)
def eigenvectors_are_rows_of_the_encoder() -> Correction:
    """The shapes given with the network leave no room for N numbers in a column of V (book sec. 4.3)."""
    x = cloud()
    sigma, pca = second_moment(x), PCA.fit(x, 2)
    V = pca.components.mT
    return Correction(
        printed=close(V[:, 0].numel(), 5),
        corrected=all_of(
            length=close(V[0].numel(), 5), eigenvector=close(sigma @ V[0], pca.variances[0] * V[0], atol=1e-10)
        ),
    )


@erratum("B4.3-12", printed="eigenvectors of the correlation matrix", right="eigenvectors of the covariance matrix")
def the_best_plane_comes_from_the_covariance() -> Correction:
    """Σ = Xᵀ X / M is no correlation matrix: dividing by standard deviations turns its eigenvectors (book sec. 4.3)."""
    x = cloud()
    sigma, scaled = second_moment(x), x / x.std(0)
    _, of_correlation = spectrum_by_eigh(scaled).pairs
    _, of_covariance = spectrum_by_eigh(x).pairs
    least = PCA.fit(x, 2).residual
    return Correction(
        printed=close(projection_error(of_correlation[:, :2], sigma), least, rtol=1e-3),
        corrected=close(projection_error(of_covariance[:, :2], sigma), least, rtol=1e-10),
    )

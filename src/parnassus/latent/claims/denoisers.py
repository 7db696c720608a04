"""Claims about denoising: the conditional mean, the way back to the data, its score (book sec. 4.4)."""

from functools import partial
from math import pi

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, rate
from parnassus.data import load_digits
from parnassus.latent.autoencoder import Autoencoder
from parnassus.latent.claims.training import adam
from parnassus.latent.denoising import (
    DenoisingAutoencoder,
    gaussian,
    gaussian_denoiser,
    ideal_denoiser,
    masking,
    psnr,
    salt_and_pepper,
    score,
    smoothed_log_density,
)
from parnassus.layers import mlp, sigmoid, tanh


def circle(count: int) -> Tensor:
    """Points at equal angles on the unit circle."""
    angle = torch.arange(count, dtype=torch.float64) * 2 * pi / count
    return torch.stack([angle.cos(), angle.sin()], 1)


def distance_to_circle(x: Tensor) -> Tensor:
    distance: Tensor = (torch.linalg.vector_norm(x, dim=1) - 1).abs()
    return distance


@claim("B4.4-2")
def corruption_kernels_spoil_what_they_say() -> Evidence:
    """Gaussian noise has the asked deviation; masking and salt-and-pepper touch the asked share (book sec. 4.4)."""
    generator = torch.Generator().manual_seed(0)
    x = torch.full((40_000,), 0.5)
    noise = gaussian(x, std=0.3, generator=generator) - x
    masked = masking(x, share=0.2, generator=generator)
    spiced = salt_and_pepper(x, share=0.2, generator=generator)
    return all_of(
        gaussian=close(noise.std(), 0.3, atol=0.005),
        unbiased=close(noise.mean(), 0.0, atol=0.006),
        masked=close((masked == 0).float().mean(), 0.2, atol=0.01),
        salt=close((spiced == 1).float().mean(), 0.1, atol=0.01),
        pepper=close((spiced == 0).float().mean(), 0.1, atol=0.01),
        kept=close(masked[masked != 0], 0.5),
    )


@claim("B4.4-2")
def a_trained_denoiser_beats_doing_nothing() -> Evidence:
    """On unseen noisy digits a denoising autoencoder gains decibels over the noisy image (book sec. 4.4)."""
    digits = load_digits()
    torch.manual_seed(0)
    network = Autoencoder(mlp((64, 128, 32)), mlp((32, 128, 64), output=sigmoid))
    model = DenoisingAutoencoder(network, partial(gaussian, std=0.3))
    adam(model, partial(model.loss, digits.train.x.flatten(1)), steps=200, lr=3e-3)
    clean = digits.test.x.flatten(1)
    noisy = model.corrupt(clean)
    return at_least(psnr(model(noisy), clean) - psnr(noisy, clean), 5.0)


@claim("B4.4-3")
def a_gaussian_is_denoised_by_a_matrix() -> Evidence:
    """For x ~ N(0, Σ) the best estimate is Σ (Σ + s² I)⁻¹ x̂; regression finds it at rate 1/√n (book sec. 4.4)."""
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    exact = gaussian_denoiser(root @ root.mT, std=0.8)
    counts = 4 ** torch.arange(4, 9)

    def deviation(count: int) -> Tensor:
        runs = []
        for _ in range(20):
            x = torch.randn(count, 3, generator=generator, dtype=torch.float64) @ root.mT
            x_hat = gaussian(x, std=0.8, generator=generator)
            runs.append((torch.linalg.lstsq(x_hat, x).solution.mT - exact).square().mean())
        return torch.stack(runs).mean().sqrt()

    deviations = torch.stack([deviation(int(count)) for count in counts])
    return all_of(last=at_most(deviations[-1], 0.005), speed=rate(counts, deviations, -0.5, atol=0.06))


@claim("B4.4-3")
def finitely_many_points_are_denoised_by_a_softmax() -> Evidence:
    """E[x | x̂] = Σ_i softmax_i(−‖x̂ − x_i‖² / 2s²) x_i is the mean of the points that gave x̂ (book sec. 4.4)."""
    points = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.3, 0.9]], dtype=torch.float64)
    x_hat = torch.tensor([[0.5, 0.4], [-0.3, 0.2]], dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    x = points[torch.randint(3, (2_000_000,), generator=generator)]
    x_noisy = gaussian(x, std=0.5, generator=generator)
    near = [torch.linalg.vector_norm(x_noisy - at, dim=1) < 0.05 for at in x_hat]
    sampled = torch.stack([x[rows].mean(0) for rows in near])
    return all_of(
        by_sampling=close(ideal_denoiser(points, x_hat, std=0.5), sampled, atol=0.02),
        little_noise=close(ideal_denoiser(points, x_hat, std=0.02), points[[2, 0]], atol=1e-2),
        much_noise=close(ideal_denoiser(points, x_hat, std=100.0), points.mean(0), atol=1e-3),
    )


@claim("B4.4-3")
def a_network_learns_the_conditional_mean() -> Evidence:
    """Trained on three points of the line, a denoising network draws the ideal curve (book sec. 4.4)."""
    torch.manual_seed(0)
    points = torch.tensor([[-1.0], [0.2], [1.0]])
    model = DenoisingAutoencoder(
        Autoencoder(mlp((1, 64, 64), activation=tanh), mlp((64, 1))), partial(gaussian, std=0.4)
    )
    adam(model, partial(model.loss, points.repeat(400, 1)), steps=600, lr=5e-3)
    grid = torch.linspace(-1.6, 1.6, 65)[:, None]
    ideal = ideal_denoiser(points, grid, std=0.4)
    gap = (model(grid) - ideal).square().mean().sqrt()
    return all_of(network=at_most(gap, 0.1), identity=at_least((grid - ideal).square().mean().sqrt(), 0.2))


@claim("B4.4-4")
def noise_is_mostly_orthogonal_to_a_thin_manifold() -> Evidence:
    """Of isotropic noise in N dimensions a d-dimensional tangent space holds the share d / N (book sec. 4.4)."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(4_000, 100, generator=generator, dtype=torch.float64)
    tangent, _ = torch.linalg.qr(torch.randn(100, 3, generator=generator, dtype=torch.float64))
    share = (noise @ tangent).square().sum() / noise.square().sum()
    return close(share, 0.03, atol=0.002)


@claim("B4.4-4")
def the_way_back_is_the_score() -> Evidence:
    """(E[x | x̂] − x̂) / s² is the gradient of log p_s at x̂, exactly (book sec. 4.4)."""
    points = circle(40)
    x_hat = 1.5 * torch.randn(50, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x_hat.requires_grad_()
    (slope,) = torch.autograd.grad(smoothed_log_density(points, x_hat, std=0.3).sum(), x_hat)
    return close(score(ideal_denoiser(points, x_hat, std=0.3), x_hat, std=0.3), slope, atol=1e-10)


@claim("B4.4-4")
def denoising_brings_points_back_to_a_circle() -> Evidence:
    """After ideal denoising noisy points of a circle lie three times nearer to it (book sec. 4.4)."""
    points = circle(400)
    x_hat = gaussian(points, std=0.2, generator=torch.Generator().manual_seed(0))
    before, after = distance_to_circle(x_hat), distance_to_circle(ideal_denoiser(points, x_hat, std=0.2))
    return at_least(before.mean() / after.mean(), 3.0)


@erratum(
    "B4.4-4",
    printed="g(f(x̂)) ∼ x̂, called the difference, is the projection on the manifold",
    right="g(f(x̂)) is about the projection; the difference g(f(x̂)) − x̂ only points to it",
)
def the_reconstruction_is_the_projection() -> Correction:
    """The printed sign is no minus, and the difference vector does not lie on the manifold (book sec. 4.4)."""
    points = circle(400)
    x_hat = gaussian(points, std=0.15, generator=torch.Generator().manual_seed(0))
    nearest = torch.nn.functional.normalize(x_hat, dim=1)
    rebuilt = ideal_denoiser(points, x_hat, std=0.15)
    return Correction(
        printed=at_most((rebuilt - x_hat - nearest).square().sum(1).mean().sqrt(), 0.05),
        corrected=at_most((rebuilt - nearest).square().sum(1).mean().sqrt(), 0.05),
    )

"""Claims about denoising: the conditional mean, projection on the data manifold and the score (book sec. 4.4)."""

from functools import partial

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, rate
from parnassus.data import load_digits
from parnassus.latent.autoencoders.autoencoder import Autoencoder
from parnassus.latent.autoencoders.denoising_autoencoder import (
    DenoisingAutoencoder,
    add_gaussian_noise,
    add_salt_and_pepper_noise,
    exact_denoiser,
    linear_denoiser_matrix,
    mask_at_random,
    psnr,
    score_from_denoiser,
    smoothed_log_density,
)
from parnassus.latent.claims.training import adam
from parnassus.latent.textbook.circle import circle_points, distance_to_circle
from parnassus.layers import mlp, sigmoid, tanh
from parnassus.probability import standard_normal


@claim("B4.4-2")
def corruption_kernels_have_the_given_parameters() -> Evidence:
    """Gaussian noise has the given std; masking and salt-and-pepper affect the given fraction (book sec. 4.4)."""
    generator = torch.Generator().manual_seed(0)
    x = torch.full((40_000,), 0.5)
    noise = add_gaussian_noise(x, std=0.3, generator=generator) - x
    masked = mask_at_random(x, probability=0.2, generator=generator)
    salt_and_pepper = add_salt_and_pepper_noise(x, probability=0.2, generator=generator)
    return all_of(
        gaussian=close(noise.std(), 0.3, atol=0.005),
        unbiased=close(noise.mean(), 0.0, atol=0.006),
        masked=close((masked == 0).float().mean(), 0.2, atol=0.01),
        salt=close((salt_and_pepper == 1).float().mean(), 0.1, atol=0.01),
        pepper=close((salt_and_pepper == 0).float().mean(), 0.1, atol=0.01),
        unmasked_values=close(masked[masked != 0], 0.5),
    )


@claim("B4.1-4")
def masked_inputs_teach_the_correlations_between_features() -> Evidence:
    """The best linear denoiser of masked inputs is Σ ((1 − p) Σ + p diag Σ)⁻¹; without a mask, I (book sec. 4.1)."""
    probability, x = 0.25, standard_normal(30, 3) @ standard_normal(3, 3, seed=1)
    sigma = x.mT @ x / len(x)
    masks = torch.cartesian_prod(*3 * [torch.tensor([0.0, 1.0, 1.0, 1.0], dtype=torch.float64)])  # all 4³ outcomes
    rows, kept = x.repeat_interleave(len(masks), 0), masks.repeat(len(x), 1)
    encoder, decoder = (nn.Linear(3, 3, bias=False, dtype=torch.float64) for _ in range(2))
    model = DenoisingAutoencoder(Autoencoder(encoder, decoder), lambda rows: rows * kept)
    best = sigma @ torch.linalg.inv((1 - probability) * sigma + probability * sigma.diagonal().diag())
    decoder.weight, encoder.weight = (
        nn.Parameter(best @ torch.linalg.inv(encoder.weight.detach())),
        nn.Parameter(encoder.weight.detach()),
    )
    loss = model.loss(rows)
    gradients = torch.autograd.grad(loss, (encoder.weight, decoder.weight))
    return all_of(
        stationary=close(torch.cat(gradients), 0.0, atol=1e-12),
        error_of_the_identity=greater_equal((kept * rows - rows).square().mean() / loss, 1.2),
        weight_on_other_features=greater_equal((best - best.diagonal().diag()).abs().max(), 0.1),
    )


@claim("B4.4-2")
def a_trained_denoiser_increases_the_psnr() -> Evidence:
    """On held-out noisy digits a denoising autoencoder gains at least 5 dB over the noisy image (book sec. 4.4)."""
    digits = load_digits()
    torch.manual_seed(0)
    network = Autoencoder(mlp((64, 128, 32)), mlp((32, 128, 64), output=sigmoid))
    model = DenoisingAutoencoder(network, partial(add_gaussian_noise, std=0.3))
    adam(model, partial(model.loss, digits.train.x.flatten(1)), steps=200, lr=3e-3)
    clean = digits.test.x.flatten(1)
    noisy = model.corrupt(clean)
    return greater_equal(psnr(model(noisy), clean) - psnr(noisy, clean), 5.0)


@claim("B4.4-3")
def a_gaussian_is_denoised_by_a_matrix() -> Evidence:
    """For x ~ N(0, Σ) the best estimate is Σ (Σ + s² I)⁻¹ x̂; regression converges to it as 1/√n (book sec. 4.4)."""
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    exact = linear_denoiser_matrix(root @ root.mT, std=0.8)
    counts = 4 ** torch.arange(4, 9)

    def deviation(count: int) -> Tensor:
        runs = []
        for _ in range(20):
            x = torch.randn(count, 3, generator=generator, dtype=torch.float64) @ root.mT
            x_hat = add_gaussian_noise(x, std=0.8, generator=generator)
            runs.append((torch.linalg.lstsq(x_hat, x).solution.mT - exact).square().mean())
        return torch.stack(runs).mean().sqrt()

    deviations = torch.stack([deviation(int(count)) for count in counts])
    return all_of(
        final_deviation=less_equal(deviations[-1], 0.005), convergence_rate=rate(counts, deviations, -0.5, atol=0.06)
    )


@claim("B4.4-3")
def finitely_many_points_are_denoised_by_a_softmax() -> Evidence:
    """E[x | x̂] = Σ_i softmax_i(−‖x̂ − x_i‖² / 2s²) x_i is the posterior mean of the points (book sec. 4.4)."""
    points = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.3, 0.9]], dtype=torch.float64)
    x_hat = torch.tensor([[0.5, 0.4], [-0.3, 0.2]], dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    x = points[torch.randint(3, (2_000_000,), generator=generator)]
    x_noisy = add_gaussian_noise(x, std=0.5, generator=generator)
    near = [torch.linalg.vector_norm(x_noisy - at, dim=1) < 0.05 for at in x_hat]
    sampled = torch.stack([x[rows].mean(0) for rows in near])
    return all_of(
        conditional_mean_by_sampling=close(exact_denoiser(points, x_hat, std=0.5), sampled, atol=0.02),
        little_noise=close(exact_denoiser(points, x_hat, std=0.02), points[[2, 0]], atol=1e-2),
        much_noise=close(exact_denoiser(points, x_hat, std=100.0), points.mean(0), atol=1e-3),
    )


@claim("B4.4-3")
def a_network_learns_the_conditional_mean() -> Evidence:
    """Trained on three points of the line, a denoising network approximates the optimal denoiser (book sec. 4.4)."""
    torch.manual_seed(0)
    points = torch.tensor([[-1.0], [0.2], [1.0]])
    model = DenoisingAutoencoder(
        Autoencoder(mlp((1, 64, 64), activation=tanh), mlp((64, 1))), partial(add_gaussian_noise, std=0.4)
    )
    adam(model, partial(model.loss, points.repeat(400, 1)), steps=600, lr=5e-3)
    grid = torch.linspace(-1.6, 1.6, 65)[:, None]
    optimum = exact_denoiser(points, grid, std=0.4)
    deviation = (model(grid) - optimum).square().mean().sqrt()
    return all_of(
        network=less_equal(deviation, 0.1), identity=greater_equal((grid - optimum).square().mean().sqrt(), 0.2)
    )


@claim("B4.4-4")
def noise_is_mostly_orthogonal_to_a_low_dimensional_manifold() -> Evidence:
    """A d-dimensional tangent space contains the fraction d / N of isotropic noise in N dimensions (book sec. 4.4)."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(4_000, 100, generator=generator, dtype=torch.float64)
    tangent, _ = torch.linalg.qr(torch.randn(100, 3, generator=generator, dtype=torch.float64))
    fraction = (noise @ tangent).square().sum() / noise.square().sum()
    points = 20 * torch.randn(4_000, 3, generator=generator, dtype=torch.float64) @ tangent.mT
    matrix = linear_denoiser_matrix(400 * tangent @ tangent.mT, std=1.0)
    errors = [((points + noise) @ each - points).square().sum(1).mean() for each in (torch.eye(100).double(), matrix)]
    return all_of(
        tangential_noise=close(fraction, 0.03, atol=0.002),
        error_that_remains_after_denoising=close(errors[1] / errors[0], 0.03 * 400 / 401, atol=0.002),
    )


@claim("B4.4-4")
def the_denoising_direction_is_the_score() -> Evidence:
    """(E[x | x̂] − x̂) / s² is the gradient of log p_s at x̂, exactly (book sec. 4.4)."""
    points = circle_points(40)
    x_hat = 1.5 * standard_normal(50, 2)
    x_hat.requires_grad_()
    (score,) = torch.autograd.grad(smoothed_log_density(points, x_hat, std=0.3).sum(), x_hat)
    return close(score_from_denoiser(exact_denoiser(points, x_hat, std=0.3), x_hat, std=0.3), score, atol=1e-10)


@claim("B4.4-4")
def denoising_moves_points_towards_the_manifold() -> Evidence:
    """After optimal denoising noisy points of a circle are at least three times closer to it (book sec. 4.4)."""
    points = circle_points(400)
    x_hat = add_gaussian_noise(points, std=0.2, generator=torch.Generator().manual_seed(0))
    before, after = distance_to_circle(x_hat), distance_to_circle(exact_denoiser(points, x_hat, std=0.2))
    return greater_equal(before.mean() / after.mean(), 3.0)


@erratum(
    "B4.4-4",
    printed="g(f(x̂)) ∼ x̂, called the difference, is the projection on the manifold",
    right="g(f(x̂)) approximates the projection; the difference g(f(x̂)) − x̂ points towards it",
)
def the_reconstruction_approximates_the_projection() -> Correction:
    """The printed sign is not a minus, and the difference vector does not lie on the manifold (book sec. 4.4)."""
    points = circle_points(400)
    x_hat = add_gaussian_noise(points, std=0.15, generator=torch.Generator().manual_seed(0))
    nearest = torch.nn.functional.normalize(x_hat, dim=1)
    reconstruction = exact_denoiser(points, x_hat, std=0.15)
    return Correction(
        printed=less_equal((reconstruction - x_hat - nearest).square().sum(1).mean().sqrt(), 0.05),
        corrected=less_equal((reconstruction - nearest).square().sum(1).mean().sqrt(), 0.05),
    )

"""Claims about the minimax game of generator and discriminator (Diehl sec. 5.2)."""

from math import log

import torch
from torch import Tensor, nn
from torch.func import grad

from parnassus.adversarial.gan import (
    GAN,
    discriminator_loss,
    minimax_loss,
    non_saturating_loss,
    optimal_discriminator,
)
from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.probability import jensen_shannon_divergence, normal_density, random_distributions


def value(discriminator: Tensor, p: Tensor, q: Tensor) -> Tensor:
    """E_p log D + E_q log(1 − D) for distributions p and q on finitely many points."""
    return (p * discriminator.log() + q * (1 - discriminator).log()).sum(-1)


@claim("D5.2.3")
def the_optimal_discriminator_is_the_density_fraction() -> Evidence:
    """D⋆ = p/(p + q) attains the largest value, 2 JS(p, q) − log 4 (Diehl sec. 5.2)."""
    p, q = random_distributions(50, 6), random_distributions(50, 6, seed=1)
    best = optimal_discriminator(p, q)
    generator = torch.Generator().manual_seed(2)
    others = torch.rand(1_000, 50, 6, generator=generator, dtype=torch.float64)
    near = (best.logit() + 0.01 * torch.randn(1_000, 50, 6, generator=generator, dtype=torch.float64)).sigmoid()
    return all_of(
        maximum=close(value(best, p, q), 2 * jensen_shannon_divergence(p, q) - log(4), atol=1e-12),
        random_ones=less_equal(value(others, p, q), value(best, p, q)),
        perturbed_ones=less_equal(value(near, p, q), value(best, p, q)),
    )


@claim("D5.2.3")
def the_game_is_minimal_where_generator_and_data_agree() -> Evidence:
    """For q = p the optimal discriminator is ½ and the value −log 4; any other q has a larger one (Diehl sec. 5.2)."""
    p, q = random_distributions(200, 5), random_distributions(200, 5, seed=1)
    even = optimal_discriminator(p, p)
    return all_of(
        optimal_discriminator_is_half=close(even, 0.5, atol=1e-15),
        minimum=close(value(even, p, p), -log(4), atol=1e-12),
        others_are_larger=greater_equal(value(optimal_discriminator(p, q), p, q), -log(4) + 1e-4),
    )


@claim("D5.2.3")
def the_minimax_loss_saturates() -> Evidence:
    """Where D = sigmoid(−10), the derivative of log(1 − D) is −4.5·10⁻⁵, of −log D nearly −1 (Diehl sec. 5.2)."""
    saturated = torch.tensor([-10.0], dtype=torch.float64)
    even = torch.zeros(1, dtype=torch.float64)
    return all_of(
        minimax=close(grad(minimax_loss)(saturated), -saturated.sigmoid(), rtol=1e-9),
        minimax_gradient_is_small=less_equal(grad(minimax_loss)(saturated).abs(), 1e-4),
        non_saturating=close(grad(non_saturating_loss)(saturated), -1.0, atol=1e-4),
        equal_where_d_is_half=close(grad(minimax_loss)(even), grad(non_saturating_loss)(even)),
    )


@claim("D5.2.3")
def a_trained_discriminator_estimates_the_density_ratio() -> Evidence:
    """A quadratic discriminator trained on samples of N(0, 1) and N(1, ¼) approaches p/(p + q) (Diehl sec. 5.2)."""
    torch.manual_seed(0)
    real, fake = torch.randn(40_000, 1, dtype=torch.float64), 1 + torch.randn(40_000, 1, dtype=torch.float64) / 2
    discriminator = nn.Linear(2, 1, dtype=torch.float64)
    optimizer = torch.optim.LBFGS(discriminator.parameters(), max_iter=60, line_search_fn="strong_wolfe")

    def logits(x: Tensor) -> Tensor:
        output: Tensor = discriminator(torch.cat([x, x.square()], 1))
        return output[:, 0]

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = discriminator_loss(logits(real), logits(fake))
        loss.backward()
        return loss

    optimizer.step(closure)
    x = torch.linspace(-3, 3, 61, dtype=torch.float64)
    best = optimal_discriminator(normal_density(x, mean=0.0, variance=1.0), normal_density(x, mean=1.0, variance=0.25))
    return close(logits(x[:, None]).sigmoid(), best, atol=0.03)


@claim("D5.2.3")
def a_generator_against_the_optimal_discriminator_converges() -> Evidence:
    """G(z) = az + b, trained against the current D⋆, converges from N(0, 1) to N(3, ¼) (Diehl sec. 5.2)."""
    theta = torch.tensor([1.0, 0.0], dtype=torch.float64)  # a and b
    z = torch.distributions.Normal(0.0, 1.0).icdf((torch.arange(2_000, dtype=torch.float64) + 0.5) / 2_000)

    def generator_loss(theta: Tensor, current: Tensor) -> Tensor:
        generated = theta[0] * z + theta[1]
        data = normal_density(generated, mean=3.0, variance=0.25)
        model = normal_density(generated, mean=current[1], variance=current[0].square())
        return non_saturating_loss((data + 1e-300).log() - (model + 1e-300).log())  # the logit of D⋆

    for _ in range(400):
        theta = theta - 0.05 * grad(generator_loss)(theta, theta.detach())
    return all_of(mean=close(theta[1], 3.0, atol=0.01), standard_deviation=close(theta[0].abs(), 0.5, atol=0.01))


@claim("D5.2.3")
def each_player_of_a_gan_minimises_its_own_loss() -> Evidence:
    """With G(z) = 2z + 1 and D(x) = σ(wx + b), both losses and the samples have known values (Diehl sec. 5.2)."""
    generator, discriminator = nn.Linear(1, 1), nn.Linear(1, 1)
    with torch.no_grad():
        for layer, weight, bias in ((generator, 2.0, 1.0), (discriminator, 0.7, -0.3)):
            layer.weight.fill_(weight)
            layer.bias.fill_(bias)
    gan = GAN(generator, discriminator, latent_dim=1)
    real = torch.tensor([[0.5], [2.0], [-1.0]])
    torch.manual_seed(0)
    generated = 2 * torch.randn(3, 1) + 1
    of_real, of_generated = (torch.sigmoid(0.7 * x - 0.3) for x in (real, generated))
    torch.manual_seed(0)
    own_loss = gan.discriminator_loss(real)
    torch.manual_seed(0)
    generator_loss = gan.generator_loss(3)
    to_generator = torch.autograd.grad(own_loss, generator.weight, allow_unused=True)[0]
    samples = gan.sample(20_000)
    return all_of(
        discriminator=close(own_loss, -of_real.log().mean() - (1 - of_generated).log().mean(), rtol=1e-5),
        generator=close(generator_loss, -of_generated.log().mean(), rtol=1e-5),
        no_gradient_for_the_generator=close(float(to_generator is None), 1.0),
        mean=close(samples.mean(), 1.0, atol=4 * 2 / 20_000**0.5),
        standard_deviation=close(samples.std(), 2.0, rtol=4 / 40_000**0.5),
    )

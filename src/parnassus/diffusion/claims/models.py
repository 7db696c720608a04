"""Claims about denoising networks and trained models: each computes its formula (book secs. 13.2, 13.3)."""

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, silu
from torch.optim import Adam

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.diffusion.chain.elbo import elbo_terms
from parnassus.diffusion.chain.exact_denoisers import MixtureDenoiser
from parnassus.diffusion.chain.objectives import weighted_objective
from parnassus.diffusion.chain.predictions import DATA, NOISE, SCORE, VELOCITY, NoisePredictor
from parnassus.diffusion.chain.schedules import linear_schedule
from parnassus.diffusion.continuous.sde import variance_exploding, variance_preserving
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.diffusion.models.score_model import ScoreModel
from parnassus.diffusion.models.score_sde import ScoreSDE, continuous_score_matching
from parnassus.diffusion.networks.mlp_denoisers import ResidualBlock, ResidualMLP, TimeMLP
from parnassus.diffusion.networks.noisy_classifier import NoisyClassifier
from parnassus.diffusion.networks.score_networks import NoiseLevelMLP
from parnassus.diffusion.networks.timestep_embedding import sinusoidal_embedding
from parnassus.diffusion.scores.gaussian_mixture import IsotropicMixture
from parnassus.diffusion.scores.noise_levels import alpha_bar_from_levels, geometric_levels, largest_distance
from parnassus.diffusion.scores.score_matching import variance_weight
from parnassus.probability import standard_normal

MIXTURE = IsotropicMixture(
    torch.tensor([[-1.2], [0.8]], dtype=torch.float64),
    torch.tensor([0.3, 0.4], dtype=torch.float64),
    torch.tensor([0.3, 0.7], dtype=torch.float64),
)


class ExactNoise(nn.Module):
    """The exact denoiser of a mixture at signal a and noise b of a log signal-to-noise ratio, a² + b² = 1."""

    def forward(self, x: Tensor, level: Tensor) -> Tensor:
        noise_variance = torch.sigmoid(-level)[:, None]
        return -noise_variance.sqrt() * MIXTURE.score(x, (1 - noise_variance).sqrt(), noise_variance.sqrt())


def randomise(network: nn.Module) -> None:
    """Double precision, and every parameter from N(0, 0.09), those that start at 0 too."""
    torch.manual_seed(0)
    for parameter in network.double().parameters():
        nn.init.normal_(parameter, std=0.3)


@claim("B13.2.4-8")
@torch.no_grad()
def mlp_denoisers_modulate_their_layers_by_the_time_step() -> Evidence:
    """H + W silu((1 + V e(t)) ⊙ h) for points, and blocks with normalised, scaled and shifted input for images."""
    x, t = standard_normal(6, 3), torch.tensor([0, 1, 5, 20, 90, 400])
    points = TimeMLP(3, width=8, layers=2)
    randomise(points)
    embedding, h = sinusoidal_embedding(t, 8).double(), x @ points.proj_in.weight.mT + points.proj_in.bias
    for time, layer in zip(points.times, points.layers, strict=True):
        h = h + layer(silu(h + h * time(embedding)))
    images, pixels = ResidualMLP((1, 2, 3), width=8, blocks=2), standard_normal(6, 1, 2, 3, seed=1)
    randomise(images)
    state = images.proj_in(pixels.flatten(1))
    condition = silu(images.condition(t, None))
    for block in images.blocks:
        assert isinstance(block, ResidualBlock)
        scale, shift = (condition @ block.film.weight.mT + block.film.bias).split(8, 1)
        inner = block.expand(layer_norm(state, (8,)) * (1 + scale) + shift)
        state = state + block.contract(silu(inner))
    return all_of(
        points=close(points(x, t), points.proj_out(silu(h)), atol=1e-12),
        images=close(images(pixels, t).flatten(1), images.proj_out(state), atol=1e-12),
        effect_of_the_time=greater_equal((points(x[:1].expand(6, -1), t).diff(dim=0)).abs().amax(1), 1e-3),
    )


@claim("B13.2.8-2")
@torch.no_grad()
def noise_level_networks_modulate_their_layers_by_the_level() -> Evidence:
    """H + W silu((1 + V e(γ)) ⊙ h), with e the sines and cosines of six frequencies of γ up to 32 times the lowest."""
    network, x = NoiseLevelMLP(2, width=6, layers=2, max_level=10.0), standard_normal(5, 2)
    randomise(network)
    level = torch.tensor([-9.0, -2.0, 0.0, 3.0, 10.0], dtype=torch.float64)
    angles = level[:, None] * (torch.pi / 20) * torch.tensor([1.0, 2**2.5, 32.0], dtype=torch.float64)
    embedding, h = torch.cat([angles.sin(), angles.cos()], 1), network.proj_in(x)
    for modulation, layer in zip(network.levels, network.layers, strict=True):
        h = h + layer(silu(h + modulation(embedding) * h))
    return all_of(output=close(network(x, level), network.proj_out(silu(h)), atol=1e-4))


@claim("B13.2.4-3", "B13.2.4-4")
@torch.no_grad()
def every_prediction_type_makes_the_same_denoiser() -> Evidence:
    """A network that outputs the exact data, velocity, score or noise gives the exact noise to a sampler."""
    schedule, steps = linear_schedule(50), torch.arange(50)
    exact, x = MixtureDenoiser(schedule, MIXTURE.means, MIXTURE.stds, MIXTURE.weights), 2 * standard_normal(50, 1)
    noise = exact(x, steps)
    parts = {}
    a, b = schedule.alpha_bar.sqrt()[:, None], (1 - schedule.alpha_bar).sqrt()[:, None]
    data = (x - b * noise) / a
    outputs = {"data": data, "velocity": a * noise - b * data, "score": -noise / b, "noise": noise}
    for name, prediction in (("data", DATA), ("velocity", VELOCITY), ("score", SCORE), ("noise", NOISE)):

        class Exact(nn.Module):
            def forward(self, _x: Tensor, t: Tensor, output: Tensor = outputs[name]) -> Tensor:
                return output[t]

        denoiser = NoisePredictor(Exact(), prediction, schedule).double()
        parts[name] = close(denoiser(x, steps), noise, rtol=1e-4, atol=1e-5)
        parts[f"output_of_{name}"] = close(prediction.output(schedule, x, steps, noise), outputs[name], rtol=1e-9)
    return all_of(**parts)


@claim("B13.2-1", "B13.2.4-9")
def a_trained_ddpm_samples_its_data() -> Evidence:
    """After 150 steps on two points a model of 30 steps samples both in their proportions (book sec. 13.2).

    The network predicts the velocity; `log_prob` is an estimate of the bound.
    """
    torch.manual_seed(0)
    schedule = linear_schedule(30, low=1e-3, high=0.4)
    objective = weighted_objective(VELOCITY.weight)
    model = DDPM(NoisePredictor(TimeMLP(1, 32), VELOCITY, schedule), (1,), schedule=schedule, objective=objective)
    optimizer = Adam(model.parameters(), lr=5e-3)
    for _ in range(150):
        x = torch.where(torch.rand(256, 1) < 0.7, 1.0, -1.0)
        optimizer.zero_grad()
        model.loss(x).backward()
        optimizer.step()
    samples = model.sample(2_000)
    with torch.no_grad():
        bound = elbo_terms(model.condition_on(None), schedule, x).elbo.mean()
    return all_of(
        distance_to_the_points=less_equal((samples.abs() - 1).abs().mean(), 0.15),
        fraction=close((samples > 0).double().mean(), 0.7, atol=0.06),
        bound=close(model.log_prob(x).mean(), bound, atol=0.5),
    )


@claim("B13.2.7-3", "B13.2.7-4")
def the_loss_of_a_score_model_is_that_of_its_noise() -> Evidence:
    """S = −ε_θ(x/√(1 + σ²), t)/σ; with λ = σ² the loss is E‖ε_θ − ε‖² at a random level (book eq. 13.89)."""
    torch.manual_seed(0)
    levels = geometric_levels(5, 0.1, 2.0)
    network = TimeMLP(2, 8)
    randomise(network)
    model, x = ScoreModel(network.float(), (2,), levels), torch.randn(4_000, 2)
    torch.manual_seed(1)
    loss = model.loss(x).detach()
    torch.manual_seed(1)
    t = torch.randint(5, (4_000,))
    noise, std = torch.randn(4_000, 2), levels.float()[t][:, None]
    with torch.no_grad():
        expected = (network((x + std * noise) / (1 + std.square()).sqrt(), t) - noise).square().mean()
        samples = ScoreModel(_GaussianNoise(levels), (2,), levels).sample(4_000, steps=60, factor=0.2)
    points = torch.tensor([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]])
    return all_of(
        loss=close(loss, expected, rtol=1e-4),
        ratio_of_the_levels=close(levels[1:] / levels[:-1], 20**0.25, rtol=1e-9),
        weights=close(variance_weight(levels), levels**2),
        alpha_bar=close(alpha_bar_from_levels(levels), 1 / (1 + levels**2), rtol=1e-12),
        largest_distance=close(largest_distance(points), 5.0, rtol=1e-6),
        variance_of_the_samples=close(samples.var(0), 0.25, atol=0.04),
    )


class _GaussianNoise(nn.Module):
    """The exact noise of N(0, ¼) data at each level, for the normalised input of `ScoreModel`."""

    def __init__(self, levels: Tensor) -> None:
        super().__init__()
        self.levels = levels.float()

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        std = self.levels[t][:, None]
        return x * (1 + std.square()).sqrt() * std / (0.25 + std.square())


@claim("B13.2.8-3", "C-27")
def a_score_sde_with_the_exact_noise_has_the_exact_score() -> Evidence:
    """The score is ∇ log q_t at every time, for two equations; λ(t)‖s + ε/b‖² is least there (book sec. 13.2.8)."""
    torch.manual_seed(0)
    parts, x, t = {}, standard_normal(9, 1).requires_grad_(), torch.linspace(0.1, 1, 9, dtype=torch.float64)
    for name, sde in (("vp", variance_preserving()), ("ve", variance_exploding())):
        log_prob = MIXTURE.log_prob(x, sde.scale(t)[:, None], sde.std(t)[:, None])
        (exact,) = torch.autograd.grad(log_prob.sum(), x)
        parts[f"score_{name}"] = close(ScoreSDE(ExactNoise(), (1,), sde).score(x.detach(), t), exact, rtol=1e-6)
    sde, count = variance_preserving(), 4_000
    model = ScoreSDE(ExactNoise(), (1,), sde)
    x0, noise, times = MIXTURE.sample(count)[0], standard_normal(count, 1, seed=1), torch.full((count,), 0.3).double()
    loss = continuous_score_matching(model.score, sde, x0, times, noise)
    other = continuous_score_matching(lambda x, t: 1.2 * model.score(x, t), sde, x0, times, noise)
    a, b = sde.scale(times[:1]), sde.std(times[:1])
    by_hand = (b * model.score(a * x0 + b * noise, times) + noise).square()[:, 0]
    return all_of(**parts, loss=close(loss, by_hand, rtol=1e-9), least=greater_equal(other.mean() - loss.mean(), 0.01))


@claim("B13.3-1")
def a_noisy_classifier_is_trained_on_noised_images() -> Evidence:
    """Trained at random steps, it knows early images and is uncertain of pure noise, with −log p near log 2."""
    torch.manual_seed(0)
    schedule = linear_schedule(100, low=1e-3, high=0.2)
    model = NoisyClassifier((1, 4, 4), 2, schedule=schedule, width=8)
    optimizer = Adam(model.parameters(), lr=1e-2)
    for _ in range(40):
        y = torch.randint(2, (64,))
        images = torch.where(y == 1, 1.0, -1.0)[:, None, None, None] * torch.tensor([1.0, -1.0]).repeat(2)[:, None]
        optimizer.zero_grad()
        model.loss(images.expand(64, 1, 4, 4), y).backward()
        optimizer.step()
    steps = torch.tensor([0, 5, 90, 99]).repeat_interleave(100)
    image = torch.tensor([1.0, -1.0]).repeat(2)[:, None].expand(400, 1, 4, 4)
    a, b = (f(schedule.alpha_bar).sqrt().float()[steps][:, None, None, None] for f in (torch.clone, lambda x: 1 - x))
    with torch.no_grad():
        logits = model(a * image + b * torch.randn_like(image), steps)
        nll = nn.functional.cross_entropy(logits, torch.ones_like(steps), reduction="none").view(4, 100).mean(1)
    return all_of(
        early=less_equal(nll[:2], 0.1), late=greater_equal(nll[3], 0.5), late_near_log_two=less_equal(nll[3], 0.9)
    )

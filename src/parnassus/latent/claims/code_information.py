"""Claims about information, rate and distortion of codes, on models with known integrals (book sec. 6.4)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import e, log, pi

import torch
from torch import Tensor, nn
from torch.distributions import MultivariateNormal, kl_divergence

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.latent.autoencoders.dense_networks import mlp_decoder, mlp_encoder
from parnassus.latent.claims.training import adam
from parnassus.latent.linear.water_filling import water_filling
from parnassus.latent.variational.aggregated_posterior import code_information, second_moments
from parnassus.latent.variational.decoders import BernoulliDecoder, GaussianDecoder
from parnassus.latent.variational.elbo import NegativeELBO, VAETerms
from parnassus.latent.variational.reparametrisation import reparametrise, standard_normal_kl
from parnassus.latent.variational.vae import VAE
from parnassus.layers import mlp, tanh

DOUBLE = torch.float64


@dataclass(frozen=True)
class LinearEncoder:
    """z|x ~ N(Vx, diag s) for x ~ N(0, I), so z ~ N(0, VVᵀ + diag s) and all quantities are known."""

    V: Tensor
    s: Tensor

    @property
    def aggregated(self) -> MultivariateNormal:
        zero = torch.zeros(len(self.s), dtype=DOUBLE)
        return MultivariateNormal(zero, self.V @ self.V.mT + torch.diag(self.s))

    @property
    def information(self) -> Tensor:
        """I(X, Z) = ½ log det(I + diag(s)⁻¹ VVᵀ)."""
        return (torch.logdet(self.aggregated.covariance_matrix) - self.s.log().sum()) / 2

    @property
    def prior_gap(self) -> Tensor:
        zero, one = torch.zeros(len(self.s), dtype=DOUBLE), torch.eye(len(self.s), dtype=DOUBLE)
        return kl_divergence(self.aggregated, MultivariateNormal(zero, one))

    def posterior_parameters(self, rows: int) -> tuple[Tensor, Tensor]:
        mean = torch.randn(rows, self.V.shape[1], dtype=DOUBLE) @ self.V.mT
        return mean, self.s.log().expand_as(mean)


def linear_encoder() -> LinearEncoder:
    torch.manual_seed(0)
    return LinearEncoder(torch.randn(2, 3, dtype=DOUBLE), torch.tensor([0.4, 0.9], dtype=DOUBLE))


@claim("B6.4-1")
def the_information_estimate_is_consistent_and_bounded_by_log_n() -> Evidence:
    """Log-mean-exp over n rows estimates I(X, Z) of a linear encoder and is at most log n (book eq. 6.18)."""
    encoder = linear_encoder()
    estimates = {
        rows: code_information(*encoder.posterior_parameters(rows), num_draws=3).information for rows in (4, 50, 1_500)
    }
    mean, log_variance = encoder.posterior_parameters(50)
    saturated = code_information(100 * mean, log_variance, num_draws=4).information
    return all_of(
        estimate_with_many_rows=close(estimates[1_500], encoder.information, atol=0.08),
        estimate_with_few_rows=less_equal(estimates[4], min(log(4), float(encoder.information))),
        bound=less_equal(torch.tensor([estimates[4] - log(4), estimates[50] - log(50), saturated - log(50)]), 1e-9),
        bound_is_reached=close(saturated, log(50), atol=1e-3),
    )


@claim("B6.4-3", "B6.4-5", "B6.4-11")
def the_rate_is_the_information_plus_the_prior_gap() -> Evidence:
    """R − I(X, Z) = KL(q(z) ‖ p(z)), exactly for a linear encoder and in its estimates (book eq. 6.22)."""
    encoder = linear_encoder()
    second = (encoder.V.square().sum(1) + encoder.s).sum()  # E‖μ‖² + Σσ²
    rate = (second - len(encoder.s) - encoder.s.log().sum()) / 2
    estimate = code_information(*encoder.posterior_parameters(1_500), num_draws=3)
    return all_of(
        identity=close(rate - encoder.information, encoder.prior_gap, atol=1e-12),
        measured_rate=close(estimate.rate, rate, rtol=0.08),
        measured_gap=close(estimate.prior_gap, encoder.prior_gap, atol=0.3),
        measured_identity=close(estimate.rate - estimate.information, estimate.prior_gap, atol=0.08),
        gap_is_positive=greater_equal(encoder.prior_gap, 0.5),
    )


@claim("B6.4-2", "B6.4-4", "B6.4-6")
def information_plus_distortion_of_a_linear_vae_is_at_least_the_entropy() -> Evidence:
    """For x|z ~ N(wz, s²): I + D ≥ h(X), D + R ≥ −log p(x), with equality for the exact encoder (book sec. 6.4)."""
    w, s = 1.7, 0.6
    entropy = log(2 * pi * e * (w**2 + s**2)) / 2

    def information_distortion_rate(shrink: float, widen: float) -> tuple[float, float, float]:
        """I, D and R of q(z|x) = N(shrink · E[z|x], widen · Var[z|x]) in closed form."""
        gain, variance = shrink * w / (w**2 + s**2), widen * s**2 / (w**2 + s**2)
        mean_variance = gain**2 * (w**2 + s**2)  # of μ(x)
        information = log(1 + mean_variance / variance) / 2
        squared_error = (1 - w * gain) ** 2 * (w**2 + s**2) + w**2 * variance
        distortion = log(2 * pi * s**2) / 2 + squared_error / (2 * s**2)
        return information, distortion, (mean_variance + variance - 1 - log(variance)) / 2

    def measured_terms(shrink: float, widen: float) -> VAETerms:
        """The terms of such a VAE for rows of x."""
        gain, variance = shrink * w / (w**2 + s**2), widen * s**2 / (w**2 + s**2)
        encoder, layer = nn.Linear(1, 2, dtype=DOUBLE), nn.Linear(1, 1, dtype=DOUBLE)
        encoder.weight, encoder.bias, layer.weight, layer.bias = (
            nn.Parameter(torch.tensor(values, dtype=DOUBLE))
            for values in ([[gain], [0.0]], [0.0, log(variance)], [[w]], [0.0])
        )
        torch.manual_seed(0)
        x = (w**2 + s**2) ** 0.5 * torch.randn(200_000, 1, dtype=DOUBLE)
        return VAE(encoder, GaussianDecoder(layer, std=s).double(), 1).terms(x)

    exact, wide, shrunk = (
        information_distortion_rate(1.0, 1.0),
        information_distortion_rate(1.0, 3.0),
        information_distortion_rate(0.6, 1.0),
    )
    _, distortions, rates = torch.tensor([exact, wide, shrunk], dtype=DOUBLE).T
    with torch.no_grad():
        measured = [measured_terms(*setting) for setting in ((1.0, 1.0), (1.0, 3.0), (0.6, 1.0))]
    return all_of(
        entropy_is_reached=close(exact[0] + exact[1], entropy, atol=1e-12),
        bound_is_reached=close(exact[1] + exact[2], entropy, atol=1e-12),
        others_are_above=greater_equal(torch.tensor([sum(wide[:2]), sum(shrunk[:2])]), entropy + 0.05),
        rate_is_at_least_the_information=greater_equal(
            torch.tensor([values[2] - values[0] for values in (exact, wide, shrunk)]), -1e-12
        ),
        measured_distortion=close(torch.stack([terms.distortion.mean() for terms in measured]), distortions, atol=0.02),
        measured_rate=close(torch.stack([terms.rate.mean() for terms in measured]), rates, atol=0.01),
        measured_bound=close(
            torch.stack([terms.negative_elbo.mean() for terms in measured]), distortions + rates, atol=0.02
        ),
    )


def train_linear_beta_vae(x: Tensor, *, latent: int, beta: float, std: float) -> tuple[Tensor, Tensor]:
    """Rate and squared error of a linear β-VAE after minimising the exact mean of its loss over ε."""
    torch.manual_seed(1)
    features = x.shape[1]
    V, W = (torch.randn(*shape, dtype=DOUBLE) / 2 for shape in ((latent, features), (features, latent)))
    log_variance = torch.zeros(latent, dtype=DOUBLE)
    weights = [part.requires_grad_() for part in (V, W, log_variance)]
    optimizer = torch.optim.LBFGS(weights, max_iter=150, history_size=30, line_search_fn="strong_wolfe")

    def rate_and_error() -> tuple[Tensor, Tensor]:
        mean = x @ V.mT
        rate = standard_normal_kl(mean, log_variance.expand_as(mean)).mean()
        error = (x - mean @ W.mT).square().sum(1).mean() + (log_variance.exp() * W.square().sum(0)).sum()
        return rate, error

    def closure() -> Tensor:
        optimizer.zero_grad()
        rate, error = rate_and_error()
        loss = error / (2 * std**2) + beta * rate
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)
    rate, error = rate_and_error()
    return rate.detach(), error.detach()


@claim("B6.4-7")
def a_linear_beta_vae_performs_reverse_water_filling() -> Evidence:
    """For Gaussian data R_j = ½ log(λ_j / D_j), D_j = min(βs², λ_j): weak directions collapse (book sec. 6.4)."""
    torch.manual_seed(0)
    x = torch.randn(100, 4, dtype=DOUBLE) * torch.tensor([2.0, 1.2, 0.7, 0.3], dtype=DOUBLE)
    x = x - x.mean(0)
    variances = torch.linalg.eigvalsh(x.mT @ x / len(x))
    std, betas = 0.4, (0.2, 1.0, 4.0, 30.0)
    results = [train_linear_beta_vae(x, latent=4, beta=beta, std=std) for beta in betas]
    predicted = [water_filling(variances, beta * std**2) for beta in betas]
    rates, errors = (torch.stack(column) for column in zip(*results, strict=True))
    return all_of(
        rate=close(rates, torch.stack([solution.rates.sum() for solution in predicted]), atol=1e-3),
        error=close(errors, torch.stack([solution.errors.sum() for solution in predicted]), atol=1e-3),
        rate_decreases=less_equal(rates.diff(), 0.0),
        error_increases=greater_equal(errors.diff(), 0.0),
        final_rate=less_equal(rates[-1], 1e-4),
    )


def rescale_codes(vae: VAE, factor: Tensor) -> VAE:
    """The autoencoder with codes multiplied by `factor`: μ and σ scaled up, the decoder's first layer scaled down."""
    other = VAE(mlp((5, 8, 4), activation=tanh), BernoulliDecoder(mlp((2, 8, 5), activation=tanh)), 2).double()
    other.load_state_dict(vae.state_dict())
    with torch.no_grad():
        other.get_parameter("encoder.1.weight")[:, :2] *= factor
        other.get_parameter("encoder.1.bias")[:2] *= factor
        other.get_parameter("encoder.1.bias")[2:] += 2 * factor.log()
        other.get_parameter("decoder.network.0.weight").div_(factor[:, None])
    return other


@claim("B5.2-5", "B6.3-10")
@torch.no_grad()
def the_rate_is_minimal_at_second_moment_one() -> Evidence:
    """Rescaling z_j leaves D unchanged; R is minimal where the mean of μ_j² + σ_j² is 1 (book sec. 5.2)."""
    torch.manual_seed(0)
    vae = VAE(mlp((5, 8, 4), activation=tanh), BernoulliDecoder(mlp((2, 8, 5), activation=tanh)), 2).double()
    x = torch.rand(50, 5, dtype=DOUBLE)
    best = second_moments(*vae.posterior_parameters(x)).rsqrt()
    models = [rescale_codes(vae, best * scale) for scale in (0.9, 1.0, 1.1)]
    distortions, rates = [], []
    for model in (vae, *models):
        torch.manual_seed(1)
        terms = model.terms(x)
        distortions.append(terms.distortion)
        rates.append(terms.rate.mean())
    return all_of(
        distortion=close(torch.stack(distortions[1:]), distortions[0], rtol=1e-10),
        moments=close(second_moments(*models[1].posterior_parameters(x)), 1.0, atol=1e-12),
        rate_is_minimal=greater_equal(torch.stack([rates[0], rates[1], rates[3]]) - rates[2], 1e-3),
    )


def passes_through_networks() -> list[int]:
    """Calls of encoder and decoder, in the loss and then in sampling."""
    counts = {"encoder": 0, "decoder": 0}
    encoder, network = mlp_encoder((1, 3, 2), 4, width=8), mlp_decoder(2, (1, 3, 2), width=8)

    def count(name: str) -> Callable[..., None]:
        def increase(*_: object) -> None:
            counts[name] += 1

        return increase

    for name, module in (("encoder", encoder), ("decoder", network)):
        module.register_forward_hook(count(name))
    vae = VAE(encoder, BernoulliDecoder(network), 2)
    vae.loss(torch.rand(5, 1, 3, 2))
    training = list(counts.values())
    vae.sample(5)
    return [*training, *(total - before for total, before in zip(counts.values(), training, strict=True))]


@claim("B5.2-4")
def sampling_uses_the_decoder_only() -> Evidence:
    """Samples of N(0, 1) through x|z ~ N(2z + 1, 1) have distribution N(1, 5) for any encoder (book fig. 5.1)."""
    torch.manual_seed(0)
    layer = nn.Linear(1, 1, dtype=DOUBLE)
    layer.weight, layer.bias = (
        nn.Parameter(torch.full((1, 1), 2.0, dtype=DOUBLE)),
        nn.Parameter(torch.ones(1, dtype=DOUBLE)),
    )
    vae = VAE(nn.Linear(1, 2, dtype=DOUBLE), GaussianDecoder(layer, learned=False).double(), 1)
    x = vae.sample(40_000)[:, 0]
    torch.manual_seed(0)
    other_vae = VAE(nn.Linear(1, 2, dtype=DOUBLE), vae.decoder, 1)
    torch.manual_seed(3)
    other_samples = other_vae.sample(10)
    torch.manual_seed(3)
    return all_of(
        mean=close(x.mean(), 1.0, atol=4 * (5 / 40_000) ** 0.5),
        variance=close(x.var(), 5.0, rtol=4 * (2 / 40_000) ** 0.5),
        fourth_moment=close((x - 1).pow(4).mean(), 75.0, rtol=0.1),
        independent_of_the_encoder=close(vae.sample(10), other_samples, atol=0.0),
        steps_in_training_and_generation=close(torch.tensor(passes_through_networks()), torch.tensor([1, 1, 0, 1])),
    )


@claim("B6.4-7")
def a_large_beta_collapses_the_code_and_beta_zero_leaves_the_rate_unbounded() -> Evidence:
    """On points of a circle R decreases and D increases with β; at β = 0 the rate is not bounded (book sec. 6.4)."""
    torch.manual_seed(0)
    angle = 2 * pi * torch.rand(100, 1)
    x = torch.cat([angle.cos(), angle.sin()], 1)
    rates, errors = [], []
    for beta in (0.0, 0.3, 1.0, 3.0, 30.0):
        torch.manual_seed(1)
        decoder = GaussianDecoder(mlp((2, 32, 2), activation=tanh), std=0.3, learned=False)
        vae = VAE(mlp((2, 32, 4), activation=tanh), decoder, 2, objective=NegativeELBO(beta))
        adam(vae, partial(vae.loss, x), steps=80, lr=2e-2)
        with torch.no_grad():
            mean, log_variance = vae.posterior_parameters(x)
            z = reparametrise(mean.repeat(20, 1), log_variance.repeat(20, 1))
            rates.append(standard_normal_kl(mean, log_variance).mean())
            errors.append((vae.decode(z) - x.repeat(20, 1)).square().sum(1).mean())
    return all_of(
        rate_decreases=less_equal(torch.stack(rates).diff(), -0.05),
        error_increases=greater_equal(torch.stack(errors).diff(), 0.0),
        rate_at_beta_zero=greater_equal(rates[0], 1.5 * float(rates[1])),
        rate_at_large_beta=less_equal(rates[-1], 0.1),
    )

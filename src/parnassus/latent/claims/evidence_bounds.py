"""Claims about the evidence lower bound on models with known evidence (book sec. 6.2, Diehl sec. 6)."""

from functools import partial

import torch
from scipy.integrate import quad
from torch import Tensor, nn
from torch.distributions import MultivariateNormal, Normal

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.latent.claims.training import adam
from parnassus.latent.variational.decoders import GaussianDecoder
from parnassus.latent.variational.deep_latent_gaussian import FullCovarianceDecoder, LinearGaussian
from parnassus.latent.variational.full_covariance_vae import FullCovarianceVAE, num_gaussian_parameters
from parnassus.latent.variational.iwae import ImportanceWeightedELBO
from parnassus.latent.variational.reparametrisation import standard_normal_kl
from parnassus.latent.variational.vae import VAE
from parnassus.layers import mlp, tanh
from parnassus.probability import diagonal_gaussian_kl, gaussian_kl

DOUBLE = torch.float64
STD = 0.6  # of the noise in the linear models


def linear_model(features: int = 4, latent: int = 2) -> LinearGaussian:
    torch.manual_seed(0)
    weight = torch.randn(features, latent, dtype=DOUBLE)
    noise = STD**2 * torch.eye(features, dtype=DOUBLE)
    return LinearGaussian(weight, torch.randn(features, dtype=DOUBLE), noise)


def suboptimal_vae(model: LinearGaussian) -> VAE:
    """The model as a VAE whose encoder has 0.8 times the mean and twice the variances of the posterior."""
    features, latent = model.weight.shape
    precision = torch.eye(latent, dtype=DOUBLE) + model.weight.mT @ model.weight / STD**2
    to_mean = 0.8 * torch.linalg.solve(precision, model.weight.mT) / STD**2
    encoder = nn.Linear(features, 2 * latent, dtype=DOUBLE)
    encoder.weight = nn.Parameter(torch.cat([to_mean, torch.zeros_like(to_mean)]))
    encoder.bias = nn.Parameter(torch.cat([-to_mean @ model.offset, (2 / precision.diagonal()).log()]))
    layer = nn.Linear(latent, features, dtype=DOUBLE)
    layer.weight, layer.bias = nn.Parameter(model.weight.clone()), nn.Parameter(model.offset.clone())
    return VAE(encoder, GaussianDecoder(layer, std=STD).double(), latent)


def standard_error(values: Tensor) -> float:
    return float(values.std() / len(values) ** 0.5)


@claim("B6.2-1", "D6.0.12", "Z13.17")
def the_importance_weighted_bound_tightens_with_samples() -> Evidence:
    """In expectation ELBO ≤ bound of K draws ≤ bound of 4K draws ≤ log p(x); one draw is unbiased (book eq. 6.13)."""
    model = linear_model()
    vae = suboptimal_vae(model).requires_grad_(requires_grad=False)
    x = model.evidence.sample((1,))
    mean, log_variance = vae.posterior_parameters(x)
    elbo = model.elbo(x, mean, torch.diag_embed(log_variance.exp()))
    evidence = model.evidence.log_prob(x)
    one_draw = -vae.terms(x.expand(20_000, 4)).negative_elbo
    bounds = [-ImportanceWeightedELBO(samples)(vae, x.expand(10_000, 4)) for samples in (1, 4, 16)]
    means = torch.stack([bound.mean() for bound in bounds])
    errors = torch.tensor([standard_error(bound) for bound in bounds], dtype=DOUBLE)
    return all_of(
        one_draw_is_unbiased=close(one_draw.mean(), elbo, atol=4 * standard_error(one_draw)),
        first_weight_is_unbiased=close(means[0], elbo, atol=4 * float(errors[0])),
        bounds_increase=greater_equal(means.diff(), 3 * (errors[1:] + errors[:-1])),
        none_exceeds_the_evidence=less_equal(means - 4 * errors, evidence),
        elbo_is_a_lower_bound=less_equal(elbo, evidence),
    )


@claim("D6.0.12")
def the_log_ratio_varies_less_than_the_ratio() -> Evidence:
    """For z ~ q the ratio p(x, z)/q(z) is rarely near its mean p(x); its logarithm varies far less (Diehl sec. 6)."""
    model = linear_model(12, 3)
    x = model.evidence.sample((1,))
    posterior = model.posterior(x)
    proposal = MultivariateNormal(posterior.mean, 6 * posterior.covariance_matrix)
    z = proposal.sample((20_000,))
    prior = MultivariateNormal(torch.zeros(3, dtype=DOUBLE), torch.eye(3, dtype=DOUBLE))
    log_ratio = model.likelihood(z).log_prob(x) + prior.log_prob(z) - proposal.log_prob(z)
    evidence = model.evidence.log_prob(x)
    ratio = (log_ratio - evidence).exp()
    return all_of(
        mean_of_the_ratio=close(ratio.mean(), 1.0, atol=4 * standard_error(ratio)),
        relative_spread_of_the_ratio=greater_equal(ratio.std() / ratio.mean(), 1.2),
        relative_spread_of_the_log_ratio=less_equal(log_ratio.std() / log_ratio.mean().abs(), 0.4),
    )


@claim("D6.0.13", "Z13.17")
def the_gap_of_the_elbo_is_a_kl_divergence() -> Evidence:
    """For any q, log p(x) = KL(q ‖ p(z|x)) + ELBO; the gap is zero at the posterior (Diehl sec. 6)."""
    model = linear_model()
    x = model.evidence.sample((6,))
    root = torch.randn(6, 2, 2, dtype=DOUBLE)
    mean, covariance = torch.randn(6, 2, dtype=DOUBLE), root @ root.mT + 0.1 * torch.eye(2, dtype=DOUBLE)
    posterior = model.posterior(x)
    exact = posterior.covariance_matrix
    gap = model.evidence.log_prob(x) - model.elbo(x, mean, covariance)
    return all_of(
        gap=close(gap, gaussian_kl(mean, covariance, posterior.mean, exact), rtol=1e-9),
        positive=greater_equal(gap, 0.0),
        zero_at_the_posterior=close(
            model.elbo(x, posterior.mean, exact), model.evidence.log_prob(x), rtol=1e-10, atol=1e-10
        ),
    )


@erratum("D6.0.17", printed="L = KL(p_Z ‖ q) + E_q log p(x|Z)", right="L = −KL(q ‖ p_Z) + E_q log p(x|Z)")
def the_bound_does_not_exceed_the_evidence() -> Correction:
    """As printed the objective exceeds the evidence and grows without bound as σ² → 0 (Diehl sec. 6)."""
    model = linear_model()
    x = model.evidence.sample((1,))
    evidence, mean = model.evidence.log_prob(x), model.posterior(x).mean
    zero, one = torch.zeros(1, 2, dtype=DOUBLE), torch.ones(1, 2, dtype=DOUBLE)
    printed, corrected = [], []
    for variance in (0.1, 0.01, 0.001, 0.0001):
        elbo = model.elbo(x, mean, variance * torch.eye(2, dtype=DOUBLE)[None])
        log_likelihood_term = elbo + diagonal_gaussian_kl(mean, variance * one, zero, one)
        printed.append(log_likelihood_term + diagonal_gaussian_kl(zero, one, mean, variance * one))
        corrected.append(elbo)
    return Correction(
        printed=less_equal(torch.cat(printed), evidence),
        corrected=all_of(
            below=less_equal(torch.cat(corrected), evidence),
            last_printed_value=greater_equal(printed[-1], 5_000.0),
            printed_grows=greater_equal(torch.cat(printed).diff(), 1.0),
        ),
    )


@claim("D6.0.8", "D6.0.21")
def the_evidence_of_a_linear_deep_latent_gaussian_is_gaussian() -> Evidence:
    """With linear mean and constant covariance the evidence is Gaussian, as quadrature confirms (Diehl ex. 6.4)."""
    torch.manual_seed(1)
    root = torch.randn(3, 3, dtype=DOUBLE)
    model = LinearGaussian(
        torch.randn(3, 1, dtype=DOUBLE), torch.randn(3, dtype=DOUBLE), root @ root.mT + torch.eye(3, dtype=DOUBLE)
    )
    x = torch.randn(3, dtype=DOUBLE)

    def joint(code: float) -> float:
        z = torch.tensor([code], dtype=DOUBLE)
        return float((model.likelihood(z).log_prob(x) + Normal(0.0, 1.0).log_prob(z[0])).exp())

    evidence, _ = quad(joint, -12, 12, epsabs=1e-12)
    mean, _ = quad(lambda z: z * joint(z) / evidence, -12, 12, epsabs=1e-10)
    network = nn.Linear(1, num_gaussian_parameters(3), dtype=DOUBLE)
    row, column = torch.tril_indices(3, 3)
    factor = torch.linalg.cholesky(model.covariance)
    factor.diagonal().log_()
    network.weight = nn.Parameter(torch.cat([model.weight, torch.zeros(6, 1, dtype=DOUBLE)]))
    network.bias = nn.Parameter(torch.cat([model.offset, factor[row, column]]))
    z = torch.randn(5, 1, dtype=DOUBLE)
    return all_of(
        evidence=close(model.evidence.log_prob(x).exp(), evidence, rtol=1e-8),
        posterior_mean=close(model.posterior(x[None]).mean, mean, atol=1e-8),
        as_a_decoder=close(
            FullCovarianceDecoder(network, 3)(z).log_prob(x), model.likelihood(z).log_prob(x), rtol=1e-9
        ),
    )


@claim("D6.0.21", "B6.3-2")
def a_full_covariance_closes_the_gap() -> Evidence:
    """A diagonal q has gap ½(Σ log P_jj − log det P), P the posterior's precision; a full q has gap 0 (Diehl sec. 6).

    If the columns of W are orthogonal, P is diagonal and the gap of the diagonal q is 0 as well.
    """
    torch.manual_seed(0)
    weight = torch.tensor([[1.0, 0.8], [0.9, 1.0], [0.5, -0.2], [0.0, 0.4]], dtype=DOUBLE)  # non-orthogonal columns
    model = LinearGaussian(weight, torch.zeros(4, dtype=DOUBLE), STD**2 * torch.eye(4, dtype=DOUBLE))
    x = model.evidence.sample((5,))
    posterior = model.posterior(x)
    precision = posterior.precision_matrix[0]
    predicted = (precision.diagonal().log().sum() - torch.logdet(precision)) / 2
    best_diagonal = torch.diag_embed(1 / precision.diagonal()).expand(5, 2, 2)
    factor = posterior.scale_tril[0].clone()
    factor.diagonal().log_()
    encoder = nn.Linear(4, num_gaussian_parameters(2), dtype=DOUBLE)
    to_mean = torch.linalg.solve(precision, model.weight.mT) / STD**2
    row, column = torch.tril_indices(2, 2)
    encoder.weight = nn.Parameter(torch.cat([to_mean, torch.zeros(3, 4, dtype=DOUBLE)]))
    encoder.bias = nn.Parameter(torch.cat([-to_mean @ model.offset, factor[row, column]]))
    full = FullCovarianceVAE(encoder, suboptimal_vae(model).decoder, 2)
    evidence = model.evidence.log_prob(x)
    return all_of(
        diagonal=close(evidence - model.elbo(x, posterior.mean, best_diagonal), predicted, rtol=1e-8),
        predicted_gap=greater_equal(predicted, 0.1),
        full=close(full.log_weights(x, 20), evidence, rtol=1e-6),
        rate=close(
            full.terms(x).rate,
            gaussian_kl(
                posterior.mean,
                posterior.covariance_matrix,
                torch.zeros(5, 2, dtype=DOUBLE),
                torch.eye(2, dtype=DOUBLE).expand(5, 2, 2),
            ),
            rtol=1e-9,
        ),
    )


def notes_loss(vae: VAE, x: Tensor, *, c: float, samples: int) -> Tensor:
    """(1/N) Σ_n [KL(q(·|x_n) ‖ N(0, I)) + (c/M) Σ_m ‖x_n − μ_θ(μ + σ ε_nm)‖²] (Diehl ex. 6.8, corrected)."""
    mean, log_variance = vae.posterior_parameters(x)
    z = mean + (log_variance / 2).exp() * torch.randn(samples, *mean.shape, dtype=mean.dtype)
    reconstructions = vae.decode(z.flatten(0, 1)).view(samples, *x.shape)
    errors = (x - reconstructions).square().sum(-1).mean(0)
    return (standard_normal_kl(mean, log_variance) + c * errors).mean()


@claim("D6.0.19", "B6.3-7")
def the_loss_of_the_notes_is_the_bound_up_to_a_constant() -> Evidence:
    """With c = 1/(2s²) the mean of the loss is −ELBO − (d/2) log 2πs² on a model with known bound (Diehl ex. 6.8)."""
    model = linear_model()
    vae = suboptimal_vae(model).requires_grad_(requires_grad=False)
    x = model.evidence.sample((50,))
    mean, log_variance = vae.posterior_parameters(x)
    elbo = model.elbo(x, mean, torch.diag_embed(log_variance.exp())).mean()
    constant = 2 * torch.log(torch.tensor(2 * torch.pi * STD**2, dtype=DOUBLE))
    losses = torch.stack([notes_loss(vae, x, c=1 / (2 * STD**2), samples=100) for _ in range(20)])
    return close(losses.mean(), -elbo - constant, atol=4 * standard_error(losses))


@claim("D6.0.19")
def extreme_weights_collapse_the_noise_or_the_code() -> Evidence:
    """A large weight c of the error drives σ to 0; a small one makes the code independent of x (Diehl ex. 6.8)."""
    torch.manual_seed(0)
    x = torch.randn(100, 2) @ torch.tensor([[1.0, 0.6], [0.0, 0.8]])
    std_and_rate = {}
    for c in (1e3, 1e-3):
        torch.manual_seed(0)
        vae = VAE(mlp((2, 16, 4), activation=tanh), GaussianDecoder(mlp((2, 16, 2), activation=tanh)), 2)
        adam(vae, partial(notes_loss, vae, x, c=c, samples=1), steps=150, lr=2e-2)
        with torch.no_grad():
            mean, log_variance = vae.posterior_parameters(x)
        std_and_rate[c] = float((log_variance / 2).exp().mean()), float(standard_normal_kl(mean, log_variance).mean())
    return all_of(
        std_with_large_weight=less_equal(std_and_rate[1e3][0], 0.15),
        rate_with_large_weight=greater_equal(std_and_rate[1e3][1], 3.0),
        std_with_small_weight=greater_equal(std_and_rate[1e-3][0], 0.9),
        rate_with_small_weight=less_equal(std_and_rate[1e-3][1], 0.05),
    )


@erratum(
    "D6.0.19",
    printed="KL + (c/M) Σ ‖X − (μ_ϕ(X) + ε σ_ϕ²(X))‖²",
    right="KL + (c/M) Σ ‖X − μ_θ(μ_ϕ(X) + σ_ϕ(X) ε)‖²",
)
def the_decoder_belongs_in_the_loss() -> Correction:
    """As printed the code itself must equal x: the decoder receives no gradient (Diehl ex. 6.8)."""
    torch.manual_seed(0)
    x = torch.randn(64, 2, dtype=DOUBLE)
    vae = VAE(mlp((2, 8, 4)).double(), GaussianDecoder(mlp((2, 8, 2))).double(), 2)
    mean, log_variance = vae.posterior_parameters(x)
    code = mean + torch.randn_like(mean) * log_variance.exp()
    as_printed = (standard_normal_kl(mean, log_variance) + (x - code).square().sum(1)).mean()
    decoder = [parameter for name, parameter in vae.decoder.named_parameters() if name != "log_std"]
    printed_gradients = torch.autograd.grad(as_printed, decoder, allow_unused=True)
    corrected_gradients = torch.autograd.grad(notes_loss(vae, x, c=1.0, samples=1), decoder)
    return Correction(
        printed=greater_equal(sum(0.0 if each is None else float(each.norm()) for each in printed_gradients), 1e-6),
        corrected=greater_equal(sum(float(each.norm()) for each in corrected_gradients), 1e-2),
    )

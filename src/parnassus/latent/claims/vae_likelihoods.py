"""Claims about the parts of a VAE: encoder heads, likelihoods and the weights of its terms (book secs. 5.2, 6.3)."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.distributions import Normal

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.data import load_digits
from parnassus.latent.autoencoders.convolutional_networks import conv_decoder, conv_encoder
from parnassus.latent.claims.training import adam
from parnassus.latent.variational.decoders import BernoulliDecoder, GaussianDecoder, HeteroscedasticGaussianDecoder
from parnassus.latent.variational.elbo import NegativeELBO
from parnassus.latent.variational.vae import VAE
from parnassus.layers import mlp, tanh

DOUBLE = torch.float64


def one_layer_vae(features: int, latent: int, *, std: float = 1.0) -> VAE:
    """V_μ and V_Σ stacked in the encoder matrix, W and μ in the decoder; variances by exp (book eqs. 5.4-5.5)."""
    torch.manual_seed(0)
    encoder = nn.Linear(features, 2 * latent, bias=False)
    return VAE(encoder, GaussianDecoder(nn.Linear(latent, features), std=std, learned=False), latent).double()


@claim("B5.2-1", "B6.3-10")
def a_vae_assigns_higher_likelihood_to_real_images() -> Evidence:
    """A VAE trained on digits assigns test digits a higher likelihood than shuffled pixels (book sec. 5.2)."""
    digits = load_digits()
    torch.manual_seed(0)
    vae = VAE(mlp((64, 64, 16)), BernoulliDecoder(mlp((8, 64, 64))), 8)
    test = digits.test.x[:100].flatten(1)
    shuffled = test[:, torch.randperm(64)]
    initial = vae.log_prob(test, samples=20).mean()
    adam(vae, partial(vae.loss, digits.train.x[:400].flatten(1)), steps=200, lr=5e-3)
    real, permuted = vae.log_prob(test, samples=20).mean(), vae.log_prob(shuffled, samples=20).mean()
    return all_of(
        likelihood_gain=greater_equal(real - initial, 8.0), real_over_shuffled=greater_equal(real - permuted, 20.0)
    )


@claim("B5.2-2")
def one_layer_in_each_direction_is_a_vae() -> Evidence:
    """W is N × K, V_μ and V_Σ are K × N; the variances exp(V_Σ x) are positive for all x (book eq. 5.5)."""
    vae = one_layer_vae(6, 2)
    x = 5 * torch.randn(1_000, 6, dtype=DOUBLE)
    mean, log_variance = vae.posterior_parameters(x)
    v_mean, v_variance = vae.get_parameter("encoder.weight").chunk(2)
    return all_of(
        sizes=close(
            torch.tensor([v_mean.numel(), v_variance.numel(), vae.get_parameter("decoder.network.weight").numel()]), 12
        ),
        mean=close(mean, x @ v_mean.mT, rtol=1e-10, atol=1e-12),
        variance=close(vae.posterior(x).variance, (x @ v_variance.mT).exp(), rtol=1e-9),
        positive=greater_equal(log_variance.exp().min(), 0.0),
    )


@erratum("B5.2-2", printed="variances g(V_Σ x) with any activation g", right="a positive link, such as exp(V_Σ x)")
def a_variance_needs_a_positive_link() -> Correction:
    """If g is the identity or tanh, half of all variances are negative; with exp all are positive (book eq. 5.5)."""
    vae = one_layer_vae(6, 2)
    x = torch.randn(1_000, 6, dtype=DOUBLE)
    raw = vae.posterior_parameters(x)[1]
    negative_fractions = torch.stack([(link < 0).double().mean() for link in (raw, raw.tanh())])
    return Correction(printed=close(negative_fractions, 0.0), corrected=close((raw.exp() < 0).double().mean(), 0.0))


@erratum(
    "B5.2-2",
    printed="beyond its mean, p(x|z) does not matter",
    right="the variance of p(x|z) weights reconstruction against KL",
)
def the_variance_of_the_decoder_matters() -> Correction:
    """The rate of a trained linear VAE decreases with the decoder's std: s = 0.1 against s = 3 (book sec. 5.2)."""
    torch.manual_seed(1)
    x = torch.randn(200, 1, dtype=DOUBLE) @ torch.randn(1, 4, dtype=DOUBLE) + 0.1 * torch.randn(200, 4, dtype=DOUBLE)
    rates = []
    for std in (0.1, 3.0):
        vae = one_layer_vae(4, 1, std=std)
        adam(vae, partial(vae.loss, x), steps=150, lr=3e-2)
        rates.append(vae.terms(x).rate.mean())
    return Correction(
        printed=close(rates[0], rates[1], rtol=0.1),
        corrected=all_of(
            rate_at_small_variance=greater_equal(rates[0], 1.0),
            rate_at_large_variance=less_equal(rates[1], 0.5 * rates[0]),
        ),
    )


@claim("B6.3-5", "Z13.17")
def two_heads_share_their_features() -> Evidence:
    """A last layer of 2K outputs equals two linear heads on shared features, dense or convolutional (book sec. 6.3)."""
    torch.manual_seed(0)
    encoders: dict[str, tuple[nn.Sequential, Tensor]] = {
        "dense": (nn.Sequential(nn.Linear(64, 10), nn.Tanh(), nn.Linear(10, 6)), torch.rand(5, 64)),
        "convolutional": (conv_encoder((1, 8, 8), 6, width=4), torch.rand(5, 1, 8, 8)),
    }
    parts = {}
    for name, (encoder, x) in encoders.items():
        weight, bias = encoder[-1].get_parameter("weight"), encoder[-1].get_parameter("bias")
        features = encoder[:-1](x)
        mean, log_variance = VAE(encoder, BernoulliDecoder(nn.Linear(3, 64)), 3).posterior_parameters(x)
        separate = [features @ weight[half].mT + bias[half] for half in (slice(3), slice(3, 6))]
        parts[name] = close(torch.cat([mean, log_variance], 1), torch.cat(separate, 1), atol=1e-5)
    decoder = conv_decoder(3, (2, 12, 8), width=4)
    return all_of(
        **parts, decoded_shape=close(torch.tensor(decoder(torch.randn(5, 3)).shape), torch.tensor([5, 2, 12, 8]))
    )


@erratum(
    "B6.3-5",
    printed="the posterior from the decoder; parameters of the prior are estimated",
    right="the posterior from the encoder; parameters of q(z|x) are estimated, the prior has none",
)
def the_encoder_determines_the_posterior() -> Correction:
    """After a step the posterior follows the encoder, and the prior is still N(0, I) (book sec. 6.3)."""
    torch.manual_seed(0)
    vae = VAE(mlp((6, 8, 4)), BernoulliDecoder(mlp((2, 8, 6))), 2).double()
    x, z = torch.rand(50, 6, dtype=DOUBLE).round(), torch.randn(50, 2, dtype=DOUBLE)
    posterior, log_prior = vae.posterior(x).mean.detach(), vae.prior().log_prob(z)
    mean, log_variance = vae.posterior_parameters(x)
    of_parts = [
        torch.autograd.grad((mean + log_variance).sum(), list(part.parameters()), retain_graph=True, allow_unused=True)
        for part in (vae.encoder, vae.decoder)
    ]
    by_encoder, by_decoder = (
        float(sum(each.abs().sum() for each in gradients if each is not None)) for gradients in of_parts
    )
    adam(vae, partial(vae.loss, x), steps=5, lr=1e-2)
    change_of_posterior = (vae.posterior(x).mean - posterior).abs().max()
    change_of_prior = (vae.prior().log_prob(z) - log_prior).abs().max()
    return Correction(
        printed=all_of(
            depends_on_the_decoder=greater_equal(by_decoder, 1e-3), prior_changes=greater_equal(change_of_prior, 1e-3)
        ),
        corrected=all_of(
            depends_on_the_encoder=greater_equal(by_encoder, 1e-3),
            not_on_the_decoder=close(by_decoder, 0.0),
            posterior_changes=greater_equal(change_of_posterior, 1e-3),
            prior_does_not=close(change_of_prior, 0.0),
        ),
    )


def network_gradients(vae: VAE, loss: Tensor) -> Tensor:
    """Gradients of the loss with respect to the networks' weights, as one vector."""
    weights = [weight for name, weight in vae.named_parameters() if "log_std" not in name]
    return torch.cat([gradient.flatten() for gradient in torch.autograd.grad(loss, weights, retain_graph=True)])


@claim("B6.3-6", "D6.0.19")
def squared_error_is_a_gaussian_of_variance_one_half() -> Evidence:
    """At s² = ½, −log p(x|z) = ‖x − x̂‖² + (N/2) log π; any s is a β-VAE with β = 2s² (book eq. 6.16)."""
    x = torch.randn(20, 6, dtype=DOUBLE)
    reference = one_layer_vae(6, 2, std=0.5**0.5)
    mean, log_variance = reference.posterior_parameters(x)
    z = mean + (log_variance / 2).exp()
    errors = (x - reference.decode(z)).square().sum(1)
    constant = 3 * torch.log(torch.tensor(torch.pi, dtype=DOUBLE))
    std = 0.3
    narrow = one_layer_vae(6, 2, std=std)
    scaled_gradients = []
    for objective in (NegativeELBO(), NegativeELBO(2 * std**2)):
        torch.manual_seed(5)
        vae = narrow if objective.beta == 1 else reference  # the decoder of variance ½ has the plain squared error
        scaled_gradients.append(network_gradients(vae, objective(vae, x).mean()))
    return all_of(
        squared_error=close(-reference.log_likelihood(x, z), errors + constant, rtol=1e-6),
        beta_gradients=close(2 * std**2 * scaled_gradients[0], scaled_gradients[1], rtol=1e-5, atol=1e-8),
    )


@erratum(
    "B6.3-6", printed="averaging the Euclidean distance over pixels", right="summing it, or β grows by the factor N"
)
def a_mean_over_pixels_multiplies_beta() -> Correction:
    """Mean squared error + KL has the gradients of squared error + N·KL, divided by N (book sec. 6.3)."""
    x = torch.randn(20, 6, dtype=DOUBLE)
    vae = one_layer_vae(6, 2, std=0.5**0.5)
    torch.manual_seed(5)
    terms = vae.terms(x)  # distortion is the squared error, up to a constant
    mean_gradients = 6 * network_gradients(vae, (terms.distortion / 6 + terms.rate).mean())
    return Correction(
        printed=close(mean_gradients, network_gradients(vae, terms.negative_elbo.mean()), rtol=1e-3, atol=1e-6),
        corrected=close(
            mean_gradients, network_gradients(vae, (terms.distortion + 6 * terms.rate).mean()), rtol=1e-9, atol=1e-12
        ),
    )


@erratum(
    "B6.3-7", printed="‖x − E x̂‖²: average reconstructions, then square", right="E‖x − x̂‖²: average squared errors"
)
def errors_are_averaged_not_reconstructions() -> Correction:
    """E‖x − x̂‖² = ‖x − E x̂‖² + tr Var(x̂): the mean image omits the variance of reconstructions (book sec. 6.3)."""
    torch.manual_seed(0)
    decoder = GaussianDecoder(mlp((2, 16, 5), activation=tanh), std=0.3, learned=False)
    vae = VAE(nn.Linear(5, 4), decoder, 2).double()
    x, z = torch.randn(1, 5, dtype=DOUBLE), torch.randn(5_000, 1, 2, dtype=DOUBLE)
    with torch.no_grad():
        samples = vae.decode(z[:, 0])
        constant = 2.5 * torch.log(torch.tensor(2 * torch.pi * 0.3**2, dtype=DOUBLE))
        errors = 2 * 0.3**2 * (-vae.log_likelihood(x, z).mean() - constant)
    error_of_the_mean = (x - samples.mean(0)).square().sum()
    return Correction(
        printed=close(error_of_the_mean, errors, rtol=0.01),
        corrected=close(error_of_the_mean + samples.var(0, correction=0).sum(), errors, rtol=1e-6),
    )


@claim("B6.3-8", "D6.0.8", "D6.0.21")
def a_heteroscedastic_decoder_learns_the_noise_level() -> Evidence:
    """Heads for mean and std give −½ Σ [log 2πs² + (x − μ)²/s²] and fit the noise level (book sec. 6.3)."""
    torch.manual_seed(0)
    decoder = HeteroscedasticGaussianDecoder(mlp((1, 32, 2), activation=tanh))
    z = torch.linspace(-1, 1, 400)[:, None]
    true_std = 0.1 + 0.4 * (z + 1)  # from 0.1 to 0.9
    x = 2 * z + true_std * torch.randn(400, 1)
    adam(decoder, lambda: -decoder(z).log_prob(x).mean(), steps=400, lr=1e-2)
    decoded = decoder(z)
    std = decoded.variance.sqrt()
    expected = Normal(decoded.mean, std).log_prob(x)[:, 0]
    return all_of(
        density=close(decoded.log_prob(x), expected, atol=1e-4),
        deviation=less_equal((std / true_std).log().abs().mean(), 0.25),
        ratio_of_deviations=greater_equal(std[-1] / std[0], 3.0),
    )

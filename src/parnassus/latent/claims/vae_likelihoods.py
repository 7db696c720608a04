"""Claims about the parts of a VAE: heads, likelihoods, the weights of its two terms (book secs. 5.2, 6.3)."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.distributions import Normal

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.data import load_digits
from parnassus.latent.claims.training import adam
from parnassus.latent.convolutional import conv_encoder
from parnassus.latent.decoders import BernoulliDecoder, GaussianDecoder, GaussianHeadsDecoder
from parnassus.latent.objectives import NegativeELBO
from parnassus.latent.vae import VAE
from parnassus.layers import mlp, tanh

DOUBLE = torch.float64


def one_layer_vae(features: int, latent: int, *, std: float = 1.0) -> VAE:
    """V_μ and V_Σ stacked in one matrix, W and μ in the other; exp makes the variances positive (book eqs. 5.4-5.5)."""
    torch.manual_seed(0)
    encoder = nn.Linear(features, 2 * latent, bias=False)
    return VAE(encoder, GaussianDecoder(nn.Linear(latent, features), std=std, learned=False), latent).double()


@claim("B5.2-1", "B6.3-10")
def real_images_become_likely_and_unreal_ones_do_not() -> Evidence:
    """Trained on digits, a VAE finds unseen digits far likelier than their pixels shuffled (book sec. 5.2)."""
    digits = load_digits()
    torch.manual_seed(0)
    vae = VAE(mlp((64, 64, 16)), BernoulliDecoder(mlp((8, 64, 64))), 8)
    unseen = digits.test.x[:100].flatten(1)
    shuffled = unseen[:, torch.randperm(64)]
    before = vae.log_prob(unseen, samples=20).mean()
    adam(vae, partial(vae.loss, digits.train.x[:400].flatten(1)), steps=200, lr=5e-3)
    real, unreal = vae.log_prob(unseen, samples=20).mean(), vae.log_prob(shuffled, samples=20).mean()
    return all_of(learnt=at_least(real - before, 8.0), real_over_shuffled=at_least(real - unreal, 20.0))


@claim("B5.2-2")
def one_layer_each_way_is_a_vae() -> Evidence:
    """W has N × K numbers, V_μ and V_Σ K × N each; the variances exp(V_Σ x) are positive for all x (book eq. 5.5)."""
    vae = one_layer_vae(6, 2)
    x = 5 * torch.randn(1_000, 6, dtype=DOUBLE)
    mean, log_variance = vae.moments(x)
    v_mean, v_variance = vae.get_parameter("encoder.weight").chunk(2)
    return all_of(
        sizes=close(
            torch.tensor([v_mean.numel(), v_variance.numel(), vae.get_parameter("decoder.network.weight").numel()]), 12
        ),
        mean=close(mean, x @ v_mean.mT, rtol=1e-10, atol=1e-12),
        variance=close(vae.posterior(x).variance, (x @ v_variance.mT).exp(), rtol=1e-9),
        positive=at_least(log_variance.exp().min(), 0.0),
    )


@erratum("B5.2-2", printed="variances g(V_Σ x) with any activation g", right="a positive link, such as exp(V_Σ x)")
def a_variance_needs_a_positive_link() -> Correction:
    """With g the identity or tanh half of all variances are negative; exp has none (book eq. 5.5)."""
    vae = one_layer_vae(6, 2)
    x = torch.randn(1_000, 6, dtype=DOUBLE)
    raw = vae.moments(x)[1]
    shares = torch.stack([(link < 0).double().mean() for link in (raw, raw.tanh())])
    return Correction(printed=close(shares, 0.0), corrected=close((raw.exp() < 0).double().mean(), 0.0))


@erratum(
    "B5.2-2", printed="beyond its mean, p(x|z) does not matter", right="its variance weighs reconstruction against KL"
)
def the_variance_of_the_decoder_matters() -> Correction:
    """The same linear VAE trained with s = 0.1 and s = 3 keeps a code, or none (book sec. 5.2)."""
    torch.manual_seed(1)
    x = torch.randn(200, 1, dtype=DOUBLE) @ torch.randn(1, 4, dtype=DOUBLE) + 0.1 * torch.randn(200, 4, dtype=DOUBLE)
    rates = []
    for std in (0.1, 3.0):
        vae = one_layer_vae(4, 1, std=std)
        adam(vae, partial(vae.loss, x), steps=150, lr=3e-2)
        rates.append(vae.terms(x).rate.mean())
    return Correction(
        printed=close(rates[0], rates[1], rtol=0.1),
        corrected=all_of(narrow=at_least(rates[0], 1.0), wide=at_most(rates[1], 0.5 * rates[0])),
    )


@claim("B6.3-5", "Z13.17")
def two_heads_read_one_body() -> Evidence:
    """A last layer of 2K outputs is two linear heads on shared features, dense or convolutional (book sec. 6.3)."""
    torch.manual_seed(0)
    bodies: dict[str, tuple[nn.Sequential, Tensor]] = {
        "dense": (nn.Sequential(nn.Linear(64, 10), nn.Tanh(), nn.Linear(10, 6)), torch.rand(5, 64)),
        "convolutional": (conv_encoder((1, 8, 8), 6, width=4), torch.rand(5, 1, 8, 8)),
    }
    parts = {}
    for name, (encoder, x) in bodies.items():
        weight, bias = encoder[-1].get_parameter("weight"), encoder[-1].get_parameter("bias")
        features = encoder[:-1](x)
        mean, log_variance = VAE(encoder, BernoulliDecoder(nn.Linear(3, 64)), 3).moments(x)
        alone = [features @ weight[half].mT + bias[half] for half in (slice(3), slice(3, 6))]
        parts[name] = close(torch.cat([mean, log_variance], 1), torch.cat(alone, 1), atol=1e-5)
    return all_of(**parts)


def gradients(vae: VAE, loss: Tensor) -> Tensor:
    """All slopes of the loss in the networks' weights, in a row."""
    weights = [weight for name, weight in vae.named_parameters() if "log_std" not in name]
    return torch.cat([slope.flatten() for slope in torch.autograd.grad(loss, weights, retain_graph=True)])


@claim("B6.3-6", "D6.0.19")
def squared_error_is_a_gaussian_of_variance_one_half() -> Evidence:
    """At s² = ½, −log p(x|z) = ‖x − x̂‖² + (N/2) log π; any s has the slopes of a β-VAE, β = 2s² (book eq. 6.16)."""
    x = torch.randn(20, 6, dtype=DOUBLE)
    half = one_layer_vae(6, 2, std=0.5**0.5)
    mean, log_variance = half.moments(x)
    z = mean + (log_variance / 2).exp()
    errors = (x - half.decode(z)).square().sum(1)
    constant = 3 * torch.log(torch.tensor(torch.pi, dtype=DOUBLE))
    std = 0.3
    narrow = one_layer_vae(6, 2, std=std)
    slopes = []
    for make_loss in (NegativeELBO(), NegativeELBO(2 * std**2)):
        torch.manual_seed(5)
        vae = narrow if make_loss.beta == 1 else half  # the decoder of variance ½ has the plain squared error
        slopes.append(gradients(vae, make_loss(vae, x).mean()))
    return all_of(
        plain=close(-half.log_likelihood(x, z), errors + constant, rtol=1e-6),
        beta=close(2 * std**2 * slopes[0], slopes[1], rtol=1e-5, atol=1e-8),
    )


@erratum(
    "B6.3-6", printed="averaging the Euclidean distance over pixels", right="summing it, or β grows by the factor N"
)
def a_mean_over_pixels_multiplies_beta() -> Correction:
    """mean-squared error + KL has the slopes of squared error + N·KL, divided by N (book sec. 6.3)."""
    x = torch.randn(20, 6, dtype=DOUBLE)
    vae = one_layer_vae(6, 2, std=0.5**0.5)
    torch.manual_seed(5)
    terms = vae.terms(x)  # distortion is the squared error, up to a constant
    averaged = 6 * gradients(vae, (terms.distortion / 6 + terms.rate).mean())
    return Correction(
        printed=close(averaged, gradients(vae, terms.negative_elbo.mean()), rtol=1e-3, atol=1e-6),
        corrected=close(averaged, gradients(vae, (terms.distortion + 6 * terms.rate).mean()), rtol=1e-9, atol=1e-12),
    )


@erratum(
    "B6.3-7", printed="‖x − E x̂‖²: average reconstructions, then square", right="E‖x − x̂‖²: average squared errors"
)
def errors_are_averaged_not_reconstructions() -> Correction:
    """E‖x − x̂‖² = ‖x − E x̂‖² + tr Var(x̂): the mean image hides the spread of the reconstructions (book sec. 6.3)."""
    torch.manual_seed(0)
    network = mlp((2, 16, 5), activation=tanh).double()
    x = torch.randn(5, dtype=DOUBLE)
    with torch.no_grad():
        rebuilt = network(torch.randn(5_000, 2, dtype=DOUBLE))
    errors = (x - rebuilt).square().sum(1).mean()
    of_the_mean = (x - rebuilt.mean(0)).square().sum()
    return Correction(
        printed=close(of_the_mean, errors, rtol=0.01),
        corrected=close(of_the_mean + rebuilt.var(0, correction=0).sum(), errors, rtol=1e-10),
    )


@claim("B6.3-8", "D6.0.21")
def a_decoder_can_learn_where_it_errs() -> Evidence:
    """Heads for mean and deviation give −½ Σ [log 2πs² + (x − μ)²/s²] and find the noise everywhere (book sec. 6.3)."""
    torch.manual_seed(0)
    decoder = GaussianHeadsDecoder(mlp((1, 32, 2), activation=tanh))
    z = torch.linspace(-1, 1, 400)[:, None]
    true = 0.1 + 0.4 * (z + 1)  # deviation from 0.1 to 0.9
    x = 2 * z + true * torch.randn(400, 1)
    adam(decoder, lambda: -decoder(z).log_prob(x).mean(), steps=400, lr=1e-2)
    decoded = decoder(z)
    std = decoded.variance.sqrt()
    by_hand = Normal(decoded.mean, std).log_prob(x)[:, 0]
    return all_of(
        density=close(decoded.log_prob(x), by_hand, atol=1e-4),
        deviation=at_most((std / true).log().abs().mean(), 0.25),
        grows=at_least(std[-1] / std[0], 3.0),
    )

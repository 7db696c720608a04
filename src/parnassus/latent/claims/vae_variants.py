"""Claims about variants of the VAE: InfoVAE, ladder, conditional and predictive VAEs (book secs. 6.3, 6.4)."""

from functools import partial
from math import log, pi

import torch
from scipy.integrate import quad
from torch import Tensor, nn
from torch.distributions import Normal

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, rate
from parnassus.data import load_digits
from parnassus.latent.claims.training import adam
from parnassus.latent.variational.aggregated_posterior import active_units, rate_per_unit
from parnassus.latent.variational.conditional_vae import ConditionalVAE
from parnassus.latent.variational.decoders import BernoulliDecoder, GaussianDecoder
from parnassus.latent.variational.elbo import NegativeELBO, Objective
from parnassus.latent.variational.info_vae import InfoVAE
from parnassus.latent.variational.ladder_vae import LadderVAE, encoder_only_posterior
from parnassus.latent.variational.posterior_collapse import FreeBits, cyclical_kl_annealing, linear_kl_annealing
from parnassus.latent.variational.predictive_vae import PredictiveVAE, evaluate_code
from parnassus.latent.variational.vae import VAE
from parnassus.layers import mlp, tanh
from parnassus.probability import gaussian_squared_mmd, rbf_kernel, squared_mmd, unbiased_squared_mmd

DOUBLE = torch.float64


@claim("B6.4-8")
@torch.no_grad()
def vae_and_beta_vae_are_info_vaes() -> Evidence:
    """α = 0, λ = 1 is the negative ELBO and α + λ = 1 the β-VAE with β = λ, for each sample (book sec. 6.4)."""
    torch.manual_seed(0)
    vae = VAE(mlp((6, 8, 4)), BernoulliDecoder(mlp((2, 8, 6))), 2)
    x = torch.rand(40, 6).round()

    def values(objective: Objective) -> Tensor:
        torch.manual_seed(1)
        return objective(vae, x)

    return all_of(
        vae=close(values(InfoVAE(0.0, 1.0)), values(NegativeELBO()), rtol=1e-6),
        beta_vae=close(values(InfoVAE(-3.0, 4.0)), values(NegativeELBO(4.0)), rtol=1e-6),
        mmd_vae_differs=greater_equal((values(InfoVAE(1.0, 50.0)) - values(NegativeELBO(0.0))).min(), 0.1),
    )


@claim("B6.4-8")
def the_maximum_mean_discrepancy_of_equal_distributions_vanishes() -> Evidence:
    """MMD² of samples of one distribution decreases as 1/n (biased) or has mean 0 (unbiased) (book sec. 6.4)."""
    torch.manual_seed(0)
    kernel, sizes, num_repeats = rbf_kernel, (25, 50, 100, 200), 40

    def draw(count: int) -> Tensor:
        return torch.randn(count, 2, dtype=DOUBLE)

    biased = torch.stack(
        [torch.stack([squared_mmd(draw(n), draw(n), kernel=kernel) for _ in range(num_repeats)]).mean() for n in sizes]
    )
    unbiased = torch.stack([unbiased_squared_mmd(draw(50), draw(50), kernel=kernel) for _ in range(200)])
    zero, one = torch.zeros(2, dtype=DOUBLE), torch.ones(2, dtype=DOUBLE)
    exact = gaussian_squared_mmd(zero, one, one, 0.25 * one)
    different = torch.stack([unbiased_squared_mmd(draw(100), 1 + draw(100) / 2, kernel=kernel) for _ in range(60)])
    return all_of(
        biased=rate(torch.tensor(sizes), biased, -1.0, atol=0.15),
        unbiased=close(unbiased.mean(), 0.0, atol=4 * float(unbiased.std()) / 200**0.5),
        two_normals=close(different.mean(), exact, atol=4 * float(different.std()) / 60**0.5),
    )


def affine(weight: list[list[float]], bias: list[float]) -> nn.Linear:
    layer = nn.Linear(len(weight[0]), len(weight), dtype=DOUBLE)
    layer.weight, layer.bias = (nn.Parameter(torch.tensor(part, dtype=DOUBLE)) for part in (weight, bias))
    return layer


@claim("B6.4-4", "B6.3-5")
@torch.no_grad()
def a_linear_gaussian_ladder_vae_is_exact() -> Evidence:
    """For a linear chain z₂ → z₁ → x the ladder's bound is tight; without the ladder it is not (book sec. 6.3)."""
    a, b, s1, s0 = 1.5, 0.8, 0.7, 0.4
    variance_of_z1 = s0**2 / b**2  # the variance of z₁ given x
    encoders = [
        affine([[1 / b], [0.0]], [0.0, log(variance_of_z1)]),
        affine([[1 / (a * b)], [0.0]], [0.0, log((s1**2 + variance_of_z1) / a**2)]),
    ]
    parts = ([nn.Identity(), nn.Identity()], encoders, [affine([[a], [0.0]], [0.0, log(s1**2)])])
    decoder = GaussianDecoder(affine([[b]], [0.0]), std=s0).double()
    ladder, encoder_only = (
        LadderVAE(*parts, decoder, 1),
        LadderVAE(*parts, decoder, 1, posterior_rule=encoder_only_posterior),
    )
    torch.manual_seed(0)
    x = torch.tensor([[-1.0], [0.2], [3.0]], dtype=DOUBLE)
    evidence = Normal(0.0, (b**2 * (a**2 + s1**2) + s0**2) ** 0.5).log_prob(x[:, 0])
    repeated = x.repeat(20_000, 1)
    bounds = {
        name: model.terms(repeated).negative_elbo.view(-1, 3)
        for name, model in (("ladder", ladder), ("encoder_only", encoder_only))
    }
    error = float(bounds["ladder"].std(0).max()) / 20_000**0.5
    return all_of(
        importance_weights_equal_the_evidence=close(ladder.log_weights(x, 10), evidence, atol=1e-6),
        bound=close(bounds["ladder"].mean(0), -evidence, atol=4 * error),
        encoder_only_gap=greater_equal(bounds["encoder_only"].mean(0) + evidence, 0.1),
    )


@claim("B6.4-9", "B6.4-10")
@torch.no_grad()
def label_information_of_a_classifier_is_bounded_by_that_of_the_code() -> Evidence:
    """H(Y) − cross-entropy ≤ I(Z, Y), with equality for Bayes' classifier; z|y ~ N(±1, 1) (book eq. 6.24)."""

    def conditional_entropy(z: float) -> float:
        """p(z) H(Y|z) of the mixture."""
        near, far = (0.5 * float(Normal(m, 1.0).log_prob(torch.tensor(z, dtype=DOUBLE)).exp()) for m in (1.0, -1.0))
        probability = near / (near + far)
        return -(near + far) * sum(p * log(p) for p in (probability, 1 - probability) if p > 0)

    exact = log(2) - quad(conditional_entropy, -8, 8)[0]
    torch.manual_seed(0)
    label = torch.arange(200) % 2
    x = (2.0 * label - 1)[:, None].double()
    decoder = GaussianDecoder(affine([[0.8]], [0.0]), std=1.5).double()
    vae = VAE(affine([[1.0], [0.0]], [0.0, 0.0]), decoder, 1)
    heads = {"bayes": [[0.0], [2.0]], "underconfident": [[0.0], [0.7]], "overconfident": [[0.0], [6.0]]}
    values = {
        name: evaluate_code(PredictiveVAE(vae, affine(weight, [0.0, 0.0])), x, label, num_draws=100)
        for name, weight in heads.items()
    }
    return all_of(
        bayes=close(values["bayes"].label_information, exact, atol=0.01),
        information_of_the_code=close(values["bayes"].information, exact, atol=0.01),  # as x = ±1 is the label
        distortion=close(values["bayes"].distortion, log(2 * pi * 2.25) / 2 + (0.2**2 + 0.8**2) / 4.5, atol=0.01),
        others=less_equal(
            torch.tensor([values[name].label_information for name in ("underconfident", "overconfident")]), exact - 0.02
        ),
        at_most_the_information_of_the_code=less_equal(
            values["bayes"].label_information, values["bayes"].information + 0.01
        ),
    )


@claim("B6.4-9")
def predicting_the_class_from_the_code_increases_the_distortion_little() -> Evidence:
    """With γ = 20 a 4-dimensional code classifies test digits better at nearly equal distortion (book eq. 6.23)."""
    digits = load_digits()
    x, y = digits.train.x[:300].flatten(1), digits.train.y
    test, labels = digits.test.x.flatten(1), digits.test.y
    assert y is not None
    assert labels is not None
    accuracy, distortion = [], []
    for gamma in (0.0, 20.0):
        torch.manual_seed(0)
        vae = VAE(mlp((64, 64, 8)), BernoulliDecoder(mlp((4, 64, 64))), 4)
        model = PredictiveVAE(vae, mlp((4, 32, 10)), gamma=gamma)
        adam(model, partial(model.loss, x, y[:300]), steps=120, lr=1e-2)
        with torch.no_grad():
            accuracy.append((model.class_probabilities(test).argmax(1) == labels).double().mean())
            distortion.append(evaluate_code(model, test, labels).distortion)
    return all_of(
        accuracy=greater_equal(accuracy[1] - accuracy[0], 0.05),
        distortion=less_equal(distortion[1] / distortion[0], 1.08),
    )


@claim("B5.2-4")
def a_conditional_vae_samples_the_given_class() -> Evidence:
    """A conditional VAE trained on two labelled Gaussians samples from the given class (book fig. 5.1)."""
    torch.manual_seed(0)
    label = torch.arange(400) % 2
    x = torch.randn(400, 2) * 0.3 + torch.stack([4.0 * label - 2, torch.zeros(400)], 1)
    decoder = GaussianDecoder(mlp((3, 16, 2), activation=tanh), std=0.5)
    model = ConditionalVAE(mlp((4, 16, 2), activation=tanh), decoder, 1, 2)
    adam(model, partial(model.loss, x, label), steps=120, lr=4e-2)
    means = torch.stack([model.sample(2_000, class_index).mean(0) for class_index in (0, 1)])
    predicted = model.log_prob_by_class(x, samples=5).argmax(1)
    return all_of(
        centres=close(means, torch.tensor([[-2.0, 0.0], [2.0, 0.0]]), atol=0.25),
        accuracy_of_bayes_rule=greater_equal((predicted == label).double().mean(), 0.99),
    )


@claim("B6.4-7")
def annealing_raises_the_weight_of_the_rate() -> Evidence:
    """β rises linearly from 0 to its end in n steps, once or in every cycle's first part (book sec. 6.4)."""
    steps = (0, 3, 10, 14, 27)
    once = [linear_kl_annealing(step, 10, end=4.0) for step in steps]
    cycles = [cyclical_kl_annealing(step, 10, ramp_fraction=0.8, end=4.0) for step in steps]
    return all_of(
        linear=close(torch.tensor(once), torch.tensor([0.0, 1.2, 4.0, 4.0, 4.0]), rtol=1e-6),
        cyclical=close(torch.tensor(cycles), torch.tensor([0.0, 1.5, 0.0, 2.0, 3.5]), rtol=1e-6),
        stays_at_its_end=close(cyclical_kl_annealing(19, 10, ramp_fraction=0.8, end=4.0), 4.0),
    )


@claim("B6.4-3", "B6.4-7")
def free_bits_prevent_posterior_collapse() -> Evidence:
    """Units collapse under a large decoder variance; free bits, small β or variance prevent it (book sec. 6.4)."""
    x = load_digits().train.x[:150].flatten(1)
    cases: dict[str, tuple[Objective, float]] = {
        "wide": (NegativeELBO(), 2.0),
        "free_bits": (FreeBits(1.0), 2.0),
        "small_beta": (NegativeELBO(0.01), 2.0),
        "narrow": (NegativeELBO(), 0.2),
    }
    units, rates = {}, {}
    for name, (objective, std) in cases.items():
        torch.manual_seed(0)
        decoder = GaussianDecoder(mlp((4, 64, 64)), std=std, learned=False)
        vae = VAE(mlp((64, 64, 8)), decoder, 4, objective=objective)
        adam(vae, partial(vae.loss, x), steps=200, lr=5e-3)
        with torch.no_grad():
            mean, log_variance = vae.posterior_parameters(x)
            units[name] = int(active_units(mean).sum())
            rates[name] = rate_per_unit(mean, log_variance).min()
    active = torch.tensor([units[name] for name in ("free_bits", "small_beta", "narrow")])
    return all_of(
        collapsed_units=less_equal(units["wide"], 0),
        active_units=greater_equal(active, 3),
        rate_with_free_bits=greater_equal(rates["free_bits"], 0.3),
    )

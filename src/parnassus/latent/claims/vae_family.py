"""Claims about relatives of the VAE: InfoVAE, ladders, classes told and classes asked for (book secs. 6.3, 6.4)."""

from functools import partial
from math import log

import torch
from scipy.integrate import quad
from torch import Tensor, nn
from torch.distributions import Normal

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close, rate
from parnassus.data import load_digits
from parnassus.latent.aggregate import active_units, rate_by_unit
from parnassus.latent.claims.training import adam
from parnassus.latent.collapse import FreeBits
from parnassus.latent.conditional_vae import ConditionalVAE
from parnassus.latent.decoders import BernoulliDecoder, GaussianDecoder
from parnassus.latent.info_vae import InfoVAE
from parnassus.latent.ladder_vae import LadderVAE, reading_alone
from parnassus.latent.objectives import NegativeELBO, Objective
from parnassus.latent.prediction_head import PredictingVAE, three_goals
from parnassus.latent.vae import VAE
from parnassus.layers import mlp, tanh
from parnassus.probability import RBF, normal_squared_mmd, squared_mmd, unbiased_squared_mmd

DOUBLE = torch.float64


@claim("B6.4-8")
@torch.no_grad()
def vae_and_beta_vae_are_info_vaes() -> Evidence:
    """α = 0, λ = 1 is the negative ELBO and α + λ = 1 the β-VAE with β = λ, draw for draw (book sec. 6.4)."""
    torch.manual_seed(0)
    vae = VAE(mlp((6, 8, 4)), BernoulliDecoder(mlp((2, 8, 6))), 2)
    x = torch.rand(40, 6).round()

    def values(objective: Objective) -> Tensor:
        torch.manual_seed(1)
        return objective(vae, x)

    return all_of(
        vae=close(values(InfoVAE(0.0, 1.0)), values(NegativeELBO()), rtol=1e-6),
        beta_vae=close(values(InfoVAE(-3.0, 4.0)), values(NegativeELBO(4.0)), rtol=1e-6),
        mmd_vae_is_another=at_least((values(InfoVAE(1.0, 50.0)) - values(NegativeELBO(0.0))).min(), 0.1),
    )


@claim("B6.4-8")
def the_discrepancy_of_equal_laws_vanishes() -> Evidence:
    """MMD² of two samples of one law falls as 1/n, or is 0 on average; of two normals it is known (book sec. 6.4)."""
    torch.manual_seed(0)
    kernel, sizes, rounds = RBF(1.0), (25, 50, 100, 200), 40

    def draw(count: int) -> Tensor:
        return torch.randn(count, 2, dtype=DOUBLE)

    biased = torch.stack(
        [torch.stack([squared_mmd(draw(n), draw(n), kernel=kernel) for _ in range(rounds)]).mean() for n in sizes]
    )
    unbiased = torch.stack([unbiased_squared_mmd(draw(50), draw(50), kernel=kernel) for _ in range(200)])
    zero, one = torch.zeros(2, dtype=DOUBLE), torch.ones(2, dtype=DOUBLE)
    exact = normal_squared_mmd(zero, one, one, 0.25 * one, kernel=kernel)
    apart = torch.stack([unbiased_squared_mmd(draw(100), 1 + draw(100) / 2, kernel=kernel) for _ in range(60)])
    return all_of(
        biased=rate(torch.tensor(sizes), biased, -1.0, atol=0.15),
        unbiased=close(unbiased.mean(), 0.0, atol=4 * float(unbiased.std()) / 200**0.5),
        two_normals=close(apart.mean(), exact, atol=4 * float(apart.std()) / 60**0.5),
    )


def affine(weight: list[list[float]], bias: list[float]) -> nn.Linear:
    layer = nn.Linear(len(weight[0]), len(weight), dtype=DOUBLE)
    layer.weight, layer.bias = (nn.Parameter(torch.tensor(part, dtype=DOUBLE)) for part in (weight, bias))
    return layer


@claim("B6.4-4", "B6.3-5")
@torch.no_grad()
def a_ladder_of_normals_is_exact() -> Evidence:
    """In a linear chain z₂ → z₁ → x a ladder has D + R₁ + R₂ = −log p(x); x read alone pays more (book sec. 6.3)."""
    a, b, s1, s0 = 1.5, 0.8, 0.7, 0.4
    below = s0**2 / b**2  # the variance with which x shows z₁
    readers = [
        affine([[1 / b], [0.0]], [0.0, log(below)]),
        affine([[1 / (a * b)], [0.0]], [0.0, log((s1**2 + below) / a**2)]),
    ]
    parts = ([nn.Identity(), nn.Identity()], readers, [affine([[a], [0.0]], [0.0, log(s1**2)])])
    decoder = GaussianDecoder(affine([[b]], [0.0]), std=s0).double()
    ladder, plain = LadderVAE(*parts, decoder, 1), LadderVAE(*parts, decoder, 1, belief=reading_alone)
    torch.manual_seed(0)
    x = torch.tensor([[-1.0], [0.2], [3.0]], dtype=DOUBLE)
    evidence = Normal(0.0, (b**2 * (a**2 + s1**2) + s0**2) ** 0.5).log_prob(x[:, 0])
    many = x.repeat(20_000, 1)
    bounds = {
        name: model.terms(many).negative_elbo.view(-1, 3) for name, model in (("ladder", ladder), ("plain", plain))
    }
    error = float(bounds["ladder"].std(0).max()) / 20_000**0.5
    return all_of(
        every_weight_is_the_evidence=close(ladder.log_weights(x, 10), evidence, atol=1e-6),
        bound=close(bounds["ladder"].mean(0), -evidence, atol=4 * error),
        image_alone_pays_more=at_least(bounds["plain"].mean(0) + evidence, 0.1),
    )


@claim("B6.4-9", "B6.4-10")
@torch.no_grad()
def a_head_knows_at_most_the_information_of_the_code() -> Evidence:
    """H(Y) − cross-entropy equals I(Z, Y) for Bayes' head and is less for others: z|y ~ N(±1, 1) (book eq. 6.24)."""

    def surprise(z: float) -> float:
        """p(z) H(Y|z) of the mixture."""
        near, far = (0.5 * float(Normal(m, 1.0).log_prob(torch.tensor(z, dtype=DOUBLE)).exp()) for m in (1.0, -1.0))
        share = near / (near + far)
        return -(near + far) * sum(p * log(p) for p in (share, 1 - share) if p > 0)

    exact = log(2) - quad(surprise, -8, 8)[0]
    torch.manual_seed(0)
    label = torch.arange(200) % 2
    x = (2.0 * label - 1)[:, None].double()
    vae = VAE(affine([[1.0], [0.0]], [0.0, 0.0]), GaussianDecoder(affine([[1.0]], [0.0])).double(), 1)
    heads = {"bayes": [[0.0], [2.0]], "timid": [[0.0], [0.7]], "rash": [[0.0], [6.0]]}
    found = {
        name: three_goals(PredictingVAE(vae, affine(weight, [0.0, 0.0])), x, label, draws=100)
        for name, weight in heads.items()
    }
    return all_of(
        bayes=close(found["bayes"].label_information, exact, atol=0.01),
        others=at_most(torch.tensor([found[name].label_information for name in ("timid", "rash")]), exact - 0.02),
        no_more_than_the_code=at_most(found["bayes"].label_information, found["bayes"].information + 0.01),
    )


@claim("B6.4-9")
def a_class_asked_for_costs_little() -> Evidence:
    """With γ = 20 a code of 4 numbers names unseen digits better and rebuilds them as well (book eq. 6.23)."""
    digits = load_digits()
    x, y = digits.train.x[:300].flatten(1), digits.train.y
    unseen, labels = digits.test.x.flatten(1), digits.test.y
    assert y is not None
    assert labels is not None
    accuracy, distortion = [], []
    for gamma in (0.0, 20.0):
        torch.manual_seed(0)
        vae = VAE(mlp((64, 64, 8)), BernoulliDecoder(mlp((4, 64, 64))), 4)
        model = PredictingVAE(vae, mlp((4, 32, 10)), gamma=gamma)
        adam(model, partial(model.loss, x, y[:300]), steps=120, lr=1e-2)
        with torch.no_grad():
            accuracy.append((model.class_probabilities(unseen).argmax(1) == labels).double().mean())
            distortion.append(three_goals(model, unseen, labels).distortion)
    return all_of(
        accuracy=at_least(accuracy[1] - accuracy[0], 0.05),
        distortion=at_most(distortion[1] / distortion[0], 1.08),
    )


@claim("B5.2-4")
def a_class_told_is_a_class_drawn() -> Evidence:
    """Two clouds learnt with their labels: asked for one, the conditional VAE draws that one (book fig. 5.1)."""
    torch.manual_seed(0)
    label = torch.arange(400) % 2
    x = torch.randn(400, 2) * 0.3 + torch.stack([4.0 * label - 2, torch.zeros(400)], 1)
    decoder = GaussianDecoder(mlp((3, 16, 2), activation=tanh), std=0.5)
    model = ConditionalVAE(mlp((4, 16, 2), activation=tanh), decoder, 1, 2)
    adam(model, partial(model.loss, x, label), steps=120, lr=4e-2)
    means = torch.stack([model.sample(2_000, each).mean(0) for each in (0, 1)])
    named = model.log_prob_by_class(x, samples=5).argmax(1)
    return all_of(
        centres=close(means, torch.tensor([[-2.0, 0.0], [2.0, 0.0]]), atol=0.25),
        bayes_rule_names_them=at_least((named == label).double().mean(), 0.99),
    )


@claim("B6.4-3", "B6.4-7")
def free_bits_keep_codes_alive() -> Evidence:
    """Under too wide a decoder units fall silent; free bits, small β or a narrower one wake them (book sec. 6.4)."""
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
            mean, log_variance = vae.moments(x)
            units[name] = int(active_units(mean).sum())
            rates[name] = rate_by_unit(mean, log_variance).min()
    awake = torch.tensor([units[name] for name in ("free_bits", "small_beta", "narrow")])
    return all_of(silent=at_most(units["wide"], 0), awake=at_least(awake, 3), floor=at_least(rates["free_bits"], 0.3))

"""Claims about entropy, conditional entropy and mutual information (book sec. 6.1)."""

from math import log

import torch
from torch import Tensor
from torch.distributions import Categorical, MultivariateNormal
from torch.distributions import kl_divergence as library_divergence

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, rate
from parnassus.probability.distributions.seeded_samples import random_distributions
from parnassus.probability.divergences.entropy import (
    conditional_entropy,
    corrected_entropy,
    entropy,
    joint_entropy,
    plug_in_entropy,
)
from parnassus.probability.divergences.kl_divergence import kl_by_sampling, kl_divergence
from parnassus.probability.divergences.mutual_information import gaussian_mutual_information, mutual_information


def random_joints(count: int, rows: int, columns: int, *, seed: int = 0) -> Tensor:
    return random_distributions(count, rows * columns, seed=seed).view(count, rows, columns)


@claim("B6.1-2")
def entropy_lies_between_zero_and_log_n() -> Evidence:
    """0 ≤ H ≤ log n, with equality for a certain outcome and for the uniform distribution (book eq. 6.2)."""
    p = random_distributions(5_000, 8)
    uniform, certain = torch.full((8,), 0.125, dtype=torch.float64), torch.eye(8, dtype=torch.float64)
    return all_of(
        not_negative=greater_equal(entropy(p), 0.0),
        at_most_log_n=less_equal(entropy(p), log(8) - (p - uniform).square().sum(-1) / 2),
        uniform=close(entropy(uniform), log(8), atol=1e-15),
        certain=close(entropy(certain), 0.0),
        bits=close(entropy(uniform, base=2.0), 3.0, atol=1e-15),
        nats_and_bits=close(entropy(p), log(2) * entropy(p, base=2.0), atol=1e-14),
        library=close(entropy(p), Categorical(probs=p).entropy(), atol=1e-14),
    )


@claim("B6.1-3")
def conditioning_never_increases_entropy_on_average() -> Evidence:
    """H(x|y) = H(x, y) − H(y) ≤ H(x), equal only if independent; a single y may increase it (book eq. 6.3)."""
    joint = random_joints(2_000, 4, 5)
    independent = random_distributions(50, 4)[:, :, None] * random_distributions(50, 5, seed=1)[:, None]
    determined = torch.diag_embed(random_distributions(50, 4))  # y determines x
    one_y_increases = torch.tensor([[0.88, 0.05], [0.02, 0.05]], dtype=torch.float64)
    given_second = one_y_increases[:, 1] / one_y_increases[:, 1].sum()
    return all_of(
        chain_rule=close(conditional_entropy(joint), joint_entropy(joint) - entropy(joint.sum(-2)), atol=1e-14),
        at_most_the_marginal=less_equal(conditional_entropy(joint), entropy(joint.sum(-1))),
        independent=close(conditional_entropy(independent), entropy(independent.sum(-1)), atol=1e-14),
        determined=close(conditional_entropy(determined), 0.0),
        single_y_may_increase=greater_equal(entropy(given_second), entropy(one_y_increases.sum(-1)) + 0.3),
        not_on_average=less_equal(conditional_entropy(one_y_increases), entropy(one_y_increases.sum(-1))),
    )


@claim("B6.1-4")
def mutual_information_has_three_forms() -> Evidence:
    """H(x)+H(y)−H(x,y) = H(x)−H(x|y) = H(y)−H(y|x) = KL(p(x,y) ‖ p(x)p(y)) ≥ 0, and symmetric (book eq. 6.4)."""
    joint = random_joints(2_000, 4, 5)
    x, y = entropy(joint.sum(-1)), entropy(joint.sum(-2))
    information = mutual_information(joint)
    independent = random_distributions(50, 4)[:, :, None] * random_distributions(50, 5, seed=1)[:, None]
    return all_of(
        by_joint=close(x + y - joint_entropy(joint), information, atol=1e-14),
        by_x=close(x - conditional_entropy(joint), information, atol=1e-14),
        by_y=close(y - conditional_entropy(joint.mT), information, atol=1e-14),
        not_negative=greater_equal(information, 1e-4),
        at_most_either=less_equal(information, torch.minimum(x, y)),
        symmetric=close(mutual_information(joint.mT), information, atol=1e-15),
        independent=close(mutual_information(independent), 0.0, atol=1e-15),
        of_itself=close(mutual_information(torch.diag_embed(joint.sum(-1))), x, atol=1e-14),
    )


@claim("B6.1-4")
def mutual_information_of_a_normal_pair_has_a_closed_form() -> Evidence:
    """I = −½ log(1 − ρ²) of a normal pair, by divergence and by fine binning (book sec. 6.1)."""
    rho = torch.tensor([-0.9, -0.3, 0.0, 0.5, 0.8], dtype=torch.float64)
    covariance = torch.eye(2, dtype=torch.float64).repeat(5, 1, 1)
    covariance[:, 0, 1] = covariance[:, 1, 0] = rho
    origin = torch.zeros(2, dtype=torch.float64)
    by_divergence = library_divergence(
        MultivariateNormal(origin, covariance), MultivariateNormal(origin, torch.eye(2, dtype=torch.float64))
    )
    line = torch.linspace(-8, 8, 401, dtype=torch.float64)
    points = torch.cartesian_prod(line, line).view(401, 401, 2)
    density = MultivariateNormal(origin, covariance[4]).log_prob(points).exp()
    return all_of(
        divergence=close(gaussian_mutual_information(rho), by_divergence, atol=1e-14),
        bins=close(mutual_information(density / density.sum()), gaussian_mutual_information(rho[4]), atol=1e-9),
    )


@claim("B6.1-6")
def the_monte_carlo_divergence_is_unbiased() -> Evidence:
    """The mean log-ratio of n samples is unbiased for KL, with error ∝ 1/√n (book sec. 6.1)."""
    p, q = random_distributions(2, 6, seed=7)
    exact, ratio = kl_divergence(p, q), (p / q).log()
    generator = torch.Generator().manual_seed(0)
    counts = torch.tensor([50, 200, 800, 3_200])
    draws = [torch.multinomial(p, 400 * int(n), replacement=True, generator=generator).view(400, -1) for n in counts]
    means = [ratio[each].mean(-1) for each in draws]
    errors = torch.stack([(mean - exact).square().mean().sqrt() for mean in means])
    deviation = torch.stack([(mean.mean() - exact).abs() / (mean.std() / 20) for mean in means])
    by_sampling = kl_by_sampling(lambda x: p.log()[x.long()], lambda x: q.log()[x.long()], draws[-1][0].double())
    return all_of(
        rate_one_over_root_n=rate(counts.double(), errors, -0.5, atol=0.05),
        size=close(errors, ((p * ratio.square()).sum() - exact.square()).sqrt() / counts.sqrt(), rtol=0.1),
        unbiased=less_equal(deviation, 4.0),
        estimate=close(by_sampling.mean, means[-1][0], rtol=1e-12),
        standard_error=close(by_sampling.standard_error, ratio[draws[-1][0]].std() / 3_200**0.5, rtol=1e-3),
    )


@claim("B6.1-6")
def plug_in_entropy_is_biased_downwards() -> Evidence:
    """E[Ĥ] − H ≈ −(m − 1)/(2n), which the correction of Miller removes to first order (book sec. 6.1)."""
    generator = torch.Generator().manual_seed(0)
    counts = torch.tensor([40, 80, 160, 320])
    tables = [
        torch.stack(
            [torch.bincount(draws, minlength=8) for draws in torch.randint(8, (4_000, int(n)), generator=generator)]
        )
        for n in counts
    ]
    bias = torch.stack([(plug_in_entropy(table) - log(8)).mean() for table in tables])
    corrected_bias = torch.stack([(corrected_entropy(table) - log(8)).mean() for table in tables])
    return all_of(
        negative_bias=less_equal(bias, 0.0),
        size=close(bias, -7 / (2 * counts.double()), rtol=0.1),
        rate=rate(counts.double(), -bias, -1.0, atol=0.1),
        never_above_log_n=less_equal(plug_in_entropy(tables[0]), log(8)),
        correction_reduces_the_bias=less_equal(corrected_bias.abs(), bias.abs() / 5),
    )

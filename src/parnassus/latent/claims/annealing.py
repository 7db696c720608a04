"""Claims about annealed importance sampling for the evidence of models with continuous codes (book sec. 6.1)."""

import torch
from torch import Tensor
from torch.distributions import Distribution, Independent, MultivariateNormal, Normal

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim
from parnassus.latent.ais import annealed_evidence, reverse_annealed_evidence


@claim("B6.1-13")
def annealing_bounds_the_evidence_from_both_sides() -> Evidence:
    """On a linear Gaussian model forward chains find log p(x) from below, reverse ones from above (book eq. 6.12)."""
    torch.manual_seed(0)
    rows, noise = 8, 0.3
    W = torch.randn(5, 3, dtype=torch.float64)
    prior: Distribution = Independent(Normal(torch.zeros(rows, 3, dtype=torch.float64), 1.0), 1)
    z = prior.sample()
    x = z @ W.mT + noise * torch.randn(rows, 5, dtype=torch.float64)

    def log_joint(codes: Tensor) -> Tensor:
        log_p: Tensor = prior.log_prob(codes) + Independent(Normal(codes @ W.mT, noise), 1).log_prob(x)
        return log_p

    covariance = W @ W.mT + noise**2 * torch.eye(5, dtype=torch.float64)
    exact = MultivariateNormal(torch.zeros(5, dtype=torch.float64), covariance).log_prob(x)
    forward = annealed_evidence(log_joint, prior, chains=24, times=40, leaps=3)
    backward = reverse_annealed_evidence(log_joint, prior, z[None], times=40, leaps=3)
    prior_alone = annealed_evidence(log_joint, prior, chains=24, times=1)
    return all_of(
        within_its_spread=at_most((forward.estimate - exact).abs() / forward.spread, 4.0),
        chains_are_low_on_average=at_most(forward.log_weights.mean(), exact.mean()),
        draws_walked_back_are_high_on_average=at_least(backward.estimate.mean(), exact.mean()),
        sandwich=at_most(backward.estimate.mean() - forward.estimate.mean(), 2.0),
        without_the_walk_far_too_low=at_most(prior_alone.log_weights.mean(), exact.mean() - 10),
    )

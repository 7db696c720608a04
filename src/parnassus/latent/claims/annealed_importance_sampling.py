"""Claims about annealed importance sampling for the evidence of models with continuous codes (book sec. 6.1)."""

import torch
from torch import Tensor
from torch.distributions import Distribution, Independent, MultivariateNormal, Normal

from parnassus.atlas import Evidence, all_of, claim, greater_equal, less_equal
from parnassus.latent.likelihood_estimation.annealed_importance_sampling import (
    ais_log_evidence,
    reverse_ais_log_evidence,
)


@claim("B6.1-13")
def annealing_bounds_the_evidence_from_both_sides() -> Evidence:
    """On a linear Gaussian model forward AIS bounds log p(x) from below, reverse AIS from above (book eq. 6.12)."""
    torch.manual_seed(0)
    num_rows, noise = 8, 0.3
    W = torch.randn(5, 3, dtype=torch.float64)
    prior: Distribution = Independent(Normal(torch.zeros(num_rows, 3, dtype=torch.float64), 1.0), 1)
    z = prior.sample()
    x = z @ W.mT + noise * torch.randn(num_rows, 5, dtype=torch.float64)

    def log_joint(codes: Tensor) -> Tensor:
        log_p: Tensor = prior.log_prob(codes) + Independent(Normal(codes @ W.mT, noise), 1).log_prob(x)
        return log_p

    covariance = W @ W.mT + noise**2 * torch.eye(5, dtype=torch.float64)
    exact = MultivariateNormal(torch.zeros(5, dtype=torch.float64), covariance).log_prob(x)
    from_below = ais_log_evidence(log_joint, prior, num_chains=24, num_temperatures=40, num_leapfrog_steps=3)
    from_above = reverse_ais_log_evidence(log_joint, prior, z[None], num_temperatures=40, num_leapfrog_steps=3)
    without_annealing = ais_log_evidence(log_joint, prior, num_chains=24, num_temperatures=1)
    return all_of(
        deviation_in_standard_errors=less_equal((from_below.estimate - exact).abs() / from_below.standard_error, 4.0),
        forward_is_a_lower_bound=less_equal(from_below.log_weights.mean(), exact.mean()),
        reverse_is_an_upper_bound=greater_equal(from_above.estimate.mean(), exact.mean()),
        gap_between_the_bounds=less_equal(from_above.estimate.mean() - from_below.estimate.mean(), 2.0),
        without_annealing_far_too_low=less_equal(without_annealing.log_weights.mean(), exact.mean() - 10),
    )

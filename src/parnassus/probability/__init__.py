"""Distributions, how far apart they are, and what one expects under them."""

from parnassus.probability.bayes import Posterior, bayes, posterior_table
from parnassus.probability.codes import expected_length, huffman_lengths, kraft_sum, shannon_lengths
from parnassus.probability.distances import lp_distance, most_telling_event, total_variation
from parnassus.probability.divergences import cross_entropy_between, entropy, jeffreys, jensen_shannon, kl_divergence
from parnassus.probability.expectation import (
    Estimate,
    covariance,
    expectation,
    expectation_by_quadrature,
    expectation_by_sampling,
    variance,
)
from parnassus.probability.jensen import Jensen, LatentBound, jensen, jensen_by_merging, latent_bound
from parnassus.probability.normal import normal_density, normal_log_density
from parnassus.probability.simplex import require_distribution

__all__ = [
    "Estimate",
    "Jensen",
    "LatentBound",
    "Posterior",
    "bayes",
    "covariance",
    "cross_entropy_between",
    "entropy",
    "expectation",
    "expectation_by_quadrature",
    "expectation_by_sampling",
    "expected_length",
    "huffman_lengths",
    "jeffreys",
    "jensen",
    "jensen_by_merging",
    "jensen_shannon",
    "kl_divergence",
    "kraft_sum",
    "latent_bound",
    "lp_distance",
    "most_telling_event",
    "normal_density",
    "normal_log_density",
    "posterior_table",
    "require_distribution",
    "shannon_lengths",
    "total_variation",
    "variance",
]

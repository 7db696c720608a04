"""The evidence lower bound and its decoders."""

from math import log

import torch
from torch import Tensor

from parnassus.diffusion import elbo_terms, linear_schedule
from parnassus.diffusion.chain.elbo import DiffusionElboTerms, gaussian_decoder, pixel_decoder
from parnassus.diffusion.chain.exact_denoisers import gaussian_denoiser
from parnassus.diffusion.chain.forward_process import forward_variance


def test_pixel_probabilities_sum_to_one_far_from_the_mean() -> None:
    values = torch.linspace(-1, 1, 256, dtype=torch.float64)[:, None]
    for mean in (-3.0, 0.0, 0.37, 1.0):
        log_mass = pixel_decoder(0.05)(values, torch.full_like(values, mean))
        assert bool(log_mass.isfinite().all())
        torch.testing.assert_close(log_mass.exp().sum(), torch.tensor(1.0, dtype=torch.float64))


def test_probability_of_narrow_bins_is_density_times_width() -> None:
    x, mean = torch.tensor([[0.25]], dtype=torch.float64), torch.tensor([[0.2]], dtype=torch.float64)
    mass = pixel_decoder(0.5, levels=100_001)(x, mean)
    torch.testing.assert_close(mass, gaussian_decoder(0.25)(x, mean) + log(2 / 100_000), rtol=1e-6, atol=1e-6)


def test_bits_per_dimension_are_the_negative_elbo_over_d_log_2() -> None:
    zeros = torch.zeros(1)
    terms = DiffusionElboTerms(torch.tensor([-3 * log(2)]), zeros, torch.zeros(1, 4), dimensions=3)
    torch.testing.assert_close(terms.bits_per_dimension, torch.ones(1))


def test_matching_terms_have_one_column_per_step_after_the_first() -> None:
    torch.manual_seed(0)
    schedule = linear_schedule(7)
    terms = elbo_terms(lambda x, _t: torch.zeros_like(x), schedule, torch.rand(5, 1, 4, 4))
    assert terms.matching.shape == (5, 6)
    assert terms.dimensions == 16
    assert bool((terms.matching >= 0).all())


def test_bound_is_below_the_true_likelihood_with_both_variances() -> None:
    torch.manual_seed(0)
    schedule = linear_schedule(100, low=1e-3, high=0.2)
    oracle = gaussian_denoiser(schedule, torch.tensor([1.0, -1.0], dtype=torch.float64), 0.5)
    x0, _ = oracle.sample(2_000)
    log_likelihood = gaussian_decoder(0.25)(x0, oracle.mixture.means.expand(2_000, 2)).mean()
    bound = elbo_terms(oracle, schedule, x0).elbo.mean()
    bound_with_forward_variance = elbo_terms(oracle, schedule, x0, variance=forward_variance).elbo.mean()
    assert bound < log_likelihood
    assert bound_with_forward_variance < log_likelihood


def test_less_accurate_denoiser_has_a_lower_bound() -> None:
    torch.manual_seed(0)
    schedule = linear_schedule(100, low=1e-3, high=0.2)
    oracle = gaussian_denoiser(schedule, torch.zeros(2, dtype=torch.float64), 0.5)
    x0, _ = oracle.sample(500)

    def scaled_denoiser(x: Tensor, t: Tensor) -> Tensor:
        return 0.7 * oracle(x, t)

    assert elbo_terms(scaled_denoiser, schedule, x0).elbo.mean() < elbo_terms(oracle, schedule, x0).elbo.mean() - 1

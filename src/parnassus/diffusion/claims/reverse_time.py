"""Claims about diffusion in continuous time, with the exact score of a mixture (book secs. 13.2.5, 13.2.8)."""

from functools import partial

import torch
from torch import Tensor
from torch.func import grad, vmap

from parnassus.atlas import Evidence, all_of, claim, close, less_equal, rate
from parnassus.diffusion.chain.exact_denoisers import MixtureDenoiser
from parnassus.diffusion.chain.predictions import mean_from_noise
from parnassus.diffusion.chain.schedules import Schedule
from parnassus.diffusion.continuous.probability_flow import (
    probability_flow_field,
    probability_flow_log_prob,
    solve_probability_flow,
)
from parnassus.diffusion.continuous.reverse_sde import reverse_coefficients, reverse_sde, sample_prior
from parnassus.diffusion.continuous.sde import (
    NoisingSDE,
    mixture_score,
    sde_from_schedule,
    sub_variance_preserving,
    time_at_noise_ratio,
    variance_exploding,
    variance_preserving,
)
from parnassus.diffusion.continuous.time_grids import reverse_times
from parnassus.diffusion.samplers.ddim import ddim
from parnassus.diffusion.scores.gaussian_mixture import IsotropicMixture

MIXTURE = IsotropicMixture.from_components(
    torch.tensor([[-1.5], [1.0]]).double(), torch.tensor([0.3, 0.5]).double(), torch.tensor([0.7, 0.3]).double()
)
SDES = {
    "vp": variance_preserving(),
    "sub_vp": sub_variance_preserving(),
    "ve": variance_exploding(0.01, 20.0),
}


@claim("B13.2.8-3", "C-25")
def the_reverse_sde_samples_the_data() -> Evidence:
    """With exact scores the reverse SDEs sample 0.7 N(−1.5, 0.3²) + 0.3 N(1, 0.5²) (Anderson 1982)."""
    return all_of(**{name: _test_samples(sde, eta=1.0) for name, sde in SDES.items()})


@claim("B13.2.8-3", "B13.2.5-1")
def reverse_sdes_with_any_amount_of_noise_have_the_same_marginals() -> Evidence:
    """The drift f x − ½(1 + η²) g² ∇log q with noise η g gives the same marginals for every η (book sec. 13.2.5)."""
    sde = SDES["vp"]
    return all_of(
        eta_0=_test_samples(sde, eta=0.0),
        eta_half=_test_samples(sde, eta=0.5),
        eta_1_5=_test_samples(sde, eta=1.5),
    )


def _test_samples(sde: NoisingSDE, *, eta: float) -> Evidence:
    """Kolmogorov-Smirnov distance between 5,000 samples and the mixture; p < 0.001 above 0.03."""
    torch.manual_seed(0)
    start = sample_prior(sde, (5_000, 1), like=MIXTURE.means)
    x = reverse_sde(sde, mixture_score(MIXTURE, sde), start, reverse_times(150), eta=eta).flatten().sort().values
    cdf = torch.special.ndtr((x[:, None] - MIXTURE.means[:, 0]) / MIXTURE.stds) @ MIXTURE.weights
    rank = (torch.arange(len(x), dtype=torch.float64) + 0.5) / len(x)
    return less_equal((cdf - rank).abs().max(), 0.03)


@claim("B13.2.8-3", "C-26", slow=True)
def the_probability_flow_computes_the_density() -> Evidence:
    """The log-density of the probability flow by RK4 converges to the exact one with fourth order (book sec. 13.1)."""
    x = torch.linspace(-2.2, 2.2, 8, dtype=torch.float64)[:, None]
    one = torch.tensor(1.0, dtype=torch.float64)
    counts = torch.tensor([24.0, 48.0, 96.0], dtype=torch.float64)
    parts = {}
    for name, sde in SDES.items():
        prior_log_prob = partial(MIXTURE.log_prob, scale=sde.scale(one), noise=sde.std(one))
        grids = [reverse_times(steps, end=time_at_noise_ratio(sde, 0.02)).flip(0) for steps in counts.int().tolist()]
        truth = MIXTURE.log_prob(x, sde.scale(grids[0][0]), sde.std(grids[0][0]))
        log_probs = [
            probability_flow_log_prob(sde, mixture_score(MIXTURE, sde), x, times, prior_log_prob=prior_log_prob)
            for times in grids
        ]
        parts[f"{name} order"] = rate(
            counts, torch.stack([(log_prob - truth).abs().max() for log_prob in log_probs]), -4.0, atol=0.5
        )
        parts[f"{name} value"] = close(log_probs[-1], truth, atol=3e-4)
    return all_of(**parts)


@claim("B13.2.8-3")
def all_probability_flows_follow_the_same_curves() -> Evidence:
    """At equal ratios b/a the probability flows of all SDEs have the same x/a (Karras et al. 2022)."""
    x = torch.linspace(-2, 2, 9, dtype=torch.float64)[:, None]
    ends = []
    for sde in SDES.values():
        first, last = (torch.tensor(time_at_noise_ratio(sde, ratio), dtype=torch.float64) for ratio in (0.05, 5.0))
        times = torch.linspace(float(first) ** 0.5, float(last) ** 0.5, 101, dtype=torch.float64).square()
        end = solve_probability_flow(sde, mixture_score(MIXTURE, sde), sde.scale(times[0]) * x, times)
        ends.append(end / sde.scale(times[-1]))
    return all_of(
        vp_and_sub_vp=close(ends[0], ends[1], atol=1e-3),
        vp_and_ve=close(ends[0], ends[2], atol=1e-3),
    )


def _discrete_schedule(steps: int) -> Schedule:
    """1 − α_k = β(k/T) / T with the β of `variance_preserving`."""
    time = torch.arange(1, steps + 1, dtype=torch.float64) / steps
    return Schedule.from_alpha(1 - (0.1 + 19.9 * time) / steps)


@claim("B13.2.8-3", "B13.2.4-7")
def ddpm_converges_to_the_reverse_sde() -> Evidence:
    """√ᾱ converges to a(t) as 1/T; an ancestral step and an Euler-Maruyama step differ by O(1/T²) (book alg. 13.2)."""
    counts = torch.tensor([200.0, 400.0, 800.0, 1_600.0], dtype=torch.float64)
    x, sde = torch.linspace(-2, 2, 9, dtype=torch.float64)[:, None], variance_preserving()
    scales, means = [], []
    for steps in counts.int().tolist():
        schedule = _discrete_schedule(steps)
        k = steps // 4  # signal and noise are of similar size
        t = torch.tensor((k + 1) / steps, dtype=torch.float64)
        scales.append((schedule.alpha_bar[k].sqrt() - sde.scale(t)).abs())
        discrete_sde = sde_from_schedule(schedule)  # the same marginals, so that only the steps differ
        oracle = MixtureDenoiser(schedule, MIXTURE.means, MIXTURE.stds, MIXTURE.weights)
        index = torch.full((len(x),), k)
        ancestral = mean_from_noise(schedule, x, index, oracle(x, index))
        drift, _ = reverse_coefficients(discrete_sde, mixture_score(MIXTURE, discrete_sde))
        means.append((ancestral - (x - drift(x, t) / steps)).abs().max())
    return all_of(
        scale=rate(counts, torch.stack(scales), -1.0, atol=0.05),
        mean_of_a_step=rate(counts, torch.stack(means), -2.0, atol=0.1),
    )


@claim("B13.2.5-2", "B13.2.8-3")
def ddim_converges_to_the_probability_flow() -> Evidence:
    """DDIM with T steps converges to the probability flow as 1/T (book eq. 13.78)."""
    counts = torch.tensor([50.0, 100.0, 200.0, 400.0], dtype=torch.float64)
    noise = torch.linspace(-2, 2, 9, dtype=torch.float64)[:, None]
    sde = variance_preserving()
    flow = solve_probability_flow(sde, mixture_score(MIXTURE, sde), noise, reverse_times(500, end=1e-6))
    errors = []
    for steps in counts.int().tolist():
        oracle = MixtureDenoiser(_discrete_schedule(steps), MIXTURE.means, MIXTURE.stds, MIXTURE.weights)
        errors.append((ddim(oracle, oracle.schedule, noise) - flow).abs().max())
    return rate(counts, torch.stack(errors), -1.0, atol=0.15)


@claim("C-26", "B13.2.5-1")
def the_sde_and_its_probability_flow_have_the_same_density() -> Evidence:
    """The density q_t of noisy data solves the Fokker-Planck equations of the SDE and of its probability flow.

    ∂_t q = −∂_x(f x q) + ½ g² ∂_xx q   and   ∂_t q = −∂_x(v q),   v = f x − ½ g² ∂_x log q
    """
    x, t = torch.cartesian_prod(torch.linspace(-3, 3, 13), torch.linspace(0.02, 0.98, 9)).double().unbind(1)
    return all_of(**{name: _check_both_equations(sde, x, t) for name, sde in SDES.items()})


def _check_both_equations(sde: NoisingSDE, x: Tensor, t: Tensor) -> Evidence:
    """Both right-hand sides against ∂_t q, by automatic differentiation of the closed form."""

    def q(x: Tensor, t: Tensor) -> Tensor:
        return MIXTURE.log_prob(x.view(1, 1), sde.scale(t), sde.std(t)).exp()[0]

    def sde_flux(x: Tensor, t: Tensor) -> Tensor:
        flux: Tensor = sde.rate(t) * x * q(x, t) - sde.diffusion_rate(t).square() / 2 * grad(q)(x, t)
        return flux

    def flow_flux(x: Tensor, t: Tensor) -> Tensor:
        return probability_flow_field(sde, mixture_score(MIXTURE, sde))(x.view(1, 1), t)[0, 0] * q(x, t)

    time_derivative = vmap(grad(q, argnums=1))(x, t)
    return all_of(
        sde=close(-vmap(grad(sde_flux))(x, t), time_derivative, atol=1e-10),
        probability_flow=close(-vmap(grad(flow_flux))(x, t), time_derivative, atol=1e-10),
    )

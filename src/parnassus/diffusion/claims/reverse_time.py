"""Claims about diffusion in continuous time, with the exact score of a mixture (book secs. 13.2.5, 13.2.8)."""

from functools import partial

import torch
from torch import Tensor
from torch.func import grad, vmap

from parnassus.atlas import Evidence, all_of, at_most, claim, close, rate
from parnassus.diffusion.mixture import RoundMixture
from parnassus.diffusion.oracles import MixtureOracle
from parnassus.diffusion.probability_flow import flow_field, flow_log_prob, follow
from parnassus.diffusion.process import mean_from_noise
from parnassus.diffusion.reverse_time import reverse, reverse_coefficients, start_noise
from parnassus.diffusion.samplers import ddim
from parnassus.diffusion.schedules import Schedule
from parnassus.diffusion.sde import (
    NoisingSDE,
    TimedScore,
    of_schedule,
    sub_variance_preserving,
    time_of,
    towards_data,
    variance_exploding,
    variance_preserving,
)

MIXTURE = RoundMixture.of(
    torch.tensor([[-1.5], [1.0]]).double(), torch.tensor([0.3, 0.5]).double(), torch.tensor([0.7, 0.3]).double()
)
EQUATIONS = {
    "vp": variance_preserving(),
    "sub_vp": sub_variance_preserving(),
    "ve": variance_exploding(0.01, 20.0),
}


def exact_score(sde: NoisingSDE) -> TimedScore:
    """∇log q_t of the mixture under this equation."""

    def score(x: Tensor, t: Tensor) -> Tensor:
        return MIXTURE.score(x, sde.scale(t)[:, None], sde.std(t)[:, None])

    return score


@claim("B13.2.8-3", "C-25")
def the_reverse_equation_ends_in_the_data() -> Evidence:
    """With the exact score all equations lead back to 0.7 N(−1.5, 0.3²) + 0.3 N(1, 0.5²) (Anderson 1982)."""
    return all_of(**{name: _is_the_mixture(sde, eta=1.0) for name, sde in EQUATIONS.items()})


@claim("B13.2.8-3", "B13.2.5-1")
def less_noise_on_the_way_has_the_same_end() -> Evidence:
    """The drift f x − ½(1 + η²) g² ∇log q and the noise η g give the same laws for every η (book sec. 13.2.5)."""
    sde = EQUATIONS["vp"]
    return all_of(
        none=_is_the_mixture(sde, eta=0.0),
        half=_is_the_mixture(sde, eta=0.5),
        more_than_the_chain=_is_the_mixture(sde, eta=1.5),
    )


def _is_the_mixture(sde: NoisingSDE, *, eta: float) -> Evidence:
    """The largest gap between the distribution functions of 5,000 samples and the mixture: above 0.03 has p < 0.001."""
    torch.manual_seed(0)
    start = start_noise(sde, (5_000, 1), like=MIXTURE.means)
    x = reverse(sde, exact_score(sde), start, towards_data(150), eta=eta).flatten().sort().values
    below = torch.special.ndtr((x[:, None] - MIXTURE.means[:, 0]) / MIXTURE.stds) @ MIXTURE.weights
    rank = (torch.arange(len(x), dtype=torch.float64) + 0.5) / len(x)
    return at_most((below - rank).abs().max(), 0.03)


@claim("B13.2.8-3", "C-26")
def the_probability_flow_knows_the_density() -> Evidence:
    """The flow's log q(x) tends to the exact one as the fourth power of the step of RK4 (book sec. 13.1)."""
    x = torch.linspace(-2.2, 2.2, 8, dtype=torch.float64)[:, None]
    one = torch.tensor(1.0, dtype=torch.float64)
    counts = torch.tensor([24.0, 48.0, 96.0], dtype=torch.float64)
    parts = {}
    for name, sde in EQUATIONS.items():
        end_law = partial(MIXTURE.log_prob, scale=sde.scale(one), noise=sde.std(one))
        grids = [towards_data(steps, end=time_of(sde, 0.02)).flip(0) for steps in counts.int().tolist()]
        truth = MIXTURE.log_prob(x, sde.scale(grids[0][0]), sde.std(grids[0][0]))
        given = [flow_log_prob(sde, exact_score(sde), x, times, end_law=end_law) for times in grids]
        parts[f"{name} order"] = rate(counts, torch.stack([(p - truth).abs().max() for p in given]), -4.0, atol=0.5)
        parts[f"{name} value"] = close(given[-1], truth, atol=3e-4)
    return all_of(**parts)


@claim("B13.2.8-3")
def the_flow_of_every_equation_is_one_family_of_curves() -> Evidence:
    """At equal ratios b/a the flows of all equations pass x/a through the same points (Karras et al. 2022)."""
    x = torch.linspace(-2, 2, 9, dtype=torch.float64)[:, None]
    ends = []
    for sde in EQUATIONS.values():
        first, last = (torch.tensor(time_of(sde, ratio), dtype=torch.float64) for ratio in (0.05, 5.0))
        times = torch.linspace(float(first) ** 0.5, float(last) ** 0.5, 101, dtype=torch.float64).square()
        end = follow(sde, exact_score(sde), sde.scale(times[0]) * x, times)
        ends.append(end / sde.scale(times[-1]))
    return all_of(
        vp_and_sub_vp=close(ends[0], ends[1], atol=1e-3),
        vp_and_ve=close(ends[0], ends[2], atol=1e-3),
    )


def _chain(steps: int) -> Schedule:
    """1 − α_k = β(k/T) / T with the β of `variance_preserving`."""
    time = torch.arange(1, steps + 1, dtype=torch.float64) / steps
    return Schedule.of(1 - (0.1 + 19.9 * time) / steps)


@claim("B13.2.8-3", "B13.2.4-7")
def ddpm_becomes_the_reverse_equation() -> Evidence:
    """√ᾱ tends to a(t) as 1/T; one ancestral step and one of Euler and Maruyama differ by 1/T² (book alg. 13.2)."""
    counts = torch.tensor([200.0, 400.0, 800.0, 1_600.0], dtype=torch.float64)
    x, sde = torch.linspace(-2, 2, 9, dtype=torch.float64)[:, None], variance_preserving()
    scales, means = [], []
    for steps in counts.int().tolist():
        schedule = _chain(steps)
        k = steps // 4  # where signal and noise are alike
        t = torch.tensor((k + 1) / steps, dtype=torch.float64)
        scales.append((schedule.alpha_bar[k].sqrt() - sde.scale(t)).abs())
        own = of_schedule(schedule)  # the same marginals on both sides: what is compared is the step
        oracle = MixtureOracle(schedule, MIXTURE.means, MIXTURE.stds, MIXTURE.weights)
        index = torch.full((len(x),), k)
        ancestral = mean_from_noise(schedule, x, index, oracle(x, index))
        drift, _ = reverse_coefficients(own, exact_score(own))
        means.append((ancestral - (x - drift(x, t) / steps)).abs().max())
    return all_of(
        scale=rate(counts, torch.stack(scales), -1.0, atol=0.05),
        mean_of_a_step=rate(counts, torch.stack(means), -2.0, atol=0.1),
    )


@claim("B13.2.5-2", "B13.2.8-3")
def ddim_solves_the_probability_flow() -> Evidence:
    """DDIM through T steps ends within 1/T of the flow that meets the same chain (book eq. 13.78)."""
    counts = torch.tensor([50.0, 100.0, 200.0, 400.0], dtype=torch.float64)
    noise = torch.linspace(-2, 2, 9, dtype=torch.float64)[:, None]
    sde = variance_preserving()
    smooth = follow(sde, exact_score(sde), noise, towards_data(500, end=1e-6))
    apart = []
    for steps in counts.int().tolist():
        oracle = MixtureOracle(_chain(steps), MIXTURE.means, MIXTURE.stds, MIXTURE.weights)
        apart.append((ddim(oracle, oracle.schedule, noise) - smooth).abs().max())
    return rate(counts, torch.stack(apart), -1.0, atol=0.15)


@claim("C-26", "B13.2.5-1")
def noising_and_its_flow_move_the_same_density() -> Evidence:
    """The law q_t of noised data solves the Fokker-Planck equation with noise and that of the flow without.

    ∂_t q = −∂_x(f x q) + ½ g² ∂_xx q   and   ∂_t q = −∂_x(v q),   v = f x − ½ g² ∂_x log q
    """
    x, t = torch.cartesian_prod(torch.linspace(-3, 3, 13), torch.linspace(0.02, 0.98, 9)).double().unbind(1)
    return all_of(**{name: _solves_both(sde, x, t) for name, sde in EQUATIONS.items()})


def _solves_both(sde: NoisingSDE, x: Tensor, t: Tensor) -> Evidence:
    """The two right-hand sides beside ∂_t q, all by automatic differentiation of the closed form."""

    def q(x: Tensor, t: Tensor) -> Tensor:
        return MIXTURE.log_prob(x.view(1, 1), sde.scale(t), sde.std(t)).exp()[0]

    def noised(x: Tensor, t: Tensor) -> Tensor:
        flux: Tensor = sde.pull(t) * x * q(x, t) - sde.noise(t).square() / 2 * grad(q)(x, t)
        return flux

    def flowed(x: Tensor, t: Tensor) -> Tensor:
        return flow_field(sde, exact_score(sde))(x.view(1, 1), t)[0, 0] * q(x, t)

    change = vmap(grad(q, argnums=1))(x, t)
    return all_of(
        noising=close(-vmap(grad(noised))(x, t), change, atol=1e-10),
        flow=close(-vmap(grad(flowed))(x, t), change, atol=1e-10),
    )

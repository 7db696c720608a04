"""Claims about classifier guidance in one dimension, by numerical integration (book sec. 13.3)."""

from collections.abc import Callable

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal
from parnassus.diffusion.chain.exact_denoisers import MixtureDenoiser
from parnassus.diffusion.chain.schedules import linear_schedule
from parnassus.diffusion.guidance import class_gradient, classifier_guidance
from parnassus.diffusion.samplers.ddim import ddim
from parnassus.diffusion.samplers.time_steps import evenly_spaced_steps

SCHEDULE = linear_schedule(1_000)
LINE = torch.linspace(-12, 12, 4_801, dtype=torch.float64)
MIDDLE = 500
"""A step at which √ᾱ is about a quarter."""


def _oracle() -> MixtureDenoiser:
    """Two overlapping classes: N(−1, 1) and N(1, ¼)."""
    return MixtureDenoiser(SCHEDULE, torch.tensor([[-1.0], [1.0]]).double(), torch.tensor([1.0, 0.5]).double())


@claim("B13.3-1")
def the_gradient_of_the_classifier_is_a_difference_of_scores() -> Evidence:
    """∇ log p(y|x_t) = ∇ log p(x_t|y) − ∇ log p(x_t), with the left side by autograd (book eq. 13.92)."""
    oracle = _oracle()
    x, t = LINE[::40, None], torch.full((121,), MIDDLE)
    label = torch.ones_like(t)
    difference = oracle.score(x, t, label) - oracle.score(x, t)
    return close(class_gradient(oracle.log_posterior, x, t, label), difference, atol=1e-10)


@claim("B13.3-1")
def without_noise_the_scale_is_an_exponent_of_the_classifier() -> Evidence:
    """Without noise the guided score is the score of p(x) p(y|x)^γ, which is p(x) for γ = 0 and p(x|y) for γ = 1."""
    oracle = _oracle()
    x = LINE[2_000:2_801:8, None]
    t = torch.zeros(len(x), dtype=torch.int64)
    parts = {}
    for gamma in (0.0, 1.0, 3.0):
        point = x.clone().requires_grad_()
        sharpened = oracle.log_prob(point, t) + gamma * oracle.log_posterior(point, t)[:, 1]
        (score,) = torch.autograd.grad(sharpened.sum(), point)
        parts[f"gamma_{gamma:.0f}"] = close(_guided_score(oracle, x, t, gamma), score, atol=1e-9)
    return all_of(**parts)


@claim("B13.3-1")
def noise_and_sharpening_do_not_commute() -> Evidence:
    """At γ = 1 the guided score is that of the noisy p(x|y); at γ = 3 it is not that of the noisy p(x) p(y|x)^γ.

    A guided chain with γ ≠ 1 thus does not sample from p(x) p(y|x)^γ, even with exact scores and small steps.
    """
    oracle = _oracle()
    support = slice(2_000, 2_801)  # contains nearly all of the mass
    t = torch.full((len(LINE[support]),), MIDDLE)
    errors = {
        gamma: (_guided_score(oracle, LINE[support, None], t, gamma)[:, 0] - _noisy_score(oracle, gamma)[support]).abs()
        for gamma in (1.0, 3.0)
    }
    return all_of(
        scale_1=close(errors[1.0], torch.zeros_like(errors[1.0]), atol=1e-3),
        scale_3_differs=greater_equal(errors[3.0].amax(), 0.3),
    )


@claim("B13.3-1")
def a_classifier_of_clean_data_biases_the_samples() -> Evidence:
    """At γ = 1 the exact p(y|x_t) samples p(x|y), here N(1, ¼); p(y|x) of the clean data at every step does not.

    The classifier must be accurate at all noise levels, as the book points out.
    """
    oracle = _oracle()
    samples = {
        "noise_aware": _sample(oracle, classifier=oracle.log_posterior),
        "clean_only": _sample(oracle, classifier=lambda x, t: oracle.log_posterior(x, torch.zeros_like(t))),
    }
    mean, std = ({name: values(x) for name, x in samples.items()} for values in (torch.mean, torch.std))
    return all_of(
        mean=close(mean["noise_aware"], 1.0, atol=0.05),
        std=close(std["noise_aware"], 0.5, atol=0.03),
        clean_classifier_differs=greater_equal((mean["clean_only"] - 1).abs() + (std["clean_only"] - 0.5).abs(), 0.15),
    )


def _guided_score(oracle: MixtureDenoiser, x: Tensor, t: Tensor, gamma: float) -> Tensor:
    """∇ log p(x_t) + γ ∇ log p(y = 1|x_t) (book eq. 13.93)."""
    return oracle.score(x, t) + gamma * class_gradient(oracle.log_posterior, x, t, torch.ones_like(t))


def _noisy_score(oracle: MixtureDenoiser, gamma: float) -> Tensor:
    """The score of √ᾱ x_0 + √(1 − ᾱ) ε with x_0 from p(x) p(y = 1|x)^γ, by quadrature."""
    clean = oracle.mixture.log_prob(LINE[:, None]) + gamma * oracle.mixture.log_posterior(LINE[:, None])[:, 1]
    alpha_bar = SCHEDULE.alpha_bar[MIDDLE]
    shift = alpha_bar.sqrt() * LINE - LINE[:, None]
    log_joint = clean - shift.square() / (2 * (1 - alpha_bar))
    return (log_joint.softmax(1) * shift).sum(1) / (1 - alpha_bar)


def _sample(oracle: MixtureDenoiser, classifier: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    torch.manual_seed(0)
    label = torch.ones(1_000, dtype=torch.int64)
    denoiser = classifier_guidance(oracle, SCHEDULE, classifier, label, 1.0)
    return ddim(denoiser, SCHEDULE, torch.randn(1_000, 1, dtype=torch.float64), grid=evenly_spaced_steps(1_000, 200))

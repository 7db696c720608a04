"""Claims about what a guided chain draws, on a line where every law can be integrated (book sec. 13.3)."""

from collections.abc import Callable

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, at_least, claim, close
from parnassus.diffusion.guidance import class_gradient, classifier_guided
from parnassus.diffusion.oracles import MixtureOracle
from parnassus.diffusion.samplers import ddim, even_grid
from parnassus.diffusion.schedules import linear_schedule

SCHEDULE = linear_schedule(1_000)
LINE = torch.linspace(-12, 12, 4_801, dtype=torch.float64)
MIDDLE = 500
"""A step at which the signal has sunk to about a quarter of its size."""


def _oracle() -> MixtureOracle:
    """Two overlapping classes: N(−1, 1) and N(1, ¼)."""
    return MixtureOracle(SCHEDULE, torch.tensor([[-1.0], [1.0]]).double(), torch.tensor([1.0, 0.5]).double())


@claim("B13.3-1")
def the_gradient_of_the_classifier_is_a_difference_of_scores() -> Evidence:
    """∇ log p(y|x_t) = ∇ log p(x_t|y) − ∇ log p(x_t): the gradient that autograd gives a sampler (book eq. 13.92)."""
    oracle = _oracle()
    x, t = LINE[::40, None], torch.full((121,), MIDDLE)
    label = torch.ones_like(t)
    difference = oracle.score(x, t, label) - oracle.score(x, t)
    return close(class_gradient(oracle.log_posterior, x, t, label), difference, atol=1e-10)


@claim("B13.3-1")
def on_clean_data_a_weight_sharpens_the_classifier() -> Evidence:
    """Without noise the guided score is that of p(x) p(y|x)^γ, for every γ: 0 leaves p(x), 1 is p(x|y)."""
    oracle = _oracle()
    x = LINE[2_000:2_801:8, None]
    t = torch.zeros(len(x), dtype=torch.int64)
    parts = {}
    for gamma in (0.0, 1.0, 3.0):
        inside = x.clone().requires_grad_()
        sharpened = oracle.log_prob(inside, t) + gamma * oracle.log_posterior(inside, t)[:, 1]
        (score,) = torch.autograd.grad(sharpened.sum(), inside)
        parts[f"gamma_{gamma:.0f}"] = close(_guided_score(oracle, x, t, gamma), score, atol=1e-9)
    return all_of(**parts)


@claim("B13.3-1")
def noise_and_sharpening_do_not_commute() -> Evidence:
    """At γ = 1 the guided score is that of the noised p(x|y); at γ = 3 it is the score of no noised p(x) p(y|x)^γ.

    So a chain guided with a weight does not draw from the sharpened law, exact scores and fine steps granted.
    """
    oracle = _oracle()
    seen = slice(2_000, 2_801)  # where the mass is
    t = torch.full((len(LINE[seen]),), MIDDLE)
    errors = {
        gamma: (_guided_score(oracle, LINE[seen, None], t, gamma)[:, 0] - _noised_score(oracle, gamma)[seen]).abs()
        for gamma in (1.0, 3.0)
    }
    return all_of(
        plain=close(errors[1.0], torch.zeros_like(errors[1.0]), atol=1e-3),
        weighted_is_off=at_least(errors[3.0].amax(), 0.3),
    )


@claim("B13.3-1")
def a_classifier_that_never_saw_noise_misleads() -> Evidence:
    """Weight 1 and the exact p(y|x_t) draw p(x|y), here N(1, ¼); the clean data's p(y|x) at every step does not.

    This is the difficulty the book names: the classifier must be good at all noise levels.
    """
    oracle = _oracle()
    drawn = {
        "knows_noise": _draw(oracle, classifier=oracle.log_posterior),
        "clean_only": _draw(oracle, classifier=lambda x, t: oracle.log_posterior(x, torch.zeros_like(t))),
    }
    mean, std = ({name: values(x) for name, x in drawn.items()} for values in (torch.mean, torch.std))
    return all_of(
        mean=close(mean["knows_noise"], 1.0, atol=0.05),
        spread=close(std["knows_noise"], 0.5, atol=0.03),
        misled=at_least((mean["clean_only"] - 1).abs() + (std["clean_only"] - 0.5).abs(), 0.15),
    )


def _guided_score(oracle: MixtureOracle, x: Tensor, t: Tensor, gamma: float) -> Tensor:
    """∇ log p(x_t) + γ ∇ log p(y = 1|x_t) (book eq. 13.93)."""
    return oracle.score(x, t) + gamma * class_gradient(oracle.log_posterior, x, t, torch.ones_like(t))


def _noised_score(oracle: MixtureOracle, gamma: float) -> Tensor:
    """The score on the line of √ᾱ x_0 + √(1 − ᾱ) ε with x_0 from p(x) p(y = 1|x)^γ, by a sum over the line."""
    clean = oracle.mixture.log_prob(LINE[:, None]) + gamma * oracle.mixture.log_posterior(LINE[:, None])[:, 1]
    alpha_bar = SCHEDULE.alpha_bar[MIDDLE]
    shift = alpha_bar.sqrt() * LINE - LINE[:, None]
    log_joint = clean - shift.square() / (2 * (1 - alpha_bar))
    return (log_joint.softmax(1) * shift).sum(1) / (1 - alpha_bar)


def _draw(oracle: MixtureOracle, classifier: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    torch.manual_seed(0)
    label = torch.ones(1_000, dtype=torch.int64)
    denoiser = classifier_guided(oracle, SCHEDULE, classifier, label, 1.0)
    return ddim(denoiser, SCHEDULE, torch.randn(1_000, 1, dtype=torch.float64), grid=even_grid(1_000, 200))

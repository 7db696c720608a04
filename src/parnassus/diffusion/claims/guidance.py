"""Claims about guidance, on mixtures with known scores (book sec. 13.3)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.diffusion.chain.exact_denoisers import MixtureDenoiser
from parnassus.diffusion.chain.forward_process import diffuse
from parnassus.diffusion.chain.predictions import noise_from_score, score_from_noise
from parnassus.diffusion.chain.schedules import linear_schedule
from parnassus.diffusion.guidance import (
    classifier_free_guidance,
    classifier_guidance,
    drop_labels,
    guided_noise,
    scale_from_weight,
    two_network_guidance,
)
from parnassus.diffusion.samplers.ddim import ddim
from parnassus.diffusion.samplers.time_steps import evenly_spaced_steps

SCHEDULE = linear_schedule(1_000)


@claim("B13.3-1")
def classifier_guidance_at_scale_one_gives_the_conditional_score() -> Evidence:
    """∇log p(x_t|y) = ∇log p(x_t) + ∇log p(y|x_t) at scale 1 with an exact classifier; scale 0 ignores the class."""
    oracle, x, t, label = _noisy_examples()

    def by_classifier(scale: float) -> Tensor:
        return classifier_guidance(oracle, SCHEDULE, oracle.log_posterior, label, scale)(x, t)

    return all_of(
        scale_1=close(by_classifier(1.0), oracle(x, t, label), atol=1e-9),
        scale_0=close(by_classifier(0.0), oracle(x, t), atol=1e-12),
    )


@erratum(
    "B13.3-1",
    printed="∇log p(x_t|y) = ∇log p(x_t) + γ ∇log p(y|x_t)",
    right="the right side is a new, guided score; it is ∇log p(x_t|y) for γ = 1 only",
)
def the_guided_score_is_conditional_at_scale_one_only() -> Correction:
    """For γ ≠ 1 the equation defines a guided score: at γ = 2 the two sides differ (book eq. 13.93)."""
    oracle, x, t, label = _noisy_examples()
    sides = [
        score_from_noise(SCHEDULE, t, classifier_guidance(oracle, SCHEDULE, oracle.log_posterior, label, scale)(x, t))
        for scale in (2.0, 1.0)
    ]
    truth = oracle.score(x, t, label)
    return Correction(printed=close(sides[0], truth, atol=1e-3), corrected=close(sides[1], truth, atol=1e-8))


@claim("B13.3-2")
def classifier_free_guidance_equals_classifier_guidance() -> Evidence:
    """γ ∇log p(x_t|y) + (1 − γ) ∇log p(x_t) equals guidance by an exact classifier, with one network or with two."""
    oracle, x, t, label = _noisy_examples()
    parts = {}
    for scale in (0.0, 1.0, 3.0):
        free = classifier_free_guidance(oracle, label, scale)(x, t)
        two = two_network_guidance(oracle, oracle, label, scale)(x, t)
        score = scale * oracle.score(x, t, label) + (1 - scale) * oracle.score(x, t)
        classifier = classifier_guidance(oracle, SCHEDULE, oracle.log_posterior, label, scale)(x, t)
        name = f"scale_{scale:.0f}"
        parts[f"score_{name}"] = close(score_from_noise(SCHEDULE, t, free), score, atol=1e-8)
        parts[f"classifier_{name}"] = close(free, classifier, atol=1e-8)
        parts[f"two_networks_{name}"] = close(free, two, atol=1e-12)
    return all_of(**parts)


@claim("B13.3-1", "B13.3-2")
def guidance_trades_diversity_for_accuracy() -> Evidence:
    """With scales 0, 1 and 4 on overlapping classes the class accuracy increases and the variance decreases."""
    oracle, _, _, _ = _noisy_examples()
    grid = evenly_spaced_steps(1_000, 50)
    accuracies, variances = [], []
    for scale in (0.0, 1.0, 4.0):
        torch.manual_seed(0)
        label = torch.zeros(2_000, dtype=torch.int64)
        x = ddim(
            classifier_free_guidance(oracle, label, scale),
            SCHEDULE,
            torch.randn(2_000, 2, dtype=torch.float64),
            grid=grid,
        )
        is_correct = oracle.log_posterior(x, torch.zeros_like(label)).argmax(1) == label
        accuracies.append(is_correct.double().mean())
        variances.append(x.var(0).sum())
    return all_of(
        chance_at_scale_0=close(accuracies[0], 1 / 3, atol=0.05),
        accuracy_increases=greater_equal(torch.stack(accuracies[1:]) - torch.stack(accuracies[:-1]), 0.03),
        accuracy_at_scale_4=greater_equal(accuracies[2], 0.99),
        variance_decreases=less_equal(torch.stack(variances[1:]) / torch.stack(variances[:-1]), 0.8),
    )


@erratum(
    "B13.3-2",
    printed="∇log p(y|x_t) ≈ ε(x_t|y) − ε(x_t)",
    right="∇log p(y|x_t) = −(ε(x_t|y) − ε(x_t)) / √(1 − ᾱ_t)",
)
def the_classifier_gradient_has_the_opposite_sign() -> Correction:
    """Noise and score have opposite signs and differ by the factor √(1 − ᾱ_t) (book eq. 13.98)."""
    oracle, x, t, label = _noisy_examples()
    difference = oracle(x, t, label) - oracle(x, t)
    gradient = oracle.score(x, t, label) - oracle.score(x, t)
    return Correction(
        printed=close(difference, gradient, atol=0.01),
        corrected=close(-difference / (1 - SCHEDULE.alpha_bar[t]).sqrt()[:, None], gradient, atol=1e-9),
    )


@erratum(
    "B13.3-2",
    printed="(1 + γ) ε(x_t|y) − γ ε(x_t) with the γ of γ ∇log p(x_t|y) + (1 − γ) ∇log p(x_t)",
    right="γ ε(x_t|y) + (1 − γ) ε(x_t); the other form is its γ plus one",
)
def the_guidance_weight_has_two_definitions() -> Correction:
    """γ = 0 is the unconditional model in book eq. 13.97 and the conditional model in book eq. 13.99."""
    oracle, x, t, label = _noisy_examples()
    gamma = 2.0
    target = noise_from_score(SCHEDULE, t, gamma * oracle.score(x, t, label) + (1 - gamma) * oracle.score(x, t))
    conditional, unconditional = oracle(x, t, label), oracle(x, t)
    printed = (1 + gamma) * conditional - gamma * unconditional
    return Correction(
        printed=close(printed, target, atol=1e-3),
        corrected=all_of(
            by_scale=close(guided_noise(conditional, unconditional, gamma), target, atol=1e-9),
            by_weight=close(guided_noise(conditional, unconditional, scale_from_weight(gamma)), printed, atol=1e-9),
        ),
    )


@claim("B13.3-2")
def condition_dropout_replaces_the_requested_fraction_of_labels() -> Evidence:
    """Condition dropout replaces the requested fraction of labels by the null label and keeps the others."""
    torch.manual_seed(0)
    label = torch.randint(10, (100_000,))
    dropped = drop_labels(label, 10, 0.1)
    is_kept = dropped != 10
    return all_of(
        fraction=close((~is_kept).double().mean(), 0.1, atol=0.004),
        others=close(dropped[is_kept], label[is_kept].double()),
    )


def _noisy_examples() -> tuple[MixtureDenoiser, Tensor, Tensor, Tensor]:
    """A denoiser of three overlapping classes in the plane, and noisy points with their steps and labels."""
    torch.manual_seed(0)
    means = torch.tensor([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.5]], dtype=torch.float64)
    oracle = MixtureDenoiser(SCHEDULE, means, torch.full((3,), 0.7, dtype=torch.float64))
    x0, label = oracle.sample(500)
    t = torch.randint(1_000, (500,))
    return oracle, diffuse(SCHEDULE, x0, t, torch.randn_like(x0)), t, label

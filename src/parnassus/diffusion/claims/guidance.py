"""Claims about guidance, on mixtures whose scores are known (book sec. 13.3)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.diffusion.guidance import (
    classifier_guided,
    drop_labels,
    guidance_scale,
    guided,
    guided_by_two,
    guided_noise,
)
from parnassus.diffusion.oracles import MixtureOracle
from parnassus.diffusion.process import diffuse, noise_from_score, score_from_noise
from parnassus.diffusion.samplers import ddim, even_grid
from parnassus.diffusion.schedules import linear_schedule

SCHEDULE = linear_schedule(1_000)


@claim("B13.3-1")
def a_classifier_turns_the_unconditional_score_into_the_conditional_one() -> Evidence:
    """∇log p(x_t|y) = ∇log p(x_t) + ∇log p(y|x_t): exact for a mixture at scale 1; scale 0 ignores the class."""
    oracle, x, t, label = _scene()

    def by_classifier(scale: float) -> Tensor:
        return classifier_guided(oracle, SCHEDULE, oracle.log_posterior, label, scale)(x, t)

    return all_of(
        one=close(by_classifier(1.0), oracle(x, t, label), atol=1e-9),
        zero=close(by_classifier(0.0), oracle(x, t), atol=1e-12),
    )


@erratum(
    "B13.3-1",
    printed="∇log p(x_t|y) = ∇log p(x_t) + γ ∇log p(y|x_t)",
    right="the right side is a new, guided score; it is ∇log p(x_t|y) for γ = 1 only",
)
def the_weighted_score_is_no_longer_the_conditional_one() -> Correction:
    """With a weight the equation becomes a definition: at γ = 2 the two sides differ (book eq. 13.93)."""
    oracle, x, t, label = _scene()
    sides = [
        score_from_noise(SCHEDULE, t, classifier_guided(oracle, SCHEDULE, oracle.log_posterior, label, scale)(x, t))
        for scale in (2.0, 1.0)
    ]
    truth = oracle.score(x, t, label)
    return Correction(printed=close(sides[0], truth, atol=1e-3), corrected=close(sides[1], truth, atol=1e-8))


@claim("B13.3-2")
def guidance_needs_no_classifier() -> Evidence:
    """γ ∇log p(x_t|y) + (1 − γ) ∇log p(x_t) is what an exact classifier gives, by one network or by two."""
    oracle, x, t, label = _scene()
    parts = {}
    for scale in (0.0, 1.0, 3.0):
        free = guided(oracle, label, scale)(x, t)
        two = guided_by_two(oracle, oracle, label, scale)(x, t)
        score = scale * oracle.score(x, t, label) + (1 - scale) * oracle.score(x, t)
        classifier = classifier_guided(oracle, SCHEDULE, oracle.log_posterior, label, scale)(x, t)
        name = f"scale_{scale:.0f}"
        parts[f"score_{name}"] = close(score_from_noise(SCHEDULE, t, free), score, atol=1e-8)
        parts[f"classifier_{name}"] = close(free, classifier, atol=1e-8)
        parts[f"two_networks_{name}"] = close(free, two, atol=1e-12)
    return all_of(**parts)


@claim("B13.3-1", "B13.3-2")
def guidance_buys_accuracy_with_diversity() -> Evidence:
    """Scale 0 → 1 → 4 on overlapping classes: more samples are recognised, and they lie closer together."""
    oracle, _, _, _ = _scene()
    grid = even_grid(1_000, 50)
    accuracies, spreads = [], []
    for scale in (0.0, 1.0, 4.0):
        torch.manual_seed(0)
        label = torch.zeros(2_000, dtype=torch.int64)
        x = ddim(guided(oracle, label, scale), SCHEDULE, torch.randn(2_000, 2, dtype=torch.float64), grid=grid)
        recognised = oracle.log_posterior(x, torch.zeros_like(label)).argmax(1) == label
        accuracies.append(recognised.double().mean())
        spreads.append(x.var(0).sum())
    return all_of(
        no_scale_no_class=close(accuracies[0], 1 / 3, atol=0.05),
        accuracy_rises=at_least(torch.stack(accuracies[1:]) - torch.stack(accuracies[:-1]), 0.03),
        at_scale_4=at_least(accuracies[2], 0.99),
        spread_falls=at_most(torch.stack(spreads[1:]) / torch.stack(spreads[:-1]), 0.8),
    )


@erratum(
    "B13.3-2",
    printed="∇log p(y|x_t) ≈ ε(x_t|y) − ε(x_t)",
    right="∇log p(y|x_t) = −(ε(x_t|y) − ε(x_t)) / √(1 − ᾱ_t)",
)
def the_gradient_of_the_classifier_has_the_other_sign() -> Correction:
    """Noise points away from the data and the score towards it, at another scale (book eq. 13.98)."""
    oracle, x, t, label = _scene()
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
def the_guidance_weight_changes_its_meaning() -> Correction:
    """One letter, two weights: γ = 0 is unconditional in book eq. 13.97 and plainly conditional in book eq. 13.99."""
    oracle, x, t, label = _scene()
    gamma = 2.0
    target = noise_from_score(SCHEDULE, t, gamma * oracle.score(x, t, label) + (1 - gamma) * oracle.score(x, t))
    conditional, unconditional = oracle(x, t, label), oracle(x, t)
    printed = (1 + gamma) * conditional - gamma * unconditional
    return Correction(
        printed=close(printed, target, atol=1e-3),
        corrected=all_of(
            by_scale=close(guided_noise(conditional, unconditional, gamma), target, atol=1e-9),
            by_weight=close(guided_noise(conditional, unconditional, guidance_scale(gamma)), printed, atol=1e-9),
        ),
    )


@claim("B13.3-2")
def labels_are_dropped_at_the_rate_asked() -> Evidence:
    """Condition dropout replaces the wished share of labels by the null label and leaves the others alone."""
    torch.manual_seed(0)
    label = torch.randint(10, (100_000,))
    dropped = drop_labels(label, 10, 0.1)
    kept = dropped != 10
    return all_of(
        share=close((~kept).double().mean(), 0.1, atol=0.004), others=close(dropped[kept], label[kept].double())
    )


def _scene() -> tuple[MixtureOracle, Tensor, Tensor, Tensor]:
    """Three overlapping classes in the plane, and noised points of them with labels."""
    torch.manual_seed(0)
    means = torch.tensor([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.5]], dtype=torch.float64)
    oracle = MixtureOracle(SCHEDULE, means, torch.full((3,), 0.7, dtype=torch.float64))
    x0, label = oracle.draw(500)
    t = torch.randint(1_000, (500,))
    return oracle, diffuse(SCHEDULE, x0, t, torch.randn_like(x0)), t, label

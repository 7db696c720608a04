"""Classifier guidance, classifier-free guidance, and clipping of the predicted data (book sec. 13.3)."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.diffusion.chain.forward_process import Denoiser, extract
from parnassus.diffusion.chain.predictions import x0_from_noise
from parnassus.diffusion.chain.schedules import Schedule
from parnassus.errors import check_same_shape


@runtime_checkable
class ConditionalDenoiser(Protocol):
    """ε(x_t, t, label); without a label, or with the null label, the unconditional prediction."""

    def __call__(self, x: Tensor, t: Tensor, label: Tensor | None = None) -> Tensor: ...


def guided_noise(
    conditional: Float[Tensor, "batch *event"], unconditional: Float[Tensor, "batch *event"], scale: float
) -> Float[Tensor, "batch *event"]:
    """ε_s = s ε(x_t | y) + (1 − s) ε(x_t) (book eq. 13.97).

    Its score is s ∇ log p(x|y) + (1 − s) ∇ log p(x). s = 0 is the unconditional model, s = 1 the conditional model,
    s > 1 amplifies the class.
    """
    return unconditional + scale * (conditional - unconditional)


def scale_from_weight(weight: float) -> float:
    """The s = 1 + w that gives (1 + w) ε(x_t | y) − w ε(x_t) (book eq. 13.99, which calls s and w both γ)."""
    return 1 + weight


def classifier_free_guidance(denoiser: ConditionalDenoiser, label: Int[Tensor, " batch"], scale: float) -> Denoiser:
    """Classifier-free guidance of one network trained with and without labels (book eq. 13.97)."""

    def noise(x: Tensor, t: Tensor) -> Tensor:
        if scale == 1:
            return denoiser(x, t, label)
        return guided_noise(denoiser(x, t, label), denoiser(x, t), scale)

    return noise


def batched_classifier_free_guidance(
    denoiser: ConditionalDenoiser, label: Int[Tensor, " batch"], scale: float, *, null: int
) -> Denoiser:
    """Classifier-free guidance by one call on a doubled batch, faster for small batches (book eq. 13.97)."""
    both = torch.cat([label, torch.full_like(label, null)])

    def noise(x: Tensor, t: Tensor) -> Tensor:
        conditional, unconditional = denoiser(torch.cat([x, x]), torch.cat([t, t]), both).chunk(2)
        return guided_noise(conditional, unconditional, scale)

    return noise


def two_network_guidance(
    conditional: ConditionalDenoiser, unconditional: Denoiser, label: Int[Tensor, " batch"], scale: float
) -> Denoiser:
    """Classifier-free guidance with two separately trained networks, as in the book (book sec. 13.3)."""

    def noise(x: Tensor, t: Tensor) -> Tensor:
        return guided_noise(conditional(x, t, label), unconditional(x, t), scale)

    return noise


def class_gradient(
    classifier: Callable[[Tensor, Tensor], Tensor],
    x: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    label: Int[Tensor, " batch"],
) -> Float[Tensor, "batch *event"]:
    """∇ log p(y | x_t) for a `classifier(x, t)` that returns logits (book eq. 13.92)."""
    check_same_shape(t=t, label=label)
    with torch.enable_grad():
        point = x.detach().requires_grad_()
        log_prob = classifier(point, t).log_softmax(1).gather(1, label[:, None])
        (gradient,) = torch.autograd.grad(log_prob.sum(), point)
    return gradient


def classifier_guidance(
    denoiser: Denoiser,
    schedule: Schedule,
    classifier: Callable[[Tensor, Tensor], Tensor],
    label: Int[Tensor, " batch"],
    scale: float,
) -> Denoiser:
    """ε − s √(1 − ᾱ_t) ∇ log p(y | x_t): classifier guidance (book eqs. 13.92-13.93).

    `classifier(x, t)` returns log-probabilities or logits of all classes.
    """

    def noise(x: Tensor, t: Tensor) -> Tensor:
        gradient = class_gradient(classifier, x, t, label)
        return denoiser(x, t) - scale * extract((1 - schedule.alpha_bar).sqrt(), t, x) * gradient

    return noise


def drop_labels(label: Int[Tensor, " batch"], null: int, rate: float) -> Int[Tensor, " batch"]:
    """Replace each label by the `null` label with probability `rate`, for classifier-free guidance."""
    return label.masked_fill(torch.rand(label.shape, device=label.device) < rate, null)


def record_x0(denoiser: Denoiser, schedule: Schedule) -> tuple[Denoiser, list[Tensor]]:
    """The denoiser, and a list to which each call appends the prediction x̂_0."""
    predictions: list[Tensor] = []

    def noise(x: Tensor, t: Tensor) -> Tensor:
        eps = denoiser(x, t)
        predictions.append(x0_from_noise(schedule, x, t, eps))
        return eps

    return noise, predictions


def clip_x0(denoiser: Denoiser, schedule: Schedule, low: float = -1.0, high: float = 1.0) -> Denoiser:
    """The denoiser with x̂_0 clipped to [low, high], for bounded data."""
    signal, level = schedule.alpha_bar.sqrt(), (1 - schedule.alpha_bar).sqrt()

    def noise(x: Tensor, t: Tensor) -> Tensor:
        a, b = extract(signal, t, x), extract(level, t, x)
        x0 = ((x - b * denoiser(x, t)) / a).clamp(low, high)
        return (x - a * x0) / b

    return noise

"""Guidance: pull a sample towards a class, with a classifier or without one (book sec. 13.3)."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.diffusion.process import Denoiser, spread, x0_from_noise
from parnassus.diffusion.schedules import Schedule


@runtime_checkable
class ConditionalDenoiser(Protocol):
    """ε(x_t, t, label); without a label, or with the null label, it must say what it believes of all classes."""

    def __call__(self, x: Tensor, t: Tensor, label: Tensor | None = None) -> Tensor: ...


def guided_noise(
    conditional: Float[Tensor, "batch *event"], unconditional: Float[Tensor, "batch *event"], scale: float
) -> Float[Tensor, "batch *event"]:
    """ε_s = s ε(x_t | y) + (1 − s) ε(x_t), whose score is s ∇ log p(x|y) + (1 − s) ∇ log p(x) (book eq. 13.97).

    s = 0 ignores the class, s = 1 is the plain conditional model, s > 1 overdoes it.
    """
    return unconditional + scale * (conditional - unconditional)


def guidance_scale(weight: float) -> float:
    """The s = 1 + w that gives (1 + w) ε(x_t | y) − w ε(x_t) (book eq. 13.99, which calls s and w both γ)."""
    return 1 + weight


def guided(denoiser: ConditionalDenoiser, label: Int[Tensor, " batch"], scale: float) -> Denoiser:
    """Classifier-free guidance from one network that was trained with and without labels (book eq. 13.97)."""

    def noise(x: Tensor, t: Tensor) -> Tensor:
        if scale == 1:
            return denoiser(x, t, label)
        return guided_noise(denoiser(x, t, label), denoiser(x, t), scale)

    return noise


def guided_at_once(denoiser: ConditionalDenoiser, label: Int[Tensor, " batch"], scale: float, *, null: int) -> Denoiser:
    """The same by one call on a doubled batch, labels and null labels: quicker for few examples (book eq. 13.97)."""
    both = torch.cat([label, torch.full_like(label, null)])

    def noise(x: Tensor, t: Tensor) -> Tensor:
        conditional, unconditional = denoiser(torch.cat([x, x]), torch.cat([t, t]), both).chunk(2)
        return guided_noise(conditional, unconditional, scale)

    return noise


def guided_by_two(
    conditional: ConditionalDenoiser, unconditional: Denoiser, label: Int[Tensor, " batch"], scale: float
) -> Denoiser:
    """The same from two networks, trained apart, as the book has it (book sec. 13.3)."""

    def noise(x: Tensor, t: Tensor) -> Tensor:
        return guided_noise(conditional(x, t, label), unconditional(x, t), scale)

    return noise


def class_gradient(
    classifier: Callable[[Tensor, Tensor], Tensor],
    x: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    label: Int[Tensor, " batch"],
) -> Float[Tensor, "batch *event"]:
    """∇ log p(y | x_t) by automatic differentiation, where `classifier(x, t)` gives logits (book eq. 13.92)."""
    with torch.enable_grad():
        inside = x.detach().requires_grad_()
        log_prob = classifier(inside, t).log_softmax(1).gather(1, label[:, None])
        (gradient,) = torch.autograd.grad(log_prob.sum(), inside)
    return gradient


def classifier_guided(
    denoiser: Denoiser,
    schedule: Schedule,
    classifier: Callable[[Tensor, Tensor], Tensor],
    label: Int[Tensor, " batch"],
    scale: float,
) -> Denoiser:
    """ε − s √(1 − ᾱ_t) ∇ log p(y | x_t): guidance by a classifier that knows noise (book eqs. 13.92-13.93).

    `classifier(x, t)` gives log-probabilities or logits of every class.
    """

    def noise(x: Tensor, t: Tensor) -> Tensor:
        towards = class_gradient(classifier, x, t, label)
        return denoiser(x, t) - scale * spread((1 - schedule.alpha_bar).sqrt(), t, x) * towards

    return noise


def drop_labels(label: Int[Tensor, " batch"], null: int, rate: float) -> Int[Tensor, " batch"]:
    """Replace each label by the `null` label with probability `rate`, so that one network learns both roles."""
    return label.masked_fill(torch.rand(label.shape, device=label.device) < rate, null)


def watched(denoiser: Denoiser, schedule: Schedule) -> tuple[Denoiser, list[Tensor]]:
    """The same denoiser, and a list that grows by its guess x̂_0 with each call."""
    guesses: list[Tensor] = []

    def noise(x: Tensor, t: Tensor) -> Tensor:
        found = denoiser(x, t)
        guesses.append(x0_from_noise(schedule, x, t, found))
        return found

    return noise, guesses


def clipped(denoiser: Denoiser, schedule: Schedule, low: float = -1.0, high: float = 1.0) -> Denoiser:
    """The same denoiser kept to x̂_0 within [low, high], for data that cannot lie elsewhere."""
    signal, level = schedule.alpha_bar.sqrt(), (1 - schedule.alpha_bar).sqrt()

    def noise(x: Tensor, t: Tensor) -> Tensor:
        here, there = spread(signal, t, x), spread(level, t, x)
        x0 = ((x - there * denoiser(x, t)) / here).clamp(low, high)
        return (x - here * x0) / there

    return noise

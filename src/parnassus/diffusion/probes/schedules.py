"""Noise schedules under the hand: how fast a digit drowns (book sec. 13.2.1)."""

from typing import Annotated

import torch

from parnassus.atlas.marks import probe
from parnassus.data import load_digits
from parnassus.diffusion.elbo import prior_kl
from parnassus.diffusion.process import diffuse
from parnassus.diffusion.schedules import (
    Schedule,
    constant_schedule,
    cosine_schedule,
    linear_schedule,
    sigmoid_schedule,
)
from parnassus.touch import Answer, Curves, Images, Numbers, Pick, Real, Whole

KINDS = ("linear", "cosine", "sigmoid", "constant")
SHOWN = 9  # moments of the chain at which the digit is shown


def schedule_of(kind: int, steps: int, strength: float) -> Schedule:
    """A schedule of this kind whose noise is `strength` times the usual; the cosine has no strength to turn."""
    scale = min(strength * 1_000 / steps, 0.98 / 0.02)  # no step may add more noise than there is room for
    if KINDS[kind] == "cosine":
        return cosine_schedule(steps)
    if KINDS[kind] == "constant":
        return constant_schedule(steps, 0.01 * scale)
    make = linear_schedule if KINDS[kind] == "linear" else sigmoid_schedule
    return make(steps, 1e-4 * scale, 0.02 * scale)


@probe()
@torch.no_grad()
def drown_a_digit(
    kind: Annotated[int, Pick("schedule", KINDS)] = 1,
    steps: Annotated[int, Whole("length of the chain, T", 10, 1_000)] = 200,
    strength: Annotated[float, Real("strength of the noise", 0.1, 4.0, log=True)] = 1.0,
    example: Annotated[int, Whole("which digit", 0, 99)] = 3,
) -> list[Answer]:
    """How a noise schedule drowns a digit, and what is left of it at the end (book sec. 13.2.1).

    Compare linear and cosine: the linear one has drowned the digit when half the chain is still to come, and those
    steps are spent on noise. Then weaken the noise of the linear one: the end is no longer pure noise, yet sampling
    begins with it.
    """
    schedule = schedule_of(kind, steps, strength)
    x0 = 2 * load_digits().test.x[example : example + 1] - 1
    moments = torch.linspace(0, steps - 1, SHOWN).round().long()
    noise = torch.randn(x0.shape, generator=torch.Generator().manual_seed(example))
    drowned = diffuse(schedule, x0.expand(SHOWN, *x0.shape[1:]), moments, noise.expand(SHOWN, *x0.shape[1:]))
    t = torch.arange(1.0, steps + 1).tolist()
    signal, level = schedule.alpha_bar.sqrt(), (1 - schedule.alpha_bar).sqrt()
    lines = {"signal √ᾱ_t": (t, signal.tolist()), "noise √(1 − ᾱ_t)": (t, level.tolist())}
    ratio = {"SNR_t = ᾱ_t / (1 − ᾱ_t)": (t, schedule.snr.tolist())}
    half = int((signal > level).sum())
    numbers: dict[str, float | str] = {
        "signal left at the end, √ᾱ_T": float(signal[-1]),
        "steps until noise is as strong as the signal": float(half),
        "share of the steps at SNR below 1/100": float((schedule.snr < 0.01).double().mean()),
        "KL of the end to pure noise, nats": float(prior_kl(schedule, x0)[0]),
    }
    return [
        Images(
            "The same noise, more and more of it",
            ((drowned + 1) / 2).clamp(0, 1),
            [f"t = {int(moment) + 1}" for moment in moments],
        ),
        Curves("Signal and noise", lines, x_label="step t", y_label="factor", marked=float(max(half, 1))),
        Curves("Signal-to-noise ratio", ratio, x_label="step t", y_label="SNR", log_y=True),
        Numbers("In numbers", numbers, about="Sampling starts from pure noise: the last number is what that costs."),
    ]

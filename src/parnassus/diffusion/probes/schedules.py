"""Probe of noise schedules on a digit (book sec. 13.2.1)."""

from typing import Annotated

import torch

from parnassus.atlas.decorators import probe
from parnassus.data import load_digits
from parnassus.diffusion.chain.elbo import prior_kl
from parnassus.diffusion.chain.forward_process import diffuse
from parnassus.diffusion.chain.schedules import (
    Schedule,
    constant_schedule,
    cosine_schedule,
    linear_schedule,
    sigmoid_schedule,
)
from parnassus.widgets import Answer, Curves, FloatSlider, Images, IntSlider, Numbers, Select

KINDS = ("linear", "cosine", "sigmoid", "constant")
SHOWN = 9  # steps at which the digit is shown


def build_schedule(kind: int, steps: int, strength: float) -> Schedule:
    """A schedule of this kind with noise scaled by `strength`, which has no effect on the cosine schedule."""
    scale = min(strength * 1_000 / steps, 0.98 / 0.02)  # 1 − α must stay below 1
    if KINDS[kind] == "cosine":
        return cosine_schedule(steps)
    if KINDS[kind] == "constant":
        return constant_schedule(steps, 0.01 * scale)
    build = linear_schedule if KINDS[kind] == "linear" else sigmoid_schedule
    return build(steps, 1e-4 * scale, 0.02 * scale)


@probe()
@torch.no_grad()
def noise_schedules(
    kind: Annotated[int, Select("schedule", KINDS)] = 1,
    steps: Annotated[int, IntSlider("timesteps T", 10, 1_000)] = 200,
    strength: Annotated[float, FloatSlider("noise strength", 0.1, 4.0, log=True)] = 1.0,
    example: Annotated[int, IntSlider("test image", 0, 99)] = 3,
) -> list[Answer]:
    """A digit along the forward chain under different noise schedules (book sec. 13.2.1).

    The linear schedule destroys the digit in the first half of the chain, and the other steps carry no information. The
    cosine schedule is more even. With too little noise the chain does not end in the prior that sampling starts from.
    """
    schedule = build_schedule(kind, steps, strength)
    x0 = 2 * load_digits().test.x[example : example + 1] - 1
    grid = torch.linspace(0, steps - 1, SHOWN).round().long()
    noise = torch.randn(x0.shape, generator=torch.Generator().manual_seed(example))
    states = diffuse(schedule, x0.expand(SHOWN, *x0.shape[1:]), grid, noise.expand(SHOWN, *x0.shape[1:]))
    t = torch.arange(1.0, steps + 1).tolist()
    signal, level = schedule.alpha_bar.sqrt(), (1 - schedule.alpha_bar).sqrt()
    lines = {"signal √ᾱ_t": (t, signal.tolist()), "noise √(1 − ᾱ_t)": (t, level.tolist())}
    ratio = {"SNR_t = ᾱ_t / (1 − ᾱ_t)": (t, schedule.snr.tolist())}
    half = int((signal > level).sum())
    numbers: dict[str, float | str] = {
        "signal at the end, √ᾱ_T": float(signal[-1]),
        "steps with more signal than noise": float(half),
        "fraction of steps with SNR below 1/100": float((schedule.snr < 0.01).double().mean()),
        "KL(q(x_T | x_0) ‖ prior) (nats)": float(prior_kl(schedule, x0)[0]),
    }
    return [
        Images(
            "Noised images",
            ((states + 1) / 2).clamp(0, 1),
            [f"t = {int(step) + 1}" for step in grid],
        ),
        Curves("Signal and noise", lines, x_label="step t", y_label="coefficient", marked=float(max(half, 1))),
        Curves("Signal-to-noise ratio", ratio, x_label="step t", y_label="SNR", log_y=True),
        Numbers("Metrics", numbers, about="The KL divergence is the prior term of the ELBO."),
    ]

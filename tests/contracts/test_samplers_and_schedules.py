"""The contracts of diffusion samplers, token samplers, noise schedules and learning-rate schedules."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from parnassus import diffusion, optim, text
from parnassus.diffusion import Schedule

from .checks import (
    Offences,
    check_equal,
    other_default_device,
    seeded,
    unchanged,
    unchanged_globals,
    without_shape_checks,
)
from .public_members import check_factories, functions_returning, public_members

SCHEDULES: dict[str, Callable[[], Schedule]] = {
    "diffusion.constant_schedule": lambda: diffusion.constant_schedule(20, 0.1),
    "diffusion.cosine_schedule": lambda: diffusion.cosine_schedule(20),
    "diffusion.linear_schedule": lambda: diffusion.linear_schedule(20, 0.005, 0.4),
    "diffusion.sigmoid_schedule": lambda: diffusion.sigmoid_schedule(20, 0.005, 0.4),
}
RATES: dict[str, Callable[[int], float]] = {
    "optim.one_cycle_momentum": lambda step: optim.one_cycle_momentum(step, 20),
    "optim.one_cycle_rate": lambda step: optim.one_cycle_rate(step, 20, peak=0.1),
    "optim.step_decay": lambda step: optim.step_decay(step, step_size=5),
}
SAMPLERS = {
    name: member
    for name, member in public_members().items()
    if inspect.isfunction(member)
    and list(inspect.signature(member).parameters)[:3] == ["denoiser", "schedule", "start"]
    and "Iterator" not in str(member.__annotations__["return"])
}
TOKEN_SAMPLERS: dict[str, Callable[[Tensor], Tensor]] = {
    "text.greedy": text.greedy,
    "text.sample_tokens": text.sample_tokens,
    "text.token_sampler": text.token_sampler(temperature=0.7, top_k=3),
}


def test_every_schedule_and_sampler_is_covered() -> None:
    check_factories(functions_returning(Schedule), SCHEDULES)
    rates = [name for name, each in public_members().items() if "learning_rate_schedules" in _module(each)]
    check_factories(rates, RATES)
    functions = {name: each for name, each in public_members().items() if name.startswith("text.")}
    from_logits = [name for name, each in functions.items() if _returns_tokens(each)]
    check_factories([*from_logits, "text.token_sampler"], TOKEN_SAMPLERS)
    assert len(SAMPLERS) >= 4, f"samplers are not found by their arguments any more: {', '.join(SAMPLERS)}"


def _returns_tokens(member: Any) -> bool:
    """Whether this is a function of logits that returns tokens."""
    notes = getattr(member, "__annotations__", {})
    return "logits" in notes and str(notes.get("return")) == str(text.sample_tokens.__annotations__["return"])


def _module(member: object) -> str:
    return str(getattr(member, "__module__", ""))


def test_schedules_add_noise_in_every_step() -> None:
    offences = Offences()
    for name, build in SCHEDULES.items():
        with offences.record(name, "values"), unchanged_globals(torch_generator=True):
            schedule = build()
            assert len(schedule) == 20, f"{len(schedule)} steps"
            assert bool(((schedule.alpha > 0) & (schedule.alpha < 1)).all()), "alpha outside (0, 1)"
            torch.testing.assert_close(schedule.alpha_bar, schedule.alpha.cumprod(0), rtol=1e-12, atol=0)
            torch.testing.assert_close(schedule.alpha_bar_before * schedule.alpha, schedule.alpha_bar)
            assert bool((schedule.snr[1:] < schedule.snr[:-1]).all()), "the signal-to-noise ratio does not decrease"
            assert float(schedule.alpha_bar[-1]) < 0.2, "little noise at the end"
            assert schedule.alpha.dtype == torch.float64, f"computed in {schedule.alpha.dtype}"
            assert schedule.to(dtype=torch.float32).alpha_bar.dtype == torch.float32
            check_equal(schedule, build())
    offences.check()


def test_learning_rate_schedules_are_positive_functions_of_the_step() -> None:
    offences = Offences()
    for name, rate in RATES.items():
        with offences.record(name, "values"), unchanged_globals(torch_generator=True):
            values = [rate(step) for step in range(20)]
            assert all(isinstance(each, float) and each > 0 for each in values), f"{values}"
            assert [rate(step) for step in reversed(range(20))] == values[::-1], "depends on earlier calls"
            assert len(set(values)) > 1, "is constant"
    offences.check()


class StandardNormalDenoiser:
    """E[ε | x_t] = √(1 − ᾱ_t) x_t for standard normal data, which all samplers must reproduce."""

    def __init__(self, schedule: Schedule) -> None:
        self.factors = (1 - schedule.alpha_bar).sqrt()

    def __call__(self, x: Tensor, t: Tensor) -> Tensor:
        return self.factors.to(x)[t, None] * x


def test_samplers_keep_shape_dtype_and_device_and_reproduce_a_normal_distribution() -> None:
    offences, schedule = Offences(), diffusion.linear_schedule(200, 1e-4, 0.08)
    denoiser = StandardNormalDenoiser(schedule)
    for name, sampler in SAMPLERS.items():
        sample: Callable[[Tensor], Any] = partial(sampler, denoiser, schedule)
        for dtype in (torch.float32, torch.float64):
            with offences.record(name, str(dtype)), without_shape_checks():
                start = torch.randn(4000, 2, generator=torch.Generator().manual_seed(0)).to(dtype)
                with unchanged(start), unchanged_globals(torch_generator=False), other_default_device():
                    x = seeded(partial(sample, start))
                assert (x.shape, x.dtype, x.device.type) == (start.shape, dtype, "cpu"), f"{x.dtype}, {x.device}"
                assert torch.equal(x, seeded(partial(sample, start))), "another result with the same seed"
                assert abs(float(x.std()) - 1) < 0.06, f"standard deviation {float(x.std()):.3f} instead of 1"
                assert abs(float(x.mean())) < 0.06, f"mean {float(x.mean()):.3f} instead of 0"
    offences.check()


def test_token_samplers_return_possible_tokens_on_the_device_of_the_logits() -> None:
    offences = Offences()
    logits = torch.tensor([[0.0, 1.0, -torch.inf, 3.0], [2.0, -torch.inf, 2.0, 1.0]])
    for name, sampler in TOKEN_SAMPLERS.items():
        with offences.record(name, "tokens"), without_shape_checks(), unchanged(logits), other_default_device():
            tokens = seeded(partial(sampler, logits))
            assert (tokens.shape, tokens.dtype, tokens.device.type) == ((2,), torch.int64, "cpu"), f"{tokens.dtype}"
            assert bool(logits.gather(1, tokens[:, None]).isfinite().all()), "a token of probability 0"
            assert torch.equal(tokens, seeded(partial(sampler, logits))), "another result with the same seed"
    offences.check()

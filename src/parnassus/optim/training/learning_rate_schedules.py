"""Learning-rate schedules as pure functions of the step: step decay and 1cycle (book secs. 1.3, 4.5).

A function of the step has no state to save when a run is resumed.
"""

from math import cos, pi


def step_decay(epoch: int, *, initial: float = 1e-3, step_size: int = 10, gamma: float = 0.1) -> float:
    """The learning rate initial · gamma^⌊epoch / step_size⌋ of epoch 0, 1, … (book sec. 4.5).

    The text trains 5 epochs with `step_size` = 10: its learning rate is constant.
    """
    if epoch < 0 or step_size < 1:
        raise ValueError(f"need epoch ≥ 0 and step_size ≥ 1; got epoch={epoch}, step_size={step_size}")
    return initial * gamma ** (epoch // step_size)


def one_cycle_rate(
    step: int,
    steps: int,
    *,
    peak: float,
    warmup_fraction: float = 0.3,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> float:
    """The 1cycle learning rate at step 0, …, `steps` − 1 (book sec. 1.3; Smith and Topin 2017).

    Cosine warm-up from peak / div_factor to peak over the first `warmup_fraction` of the steps, then cosine annealing.
    As in torch, the final rate is lower than the initial one by `final_div_factor`; in the book both are the minimum,
    which is `final_div_factor=1`.
    """
    start = peak / div_factor
    return _one_cycle(step, steps, warmup_fraction=warmup_fraction, values=(start, peak, start / final_div_factor))


def one_cycle_momentum(
    step: int, steps: int, *, max_momentum: float = 0.95, base_momentum: float = 0.85, warmup_fraction: float = 0.3
) -> float:
    """The momentum for `one_cycle_rate`: it falls to `base_momentum` as the rate rises, then rises again.

    By default torch's OneCycleLR also applies it to plain SGD, which becomes SGD with momentum.
    """
    return _one_cycle(step, steps, warmup_fraction=warmup_fraction, values=(max_momentum, base_momentum, max_momentum))


def _one_cycle(step: int, steps: int, *, warmup_fraction: float, values: tuple[float, float, float]) -> float:
    """Cosine from the first value to the second over the warm-up, then from the second to the third."""
    if not 0 < warmup_fraction < 1 or warmup_fraction * steps <= 1:
        raise ValueError(
            "warmup_fraction must be in (0, 1) and span more than one step; "
            f"got warmup_fraction={warmup_fraction}, steps={steps}"
        )
    if not 0 <= step < steps:
        raise ValueError(f"need 0 ≤ step < steps; got step={step}, steps={steps}")
    first, second, third = values
    warmup_end, last = warmup_fraction * steps - 1, steps - 1
    if step <= warmup_end:
        return _cosine_anneal(first, second, step / warmup_end)
    return _cosine_anneal(second, third, (step - warmup_end) / (last - warmup_end))


def _cosine_anneal(start: float, end: float, progress: float) -> float:
    return end + (start - end) * (1 + cos(pi * progress)) / 2

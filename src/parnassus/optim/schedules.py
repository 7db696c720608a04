"""Learning-rate schedules as pure functions of the step (book sec. 1.3).

A function of the step alone has no state to save: a resumed run asks for the same step and gets the same rate.
"""

from math import cos, pi


def step_decay(epoch: int, *, first: float = 1e-3, every: int = 10, factor: float = 0.1) -> float:
    """The learning rate first · factor^⌊epoch / every⌋ of epoch 0, 1, … (book sec. 4.5).

    The text trains 5 epochs with `every` = 10: its rate never falls.
    """
    if epoch < 0 or every < 1:
        raise ValueError(f"epoch must not be negative and every at least 1; got epoch={epoch}, every={every}")
    return first * factor ** (epoch // every)


def one_cycle_rate(
    step: int,
    steps: int,
    *,
    peak: float,
    warm_up: float = 0.3,
    start_factor: float = 25.0,
    end_factor: float = 1e4,
) -> float:
    """The 1cycle learning rate at `step` of `steps`, counted from 0 (book sec. 1.3; Smith and Topin 2017).

    Warm-up over the first `warm_up` of the steps from peak / start_factor to peak, then annealing, both along half
    a cosine. As in torch the end is lower than the start by `end_factor`; the book says that both are the minimum,
    which is `end_factor=1`.
    """
    start = peak / start_factor
    return _cycle(step, steps, warm_up=warm_up, values=(start, peak, start / end_factor))


def one_cycle_momentum(step: int, steps: int, *, high: float = 0.95, low: float = 0.85, warm_up: float = 0.3) -> float:
    """The momentum that goes with `one_cycle_rate`: down from `high` to `low` as the rate rises, then back.

    torch's scheduler applies it to plain SGD too unless told not to, and so turns it into SGD with momentum.
    """
    return _cycle(step, steps, warm_up=warm_up, values=(high, low, high))


def _cycle(step: int, steps: int, *, warm_up: float, values: tuple[float, float, float]) -> float:
    """Half a cosine from the first value to the second over the warm-up, then one to the third."""
    if not 0 < warm_up < 1 or warm_up * steps <= 1:
        raise ValueError(
            f"warm_up must lie in (0, 1) and span more than one step; got warm_up={warm_up}, steps={steps}"
        )
    if not 0 <= step < steps:
        raise ValueError(f"step must lie in 0 … steps − 1; got step={step}, steps={steps}")
    first, second, third = values
    turn, last = warm_up * steps - 1, steps - 1
    if step <= turn:
        return _half_cosine(first, second, step / turn)
    return _half_cosine(second, third, (step - turn) / (last - turn))


def _half_cosine(start: float, end: float, progress: float) -> float:
    return end + (start - end) * (1 + cos(pi * progress)) / 2

"""Times of functions."""

from itertools import accumulate, chain, repeat

import torch

from parnassus.train.timing import Stopwatch, measure_seconds


def test_minimum_over_the_calls_is_returned() -> None:
    durations = [5.0, 2.0, 3.0]
    clock = accumulate(chain.from_iterable((0.5, seconds) for seconds in durations))
    calls: list[int] = []
    seconds = measure_seconds(lambda: calls.append(1), torch.device("cpu"), repeats=3, clock=lambda: next(clock))
    assert (seconds, len(calls)) == (2.0, 3)


def test_calls_are_repeated_until_the_minimum_total_time() -> None:
    clock = accumulate(repeat(1.0))
    calls: list[int] = []
    measure_seconds(lambda: calls.append(1), torch.device("cpu"), repeats=2, min_seconds=7.0, clock=lambda: next(clock))
    assert len(calls) == 7


def test_stopwatch_continues_after_earlier_sessions() -> None:
    first = Stopwatch(clock=accumulate(repeat(1.0)).__next__)
    state = first.state_dict()
    assert state == {"seconds": 1.0}
    resumed = Stopwatch(clock=accumulate(repeat(5.0)).__next__)
    resumed.load_state_dict(state)
    assert resumed.seconds == 1.0 + 5.0

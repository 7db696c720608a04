"""Times of functions on a CPU or a GPU."""

import time
from collections.abc import Callable

import torch


def measure_seconds(
    action: Callable[[], object],
    device: torch.device,
    *,
    repeats: int = 5,
    min_seconds: float = 0.0,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """The minimum time of a call, over at least `repeats` calls that take at least `min_seconds` in total."""
    times: list[float] = []
    while len(times) < repeats or sum(times) < min_seconds:
        synchronise(device)
        start = clock()
        action()
        synchronise(device)
        times.append(clock() - start)
    return min(times)


def synchronise(device: torch.device) -> None:
    """Wait until all operations on a GPU are finished."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)

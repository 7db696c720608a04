"""Times of functions on a CPU or a GPU, and of training loops."""

import time
from collections.abc import Callable

import torch


class Stopwatch:
    """Seconds since its creation; kept by a run, it continues after the time of earlier sessions."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()

    @property
    def seconds(self) -> float:
        return self._clock() - self._start

    def state_dict(self) -> dict[str, object]:
        return {"seconds": self.seconds}

    def load_state_dict(self, state: dict[str, object]) -> None:
        self._start = self._clock() - float(str(state["seconds"]))


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

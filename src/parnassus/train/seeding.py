"""Seeds: the randomness of a step is a pure function of (seed, rank, loop, step), so a resumed run repeats it."""

import torch

_MASK = (1 << 64) - 1


def mix(*parts: int) -> int:
    """Fold integers into one 63-bit seed; neighbours land far apart (splitmix64, Steele et al. 2014)."""
    state = 0
    for part in parts:
        state = _scatter(state + part)
    return state >> 1


def reseed(device: torch.device, *parts: int) -> None:
    """Seed torch's generators of the CPU and of `device` from `parts`.

    `torch.manual_seed` would do, but takes 90 µs: it visits every backend.
    """
    seed = mix(*parts)
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(seed)
    elif device.type != "cpu":
        torch.manual_seed(seed)


def _scatter(state: int) -> int:
    state = (state + 0x9E3779B97F4A7C15) & _MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
    return state ^ (state >> 31)

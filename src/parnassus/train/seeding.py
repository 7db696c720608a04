"""Seeds: the randomness of a step is a pure function of (seed, rank, loop, step), so a resumed run repeats it."""

import torch

from parnassus.data.seeds import mix


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

"""Seeds: random numbers of a step depend only on (seed, rank, loop, step), so a resumed run reproduces them."""

import torch

from parnassus.data.seeds import derive_seed
from parnassus.runs.errors import RunError


def reseed(device: torch.device, *parts: int) -> None:
    """Seed torch's generators of the CPU and of `device` from `parts`.

    `torch.manual_seed` would take 90 µs, because it seeds every backend.
    """
    seed = derive_seed(*parts)
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(seed)
    elif device.type != "cpu":
        torch.manual_seed(seed)


def check_seed(seed: int) -> None:
    """Raise a RunError for a seed that torch does not accept."""
    if not 0 <= seed < 2**63:
        raise RunError(f"--seed must be between 0 and 2⁶³ − 1; got {seed}")

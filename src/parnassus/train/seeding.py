"""Seeds: random numbers of a step depend only on (seed, rank, loop, step), so a resumed run reproduces them."""

from collections.abc import Callable

import torch

from parnassus.runs.errors import RunError


def generator_seeder(device: torch.device) -> Callable[[int], object]:
    """Return a function that seeds torch's generators of the CPU and of `device`.

    `torch.manual_seed` takes 90 µs, because it seeds every backend; the generator of the CPU alone takes 1 µs.
    """
    if device.type == "cpu":
        return torch.default_generator.manual_seed
    if device.type != "cuda":
        return torch.manual_seed
    on_device = torch.cuda.default_generators[device.index or 0]

    def seed_both(seed: int) -> None:
        torch.default_generator.manual_seed(seed)
        on_device.manual_seed(seed)

    return seed_both


def check_seed(seed: int) -> None:
    """Raise a RunError for a seed that torch does not accept."""
    if not 0 <= seed < 2**63:
        raise RunError(f"--seed must be between 0 and 2⁶³ − 1; got {seed}")

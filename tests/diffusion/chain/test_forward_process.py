"""States along the forward chain."""

import torch

from parnassus.diffusion import cosine_schedule, diffuse
from parnassus.diffusion.chain.forward_process import noising_states


def test_noising_states_range_from_the_clean_image_to_the_last_step() -> None:
    torch.manual_seed(0)
    schedule = cosine_schedule(50)
    clean, noise = torch.randn(2, 3, 1, 4, 4)
    steps, states = noising_states(schedule, clean, noise, count=6)
    assert steps[0] == 0
    assert steps[-1] == 49
    assert steps == sorted(steps)
    assert torch.equal(states[:, 0], clean)
    for index, step in enumerate(steps, 1):
        torch.testing.assert_close(states[:, index], diffuse(schedule, clean, torch.full((3,), step), noise))

"""What `parnassus sample` may be asked of a diffusion model: sentences for what cannot be drawn, classes or none."""

import pytest
import torch

from parnassus.diffusion import DDPM, UNet, cosine_schedule
from parnassus.diffusion.experiments.diffusion_on_images import Sample

SHAPE = (1, 8, 8)


def model(classes: int) -> DDPM:
    torch.manual_seed(0)
    network = UNet(SHAPE, 8, multipliers=(1,), blocks=1, attention=(), classes=classes)
    return DDPM(network, SHAPE, schedule=cosine_schedule(10), classes=classes)


@pytest.mark.parametrize("classes", [0, 3])
@torch.no_grad()
def test_a_path_ends_in_the_images_that_are_drawn(classes: int) -> None:
    how, drawn_by = Sample(count=5, steps=4), model(classes)
    torch.manual_seed(1)
    states = list(how.path(drawn_by))
    torch.manual_seed(1)
    drawn = how(drawn_by)
    assert len(states) == 5  # the noise and four steps
    assert drawn.shape == (5, *SHAPE)
    torch.testing.assert_close(drawn, states[-1])
    assert 0 <= float(drawn.min()) <= float(drawn.max()) <= 1


@pytest.mark.parametrize(
    ("how", "classes", "sentence"),
    [
        (Sample(label=3), 3, "there is no label 3; there are 0, 1, 2"),
        (Sample(label=-1), 3, "there is no label -1"),
        (Sample(label=0), 0, "knows no classes"),
        (Sample(guidance=-1.0), 3, "guidance must be a number from 0 on; got -1.0"),
        (Sample(guidance=float("nan")), 3, "guidance must be a number"),
        (Sample(steps=0), 3, "steps must lie between 1 and 10"),
        (Sample(steps=11), 3, "steps must lie between 1 and 10"),
        (Sample(count=0), 3, "count must be at least 1"),
    ],
)
def test_what_cannot_be_drawn_is_told(how: Sample, classes: int, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        how(model(classes))

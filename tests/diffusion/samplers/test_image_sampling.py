"""`parnassus sample` of a diffusion model: paths, and errors for invalid settings."""

import pytest
import torch

from parnassus.diffusion import DDPM, UNet, cosine_schedule
from parnassus.diffusion.commands.sample_images import ImageSample as Sample

SHAPE = (1, 8, 8)


def make_model(classes: int) -> DDPM:
    torch.manual_seed(0)
    network = UNet(SHAPE, 8, multipliers=(1,), blocks=1, attention=(), classes=classes)
    return DDPM(network, SHAPE, schedule=cosine_schedule(10), classes=classes)


@pytest.mark.parametrize("classes", [0, 3])
@torch.no_grad()
def test_path_ends_at_the_sampled_images(classes: int) -> None:
    settings, ddpm = Sample(num_samples=5, num_inference_steps=4), make_model(classes)
    torch.manual_seed(1)
    states = list(settings.path(ddpm))
    torch.manual_seed(1)
    images = settings(ddpm)
    assert len(states) == 5  # initial noise and four steps
    assert images.shape == (5, *SHAPE)
    torch.testing.assert_close(images, states[-1])
    assert 0 <= float(images.min()) <= float(images.max()) <= 1


@pytest.mark.parametrize(
    ("settings", "classes", "message"),
    [
        (Sample(label=3), 3, "label must lie between 0 and 2; got label=3"),
        (Sample(label=-1), 3, "got label=-1"),
        (Sample(label=0), 0, "omitted for a model without classes; got label=0"),
        (Sample(guidance_scale=-1.0), 3, "guidance_scale must be finite and ≥ 0; got guidance_scale=-1.0"),
        (Sample(guidance_scale=float("nan")), 3, "guidance_scale must be finite"),
        (Sample(num_inference_steps=0), 3, "num_inference_steps must be between 1 and 10"),
        (Sample(num_inference_steps=11), 3, "num_inference_steps must be between 1 and 10"),
        (Sample(num_samples=0), 3, "num_samples must be at least 1"),
    ],
)
def test_invalid_settings_raise_value_error(settings: Sample, classes: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        settings(make_model(classes))

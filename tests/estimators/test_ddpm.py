"""Diffusion as an estimator: layouts of images, classes and samples."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from parnassus.diffusion import ResidualMLP
from parnassus.estimators import DDPM
from parnassus.estimators.image_layout import ImageLayout

GENERATOR = np.random.default_rng(0)
SMALL: dict[str, Any] = {"timesteps": 20, "verbose": False, "device": "cpu"}
MLP = partial(ResidualMLP, width=64, blocks=1)


@pytest.mark.parametrize("shape", [(6, 4, 5), (6, 1, 4, 5), (6, 3, 4, 5), (6, 4, 5, 3), (6, 4, 5, 1)])
def test_layouts_are_inverted(shape: tuple[int, ...]) -> None:
    images = GENERATOR.random(shape).astype(np.float32)
    layout = ImageLayout.of(shape)
    tensor = layout.to_tensor(images)
    assert tensor.shape == (6, 3 if 3 in shape else 1, 4, 5)
    np.testing.assert_array_equal(layout.to_array(tensor), images)


def test_bytes_are_divided_by_255() -> None:
    images = np.array([[[0, 255], [51, 102]]], np.uint8)
    assert ImageLayout.of(images.shape).to_tensor(images)[0, 0].flatten().tolist() == pytest.approx([0, 1, 0.2, 0.4])


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((5, 64)), r"images must have the axes \(count, height, width\).*; got shape \(5, 64\)"),
        (np.zeros((5, 2, 8, 8)), r"got shape \(5, 2, 8, 8\)"),
        (np.full((5, 8, 8), 7.0), "must lie in .*; got 7 to 7: divide by the largest possible value"),
        (np.full((5, 8, 8), np.nan), "must lie in"),
    ],
)
def test_other_images_raise_value_error(images: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DDPM(MLP, steps=1, **SMALL).fit(images)


def test_samples_of_a_class_resemble_it() -> None:
    """Class "dark" has pixels of 0.1, class "light" of 0.9."""
    names = np.array(["light", "dark"] * 100)
    images = np.where(names == "dark", 0.1, 0.9)[:, None, None] + 0.02 * GENERATOR.normal(size=(200, 4, 4)).clip(-3, 3)
    model = DDPM(MLP, steps=300, learning_rate=1e-2, **SMALL).fit(images, names)
    samples = model.sample(40, np.array(["dark", "light"] * 20), random_state=0)
    assert samples.shape == (40, 4, 4)
    assert samples[::2].mean() == pytest.approx(0.1, abs=0.1)
    assert samples[1::2].mean() == pytest.approx(0.9, abs=0.1)
    assert np.array_equal(samples, model.sample(40, np.array(["dark", "light"] * 20), random_state=0))
    assert model.plot_samples(4, "dark")._repr_html_().lstrip().startswith("<svg")
    with pytest.raises(ValueError, match=r"y must be among \['dark', 'light'\]; got \['green'\]"):
        model.sample(2, "green")


def test_the_default_denoiser_accepts_colour_images_with_channels_last() -> None:
    images = GENERATOR.integers(0, 256, (8, 8, 8, 3), dtype=np.uint8)
    model = DDPM(steps=1, batch_size=4, **SMALL).fit(images)
    samples = model.sample(2, inference_steps=2)
    assert samples.shape == (2, 8, 8, 3)
    assert 0 <= samples.min() <= samples.max() <= 1
    with pytest.raises(ValueError, match="the model has no classes"):
        model.sample(2, 0)

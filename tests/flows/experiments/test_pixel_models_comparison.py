"""`parnassus sample` for the models of pixels."""

from typing import Literal

import pytest
import torch

from parnassus.flows.experiments.pixel_models_comparison import Experiment, Sample


@pytest.mark.parametrize("network", ["gated", "pixelcnn", "pixel_rnn"])
def test_images_are_sampled_from_the_chosen_network(network: Literal["gated", "pixelcnn", "pixel_rnn"]) -> None:
    torch.manual_seed(0)
    models = Experiment(width=4, num_layers=1).model((4, 3))
    torch.manual_seed(1)
    images = Sample(network=network, temperature=0.5, num_samples=6)(models)
    torch.manual_seed(1)
    expected = models.model(network).sample(6, temperature=0.5)
    assert images.shape == (6, 1, 4, 3)
    assert images[:, 0].equal(expected.float())
    assert set(images.flatten().tolist()) == {0.0, 1.0}

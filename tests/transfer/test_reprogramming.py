"""Reprogrammed models: mapped logits and learned frames."""

import pytest
import torch
from torch import nn

from parnassus.layers.dense import count_parameters
from parnassus.transfer import ReprogrammedModel, learned_frame


def test_logits_are_selected_by_the_label_map() -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 5)
    reprogrammed = ReprogrammedModel(model, nn.Identity(), torch.tensor([4, 0]))
    x = torch.randn(6, 3)
    torch.testing.assert_close(reprogrammed(x), model(x)[:, [4, 0]])
    assert count_parameters(reprogrammed) == 0


def test_image_is_centred_in_its_frame() -> None:
    frame = learned_frame((2, 6, 7), 2, 3)
    nn.init.ones_(frame.frame)
    x = torch.full((4, 2, 2, 3), -5.0)
    framed = frame(x)
    assert framed.shape == (4, 2, 6, 7)
    torch.testing.assert_close(framed[:, :, 2:4, 2:5], x)
    assert float((framed == -5).double().sum()) == x.numel()
    framed.sum().backward()
    assert frame.frame.grad is not None
    assert float(frame.frame.grad[:, 2:4, 2:5].abs().max()) == 0  # pixels under the image are not trained


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="label_map must contain distinct classes"):
        ReprogrammedModel(nn.Linear(3, 5), nn.Identity(), torch.tensor([1, 1]))
    with pytest.raises(ValueError, match="smaller than its frame"):
        learned_frame((1, 4, 4), 4, 2)

"""`parnassus sample` for models with class conditioning: labels, guidance and mechanisms."""

from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from parnassus.data import DataError
from parnassus.diffusion.experiments.diffusion_conditioning import MECHANISMS, Experiment, Sample
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.train import ModelCollection


class ClassMeans(nn.Module):
    """The exact E[ε | x_t] if class k is the point (k, −k), and without a class (9, 9)."""

    def __init__(self, model: DDPM) -> None:
        super().__init__()
        self.alpha_bar = nn.Parameter(model.schedule.alpha_bar.float())

    def forward(self, x: Tensor, t: Tensor, label: Tensor | None = None) -> Tensor:
        point = torch.full_like(x, 9.0) if label is None else torch.stack([label, -label], 1).float()
        alpha_bar = self.alpha_bar[t][:, None]
        return (x - alpha_bar.sqrt() * point) / (1 - alpha_bar).sqrt()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_samples_have_the_requested_classes(
    mechanism: Literal["concatenation", "multiplication", "modulation", "attention"],
) -> None:
    models = Experiment(width=4, num_train_timesteps=20).model(features=2, classes=2)
    models.model(mechanism).denoiser = ClassMeans(models.model(mechanism))
    in_turn = Sample(mechanism=mechanism, num_samples=5)(models)
    torch.testing.assert_close(in_turn, torch.tensor([[0.0, 0], [1, -1]])[[0, 1, 0, 1, 0]], atol=1e-3, rtol=0)
    of_class = Sample(mechanism=mechanism, label=1, num_samples=3, num_inference_steps=7)(models)
    torch.testing.assert_close(of_class, torch.tensor([[1.0, -1]]).expand(3, 2), atol=1e-3, rtol=0)


def test_guidance_scale_interpolates_between_null_label_and_class() -> None:
    """With point masses, the guided denoiser is that of (1 − s) · null + s · class."""
    models: ModelCollection[DDPM] = Experiment(width=4, num_train_timesteps=20).model(features=2, classes=2)
    models.model("modulation").denoiser = ClassMeans(models.model("modulation"))
    for scale in (0.0, 1.0, 3.0):
        x = Sample(label=1, guidance_scale=scale, num_samples=2)(models)
        expected = (1 - scale) * torch.tensor([9.0, 9]) + scale * torch.tensor([1.0, -1])
        torch.testing.assert_close(x, expected.expand(2, 2), atol=1e-2, rtol=0)


def test_unknown_label_raises_data_error() -> None:
    with pytest.raises(DataError, match="label must lie between 0 and 1; got label=2"):
        Sample(label=2)(Experiment(width=4).model(features=2, classes=2))

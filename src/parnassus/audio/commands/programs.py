"""The programs of exported classifiers of sounds."""

from typing import cast

import torch
from torch import Tensor, nn

from parnassus.audio.sound_classifier import SoundClassifier
from parnassus.train.export import Program, Programs, ProgramsOf
from parnassus.train.trained import TrainedRun


def sound_classifier_programs(model: SoundClassifier, _: TrainedRun) -> Programs:
    """Logits of waves of any amplitude, scaled to a peak of 1 as in training."""

    def logits(waves: Tensor) -> Tensor:
        found: Tensor = model(waves / waves.abs().amax(1, keepdim=True).clamp_min(1e-12))
        return found

    waves = torch.sin(torch.arange(model.samples) * torch.tensor([[0.05], [0.11]]))
    about = f"the {model.samples} samples of a sound with the most energy → logits of the `classes` in config.json"
    return {"logits": Program(logits, {"waves": waves}, ("logits",), about)}


PROGRAMS = cast("dict[type[nn.Module], ProgramsOf]", {SoundClassifier: sound_classifier_programs})

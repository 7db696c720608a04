"""The programs of exported classifiers: images or rows to class logits."""

from typing import cast

import torch
from torch import nn

from parnassus.layers.classifier import Classifier
from parnassus.train.export import Program, Programs, fact
from parnassus.train.trained import TrainedRun


def classifier_programs(model: nn.Module, trained: TrainedRun) -> Programs:
    """Logits of the classes of model.json, for images as the data sets contain them."""
    shape = fact(trained, "shape")
    about = "images with pixels in [0, 1], or rows of features → logits of the `classes` in config.json"
    return {"logits": Program(model, {"x": torch.rand(2, *shape)}, ("logits",), about)}


PROGRAMS = {cast("type[nn.Module]", Classifier): classifier_programs}

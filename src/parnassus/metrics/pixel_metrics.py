"""Metrics of generated images on their pixels: diversity within classes, and distance to training images."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.layers.pixel_classifier import require_labels


def within_class_std(images: Float[Tensor, "count *event"], labels: Int[Tensor, " count"] | None) -> Float[Tensor, ""]:
    """The standard deviation of pixels within classes, over all pixels and classes (diversity)."""
    y = require_labels(labels)
    variances = [images[y == index].flatten(1).var(0).mean() for index in y.unique()]
    return torch.stack(variances).mean().sqrt()


def nearest_distance(images: Float[Tensor, "count *event"], real: Float[Tensor, "real *event"]) -> Float[Tensor, ""]:
    """The median distance to the nearest `real` image; 0 for copies."""
    return torch.cdist(images.flatten(1), real.flatten(1)).amin(1).median()

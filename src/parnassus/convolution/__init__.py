"""Networks that look at pictures through sliding filters."""

from parnassus.convolution.augmentation import random_affine
from parnassus.convolution.lenet import Convolve, filters, lenet
from parnassus.convolution.residual import (
    basic_block,
    bottleneck_block,
    grouped_block,
    resnet,
    resnet18,
    resnet50,
    resnext50,
)

__all__ = [
    "Convolve",
    "basic_block",
    "bottleneck_block",
    "filters",
    "grouped_block",
    "lenet",
    "random_affine",
    "resnet",
    "resnet18",
    "resnet50",
    "resnext50",
]

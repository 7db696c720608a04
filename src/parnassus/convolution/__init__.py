"""Networks that look at pictures through sliding filters."""

from parnassus.convolution.augmentation import random_affine
from parnassus.convolution.feature_network import FeatureNetwork, Features, SampleQuality, inception, sample_quality
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
    "FeatureNetwork",
    "Features",
    "SampleQuality",
    "basic_block",
    "bottleneck_block",
    "filters",
    "grouped_block",
    "inception",
    "lenet",
    "random_affine",
    "resnet",
    "resnet18",
    "resnet50",
    "resnext50",
    "sample_quality",
]

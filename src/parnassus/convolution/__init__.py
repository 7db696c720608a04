"""Networks that look at pictures through sliding filters."""

from parnassus.convolution.augmentation import random_affine
from parnassus.convolution.lenet import Convolve, filters, lenet
from parnassus.convolution.pixelcnn import MaskedConv2d, PixelCNN, bits_per_pixel, causal_mask
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
    "MaskedConv2d",
    "PixelCNN",
    "basic_block",
    "bits_per_pixel",
    "bottleneck_block",
    "causal_mask",
    "filters",
    "grouped_block",
    "lenet",
    "random_affine",
    "resnet",
    "resnet18",
    "resnet50",
    "resnext50",
]

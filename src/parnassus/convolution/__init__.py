"""Convolutional networks: LeNet, ResNet and ResNeXt, and image augmentation."""

from parnassus.convolution.augmentation import random_affine
from parnassus.convolution.lenet import ConvBlock, first_filters, lenet
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
    "ConvBlock",
    "basic_block",
    "bottleneck_block",
    "first_filters",
    "grouped_block",
    "lenet",
    "random_affine",
    "resnet",
    "resnet18",
    "resnet50",
    "resnext50",
]

"""ResNet and ResNeXt: blocks of convolutions that correct their input (Diehl sec. 1.6, Zhao sec. 8).

A block is a function (inputs, outputs, stride) → module; a network is a stem, stages of blocks, a mean over the
picture and a linear layer. No convolution has a bias: the batch normalisation behind it would take it away.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from torch import nn

from parnassus.layers.activations import relu
from parnassus.layers.classifier import Classifier
from parnassus.layers.residual import Residual

Block: TypeAlias = Callable[[int, int, int], nn.Module]
"""(input channels, output channels, stride) to a block."""


def normalised_convolution(inputs: int, outputs: int, size: int, *, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """A convolution that keeps the picture's size but for the stride, then batch normalisation by channel.

    With g groups each output sees inputs/g channels: inputs · outputs · size²/g weights.
    """
    convolution = nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, groups=groups, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs))


def matching_shortcut(inputs: int, outputs: int, stride: int) -> nn.Module | None:
    """A 1×1 convolution where the block changes channels or size, else none: the identity (Diehl sec. 1.6)."""
    return None if inputs == outputs and stride == 1 else normalised_convolution(inputs, outputs, 1, stride=stride)


def basic_block(inputs: int, outputs: int, stride: int = 1) -> Residual:
    """ReLU(s(x) + BN C₃ₓ₃ ReLU(BN C₃ₓ₃ x)): the block of ResNet-18 and 34 (Zhao sec. 8)."""
    body = nn.Sequential(
        *normalised_convolution(inputs, outputs, 3, stride=stride),
        nn.ReLU(),
        *normalised_convolution(outputs, outputs, 3),
    )
    return Residual(body, matching_shortcut(inputs, outputs, stride), activation=relu)


def bottleneck_block(inputs: int, outputs: int, stride: int = 1) -> Residual:
    """Narrow to a quarter by 1×1, work at 3×3, widen by 1×1: the block of ResNet-50 (Diehl sec. 1.6).

        y = ReLU(s(x) + BN C₁ₓ₁ ReLU(BN C₃ₓ₃ ReLU(BN C₁ₓ₁ x)))

    The excerpt has lost everything between its first convolution and the last normalisation. Its stride stands in the
    first convolution, as here; torchvision has it in the second.
    """
    filters = _share(outputs, 4)
    body = nn.Sequential(
        *normalised_convolution(inputs, filters, 1, stride=stride),
        nn.ReLU(),
        *normalised_convolution(filters, filters, 3),
        nn.ReLU(),
        *normalised_convolution(filters, outputs, 1),
    )
    return Residual(body, matching_shortcut(inputs, outputs, stride), activation=relu)


def grouped_block(inputs: int, outputs: int, stride: int = 1, *, groups: int = 32) -> Residual:
    """The bottleneck of ResNeXt: half the channels inside, their 3×3 convolution split into groups (Zhao sec. 8)."""
    width = _share(outputs, 2)
    if width % groups:
        raise ValueError(f"groups must divide half the outputs; got outputs={outputs}, groups={groups}")
    body = nn.Sequential(
        *normalised_convolution(inputs, width, 1),
        nn.ReLU(),
        *normalised_convolution(width, width, 3, stride=stride, groups=groups),
        nn.ReLU(),
        *normalised_convolution(width, outputs, 1),
    )
    return Residual(body, matching_shortcut(inputs, outputs, stride), activation=relu)


def photo_stem(channels: int, width: int) -> nn.Sequential:
    """7×7 with stride 2, then 3×3 maxima with stride 2: a photograph to a sixteenth of its pixels (Zhao sec. 8)."""
    return nn.Sequential(
        *normalised_convolution(channels, width, 7, stride=2), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1)
    )


def small_stem(channels: int, width: int) -> nn.Sequential:
    """3×3 with stride 1, for pictures of a few pixels."""
    return nn.Sequential(*normalised_convolution(channels, width, 3), nn.ReLU())


def resnet(
    stem: nn.Module,
    classes: int,
    *,
    block: Block,
    counts: Sequence[int],
    widths: Sequence[int],
    inputs: int = 64,
) -> Classifier:
    """Stages of `counts` blocks at `widths` channels behind a stem of `inputs` channels (Diehl sec. 1.6, Zhao sec. 8).

    From the second stage on, the first block of each halves height and width.
    """
    if len(counts) != len(widths) or min(counts, default=0) < 1:
        raise ValueError(
            f"each stage needs a width and at least one block; got counts={tuple(counts)}, widths={tuple(widths)}"
        )
    blocks: list[nn.Module] = []
    for stage, (count, width) in enumerate(zip(counts, widths, strict=True)):
        for index in range(count):
            blocks.append(block(inputs, width, 2 if stage > 0 and index == 0 else 1))
            inputs = width
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes)]
    return Classifier(nn.Sequential(stem, *blocks, *head))


def resnet18(classes: int = 1_000, *, channels: int = 3) -> Classifier:
    """ResNet-18: 2, 2, 2, 2 basic blocks; 11,689,512 parameters with 1,000 classes (Zhao sec. 8)."""
    return resnet(photo_stem(channels, 64), classes, block=basic_block, counts=(2, 2, 2, 2), widths=(64, 128, 256, 512))


def resnet50(classes: int = 1_000, *, channels: int = 3) -> Classifier:
    """ResNet-50: 3, 4, 6, 3 bottleneck blocks; 25,557,032 parameters with 1,000 classes (Diehl sec. 1.6)."""
    return resnet(
        photo_stem(channels, 64), classes, block=bottleneck_block, counts=(3, 4, 6, 3), widths=(256, 512, 1024, 2048)
    )


def resnext50(classes: int = 1_000, *, channels: int = 3, groups: int = 32) -> Classifier:
    """ResNeXt-50: ResNet-50 with grouped blocks; 25,028,904 parameters with 1,000 classes (Zhao sec. 8)."""
    return resnet(
        photo_stem(channels, 64),
        classes,
        block=partial(grouped_block, groups=groups),
        counts=(3, 4, 6, 3),
        widths=(256, 512, 1024, 2048),
    )


def _share(outputs: int, parts: int) -> int:
    if outputs % parts:
        raise ValueError(f"the outputs of this block must be a multiple of {parts}; got outputs={outputs}")
    return outputs // parts

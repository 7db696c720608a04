"""ResNet and ResNeXt: residual networks of convolutions (Diehl sec. 1.6, Zhao sec. 8).

A block is a function (inputs, outputs, stride) → module; a network is a stem, stages of blocks, global average pooling
and a linear layer. Convolutions have no bias, because the batch normalisation after them would cancel it.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from torch import nn

from parnassus.layers.activations import relu
from parnassus.layers.classifier import Classifier
from parnassus.layers.residual import Residual

Block: TypeAlias = Callable[[int, int, int], nn.Module]
"""From (input channels, output channels, stride) to a block."""


def conv_batch_norm(inputs: int, outputs: int, size: int, *, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """A convolution with "same" padding, then batch normalisation.

    With g groups each output depends on inputs/g channels: inputs · outputs · size²/g weights.
    """
    convolution = nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, groups=groups, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs))


def matching_shortcut(inputs: int, outputs: int, stride: int) -> nn.Module | None:
    """A 1×1 convolution if the block changes channels or size, else None for the identity (Diehl sec. 1.6)."""
    return None if inputs == outputs and stride == 1 else conv_batch_norm(inputs, outputs, 1, stride=stride)


def basic_block(inputs: int, outputs: int, stride: int = 1) -> Residual:
    """ReLU(s(x) + BN C₃ₓ₃ ReLU(BN C₃ₓ₃ x)): the block of ResNet-18 and 34 (Zhao sec. 8)."""
    body = nn.Sequential(
        *conv_batch_norm(inputs, outputs, 3, stride=stride),
        nn.ReLU(),
        *conv_batch_norm(outputs, outputs, 3),
    )
    return Residual(body, matching_shortcut(inputs, outputs, stride), activation=relu)


def bottleneck_block(inputs: int, outputs: int, stride: int = 1) -> Residual:
    """1×1 to a quarter of the channels, 3×3, 1×1 back: the block of ResNet-50 (Diehl sec. 1.6).

        y = ReLU(s(x) + BN C₁ₓ₁ ReLU(BN C₃ₓ₃ ReLU(BN C₁ₓ₁ x)))

    The printed excerpt lacks everything between its first convolution and the last normalisation. The stride is in the
    first convolution, as in the text; torchvision has it in the second.
    """
    filters = _divide(outputs, 4)
    body = nn.Sequential(
        *conv_batch_norm(inputs, filters, 1, stride=stride),
        nn.ReLU(),
        *conv_batch_norm(filters, filters, 3),
        nn.ReLU(),
        *conv_batch_norm(filters, outputs, 1),
    )
    return Residual(body, matching_shortcut(inputs, outputs, stride), activation=relu)


def grouped_block(inputs: int, outputs: int, stride: int = 1, *, groups: int = 32) -> Residual:
    """The bottleneck block of ResNeXt: half the channels inside, grouped 3×3 convolution (Zhao sec. 8)."""
    width = _divide(outputs, 2)
    if width % groups:
        raise ValueError(f"groups must divide outputs / 2; got outputs={outputs}, groups={groups}")
    body = nn.Sequential(
        *conv_batch_norm(inputs, width, 1),
        nn.ReLU(),
        *conv_batch_norm(width, width, 3, stride=stride, groups=groups),
        nn.ReLU(),
        *conv_batch_norm(width, outputs, 1),
    )
    return Residual(body, matching_shortcut(inputs, outputs, stride), activation=relu)


def imagenet_stem(channels: int, width: int) -> nn.Sequential:
    """7×7 convolution with stride 2, then 3×3 maximum pooling with stride 2 (Zhao sec. 8)."""
    return nn.Sequential(
        *conv_batch_norm(channels, width, 7, stride=2), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1)
    )


def small_stem(channels: int, width: int) -> nn.Sequential:
    """3×3 convolution with stride 1, for small images."""
    return nn.Sequential(*conv_batch_norm(channels, width, 3), nn.ReLU())


def resnet(
    stem: nn.Module,
    classes: int,
    *,
    block: Block,
    counts: Sequence[int],
    widths: Sequence[int],
    inputs: int = 64,
) -> Classifier:
    """Stages of `counts` blocks with `widths` channels after a stem of `inputs` channels (Diehl sec. 1.6, Zhao sec. 8).

    The first block of every stage but the first halves height and width.
    """
    if len(counts) != len(widths) or min(counts, default=0) < 1:
        raise ValueError(
            "counts and widths must have one entry per stage, counts at least 1; "
            f"got counts={tuple(counts)}, widths={tuple(widths)}"
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
    return resnet(
        imagenet_stem(channels, 64), classes, block=basic_block, counts=(2, 2, 2, 2), widths=(64, 128, 256, 512)
    )


def resnet50(classes: int = 1_000, *, channels: int = 3) -> Classifier:
    """ResNet-50: 3, 4, 6, 3 bottleneck blocks; 25,557,032 parameters with 1,000 classes (Diehl sec. 1.6)."""
    return resnet(
        imagenet_stem(channels, 64), classes, block=bottleneck_block, counts=(3, 4, 6, 3), widths=(256, 512, 1024, 2048)
    )


def resnext50(classes: int = 1_000, *, channels: int = 3, groups: int = 32) -> Classifier:
    """ResNeXt-50: ResNet-50 with grouped blocks; 25,028,904 parameters with 1,000 classes (Zhao sec. 8)."""
    return resnet(
        imagenet_stem(channels, 64),
        classes,
        block=partial(grouped_block, groups=groups),
        counts=(3, 4, 6, 3),
        widths=(256, 512, 1024, 2048),
    )


def _divide(outputs: int, divisor: int) -> int:
    if outputs % divisor:
        raise ValueError(f"outputs must be a multiple of {divisor}; got outputs={outputs}")
    return outputs // divisor

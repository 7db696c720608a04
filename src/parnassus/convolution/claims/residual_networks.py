"""Claims about residual convolutional networks (Diehl sec. 1.6, Zhao sec. 8)."""

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, runs
from parnassus.convolution.residual import (
    bottleneck_block,
    conv_batch_norm,
    grouped_block,
    resnet18,
    resnet50,
    resnext50,
)
from parnassus.layers.activations import relu
from parnassus.layers.dense import count_parameters
from parnassus.layers.residual import Residual


def receptive_field_size(block: nn.Module, channels: int) -> Tensor:
    """Number of pixels of a 7×7 image that the central output depends on."""
    x = torch.randn(1, channels, 7, 7, generator=torch.Generator().manual_seed(0), requires_grad=True)
    (gradient,) = torch.autograd.grad(block.eval()(x)[0, :, 3, 3].sum(), x)
    return (gradient[0].abs().amax(0) > 0).sum()


@claim("D1.6.5", "Z8.5")
def residual_networks_have_their_published_size() -> Evidence:
    """With 1,000 classes ResNet-18 has 11,689,512 parameters, ResNet-50 25,557,032, ResNeXt-50 25,028,904.

    Keras keeps the redundant biases before batch normalisation, one per output channel: 25,583,592 (Diehl sec. 1.6).
    """
    eighteen, fifty, grouped = resnet18(), resnet50(), resnext50()
    channels = sum(each.out_channels for each in fifty.modules() if isinstance(each, nn.Conv2d))
    return all_of(
        resnet_18=close(count_parameters(eighteen), 11_689_512),
        resnet_50=close(count_parameters(fifty), 25_557_032),
        resnext_50=close(count_parameters(grouped), 25_028_904),
        resnet_50_of_keras=close(count_parameters(fifty) + channels, 25_583_592),
    )


@claim("D1.6.5")
def the_identity_shortcut_needs_four_times_the_filters() -> Evidence:
    """A bottleneck of f filters outputs 4f channels: the identity needs an input with 4f channels (Diehl sec. 1.6)."""
    torch.manual_seed(0)
    same, wider, strided = bottleneck_block(64, 64), bottleneck_block(16, 64), bottleneck_block(64, 64, 2)
    x = torch.randn(2, 64, 8, 8)
    inner = [each.out_channels for each in same.body.modules() if isinstance(each, nn.Conv2d)]
    return all_of(
        channels=close(torch.tensor(inner), torch.tensor([16, 16, 64])),
        identity=close(same.shortcut(x), x),
        projected=close(torch.tensor(wider.shortcut(x[:, :16]).shape), torch.tensor([2, 64, 8, 8])),
        strided=close(torch.tensor(strided(x).shape), torch.tensor([2, 64, 4, 4])),
        receptive_field=close(receptive_field_size(same, 64), 9),
    )


@erratum(
    "D1.6.5", printed="_1_conv, then at once _3_bn", right="BN, ReLU, 3×3, BN, ReLU, 1×1 to 4·filters between them"
)
def the_printed_bottleneck_lacks_its_middle() -> Correction:
    """As printed, the main path has `filters` channels and the shortcut 4·filters: they do not add (Diehl sec. 1.6)."""
    torch.manual_seed(0)
    x = torch.randn(2, 32, 8, 8)
    shortcut = conv_batch_norm(32, 64, 1)
    printed = Residual(conv_batch_norm(32, 16, 1), shortcut, activation=relu)
    same_width = Residual(conv_batch_norm(32, 32, 1), activation=relu)
    return Correction(
        printed=all_of(
            adds_up=runs(lambda: printed(x), unless=ValueError),
            receptive_field=close(receptive_field_size(same_width, 32), 9),
        ),
        corrected=all_of(
            adds_up=runs(lambda: bottleneck_block(32, 64)(x), unless=ValueError),
            receptive_field=close(receptive_field_size(bottleneck_block(32, 64), 32), 9),
        ),
    )


@claim("Z8.5")
def groups_reduce_the_cost() -> Evidence:
    """With g groups a 3×3 convolution has 9 c_i c_o/g weights; a block twice as wide costs the same (Zhao sec. 8)."""
    weights = [count_parameters(conv_batch_norm(128, 128, 3, groups=g)) - 256 for g in (1, 4, 32)]
    plain, grouped = count_parameters(bottleneck_block(256, 256)), count_parameters(grouped_block(256, 256))
    return all_of(
        weights=close(torch.tensor(weights), 128 * 128 * 9 / torch.tensor([1.0, 4.0, 32.0])),
        double_width_at_equal_cost=close(grouped / plain, 1.0, atol=0.02),
    )

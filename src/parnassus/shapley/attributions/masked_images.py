"""Value functions of image models whose players are groups of pixels (book sec. 17.0).

Groups are a label map (height, width) from each pixel to its group, such as `tiles` or `superpixels`. Missing groups
are replaced from images of the same shape: samples of the data (v is then a mean over them), their mean, or a blurred
copy of the explained image.
"""

from math import ceil

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from parnassus.errors import check_positive
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.model_adapters import Model, as_model


def masked_images(
    predictor: object,
    replacements: Float[Tensor, "others channels height width"],
    labels: Int[Tensor, "rows columns"],
) -> InterventionalValue:
    """The value function of a model of images; missing groups of pixels come from `replacements`.

    `explain(masked_images(…), images.flatten(1), budget)` explains images (rows, channels, height, width).
    """
    if replacements.shape[2:] != labels.shape:
        raise ValueError(
            f"labels and images must have one size; got {tuple(labels.shape)} and {tuple(replacements.shape[2:])}"
        )
    channels, height, width = replacements.shape[1:]
    groups = pixel_groups(labels, channels).to(replacements.device)
    return InterventionalValue(flat_image_model(predictor, (channels, height, width)), replacements.flatten(1), groups)


def flat_image_model(predictor: object, shape: tuple[int, int, int]) -> Model:
    """A model of images (rows, channels, height, width) as a model of flattened images."""
    model = as_model(predictor)
    return lambda x: model(x.unflatten(1, shape))


def pixel_groups(labels: Int[Tensor, "height width"], channels: int) -> Bool[Tensor, "players features"]:
    """Which of channels · height · width features belong to each group; a pixel's channels share its group."""
    present = labels.unique().tolist()
    if present != list(range(len(present))):
        raise ValueError(f"groups must be numbered 0, 1, 2, … without gaps; got {present[:20]}")
    return (labels.flatten() == torch.arange(len(present), device=labels.device)[:, None]).repeat(1, channels)


def expand_group_values(
    values: Float[Tensor, "*rows players"], labels: Int[Tensor, "height width"]
) -> Float[Tensor, "*rows height width"]:
    """Values of groups as images: every pixel has the value of its group."""
    return values[..., labels.to(values.device)]


def gaussian_blur(
    images: Float[Tensor, "rows channels height width"], sigma: float
) -> Float[Tensor, "rows channels height width"]:
    """Convolution with a Gaussian of standard deviation `sigma` pixels, with replicated edges."""
    check_positive(sigma=sigma)
    radius = ceil(3 * sigma)
    weights = torch.exp(-0.5 * (torch.arange(-radius, radius + 1) / sigma).square()).to(images)
    weights = weights / weights.sum()
    flat = images.flatten(0, 1)[:, None]
    flat = functional.conv2d(functional.pad(flat, (radius, radius, 0, 0), mode="replicate"), weights[None, None, None])
    flat = functional.conv2d(
        functional.pad(flat, (0, 0, radius, radius), mode="replicate"), weights[None, None, :, None]
    )
    return flat.view_as(images)

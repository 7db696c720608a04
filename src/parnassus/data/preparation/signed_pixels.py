"""Images with pixels in [−1, 1], for diffusion models and GANs."""

from parnassus.data.loading import check_labelled_images
from parnassus.data.splits import Dataset


def signed_pixels(dataset: Dataset) -> Dataset:
    """Pixels rescaled from [0, 1] to [−1, 1]; labels are kept."""
    return dataset.map(lambda x: 2 * x - 1)


def signed_labelled_images(dataset: Dataset) -> Dataset:
    """`signed_pixels` of a data set that must consist of images with class labels."""
    check_labelled_images(dataset)
    return signed_pixels(dataset)

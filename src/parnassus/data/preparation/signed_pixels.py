"""Images with pixels in [−1, 1], for diffusion models and GANs."""

from parnassus.data.errors import DataError
from parnassus.data.splits import Dataset


def signed_pixels(dataset: Dataset) -> Dataset:
    """Pixels rescaled from [0, 1] to [−1, 1]; labels are kept."""
    return dataset.map(lambda x: 2 * x - 1)


def signed_labelled_images(dataset: Dataset) -> Dataset:
    """`signed_pixels` of a data set that must consist of images with class labels."""
    if not dataset.classes or len(dataset.shape) != 3:
        raise DataError(
            f"{dataset.name} must consist of images with class labels; its examples have shape {dataset.shape}, "
            f"with {len(dataset.classes)} classes"
        )
    return signed_pixels(dataset)

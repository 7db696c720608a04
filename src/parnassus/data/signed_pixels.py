"""Images with pixels in [−1, 1], as diffusion models and GANs use them."""

from dataclasses import replace

from parnassus.data.errors import DataError
from parnassus.data.splits import Dataset, Split


def signed_pixels(dataset: Dataset) -> Dataset:
    """Pixels rescaled from [0, 1] to [−1, 1]; labels are kept."""
    train, test = (Split(2 * split.x - 1, split.y) for split in (dataset.train, dataset.test))
    return replace(dataset, train=train, test=test)


def signed_labelled_images(dataset: Dataset) -> Dataset:
    """The same for a data set that must consist of images with class labels."""
    if not dataset.classes or len(dataset.shape) != 3:
        raise DataError(
            f"{dataset.name} must consist of images with class labels; its examples have shape {dataset.shape}, "
            f"with {len(dataset.classes)} classes"
        )
    return signed_pixels(dataset)

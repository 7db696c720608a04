"""A subset of MNIST that is included in the package: 10,000 train and 2,000 test images, 1,000 and 200 per digit.

The file is four idx arrays one after the other (train images, train labels, test images, test labels), compressed with
LZMA. `make_mnist_mini` writes it from the full data set; its output is byte-identical in every call.
"""

import lzma
from importlib.resources import files
from pathlib import Path

import torch

from parnassus.data.errors import DataError
from parnassus.data.files.idx import encode_idx, split_idx
from parnassus.data.splits import Dataset, Split, first_of_each_class

NAME = "mnist_mini.idx.xz"


def mnist_mini() -> Dataset:
    """12,000 MNIST images of 28×28 pixels in [0, 1], exactly balanced; nothing is downloaded."""
    content = lzma.decompress(files("parnassus.data.built_in").joinpath(NAME).read_bytes())
    arrays = []
    while content:
        array, content = split_idx(content, NAME)
        arrays.append(array)
    train_images, train_labels, test_images, test_labels = arrays
    return Dataset(
        name="mnist_mini",
        train=Split(train_images[:, None].float() / 255, train_labels.long()),
        test=Split(test_images[:, None].float() / 255, test_labels.long()),
        classes=tuple("0123456789"),
        about="Extract of MNIST (Y. LeCun, C. Cortes, C. J. C. Burges), CC BY-SA 3.0",
    )


def make_mnist_mini(dataset: Dataset, path: Path, *, train: int = 1_000, test: int = 200) -> None:
    """Write the first `train` and `test` images of each class of the two splits, in their original order."""
    parts = []
    for split, count in ((dataset.train, train), (dataset.test, test)):
        if split.y is None:
            raise DataError(f"{dataset.name} must have labels, to select a balanced subset; it has none.")
        rows = first_of_each_class(split.y, count)
        parts += [(split.x[rows, 0] * 255).round().to(torch.uint8), split.y[rows].to(torch.uint8)]
    content = b"".join(encode_idx(part) for part in parts)
    path.write_bytes(lzma.compress(content, preset=9))

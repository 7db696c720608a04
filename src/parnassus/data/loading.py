"""Open data by the name of a built-in set or by the path of a file or folder."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch

from parnassus.data.built_in import toy
from parnassus.data.built_in.embedded import breast_cancer, diabetes, iris, linnerud, load_digits, wine
from parnassus.data.built_in.mnist_mini import mnist_mini
from parnassus.data.built_in.vowels import vowels
from parnassus.data.downloads.images import cifar10, fashion_mnist, membrane, mnist
from parnassus.data.downloads.texts import TextDataset, moby_dick, names, pydoc_text, text_file, tiny_shakespeare
from parnassus.data.errors import DataError
from parnassus.data.files.arrays import array_file
from parnassus.data.files.image_folder import image_folder
from parnassus.data.files.sound import SoundDataset, spoken_digits, wav_folder
from parnassus.data.files.tables import csv_file
from parnassus.data.splits import Dataset, Split
from parnassus.notices import notify

Loaded = TypeVar("Loaded")
LUMA = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in the brightness of a pixel (ITU-R BT.601)."""


def open_data(spec: str | Path, *, size: tuple[int, int] | int | None = None) -> Dataset:
    """A data set by name (`digits`, `mnist`, `moons`, …), an image folder by class, or a .npz, .npy or .csv file.

    `size`, (height, width) or the side of a square, resizes the images of a folder.
    """
    loader = _find_loader(spec, DATASETS)
    if loader is not None:
        return loader()
    path = _check_path(spec, DATASETS, "an image folder, a .npz, .npy or .csv file")
    if path.is_dir():
        return check_parts(image_folder(path, size=(size, size) if isinstance(size, int) else size))
    suffix = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    readers = {"csv": csv_file, "tsv": csv_file, "npy": array_file, "npz": array_file}
    if suffix not in readers:
        raise DataError(f"{path} must be an image folder or end in .npz, .npy or .csv.")
    return check_parts(readers[suffix](path))


def check_parts(dataset: Dataset) -> Dataset:
    """The data set; raises a DataError unless it has examples for training and for testing."""
    if not len(dataset.train) or not len(dataset.test):
        raise DataError(
            f"{dataset.name} must have examples for training and for testing; it has {len(dataset.train)} and "
            f"{len(dataset.test)}: add examples, at least three in total."
        )
    return dataset


def open_images(spec: str | Path, size: int | None = None) -> Dataset:
    """A data set of images; `size` resizes the images of a folder to squares."""
    data = open_data(spec, size=size)
    if len(data.shape) != 3:
        raise DataError(f"{spec} must contain images; its examples have shape {data.shape}.")
    return data


def open_grey_images(spec: str | Path, size: int | None = None) -> Dataset:
    """A data set of images with one channel, for models of black and white pixels; colour images are converted."""
    data = open_images(spec, size)
    if data.shape[0] == 1:
        return data
    if data.shape[0] != 3:
        raise DataError(f"{spec} must contain grey or colour images; its examples have shape {data.shape}.")
    notify(f"{data.name}: the colour images are converted to grey, since the model is one of black and white pixels")
    weights = torch.tensor(LUMA)[:, None, None]
    return data.map(lambda x: (x * weights).sum(1, keepdim=True))


def open_labelled_images(spec: str | Path, size: int | None = None) -> Dataset:
    """A data set of images with class labels; `size` resizes the images of a folder to squares."""
    data = open_data(spec, size=size)
    check_labelled_images(data)
    return data


def check_labelled_images(dataset: Dataset) -> None:
    """Raise a DataError unless the data set consists of images with class labels."""
    if not dataset.classes or len(dataset.shape) != 3:
        raise DataError(
            f"{dataset.name} must consist of images with class labels; its examples have shape {dataset.shape}, "
            f"with {len(dataset.classes)} classes"
        )


def check_target(dataset: Dataset) -> None:
    """Raise a DataError unless the target of the training examples has at least two values."""
    y = dataset.train.y
    if y is None or bool((y != y[:1]).any()):
        return
    only = dataset.classes[int(y[0])] if dataset.classes else f"{float(y.flatten()[0]):g}"
    name = f"the target {dataset.target!r}" if dataset.target else "the target"
    raise DataError(
        f"{name} of {dataset.name} must have at least two values among the training examples; all are {only}; "
        "another column of a table is chosen by --target."
    )


def open_curve(spec: str | Path) -> Dataset:
    """A table of two numeric columns, the input x and the target y, such as a .csv file."""
    data = open_data(spec)
    if data.shape != (1,) or data.train.y is None or not data.train.y.is_floating_point():
        raise DataError(f"{spec} must be a table of two numeric columns, x and the target y.")
    return data


def open_text(spec: str | Path) -> TextDataset:
    """A text by name (`pydoc`, `tiny_shakespeare`, `moby_dick`, `names`), or your own UTF-8 file."""
    loader = _find_loader(spec, TEXTS)
    return text_file(_check_path(spec, TEXTS, "a text file")) if loader is None else loader()


def open_sounds(spec: str | Path) -> SoundDataset:
    """Recordings by name (`vowels`, `spoken_digits`), or a folder with one subfolder of WAV files per class."""
    loader = _find_loader(spec, SOUNDS)
    return wav_folder(_check_path(spec, SOUNDS, "a folder of WAV files")) if loader is None else loader()


def toy_dataset(name: str, generator: Callable[..., Split], *, train: int = 2_000, test: int = 500) -> Dataset:
    """A toy data set; its test rows are generated with a different seed."""
    splits = generator(train, seed=0), generator(test, seed=1)
    labels = splits[0].y
    has_classes = labels is not None and not labels.is_floating_point()
    classes = tuple(str(label) for label in labels.unique().tolist()) if labels is not None and has_classes else ()
    return Dataset(name, *splits, classes)


def _find_loader(spec: str | Path, known: Mapping[str, Callable[[], Loaded]]) -> Callable[[], Loaded] | None:
    return known.get(str(spec).lower().replace("-", "_"))


def _check_path(spec: str | Path, known: Mapping[str, object], kinds: str) -> Path:
    path = Path(spec).expanduser()
    if path.exists():
        return path
    if len(path.parts) > 1 or path.suffix:
        raise DataError(f"{path} does not exist: give the path of {kinds}, or one of {', '.join(known)}.")
    matches = get_close_matches(str(spec).lower().replace("-", "_"), known, n=3)
    hint = f"did you mean {' or '.join(matches)}?" if matches else f"available: {', '.join(known)};"
    raise DataError(f"unknown data set {spec!s}: {hint} a path must be that of {kinds}.")


TOYS: Mapping[str, Callable[..., Split]] = {
    "moons": toy.moons,
    "rings": toy.rings,
    "spirals": toy.spirals,
    "eight_gaussians": toy.eight_gaussians,
    "checkerboard": toy.checkerboard,
    "swiss_roll": toy.swiss_roll,
    "sines": toy.sines,
}
DATASETS: Mapping[str, Callable[[], Dataset]] = {
    "digits": load_digits,
    "mnist_mini": mnist_mini,
    "mnist": mnist,
    "fashion_mnist": fashion_mnist,
    "cifar10": cifar10,
    "membrane": membrane,
    "iris": iris,
    "wine": wine,
    "breast_cancer": breast_cancer,
    "diabetes": diabetes,
    "linnerud": linnerud,
    **{name: partial(toy_dataset, name, generator) for name, generator in TOYS.items()},
}
SOUNDS: Mapping[str, Callable[[], SoundDataset]] = {"vowels": vowels, "spoken_digits": spoken_digits}
TEXTS: Mapping[str, Callable[[], TextDataset]] = {
    "pydoc": pydoc_text,
    "tiny_shakespeare": tiny_shakespeare,
    "moby_dick": moby_dick,
    "names": names,
}

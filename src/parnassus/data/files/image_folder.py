"""User image folders: one folder per class, or one folder of images without classes."""

import struct
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from parnassus.data.errors import DataError
from parnassus.data.preparation.duplicates import notify_duplicates
from parnassus.data.preparation.partition import mix_sorted_classes, train_test_dataset
from parnassus.data.splits import Dataset, Split

TRAIN_NAMES = ("train", "training")
TEST_NAMES = ("test", "testing", "val", "valid", "validation")
GREY_MODES = ("1", "L", "LA")
DEEP_MODES = {"I;16": 65_535.0, "I;16L": 65_535.0, "I;16B": 65_535.0, "I;16N": 65_535.0, "I": 65_535.0, "F": 1.0}
"""Modes of grey images with more than 8 bits per pixel, with the value of white."""


def image_folder(
    folder: Path | str, *, size: tuple[int, int] | None = None, test: float = 0.2, seed: int = 0
) -> Dataset:
    """Images in [0, 1]; one channel if all are grey, three otherwise.

    Each subfolder is a class. If there are subfolders named train and test, the classes are in these and the split is
    kept; otherwise the fraction `test` of every class is held out. Images must have one size, unless they are resized
    to `size` = (height, width).
    """
    folder = Path(folder)
    subfolders = {path.name.lower(): path for path in _folders(folder)}
    train_folder, test_folder = (_first(subfolders, names) for names in (TRAIN_NAMES, TEST_NAMES))
    if train_folder is not None and test_folder is not None:
        return _read_given_split(folder.name, train_folder, test_folder, size, seed)
    paths, labels, classes = _list_labelled_files(folder)
    x = _read_stack(paths, size)
    dataset = train_test_dataset(x, labels, name=folder.name, test=round(test * len(x)), classes=classes, seed=seed)
    notify_duplicates(dataset)
    return mix_sorted_classes(dataset, seed)


def read_image(
    path: Path | BytesIO, *, size: tuple[int, int] | None = None, channels: int | None = None
) -> Float[Tensor, "channels height width"]:
    """An image in [0, 1] with 1 channel (grey) or 3 (RGB); by default as stored in the file."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    if channels not in (None, 1, 3):
        raise DataError(f"an image file can be read with 1 or 3 channels; got channels={channels}")
    try:
        with Image.open(path) as stored:
            image = ImageOps.exif_transpose(stored)  # photographs are stored with their orientation
            largest = DEEP_MODES.get(image.mode)  # of more than 8 bits per pixel, which Pillow would clip at 255
            is_grey = image.mode in GREY_MODES if channels is None else channels == 1
            converted = image.convert("L" if is_grey else "RGB") if largest is None else image
            if largest is not None:
                check_range(path, np.array(image), largest)
            if size is not None:
                converted = converted.resize((size[1], size[0]), Image.Resampling.LANCZOS)
            pixels = np.array(converted, dtype=np.float32) / (largest or 255)
    except UnidentifiedImageError as error:
        raise DataError(f"{path} is not an image that Pillow can read: remove it from the folder.") from error
    except (OSError, SyntaxError, ValueError, struct.error, Image.DecompressionBombError) as error:
        raise DataError(f"{path} is a damaged image ({error}).") from error
    loaded = torch.from_numpy(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1).copy())
    return loaded.clamp(0, 1).expand(channels or len(loaded), -1, -1)


def check_range(path: Path | BytesIO, pixels: NDArray[np.generic], largest: float) -> None:
    """Raise a DataError for an image of 16 or 32 bits per pixel with values outside its range."""
    low, high = float(pixels.min()), float(pixels.max())
    if not 0 <= low <= high <= largest:
        raise DataError(f"{path} must have pixels from 0 to {largest:g}; they are from {low:g} to {high:g}.")


def _read_given_split(
    name: str, train_folder: Path, test_folder: Path, size: tuple[int, int] | None, seed: int
) -> Dataset:
    train_paths, train_labels, classes = _list_labelled_files(train_folder)
    test_paths, test_labels, test_classes = _list_labelled_files(test_folder)
    if classes != test_classes:
        unmatched = sorted(set(classes) ^ set(test_classes))
        raise DataError(
            f"{train_folder} and {test_folder} must have the same classes; only one has {', '.join(unmatched)}."
        )
    x = _read_stack(train_paths + test_paths, size)
    train, test = x[: len(train_paths)], x[len(train_paths) :]
    dataset = Dataset(name, Split(train, train_labels), Split(test, test_labels), classes)
    notify_duplicates(dataset)
    return mix_sorted_classes(dataset, seed)


def _list_labelled_files(folder: Path) -> tuple[list[Path], Tensor | None, tuple[str, ...]]:
    """Image files, their labels and the classes; without subfolders, the files of `folder` without labels."""
    classes = _folders(folder)
    if not classes:
        return _files(folder), None, ()
    found = [(path, label) for label, subfolder in enumerate(classes) for path in _files(subfolder)]
    return [path for path, _ in found], torch.tensor([label for _, label in found]), tuple(c.name for c in classes)


def _read_stack(paths: list[Path], size: tuple[int, int] | None) -> Float[Tensor, "count channels height width"]:
    images = [read_image(path, size=size) for path in paths]
    for path, image in zip(paths, images, strict=True):
        if image.shape[1:] != images[0].shape[1:]:
            first, other = ("×".join(map(str, each.shape[1:])) for each in (images[0], image))
            raise DataError(
                f"images must have one size: {paths[0]} has {first} pixels and {path} {other}; "
                "resize them with --image-size, or size=(height, width)."
            )
    channels = max(len(image) for image in images)
    return torch.stack([image.expand(channels, -1, -1) for image in images])


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def _files(folder: Path) -> list[Path]:
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    if not files:
        raise DataError(f"{folder} is empty: an image folder needs at least one image.")
    return files


def _first(subfolders: dict[str, Path], names: tuple[str, ...]) -> Path | None:
    return next((subfolders[name] for name in names if name in subfolders), None)

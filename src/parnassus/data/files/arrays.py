"""User arrays: NumPy's .npy and .npz files."""

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from parnassus.data.errors import DataError
from parnassus.data.files.tables import class_indices
from parnassus.data.preparation.duplicates import notify_duplicates
from parnassus.data.preparation.partition import mix_sorted_classes, train_test_dataset
from parnassus.data.splits import Dataset, Split
from parnassus.notices import notify

MAX_CLASS_NAMES = 10_000
EXAMPLE_NAMES = ("x", "images", "data", "features", "inputs", "arr_0")
TARGET_NAMES = ("y", "labels", "target", "label", "targets", "arr_1")
SCALES = {"uint8": 255, "uint16": 65_535}  # of pixels

Array = NDArray[np.generic]


def array_file(path: Path | str, *, test: float = 0.2, seed: int = 0) -> Dataset:
    """A .npy of examples, or a .npz with examples x and optional targets y, or with x_train, x_test, y_train, y_test.

    The examples may also be called images, data, features or inputs, the targets labels or target, and the parts
    train_images, …. Arrays of bytes or of 16-bit unsigned integers are pixels, scaled to [0, 1]; images may be grey
    without an axis of channels, or have channels last. Integers or texts as targets are classes.
    """
    path = Path(path)
    arrays = _arrays(path)
    examples, targets = _find(arrays, EXAMPLE_NAMES), _find(arrays, TARGET_NAMES)
    if examples is not None:
        x = _examples(arrays, examples, path)
        y, classes = _targets(arrays, targets, path)
        _check_lengths(path, examples, x, targets, y)
        dataset = train_test_dataset(x, y, name=path.stem, test=round(test * len(x)), classes=classes, seed=seed)
    else:
        dataset = _given_parts(arrays, path)
    notify_duplicates(dataset)
    return mix_sorted_classes(dataset, seed)


def _given_parts(arrays: Mapping[str, Array], path: Path) -> Dataset:
    """The training and test examples of separate arrays, whose targets have classes in common."""
    names = [_find(arrays, _names_of_part(EXAMPLE_NAMES, part)) for part in ("train", "test")]
    if None in names:
        raise DataError(
            f"{path} must contain x, or x_train and x_test; it contains {', '.join(sorted(arrays)) or 'nothing'}."
        )
    target_names = [_find(arrays, _names_of_part(TARGET_NAMES, part)) for part in ("train", "test")]
    x = [_examples(arrays, str(name), path) for name in names]
    if x[0].shape[1:] != x[1].shape[1:]:
        raise DataError(
            f"{path}: {names[0]} and {names[1]} must have examples of one shape; "
            f"got {tuple(x[0].shape[1:])} and {tuple(x[1].shape[1:])}."
        )
    if None in target_names:
        return Dataset(path.stem, Split(x[0]), Split(x[1]))
    parts = [_check_targets(arrays[str(name)], str(name), path) for name in target_names]
    if parts[0].shape[1:] != parts[1].shape[1:]:
        raise DataError(f"{path}: {target_names[0]} and {target_names[1]} must have targets of one shape.")
    y, classes = _encode_targets(np.concatenate(parts))
    split = y.split([len(part) for part in parts])
    for name, part, target_name, targets in zip(names, x, target_names, split, strict=True):
        _check_lengths(path, str(name), part, target_name, targets)
    return Dataset(path.stem, Split(x[0], split[0]), Split(x[1], split[1]), classes)


def _arrays(path: Path) -> dict[str, Array]:
    try:
        with path.open("rb") as file:  # np.load does not close a damaged file that it has opened
            content = np.load(file, allow_pickle=False)
            return {"x": content} if isinstance(content, np.ndarray) else dict(content)
    except ValueError as error:
        raise DataError(f"{path} contains Python objects or is damaged: save plain arrays of numbers.") from error
    except (OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is not a complete NumPy file ({error}).") from error


def _find(arrays: Mapping[str, Array], names: tuple[str, ...]) -> str | None:
    """The first of these names, in capitals or not, that an array has."""
    given = {name.lower(): name for name in arrays}
    return next((given[name] for name in names if name in given), None)


def _names_of_part(names: tuple[str, ...], part: str) -> tuple[str, ...]:
    return tuple(each for name in names for each in (f"{name}_{part}", f"{part}_{name}"))


def _examples(arrays: Mapping[str, Array], name: str, path: Path) -> Tensor:
    """Examples as numbers in single precision; pixels in [0, 1], with one axis for the channels before the others."""
    x = arrays[name]
    _check_numbers(x, name, path)
    examples = torch.from_numpy(x.astype(np.float32)) / SCALES.get(x.dtype.name, 1)
    is_image = examples.ndim in (3, 4)
    if is_image and x.dtype.name not in SCALES and 1 < float(x.max()) <= 255 and float(x.min()) >= 0:
        notify(f"{path.name}: {name} has values up to {float(x.max()):g}, which are divided by 255")
        examples = examples / 255
    if examples.ndim == 3:
        return examples[:, None]
    if examples.ndim == 4 and examples.shape[3] in (1, 3, 4) and examples.shape[1] not in (1, 3):
        examples = examples.permute(0, 3, 1, 2)
        if examples.shape[1] == 4:
            notify(f"{path.name}: the fourth channel of {name}, the opacity, is left out")
        return examples[:, :3].contiguous()
    return examples


def _targets(arrays: Mapping[str, Array], name: str | None, path: Path) -> tuple[Tensor | None, tuple[str, ...]]:
    return (None, ()) if name is None else _encode_targets(_check_targets(arrays[name], name, path))


def _encode_targets(y: Array) -> tuple[Tensor, tuple[str, ...]]:
    """Class indices and names for integers and texts, one number for each example; other targets as they are."""
    if y.ndim == 1 and y.dtype.kind != "f":
        distinct = len(np.unique(y))
        if distinct <= MAX_CLASS_NAMES:
            return class_indices(y.tolist()) if y.dtype.kind == "U" else class_indices(list(map(int, y.tolist())))
    targets = torch.from_numpy(y.astype(np.float32 if y.dtype.kind == "f" else np.int64))
    return targets[:, None] if targets.ndim == 1 and targets.is_floating_point() else targets, ()


def _check_targets(y: Array, name: str, path: Path) -> Array:
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.dtype.kind == "U" and y.ndim == 1 and y.size:
        return y
    _check_numbers(y, name, path)
    return y


def _check_numbers(array: Array, name: str, path: Path) -> None:
    if array.dtype.kind not in "biuf" or array.ndim == 0 or not array.size:
        raise DataError(f"{path}: {name} must be an array of numbers; it has type {array.dtype}, shape {array.shape}.")
    if not np.isfinite(array).all() or np.abs(array.astype(np.float64)).max() > np.finfo(np.float32).max:
        raise DataError(f"{path}: {name} contains NaN or infinite numbers.")


def _check_lengths(path: Path, x_name: str, x: Tensor, y_name: str | None, y: Tensor | None) -> None:
    if y is not None and len(y) != len(x):
        raise DataError(f"{path}: {x_name} has {len(x)} rows and {y_name} {len(y)}.")

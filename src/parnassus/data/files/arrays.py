"""User arrays: NumPy's .npy and .npz files."""

import zipfile
import zlib
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from parnassus.data.errors import DataError
from parnassus.data.preparation.partition import train_test_dataset
from parnassus.data.splits import Dataset, Split

MAX_CLASS_NAMES = 10_000


def array_file(path: Path | str, *, test: float = 0.2, seed: int = 0) -> Dataset:
    """A .npy of examples, or a .npz with x and optional y, or with x_train, x_test and optional y_train, y_test.

    Arrays of bytes are pixels, scaled to [0, 1]; images may have channels last or none. Integer y are classes.
    """
    path = Path(path)
    arrays = _arrays(path)
    if "x" in arrays:
        split = _split(arrays, "x", "y", path)
        classes = _class_names(split)
        return train_test_dataset(
            split.x, split.y, name=path.stem, test=round(test * len(split)), classes=classes, seed=seed
        )
    if {"x_train", "x_test"} <= arrays.keys():
        train, held_out = (_split(arrays, f"x_{part}", f"y_{part}", path) for part in ("train", "test"))
        return Dataset(path.stem, train, held_out, _class_names(train))
    raise DataError(
        f"{path} must contain x, or x_train and x_test; it contains {', '.join(sorted(arrays)) or 'nothing'}."
    )


def _arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    try:
        with path.open("rb") as file:  # np.load does not close a damaged file that it has opened
            content = np.load(file, allow_pickle=False)
            return {"x": content} if isinstance(content, np.ndarray) else dict(content)
    except ValueError as error:
        raise DataError(f"{path} contains Python objects or is damaged: save plain arrays of numbers.") from error
    except (OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is not a complete NumPy file ({error}).") from error


def _split(arrays: dict[str, NDArray[np.generic]], x_name: str, y_name: str, path: Path) -> Split:
    x, y = arrays[x_name], arrays.get(y_name)
    for name, array in ((x_name, x), (y_name, y)):
        if array is not None and (array.dtype.kind not in "biuf" or array.ndim == 0 or not array.size):
            raise DataError(
                f"{path}: {name} must be an array of numbers; it has type {array.dtype}, shape {array.shape}."
            )
        if array is not None and not np.isfinite(array).all():
            raise DataError(f"{path}: {name} contains NaN or infinite numbers.")
    if y is not None and len(y) != len(x):
        raise DataError(f"{path}: {x_name} has {len(x)} rows and {y_name} {len(y)}.")
    if y is not None and y.dtype.kind != "f" and y.ndim == 1 and int(y.min()) < 0:
        raise DataError(f"{path}: integers in {y_name} are class indices from 0; one is {int(y.min())}.")
    return Split(_examples(x), None if y is None else _targets(y))


def _examples(x: NDArray[np.generic]) -> Tensor:
    examples = torch.from_numpy(x.astype(np.float32)) / (255 if x.dtype == np.uint8 else 1)
    if examples.ndim == 4 and examples.shape[3] in (1, 3) and examples.shape[1] not in (1, 3):
        return examples.permute(0, 3, 1, 2).contiguous()
    return examples[:, None] if x.dtype == np.uint8 and examples.ndim == 3 else examples


def _targets(y: NDArray[np.generic]) -> Tensor:
    return torch.from_numpy(y.astype(np.float32 if y.dtype.kind == "f" else np.int64))


def _class_names(split: Split) -> tuple[str, ...]:
    """0, 1, 2, … if y contains class labels."""
    if split.y is None or split.y.is_floating_point() or split.y.ndim != 1:
        return ()
    count = int(split.y.max()) + 1
    return tuple(str(label) for label in range(count)) if count <= MAX_CLASS_NAMES else ()

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from parnassus.data import DataError, array_file, open_data
from parnassus.notices import pass_notices


def write_npz(tmp_path: Path, **arrays: NDArray[np.generic]) -> Path:
    path = tmp_path / "arrays.npz"
    with path.open("wb") as file:
        np.savez(file, allow_pickle=True, **arrays)
    return path


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((20, 9, 8), (1, 9, 8)), ((20, 9, 8, 3), (3, 9, 8)), ((20, 3, 9, 8), (3, 9, 8)), ((20, 7), (7,))],
)
def test_uint8_arrays_are_images(tmp_path: Path, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    data = open_data(write_npz(tmp_path, x=pixels, y=np.arange(20) % 4))
    assert data.shape == expected
    assert data.classes == ("0", "1", "2", "3")
    assert (len(data.train), len(data.test)) == (16, 4)
    assert float(data.train.x.max()) <= 1
    assert abs(float(torch.cat([data.train.x, data.test.x]).mean()) - pixels.mean() / 255) < 1e-5


def test_channels_last_are_transposed(tmp_path: Path) -> None:
    pixels = np.zeros((4, 5, 6, 3), dtype=np.float32)
    pixels[..., 2] = 1
    data = array_file(write_npz(tmp_path, x=pixels), test=0.0)
    assert data.train.x.mean((0, 2, 3)).tolist() == [0, 0, 1]


def test_given_splits_are_kept(tmp_path: Path) -> None:
    arrays = {
        "x_train": np.ones((6, 2)),
        "y_train": np.arange(6) % 2,
        "x_test": np.zeros((3, 2)),
        "y_test": np.zeros(3, int),
    }
    data = array_file(write_npz(tmp_path, **arrays))
    assert (len(data.train), len(data.test), data.classes) == (6, 3, ("0", "1"))


def test_npy_file_contains_examples(tmp_path: Path) -> None:
    np.save(tmp_path / "points.npy", np.random.default_rng(0).normal(size=(50, 2)))
    data = open_data(tmp_path / "points.npy")
    assert (len(data.train), len(data.test), data.shape, data.train.y) == (40, 10, (2,), None)
    assert data.train.x.dtype == torch.float32


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.array([{"a": 1}, None], dtype=object)}, "contains Python objects"),
        ({"x": np.array(["a", "b"])}, "x must be an array of numbers"),
        ({"x": np.ones((3, 2)), "y": np.ones(4, int)}, "x has 3 rows and y 4"),
        ({"x": np.array([[1.0], [np.nan]])}, "x contains NaN or infinite numbers"),
        ({"x": np.ones((0, 2))}, "x must be an array of numbers"),
        ({"x": np.array([[1e300], [1.0]])}, "x contains NaN or infinite numbers"),
        ({"pictures": np.ones((3, 2))}, "must contain x, or x_train and x_test; it contains pictures"),
        ({"x_train": np.ones((3, 2)), "x_test": np.ones((3, 1))}, "must have examples of one shape"),
    ],
)
def test_invalid_arrays_raise(tmp_path: Path, arrays: dict[str, NDArray[np.generic]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        array_file(write_npz(tmp_path, **arrays))


@pytest.mark.parametrize("keep", [0, 10, 200, 350])
def test_truncated_arrays_raise(tmp_path: Path, keep: int) -> None:
    path = write_npz(tmp_path, x=np.ones((30, 2)))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match=r"arrays\.npz"):
        array_file(path)


@pytest.mark.parametrize(
    "names", [("images", "labels"), ("data", "target"), ("X", "Y"), ("Features", "Targets"), ("arr_0", "arr_1")]
)
def test_common_names_of_arrays(tmp_path: Path, names: tuple[str, str]) -> None:
    arrays: dict[str, NDArray[np.generic]] = {names[0]: np.ones((6, 4, 5)), names[1]: np.arange(6) % 2}
    data = array_file(write_npz(tmp_path, **arrays), test=0.0)
    assert (data.shape, data.classes) == ((1, 4, 5), ("0", "1"))
    parts: dict[str, NDArray[np.generic]] = {
        **{f"train_{name}": array for name, array in arrays.items()},
        **{f"{name}_test": array[:2] for name, array in arrays.items()},
    }
    assert (len(array_file(write_npz(tmp_path, **parts)).test), data.classes) == (2, ("0", "1"))


@pytest.mark.parametrize(("dtype", "largest"), [("uint8", 255), ("uint16", 65_535), ("int64", 255), ("float32", 255)])
def test_pixels_are_scaled_to_one(tmp_path: Path, dtype: str, largest: int) -> None:
    pixels = np.zeros((4, 5, 6, 3), dtype=dtype)
    pixels[0, 0, 0] = largest
    data = array_file(write_npz(tmp_path, images=pixels), test=0.0)
    assert (float(data.train.x.max()), data.shape) == (1.0, (3, 5, 6))


def test_quantities_of_rows_are_not_scaled(tmp_path: Path) -> None:
    data = array_file(write_npz(tmp_path, x=np.array([[1, 200], [3, 4]])), test=0.0)
    assert data.train.x.tolist() == [[1, 200], [3, 4]]


def test_opacity_is_left_out(tmp_path: Path) -> None:
    lines: list[str] = []
    with pass_notices(lines.append):
        data = array_file(write_npz(tmp_path, x=np.zeros((4, 5, 6, 4), dtype=np.uint8)))
    assert data.shape == (3, 5, 6)
    assert "arrays.npz: the fourth channel of x, the opacity, is left out" in lines


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (np.array([-1, 1, 1, -1]), ("-1", "1")),
        (np.array(["cat", "dog", "cat", "dog"]), ("cat", "dog")),
        (np.array([[5], [7], [5], [7]]), ("5", "7")),
        (np.array([True, False, True, False]), ("0", "1")),
    ],
)
def test_targets_are_classes(tmp_path: Path, y: NDArray[np.generic], classes: tuple[str, ...]) -> None:
    data = array_file(write_npz(tmp_path, x=np.arange(8.0).reshape(4, 2), y=y), test=0.0)
    assert data.classes == classes
    assert data.train.y is not None
    assert sorted(data.train.y.tolist()) == [0, 0, 1, 1]


def test_test_labels_that_are_not_in_training_are_classes(tmp_path: Path) -> None:
    x = np.arange(8.0).reshape(4, 2)
    arrays = {"x_train": x, "y_train": np.array([0, 1, 0, 1]), "x_test": x, "y_test": np.array([0, 1, 2, 2])}
    assert array_file(write_npz(tmp_path, **arrays)).classes == ("0", "1", "2")

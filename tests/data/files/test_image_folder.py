from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from parnassus.data import DataError, image_folder, open_data
from parnassus.data.files.image_folder import read_image


def write_image(path: Path, value: int | tuple[int, int, int], size: tuple[int, int] = (6, 4)) -> None:
    """An image of one colour; `size` is (width, height), as in Pillow."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L" if isinstance(value, int) else "RGB", size, value).save(path)


@pytest.fixture
def animals(tmp_path: Path) -> Path:
    for number in range(10):
        write_image(tmp_path / "animals" / "cat" / f"{number}.png", 10 + number)
        write_image(tmp_path / "animals" / "dog" / f"{number}.png", 110 + number)
    return tmp_path / "animals"


def test_folders_are_classes(animals: Path) -> None:
    data = open_data(animals)
    assert (data.name, data.classes, data.shape) == ("animals", ("cat", "dog"), (1, 4, 6))
    assert (len(data.train), len(data.test)) == (16, 4)
    for split in (data.train, data.test):
        assert split.y is not None
        assert split.y.equal((split.x[:, 0, 0, 0] > 0.4).long())
        assert torch.bincount(split.y).tolist() == [len(split) // 2] * 2
    values = (torch.cat([data.train.x, data.test.x])[:, 0, 0, 0] * 255).round().sort().values
    assert values.tolist() == [*range(10, 20), *range(110, 120)]
    assert open_data(animals).test.x.equal(data.test.x)


def test_given_splits_are_kept(tmp_path: Path) -> None:
    for part, count in (("train", 3), ("test", 2)):
        for name in ("a", "b"):
            for number in range(count):
                write_image(tmp_path / "set" / part / name / f"{number}.png", 50)
    data = image_folder(tmp_path / "set")
    assert (len(data.train), len(data.test), data.classes) == (6, 4, ("a", "b"))
    write_image(tmp_path / "set" / "test" / "c" / "0.png", 50)
    with pytest.raises(DataError, match="must have the same classes; only one has c"):
        image_folder(tmp_path / "set")


def test_images_without_classes(tmp_path: Path) -> None:
    for number in range(5):
        write_image(tmp_path / "faces" / f"{number}.png", number)
    data = image_folder(tmp_path / "faces")
    assert (data.train.y, data.test.y, data.classes) == (None, None, ())
    assert len(data.train) == 4


def test_single_colour_image_converts_all_to_rgb(animals: Path) -> None:
    write_image(animals / "dog" / "red.png", (255, 0, 0))
    data = image_folder(animals, test=0.0)
    assert data.shape == (3, 4, 6)
    red = data.train.x[(data.train.x[:, 0] > 0.9).all((1, 2))]
    assert red.shape == (1, 3, 4, 6)
    assert red[0, :, 0, 0].tolist() == [1, 0, 0]


def test_sixteen_bit_images_keep_their_depth(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    Image.fromarray(np.full((4, 6), 32_768, dtype=np.uint16)).save(tmp_path / "deep" / "a.png")
    data = image_folder(tmp_path / "deep", test=0.0)
    torch.testing.assert_close(data.train.x, torch.full((1, 1, 4, 6), 32_768 / 65_535))


def test_images_of_different_sizes_raise_unless_resized(animals: Path) -> None:
    write_image(animals / "dog" / "wide.png", 200, size=(12, 4))
    with pytest.raises(
        DataError, match=r"one size: .*0\.png has 4×6 pixels and .*wide\.png 4×12; resize them with --image-size"
    ):
        open_data(animals)
    assert open_data(animals, size=(5, 7)).shape == (1, 5, 7)


def test_file_that_is_not_an_image_raises_data_error(animals: Path) -> None:
    (animals / "dog" / "notes.txt").write_text("woof")
    with pytest.raises(DataError, match=r"notes\.txt is not an image"):
        open_data(animals)


def test_truncated_image_raises_data_error(animals: Path) -> None:
    path = animals / "dog" / "0.png"
    noise = np.random.default_rng(0).integers(0, 255, (64, 64), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[:2_000])
    with pytest.raises(DataError, match=r"0\.png is a damaged image"):
        open_data(animals)


def test_empty_folder_raises_data_error(animals: Path) -> None:
    (animals / "unicorn").mkdir()
    with pytest.raises(DataError, match="unicorn is empty"):
        open_data(animals)
    (animals.parent / "nothing").mkdir()
    with pytest.raises(DataError, match="nothing is empty"):
        open_data(animals.parent / "nothing")


@pytest.mark.parametrize(("dtype", "white"), [("float32", 1.0), ("int32", 65_535), ("uint16", 65_535)])
def test_tiff_images_of_any_depth(tmp_path: Path, dtype: str, white: float) -> None:
    path, pixels = tmp_path / "a.tif", np.zeros((4, 6), dtype=dtype)
    pixels[:, :3], pixels[:, 3:] = 0.25 * white, white
    Image.fromarray(pixels).save(path)
    read = read_image(path)
    assert read.shape == (1, 4, 6)
    torch.testing.assert_close(read[0, 0], torch.tensor([0.25] * 3 + [1.0] * 3), atol=1e-4, rtol=0)
    assert read_image(path, size=(2, 2)).amax() > 0.9


def test_floating_point_image_outside_its_range_raises(tmp_path: Path) -> None:
    Image.fromarray(np.full((4, 6), 200, dtype=np.float32)).save(tmp_path / "a.tif")
    with pytest.raises(DataError, match=r"a\.tif must have pixels from 0 to 1; they are from 200 to 200"):
        read_image(tmp_path / "a.tif")


def test_orientation_of_photographs_is_applied(tmp_path: Path) -> None:
    image, exif = Image.new("L", (6, 4)), Image.Exif()
    exif[0x0112] = 6  # rotated by 90°
    image.save(tmp_path / "a.jpg", exif=exif)
    assert read_image(tmp_path / "a.jpg").shape == (1, 6, 4)

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from PIL import Image

from parnassus import setting_types
from parnassus.data import (
    DataError,
    check_target,
    csv_file,
    data_status,
    open_curve,
    open_data,
    open_grey_images,
    open_images,
    open_labelled_images,
    open_text,
    text_file,
)
from parnassus.data.loading import DATASETS, SOUNDS, TEXTS, TOYS
from parnassus.notices import pass_notices
from parnassus.setting_types import BuiltIn


@pytest.mark.parametrize(
    "name", ["digits", "mnist_mini", "iris", "wine", "breast_cancer", "diabetes", "linnerud", *TOYS]
)
def test_embedded_data_sets_open_offline(name: str, data_dir: Path) -> None:
    data = open_data(name)
    assert data.name == name
    assert len(data.train) > len(data.test) > 0
    assert data.train.x.shape[1:] == data.test.x.shape[1:] == data.shape
    assert not data_dir.exists()


def test_names_can_contain_hyphens() -> None:
    assert open_data("MNIST-mini").name == "mnist_mini"


def test_toy_sets_have_separate_test_rows() -> None:
    data = open_data("moons")
    assert (len(data.train), len(data.test), data.classes) == (2_000, 500, ("0", "1"))
    assert not data.train.x[:500].equal(data.test.x)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mnsit", "unknown data set mnsit: did you mean mnist"),
        ("fashion-minst", "did you mean fashion_mnist"),
        ("zzz", "available: digits, mnist_mini"),
        ("some/where", "some/where does not exist: give the path of an image folder"),
        ("table.csv", r"table\.csv does not exist"),
    ],
)
def test_unknown_names_raise_with_suggestions(spec: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_data(spec)


def test_unknown_file_type_raises_data_error(tmp_path: Path) -> None:
    (tmp_path / "table.xlsx").write_text("")
    with pytest.raises(DataError, match=r"must be an image folder or end in \.npz, \.npy or \.csv"):
        open_data(tmp_path / "table.xlsx")


def test_open_text_by_name_and_by_path(tmp_path: Path) -> None:
    assert open_text("pydoc").name == "pydoc"
    (tmp_path / "poem.txt").write_bytes(b"\xef\xbb\xbf" + b"0123456789\r\n" * 10)
    poem = open_text(tmp_path / "poem.txt")
    assert (poem.name, len(poem.train), len(poem.test)) == ("poem", 99, 11)
    assert poem.alphabet == ("\n", *"0123456789")
    with pytest.raises(DataError, match="did you mean moby_dick"):
        open_text("moby")


def test_files_that_are_not_text_raise_data_error(tmp_path: Path) -> None:
    (tmp_path / "image.txt").write_bytes(b"ab\xff\xfe")
    with pytest.raises(DataError, match="is not UTF-8 text: byte 2 is 0xff"):
        text_file(tmp_path / "image.txt")
    (tmp_path / "empty.txt").write_text(" \n")
    with pytest.raises(DataError, match="is empty"):
        text_file(tmp_path / "empty.txt")
    with pytest.raises(DataError, match="is a folder, not a text file"):
        text_file(tmp_path)


def test_data_status_has_paths_and_instructions(data_dir: Path) -> None:
    status = {row.name: row for row in data_status()}
    assert status["digits"].present
    assert not status["cifar10"].present
    assert status["mnist"].where == str(data_dir / "mnist")
    assert all(row.how for row in status.values() if not row.present)
    downloads = {"mnist", "fashion_mnist", "cifar10", *TEXTS} - {"pydoc"}
    assert downloads <= {name for name, row in status.items() if not row.present}
    assert set(DATASETS) - set(TOYS) <= status.keys()
    (data_dir / "text").mkdir(parents=True)
    (data_dir / "text" / "names.txt").write_text("emma")
    assert {row.name: row for row in data_status()}["names"].present
    assert not (data_dir / "mnist").exists()  # nothing is downloaded


def test_open_images_rejects_tables() -> None:
    assert open_images("digits").shape == (1, 8, 8)
    with pytest.raises(DataError, match=r"iris must contain images; its examples have shape \(4,\)"):
        open_images("iris")


def test_open_labelled_images_rejects_tables() -> None:
    assert open_labelled_images("digits").classes
    with pytest.raises(DataError, match=r"iris must consist of images with class labels; .* with 3 classes"):
        open_labelled_images("iris")


def test_open_curve_needs_one_input_and_a_numeric_target(tmp_path: Path) -> None:
    path = tmp_path / "line.csv"
    path.write_text("x,t\n" + "".join(f"{row},{row / 8}\n" for row in range(40)))
    data = open_curve(path)
    assert (data.shape, data.target) == ((1,), "t")
    for name in ("diabetes", "moons", "digits"):
        with pytest.raises(DataError, match=f"{name} must be a table of two numeric columns"):
            open_curve(name)


def suggested_names(annotation: object) -> set[str]:
    """The names that the type of a setting suggests."""
    (suggestions,) = (each for each in get_args(annotation) if isinstance(each, BuiltIn))
    return set(suggestions.names)


def test_settings_suggest_the_data_sets_that_can_be_opened() -> None:
    assert suggested_names(setting_types.AnyData) == set(DATASETS)
    assert suggested_names(setting_types.SoundData) == set(SOUNDS)
    assert suggested_names(setting_types.TextData) == set(TEXTS)
    for part in (setting_types.ImageData, setting_types.GreyImageData, setting_types.TableData):
        assert suggested_names(part) < set(DATASETS) - set(TOYS)
    assert suggested_names(setting_types.PlaneData) < set(TOYS)


@pytest.mark.parametrize("count", [1, 2])
def test_data_without_test_examples_raise_data_error(count: int, tmp_path: Path) -> None:
    """A fifth of the examples is held out, which is none of one or two."""
    np.save(tmp_path / "few.npy", np.zeros((count, 8, 8), dtype=np.uint8))
    with pytest.raises(DataError, match=f"must have examples for training and for testing; it has {count} and 0: add"):
        open_data(tmp_path / "few.npy")


def write_photos(folder: Path, *, sizes: tuple[int, int] = (8, 8)) -> Path:
    """Red cats and blue dogs of different sizes."""
    for name, colour in (("cat", (200, 30, 30)), ("dog", (30, 30, 200))):
        (folder / name).mkdir(parents=True)
        for number in range(40):
            Image.new("RGB", (sizes[number % 2], 8), colour).save(folder / name / f"{number}.png")
    return folder


def test_first_images_of_a_folder_are_of_mixed_classes(tmp_path: Path) -> None:
    data = open_data(write_photos(tmp_path / "pets"))
    for split in (data.train, data.test):
        assert split.y is not None
        assert set(split.y[:8].tolist()) == {0, 1}
        assert split.y.equal((split.x[:, 2, 0, 0] > 0.5).long())


def test_tables_sorted_by_class_are_mixed_and_others_keep_their_order(tmp_path: Path) -> None:
    kinds = {"sorted": "a" * 20 + "b" * 20, "mixed": "ab" * 20}
    for name, classes in kinds.items():
        lines = "\n".join(f"{row},{kind}" for row, kind in enumerate(classes))
        (tmp_path / f"{name}.csv").write_text(f"x,y\n{lines}\n", encoding="utf-8")
        x = csv_file(tmp_path / f"{name}.csv", test=0.0).train.x[:, 0].tolist()
        assert sorted(x) == list(range(40))
        assert (x == sorted(x)) == (name == "mixed")


def test_images_of_unequal_size_are_resized(tmp_path: Path) -> None:
    folder = write_photos(tmp_path / "pets", sizes=(8, 12))
    with pytest.raises(DataError, match=r"must have one size: .*; resize them with --image-size"):
        open_images(folder)
    assert open_labelled_images(folder, 6).shape == (3, 6, 6)
    assert open_data(folder, size=6).shape == (3, 6, 6)


def test_colour_images_become_grey_with_a_message(tmp_path: Path) -> None:
    lines: list[str] = []
    with pass_notices(lines.append):
        data = open_grey_images(write_photos(tmp_path / "pets"))
    assert data.shape == (1, 8, 8)
    expected = {round((0.299 * r + 0.587 * 30 + 0.114 * b) / 255, 4) for r, b in ((200, 30), (30, 200))}
    assert {round(value, 4) for value in data.train.x.unique().tolist()} == expected
    assert any("the colour images are converted to grey" in line for line in lines)
    assert open_grey_images("digits").shape == (1, 8, 8)


@pytest.mark.parametrize("y", ["a,a,a,a", "3,3,3,3"])
def test_target_with_one_value_gets_a_sentence(tmp_path: Path, y: str) -> None:
    lines = "\n".join(f"{row},{cell}" for row, cell in enumerate(y.split(",")))
    (tmp_path / "one.csv").write_text(f"x,kind\n{lines}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"the target 'kind' of one must have at least two values .*; all are (a|3)"):
        check_target(open_data(tmp_path / "one.csv"))
    check_target(open_data("iris"))

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from parnassus.data import (
    breast_cancer,
    diabetes,
    iris,
    linnerud,
    load_digits,
    mnist,
    mnist_mini,
    pydoc_text,
    sample_images,
    standardise_features,
    wine,
)
from parnassus.data.built_in.mnist_mini import make_mnist_mini
from parnassus.data.preparation.partition import stratified_split
from parnassus.data.splits import Dataset, first_of_each_class


def rows(data: Dataset) -> set[bytes]:
    return {row.numpy().tobytes() for row in torch.cat([data.train.x, data.test.x])}


def test_digits_are_split_by_class_and_without_overlap() -> None:
    digits = load_digits()
    assert (len(digits.train), len(digits.test), digits.shape) == (1_437, 360, (1, 8, 8))
    assert len(rows(digits)) == 1_797  # all images differ, so none is in both splits
    assert digits.train.x.dtype == torch.float32
    assert [float(digits.train.x.min()), float(digits.train.x.max())] == [0, 1]
    assert digits.train.y is not None
    assert digits.test.y is not None
    fractions = torch.bincount(digits.test.y) / torch.bincount(torch.cat([digits.train.y, digits.test.y]))
    assert (fractions - 0.2).abs().max() < 0.004


def test_digits_split_is_fixed() -> None:
    first, repeated = load_digits(), load_digits()
    assert first.test.x.equal(repeated.test.x)
    assert first.test.y is not None
    # a change of the split would change all published results
    assert first.test.y[:12].tolist() == [2, 0, 9, 6, 8, 0, 6, 8, 4, 1, 2, 1]


@pytest.mark.parametrize(
    ("load", "train", "test", "features", "classes"),
    [(iris, 120, 30, 4, 3), (wine, 142, 36, 13, 3), (breast_cancer, 455, 114, 30, 2)],
)
def test_classification_sets(load: object, train: int, test: int, features: int, classes: int) -> None:
    assert callable(load)
    data = load()
    assert (len(data.train), len(data.test), data.shape, len(data.classes)) == (train, test, (features,), classes)
    assert data.train.y.unique().tolist() == list(range(classes))
    assert len(set(data.columns)) == features
    assert data.target


@pytest.mark.parametrize(("load", "total", "features", "targets"), [(diabetes, 442, 10, 1), (linnerud, 20, 3, 3)])
def test_regression_sets(load: object, total: int, features: int, targets: int) -> None:
    assert callable(load)
    data = load()
    assert len(data.train) + len(data.test) == total
    assert data.train.x.shape[1:] == (features,)
    assert data.train.y.shape[1:] == (targets,)
    assert data.train.y.dtype == torch.float32


def test_standardised_features_have_mean_zero_and_variance_one() -> None:
    data = standardise_features(wine())
    torch.testing.assert_close(data.train.x.mean(0), torch.zeros(13), atol=1e-5, rtol=0)
    torch.testing.assert_close(data.train.x.var(0, correction=0), torch.ones(13), atol=1e-4, rtol=0)
    assert (data.test.x.mean(0).abs() < 0.5).all()


def test_stratified_split_has_the_requested_size() -> None:
    labels = torch.tensor([7] * 3 + [2] * 5 + [9] * 2)
    for test in range(11):
        train_rows, test_rows = stratified_split(labels, test)
        assert len(test_rows) == test
        assert sorted([*train_rows.tolist(), *test_rows.tolist()]) == list(range(10))
    assert not stratified_split(labels, 5, seed=1)[1].equal(stratified_split(labels, 5, seed=2)[1])


def test_sample_images_are_photographs() -> None:
    images = sample_images()
    assert {name: tuple(image.shape) for name, image in images.items()} == {
        "china": (3, 427, 640),
        "flower": (3, 427, 640),
    }
    assert 0 <= images["china"].min() < images["china"].max() <= 1


def test_mnist_mini_is_balanced() -> None:
    data = mnist_mini()
    assert data.shape == (1, 28, 28)
    assert data.train.y is not None
    assert data.test.y is not None
    assert torch.bincount(data.train.y).tolist() == [1_000] * 10
    assert torch.bincount(data.test.y).tolist() == [200] * 10
    assert data.train.y[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]  # the first labels of MNIST
    assert [float(data.train.x.min()), float(data.train.x.max())] == [0, 1]
    assert abs(float(data.train.x.mean()) - 0.1307) < 0.005  # MNIST's mean


def test_mnist_mini_is_small_and_has_an_attribution() -> None:
    import parnassus

    folder = Path(parnassus.__file__).parent / "data" / "built_in"
    assert (folder / "mnist_mini.idx.xz").stat().st_size < 2_500_000
    attribution = (folder / "mnist_mini.LICENSE.txt").read_text()
    for word in ("LeCun", "Cortes", "Burges", "ShareAlike 3.0"):
        assert word in attribution


def test_balanced_subset_keeps_pixels_and_order(tmp_path: Path) -> None:
    import lzma

    from parnassus.data.files.idx import split_idx

    make_mnist_mini(mnist_mini(), tmp_path / "small.xz", train=3, test=2)
    content = lzma.decompress((tmp_path / "small.xz").read_bytes())
    images, content = split_idx(content, "images")
    labels, content = split_idx(content, "labels")
    full = mnist_mini().train
    assert full.y is not None
    indices = first_of_each_class(full.y, 3)
    assert images.shape == (30, 28, 28)
    assert (images / 255).equal(full.x[indices, 0])
    assert labels.long().equal(full.y[indices])


def test_mnist_mini_can_be_reproduced_from_mnist(real_data: Path, tmp_path: Path) -> None:
    if not (real_data / "mnist").is_dir():
        pytest.skip("MNIST is not in the data directory")
    import parnassus

    make_mnist_mini(mnist(), tmp_path / "again.xz")
    shipped = Path(parnassus.__file__).parent / "data" / "built_in" / "mnist_mini.idx.xz"
    assert (tmp_path / "again.xz").read_bytes() == shipped.read_bytes()


def test_pydoc_text_is_english_prose() -> None:
    text = pydoc_text()
    assert text == pydoc_text()
    assert len(text.train) > 80_000
    assert abs(len(text.test) / len(text.train + text.test) - 0.1) < 1e-3
    assert len(text.alphabet) < 128
    words = text.train.lower().split()
    assert words.count("the") / len(words) > 0.05
    assert ">>>" not in text.train


def test_importing_data_does_not_import_heavy_packages() -> None:
    heavy = ["sklearn", "pooch", "PIL", "matplotlib", "rich", "requests"]
    code = f"import parnassus.data, sys; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_regression_sets_have_column_names() -> None:
    data = diabetes()
    assert data.columns[:3] == ("age", "sex", "bmi")
    assert (len(data.columns), data.target) == (10, "progression")
    assert linnerud().target == "Weight, Waist, Pulse"

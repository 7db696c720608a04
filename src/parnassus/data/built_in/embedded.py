"""Data sets that are included in scikit-learn; nothing is downloaded."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.data.preparation.partition import train_test_dataset
from parnassus.data.splits import Dataset


def load_digits() -> Dataset:
    """1,797 handwritten digits of 8×8 pixels in [0, 1]; 1,437 train and 360 test rows, stratified by class."""
    from sklearn import datasets

    bunch = datasets.load_digits()
    return train_test_dataset(
        torch.tensor(bunch.images, dtype=torch.float32)[:, None] / 16,
        torch.tensor(bunch.target, dtype=torch.int64),
        name="digits",
        test=360,
        classes=tuple("0123456789"),
        about="Optical recognition of handwritten digits (E. Alpaydin, C. Kaynak; UCI), test part",
    )


def iris() -> Dataset:
    """150 flowers, 4 lengths in centimetres, 3 species; 120 train and 30 test rows."""
    from sklearn import datasets

    return _classification("iris", datasets.load_iris(), "Iris plants (R. A. Fisher 1936)", "species")


def wine() -> Dataset:
    """178 wines, 13 chemical measurements, 3 growers; 142 train and 36 test rows."""
    from sklearn import datasets

    return _classification("wine", datasets.load_wine(), "Wine recognition (M. Forina et al.; UCI)", "grower")


def breast_cancer() -> Dataset:
    """569 tumours, 30 measurements of cell nuclei, malignant or benign; 455 train and 114 test rows."""
    from sklearn import datasets

    about = "Breast cancer Wisconsin, diagnostic (W. H. Wolberg, W. N. Street, O. L. Mangasarian; UCI)"
    return _classification("breast_cancer", datasets.load_breast_cancer(), about, "diagnosis")


def diabetes(*, scaled: bool = True) -> Dataset:
    """442 patients, 10 measurements, and the progression of the disease after a year; 354 train, 88 test rows.

    Columns are centred and have norm 1; with `scaled=False` they are in years, kg/m², mmHg and mg/dl.
    """
    from sklearn import datasets

    bunch = datasets.load_diabetes(scaled=scaled)
    return _regression("diabetes", bunch, "Diabetes (B. Efron et al. 2004)", "progression")


def linnerud() -> Dataset:
    """20 men, 3 exercises, and 3 body measurements as targets; 16 train and 4 test rows."""
    from sklearn import datasets

    bunch = datasets.load_linnerud()
    about = "Linnerud's exercise data (A. C. Linnerud, via M. Tenenhaus)"
    return _regression("linnerud", bunch, about, ", ".join(bunch["target_names"]))


def sample_images() -> dict[str, Float[Tensor, "3 height width"]]:
    """Two photographs of 427×640 pixels in [0, 1]: `china`, a temple, and `flower`, a dahlia."""
    from sklearn import datasets

    bunch = datasets.load_sample_images()
    names = [Path(name).stem for name in bunch.filenames]
    photographs = [torch.tensor(image, dtype=torch.float32).permute(2, 0, 1) / 255 for image in bunch.images]
    return dict(zip(names, photographs, strict=True))


def _classification(name: str, bunch: Mapping[str, object], about: str, target: str) -> Dataset:
    x, y = torch.as_tensor(bunch["data"], dtype=torch.float32), torch.as_tensor(bunch["target"], dtype=torch.int64)
    classes = _names(bunch, "target_names")
    columns, test = _names(bunch, "feature_names"), round(len(x) / 5)
    return train_test_dataset(x, y, name=name, test=test, classes=classes, about=about, columns=columns, target=target)


def _regression(name: str, bunch: Mapping[str, object], about: str, target: str) -> Dataset:
    x, y = torch.as_tensor(bunch["data"], dtype=torch.float32), torch.as_tensor(bunch["target"], dtype=torch.float32)
    columns, test = _names(bunch, "feature_names"), round(len(x) / 5)
    return train_test_dataset(
        x, y.reshape(len(x), -1), name=name, test=test, about=about, columns=columns, target=target
    )


def _names(bunch: Mapping[str, object], key: str) -> tuple[str, ...]:
    return tuple(str(word) for word in np.asarray(bunch[key]).tolist())

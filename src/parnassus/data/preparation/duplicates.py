"""Test examples that also occur among the training examples."""

import numpy as np
from torch import Tensor

from parnassus.data.splits import Dataset
from parnassus.notices import notify


def count_duplicates(dataset: Dataset) -> int:
    """Number of test examples that are identical to a training example."""
    known = set(_hashes_of_rows(dataset.train.x))
    return sum(row in known for row in _hashes_of_rows(dataset.test.x))


def notify_duplicates(dataset: Dataset) -> None:
    """Log how many test examples also occur among the training examples, if any do."""
    count = count_duplicates(dataset)
    if count:
        notify(
            f"{dataset.name}: {count} of {len(dataset.test)} test examples also occur among the training examples, "
            "so that results on the test examples say less about new ones"
        )


def _hashes_of_rows(x: Tensor) -> list[int]:
    return [hash((np.ascontiguousarray(row) + 0.0).tobytes()) for row in x.numpy()]  # + 0.0: −0 and 0 are equal

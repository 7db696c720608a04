"""`Evaluate` of a dense classifier reproduces the test results of its run."""

from collections.abc import Callable
from typing import cast

import pytest

from parnassus.data import DataError
from parnassus.layers.experiments.classifier_on_digits import Evaluate
from parnassus.train.trained import Trained


def test_the_results_on_the_training_data_are_those_of_the_run(trained_run: Callable[..., Trained]) -> None:
    run = trained_run("classifier_on_digits")
    (row,) = Evaluate("digits")([run])
    result = cast("dict[str, float]", run.folder.read_json("result.json")["result"])
    assert row["run"] == run.folder.path.name
    assert row["accuracy"] == pytest.approx(result["test_accuracy"])
    assert row["loss"] == pytest.approx(result["test_loss"])


def test_images_of_another_size_raise(trained_run: Callable[..., Trained]) -> None:
    with pytest.raises(DataError, match=r"got \{'inputs': 784, 'classes': 10\}"):
        Evaluate("mnist_mini")([trained_run("classifier_on_digits")])

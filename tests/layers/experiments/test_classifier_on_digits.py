"""`parnassus predict` and `parnassus evaluate` with a dense network on images."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from PIL import Image

from parnassus.data import DataError, open_data
from parnassus.layers.commands.image_classifiers import EvaluateImages, PredictImages
from parnassus.train.sample_predict_evaluate import Input
from parnassus.train.trained import TrainedRun

NAME = "classifier_on_digits"


def test_evaluate_reproduces_the_result_of_the_run(trained_run: Callable[..., TrainedRun]) -> None:
    run = trained_run(NAME)
    (row,) = EvaluateImages()([run])
    result = cast("dict[str, float]", run.folder.read_json("result.json")["result"])
    assert row["run"] == run.folder.path.name
    assert row["data"] == "digits"
    assert row["accuracy"] == pytest.approx(result["test_accuracy"])
    assert row["loss"] == pytest.approx(result["test_loss"])


def test_data_of_another_shape_raises_data_error(trained_run: Callable[..., TrainedRun]) -> None:
    with pytest.raises(DataError, match=r"mnist_mini must have the shape .* got shape=\(1, 28, 28\)"):
        EvaluateImages("mnist_mini")([trained_run(NAME)])


@pytest.mark.parametrize("name", [NAME, "early_stopping_on_digits"])
def test_predicted_probabilities_match_the_network(
    trained_run: Callable[..., TrainedRun], tmp_path: Path, name: str
) -> None:
    run, image = trained_run(name), open_data("digits").test.x[:1]
    Image.fromarray((image[0, 0] * 255).round().numpy().astype(np.uint8)).save(tmp_path / "digit.png")
    rows = list(PredictImages(top_k=10)(run, [Input(tmp_path / "digit.png")]))
    with torch.no_grad():
        expected = run.model(image)[0].softmax(0).sort(descending=True)
    assert [row["class"] for row in rows] == [str(index) for index in expected.indices.tolist()]
    assert [row["probability"] for row in rows] == pytest.approx(expected.values.tolist(), rel=0.05)

"""Prediction and evaluation with the vision transformer experiment."""

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Literal, cast

import numpy as np
import pytest
import torch
from PIL import Image

from parnassus.attention.experiments import vit_on_digits
from parnassus.data import DataError, open_data
from parnassus.train import ModelCollection
from parnassus.train.sample_predict_evaluate import Input
from parnassus.train.trained import TrainedRun


@pytest.fixture(scope="module")
def run(trained_run: Callable[..., TrainedRun]) -> TrainedRun:
    return trained_run("vit_on_digits")


def image_input(path: Path) -> Input:
    """The first test digit as an 8-bit image file."""
    pixels = (open_data("mnist_mini").test.x[0, 0] * 255).round().numpy().astype(np.uint8)
    Image.fromarray(pixels).save(path)
    return Input(path)


@pytest.mark.parametrize("network", ["vit", "cnn"])
def test_predicted_probabilities_match_the_model(
    run: TrainedRun, tmp_path: Path, network: Literal["vit", "cnn"]
) -> None:
    rows = list(vit_on_digits.Predict(network=network, top_k=10)(run, [image_input(tmp_path / "digit.png")]))
    assert isinstance(run.model, ModelCollection)
    with torch.no_grad():
        expected = run.model.model(network)(open_data("mnist_mini").test.x[:1])[0].softmax(0)
    assert {str(row["image"]) for row in rows} == {str(tmp_path / "digit.png")}
    probabilities = {str(row["class"]): float(str(row["probability"])) for row in rows}
    assert probabilities == pytest.approx({str(index): float(value) for index, value in enumerate(expected)}, rel=1e-4)
    assert list(probabilities.values()) == sorted(probabilities.values(), reverse=True)


def test_coloured_and_large_images_are_converted(run: TrainedRun, tmp_path: Path) -> None:
    Image.new("RGB", (90, 40), (200, 30, 90)).save(tmp_path / "large.jpg")
    assert len(list(vit_on_digits.Predict(top_k=2)(run, [Input(tmp_path / "large.jpg")]))) == 2


def test_image_is_read_from_standard_input(run: TrainedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = image_input(tmp_path / "digit.png")
    assert image.path is not None
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(image.path.read_bytes())))
    from_file, from_stdin = (list(vit_on_digits.Predict()(run, [source])) for source in (image, Input()))
    assert [row["probability"] for row in from_file] == [row["probability"] for row in from_stdin]


def test_evaluation_matches_the_recorded_accuracy(run: TrainedRun) -> None:
    (row,) = vit_on_digits.Evaluate()([run])
    result = cast("dict[str, float]", run.folder.read_json("result.json")["result"])
    assert row["run"] == run.folder.path.name
    for network in ("vit", "cnn"):
        assert row[f"{network}_accuracy"] == pytest.approx(result[f"{network}_accuracy"])


def test_data_of_another_shape_raises_data_error(run: TrainedRun) -> None:
    with pytest.raises(DataError, match=r"got shape=\(1, 8, 8\)"):
        vit_on_digits.Evaluate("digits")([run])
